"""The model that the daemon asks: the port of `model`, served by the models' process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import msgspec

from ..config.settings import Llm
from ..errors import ConfigInvalid, ModelUnavailable
from ..runtime.problems import Problems
from . import schemas
from .addresses import is_named
from .attempts import Attempts
from .cache import Cache, Cached, key_of
from .failures import CallFailed
from .instructions import Prompts
from .keys import Keys, is_open, key_file, read_keys
from .metering import Bill, Errand, Meter
from .model import PURPOSES, Asked, Clear, Reply
from .plan import CacheState, ModelStatus, State
from .quoting import Quoting
from .replies import Unreadable, read
from .wire import Answered, Ask, Message, Setup, Wanted

T = TypeVar("T")

# The first reply as the model is shown it again.
_SHOWN: Final = 4_000
# A model that thinks aloud may need most of its tokens for that.
_MORE: Final = 4
_MISSING_SECONDS: Final = 60.0
# Codes of questions that found the model in order.
_NO_FAULT: Final = ("off", "refused", "spent")
_WORTH_ASKING: Final = ("ready", "failing")
_CUT_OFF: Final = "it was cut off because it was too long; be brief"


class _Question(msgspec.Struct, frozen=True):
    """A question on its way: what is asked of whom, in which time, and what it is for."""

    asked: Asked
    wanted: Wanted
    models: tuple[str, ...]
    endpoint: str | None
    errand: Errand
    until: float
    patient: bool

    @property
    def given(self) -> str:
        """The data in it."""
        return "\n".join(part.text for part in self.asked.parts)


class LiveModel:
    """Asks the configured models, or a caller's endpoint, through a process of their own.

    Args:
        settings: the configuration in force.
        env: where `$CREDENTIALS_DIRECTORY` may stand.
        prompts: the rules that go with every question.
        meter: makes the requests and counts them.
        attempts: says which model is asked, and how often.
        cache: the answers so far.
        clear: takes secrets out of a text before it is sent.
        problems: is told what a person should see to.
    """

    def __init__(
        self,
        settings: Callable[[], Llm],
        env: Mapping[str, str],
        prompts: Prompts,
        meter: Meter,
        attempts: Attempts,
        cache: Cache,
        clear: Clear,
        problems: Problems,
    ) -> None:
        self._settings = settings
        self._env = env
        self._prompts = prompts
        self._meter = meter
        self._attempts = attempts
        self._clock = attempts.clock
        self._cache = cache
        self._clear = clear
        self._problems = problems
        self._quoting = Quoting()
        self._setup = Setup()
        self._missing_until = 0.0
        self._blamed: Llm | None = None
        self._failed: Llm | None = None

    def available(self, purpose: str) -> bool:
        """Whether it is worth asking: one is configured, and the budget is not spent. No I/O."""
        return bool(self._settings().models_for(purpose)) and self._state() in _WORTH_ASKING

    async def ask(
        self,
        asked: Asked,
        kind: type[T],
        *,
        deadline: float | None = None,
        endpoint: str | None = None,
    ) -> Reply[T]:
        """Ask, and read the reply as a `kind`; see `model.Model`."""
        began, usage = self._clock(), self._meter.usage
        asked, cleared = await asyncio.to_thread(self._cleared, asked)
        usage.called(asked.purpose, cleared)
        bill = Bill()
        try:
            async with asyncio.timeout(deadline):
                reply = await self._reply(asked, kind, deadline, endpoint, bill)
        except (CallFailed, Unreadable, TimeoutError) as error:
            code, shown = self._explained(error, self._clock() - began)
            usage.failed(asked.purpose, code)
            # A deadline of the caller's own says nothing of the model.
            hasty = code == "timeout" and deadline is not None
            if endpoint is None and not hasty and code not in _NO_FAULT:
                self._failed = self._settings()
            raise shown from error
        finally:
            if bill.tokens_in and endpoint is None:
                await self._meter.save()
        if endpoint is None and not reply.cached:
            self._failed = None
        seconds = self._clock() - began
        usage.answered(asked.purpose, None if reply.cached else seconds, repaired=reply.repaired)
        return msgspec.structs.replace(reply, seconds=seconds, cleared=cleared)

    def status(self) -> ModelStatus:
        """How models are, for status and metrics; problems that are over are cleared."""
        settings, cache, meter = self._settings(), self._cache, self._meter
        self._clear_outdated(settings)
        models = {purpose: settings.models_for(purpose) for purpose in PURPOSES}
        names = sorted({name for several in models.values() for name in several})
        rests = {name: self._attempts.resting.why(name) for name in names}
        return ModelStatus(
            state=self._state(),
            worker=meter.supervisor.state,
            models=models,
            resting={name: why.message for name, why in rests.items() if why is not None},
            day=meter.budget.day,
            today=meter.budget.today,
            limits=meter.budget.limits,
            cache=CacheState(len(cache), cache.hits, cache.misses),
            purposes=meter.usage.purposes(),
            cleared=meter.usage.cleared(),
        )

    async def close(self) -> None:
        """End the process; questions under way fail."""
        await self._meter.supervisor.close()

    def _clear_outdated(self, settings: Llm) -> None:
        """Nobody may ask a model for long after a new day, or another configuration."""
        if self._meter.budget.why_spent() is None:
            self._problems.clear("model_budget_spent", "/llm")
        if self._blamed is not None and self._blamed != settings:
            self._blamed = None
            for code in ("model_failing", "model_keys", "model_keys_open"):
                self._problems.clear(code, "/llm")

    def _state(self) -> State:
        if self._settings().main is None:
            return "off"
        if self._clock() < self._missing_until:
            return "missing"
        if self._meter.budget.why_spent():
            return "spent"
        return "failing" if self._failed == self._settings() else "ready"

    async def _reply(
        self, asked: Asked, kind: type[T], deadline: float | None, endpoint: str | None, bill: Bill
    ) -> Reply[T]:
        wanted = schemas.wanted(kind)
        models = (endpoint,) if endpoint else self._settings().models_for(asked.purpose)
        key = key_of(models, asked, wanted.words)
        if (known := self._cache.get(key)) is not None:
            value = msgspec.json.decode(known.value, type=kind)
            return _reply(value, known.model, Bill(), cached=True)
        if not models:
            raise CallFailed("off", f"no model is configured for {asked.purpose}")
        errand = Errand(asked.purpose, await self._prepared(endpoint), bill)
        before = self._clock()
        await self._meter.supervisor.ready(errand.setup, load=endpoint is None)
        patient = deadline is None
        seconds = getattr(self._settings().timeouts, asked.purpose)
        until = self._clock() + seconds if deadline is None else before + deadline
        question = _Question(asked, wanted, models, endpoint, errand, until, patient)
        async with asyncio.timeout(until - self._clock()):
            model, value, repaired = await self._usable(question, kind)
        self._cache.put(key, Cached(model, msgspec.json.encode(value)))
        return _reply(value, model, bill, repaired=repaired)

    async def _prepared(self, endpoint: str | None) -> Setup | None:
        """What the process has to know; None for a caller's own endpoint, which must be one."""
        if endpoint is not None:
            is_named(endpoint, ())
            return None
        self._meter.check()
        settings = self._settings()
        setup = Setup(
            await self._keys(settings), settings.main, settings.api_base, settings.api_bases
        )
        if setup != self._setup:
            self._setup = setup
            self._attempts.resting.forget()
        return setup

    async def _keys(self, settings: Llm) -> Keys:
        def found() -> tuple[Keys, str]:
            path = key_file(settings.key_file, self._env)
            return read_keys(path), str(path) if path is not None and is_open(path) else ""

        try:
            keys, exposed = await asyncio.to_thread(found)
        except ConfigInvalid as error:
            failed = CallFailed("unauthorized", error.message)
            self._blame("model_keys", failed.message, failed.hint)
            raise failed from error
        self._problems.clear("model_keys", "/llm")
        if exposed:
            text = f"every user of this device can read the models' keys in {exposed}"
            self._blame("model_keys_open", text, f"chmod o= {exposed}")
        else:
            self._problems.clear("model_keys_open", "/llm")
        return keys

    async def _usable(self, question: _Question, kind: type[T]) -> tuple[str, T, bool]:
        """A reply that can be used, if need be the second; whose, and whether it was that."""
        asked = question.asked
        messages = self._quoting.messages(asked, self._prompts.data)
        ask = Ask(0, "", messages, question.wanted, asked.max_tokens, asked.temperature, 0.0)
        model, answered = await self._one(question, ask, question.models)
        try:
            return model, await _read_aside(answered, kind, question.given), False
        except Unreadable as error:
            if error.refused:
                raise
            again = self._repair(ask, answered, error.why)
        model, answered = await self._one(question, again, (model,))
        return model, await _read_aside(answered, kind, question.given), True

    def _repair(self, ask: Ask, answered: Answered, why: str) -> Ask:
        cut = answered.finish == "length"
        words = self._prompts.repair.replace("{why}", _CUT_OFF if cut else why)
        shown = answered.text[:_SHOWN].strip()
        more = (Message("assistant", shown),) if shown else ()
        messages = (*ask.messages, *more, Message("user", words))
        tokens = ask.max_tokens * (_MORE if cut else 1)
        return msgspec.structs.replace(ask, messages=messages, max_tokens=tokens)

    async def _one(
        self, question: _Question, ask: Ask, models: tuple[str, ...]
    ) -> tuple[str, Answered]:
        endpoint = question.endpoint
        if endpoint is not None:
            anywhere = is_named(endpoint, self._settings().endpoint_hosts)
            ask = msgspec.structs.replace(ask, endpoint=endpoint, anywhere=anywhere)
        call = partial(self._meter.call, question.errand)
        try:
            answer = await self._attempts.reply(
                call, ask, models, question.until, patient=question.patient
            )
        except CallFailed as error:
            self._tell(error, question)
            raise
        if endpoint is None:
            self._problems.clear("model_failing", "/llm")
        return answer

    def _cleared(self, asked: Asked) -> tuple[Asked, dict[str, int]]:
        """The question without secrets, and how many there were."""
        counts: dict[str, int] = {}
        parts = []
        for part in asked.parts:
            cleared = self._clear(part.text)
            parts.append(msgspec.structs.replace(part, text=cleared.text))
            for name, count in cleared.counts.items():
                counts[name] = counts.get(name, 0) + count
        return msgspec.structs.replace(asked, parts=tuple(parts)), counts

    def _tell(self, error: CallFailed, question: _Question) -> None:
        """Note what a person should see to."""
        if question.endpoint is not None:
            return
        if error.code == "unloaded":
            self._missing_until = self._clock() + _MISSING_SECONDS
        if error.lasting or error.code == "unloaded":
            self._blame("model_failing", f"no model can be asked: {error.message}", error.hint)

    def _blame(self, code: str, text: str, hint: str | None) -> None:
        """Report a fault of the configuration as it is now."""
        self._blamed = self._settings()
        self._problems.report(code, "/llm", text, hint or "", lasting=False)

    def _explained(self, error: Exception, seconds: float) -> tuple[str, ModelUnavailable]:
        """In a word for the statistics, and as an error for the caller."""
        match error:
            case CallFailed():
                return error.code, ModelUnavailable(error.message, hint=error.hint)
            case Unreadable(refused=True):
                return "refused", ModelUnavailable("the model refuses to answer")
            case Unreadable():
                why = f"the model's reply cannot be used, at the second attempt either: {error}"
                return "unreadable", ModelUnavailable(why)
        return "timeout", ModelUnavailable(f"no model answered within {seconds:.1f} s")


async def _read_aside(answered: Answered, kind: type[T], given: str) -> T:
    """The value of a reply, read on a thread: a long one takes what many callers could have."""
    return await asyncio.to_thread(read, answered.text, kind, given=given)


def _reply(
    value: T, model: str, bill: Bill, *, cached: bool = False, repaired: bool = False
) -> Reply[T]:
    return Reply(
        value=value,
        model=model,
        tokens_in=bill.tokens_in,
        tokens_out=bill.tokens_out,
        cost=bill.cost,
        cached=cached,
        repaired=repaired,
        seconds=0.0,
        cleared={},
    )
