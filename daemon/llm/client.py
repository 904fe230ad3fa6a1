"""The daemon's side of a language model: implements `model.Model` with the models' process."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from ..config.settings import Llm
from ..errors import ConfigInvalid, ModelUnavailable
from ..language.secrets import Cleared
from ..runtime.places import readable_by_all
from ..runtime.problems import Problems
from ..schemas.status import CacheState, ModelState, ModelStatus
from .access import Keys, is_named, key_file, read_keys
from .budget import FILE, Budget, UsageCounts, Write
from .calls import Cost, Failover, MeteredCalls, ModelProcess
from .failures import CallFailed
from .model import PURPOSES, ModelQuestion, ModelReply, Prompts, Quoting, read_prompts
from .process import Timeouts
from .replies import UnreadableReply, form_of, read
from .wire import Answered, Ask, ChatMessage, ReplyForm, Setup

_MOST_ANSWERS: Final = 256


K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """At most `most` answers, in memory; those that were not used for longest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[K, V] = OrderedDict()
        self._hits = self._misses = 0

    @property
    def state(self) -> CacheState:
        return CacheState(len(self._answers), self._hits, self._misses)

    def get(self, key: K) -> V | None:
        """The answer to a question, which then counts as used."""
        answer = self._answers.get(key)
        if answer is None:
            self._misses += 1
            return None
        self._hits += 1
        self._answers.move_to_end(key)
        return answer

    def put(self, key: K, answer: V) -> None:
        self._answers[key] = answer
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)

    def drop(self, is_stale: Callable[[K], bool]) -> None:
        """Remove the answers to some questions."""
        for key in [key for key in self._answers if is_stale(key)]:
            del self._answers[key]


def cleared_of(
    clear: Callable[[str], Cleared], texts: Iterable[str]
) -> tuple[list[str], dict[str, int]]:
    """The texts without secrets, and the number of secrets by kind."""
    cleared = [*map(clear, texts)]
    counts: Counter[str] = Counter()
    for each in cleared:
        counts.update(each.counts)
    return [each.text for each in cleared], dict(counts)


def key_of(models: Sequence[str], question: ModelQuestion, schema: str) -> bytes:
    """The digest of a question: the models, its full text, and the form of the reply."""
    return hashlib.sha256(msgspec.json.encode((models, question, schema))).digest()


T = TypeVar("T")

# The characters of its first reply that a model gets to repair it.
_SHOWN_CHARS: Final = 4_000
# A reasoning model may need most of its tokens for thinking.
_MORE_TOKENS: Final = 4
_MISSING_SECONDS: Final = 60.0
# Codes of failures that are not the model's fault.
_NO_FAULT: Final = ("off", "refused", "spent")
_KEYLESS: Final = (
    "an endpoint that a call names gets no key and no model's name: correct its address, or"
    " configure it as llm.model"
)
_CUT_OFF: Final = "it was cut off because it was too long; be brief"


class _Request(msgspec.Struct, frozen=True):
    question: ModelQuestion
    form: ReplyForm
    models: tuple[str, ...]
    endpoint: str | None
    setup: Setup | None
    cost: Cost
    until: float


class ModelClient:
    """Asks the configured models, or a caller's endpoint, through the models' process.

    `clear` removes secrets from a text before it is sent; `problems` receives faults that a person
    has to fix.
    """

    def __init__(
        self,
        settings: Callable[[], Llm],
        calls: MeteredCalls,
        failover: Failover,
        prompts: Prompts,
        env: Mapping[str, str],
        clear: Callable[[str], Cleared],
        problems: Problems,
    ) -> None:
        # Shared with the encoder.
        self.calls = calls
        self.failover = failover
        self._settings = settings
        self._prompts = prompts
        self._env = env
        self._clear = clear
        self._problems = problems
        self._clock = failover.clock
        # The model that gave an answer, and its value as JSON.
        self._cache = Cache[bytes, tuple[str, bytes]](_MOST_ANSWERS)
        self._quoting = Quoting()
        self._setup = Setup()
        self._missing_until = 0.0
        # The configuration when a problem was reported, and when the last call failed.
        self._reported: Llm | None = None
        self._failed: Llm | None = None

    def available(self, purpose: str) -> bool:
        """Whether to ask: a model is configured, and the budget is not spent. No I/O."""
        return bool(self._settings().models_for(purpose)) and self._state() in ("ready", "failing")

    async def ask(
        self, question: ModelQuestion, kind: type[T], *, endpoint: str | None = None
    ) -> ModelReply[T]:
        """Ask, and read the reply as a `kind`; see `model.Model`."""
        began, usage, cost = self._clock(), self.calls.usage, Cost()
        question, cleared = await asyncio.to_thread(self._cleared, question)
        usage.called(question.purpose, cleared)
        try:
            reply = await self._reply(question, kind, endpoint, cost)
        except (CallFailed, UnreadableReply, TimeoutError) as error:
            code, shown = _explained(error, self._clock() - began, endpoint)
            usage.failed(question.purpose, code)
            if endpoint is None and code not in _NO_FAULT:
                self._failed = self._settings()
            raise shown from error
        finally:
            if cost.tokens_in:
                await self.calls.save()
        if endpoint is None and not reply.cached:
            self._failed = None
        seconds = self._clock() - began
        usage.answered(question.purpose, None if reply.cached else seconds, repaired=reply.repaired)
        return msgspec.structs.replace(reply, seconds=seconds, cleared=cleared)

    def status(self) -> ModelStatus:
        """The state of models, for status and metrics; clears problems that are over."""
        settings, budget = self._settings(), self.calls.budget
        if self.calls.budget.why_spent() is None:
            self._problems.clear("model_budget_spent", "/llm")
        if self._reported is not None and self._reported != settings:
            self._reported = None
            for code in ("model_failing", "model_keys", "model_keys_open"):
                self._problems.clear(code, "/llm")
        models = {purpose: settings.models_for(purpose) for purpose in PURPOSES}
        names = sorted({name for several in models.values() for name in several})
        paused = {name: self.failover.paused(name) for name in names}
        return ModelStatus(
            state=self._state(),
            worker=self.calls.process.state,
            models=models,
            resting={name: why.message for name, why in paused.items() if why is not None},
            day=budget.day,
            today=budget.today,
            limits=budget.limits,
            cache=self._cache.state,
            purposes=self.calls.usage.purposes(),
            cleared=self.calls.usage.cleared(),
        )

    async def close(self) -> None:
        await self.calls.process.close()

    def _state(self) -> ModelState:
        if self._settings().answering is None:
            return "off"
        if self._clock() < self._missing_until or find_spec("litellm") is None:
            return "missing"
        if self.calls.budget.why_spent():
            return "spent"
        return "failing" if self._failed == self._settings() else "ready"

    async def _reply(
        self, question: ModelQuestion, kind: type[T], endpoint: str | None, cost: Cost
    ) -> ModelReply[T]:
        form, purpose = form_of(kind), question.purpose
        models = (endpoint,) if endpoint else self._settings().models_for(purpose)
        key = key_of(models, question, form.words)
        if (known := self._cache.get(key)) is not None:
            model, content = known
            return ModelReply(msgspec.json.decode(content, type=kind), model, cached=True)
        if not models:
            raise CallFailed("off", f"no model is configured for {purpose}")
        if endpoint is not None:
            is_named(endpoint, ())
        self.calls.check_budget()
        setup = await self.setup() if endpoint is None else None
        process = self.calls.process
        await (process.load() if endpoint is None else process.ready())
        seconds: float = getattr(self._settings().timeouts, purpose)
        until = self._clock() + seconds
        request = _Request(question, form, models, endpoint, setup, cost, until)
        async with asyncio.timeout(seconds):
            model, value, repaired = await self._usable(request, kind)
        self._cache.put(key, (model, msgspec.json.encode(value)))
        spent = (cost.tokens_in, cost.tokens_out, cost.dollars)
        return ModelReply(value, model, *spent, repaired=repaired)

    async def setup(self) -> Setup:
        """The keys and addresses as configured now; `CallFailed` if the keys cannot be read."""
        settings = self._settings()
        keys = await self._keys(settings)
        setup = Setup(keys, settings.main, settings.api_base, settings.api_bases)
        if setup != self._setup:
            self._setup = setup
            self.failover.forget()
        return setup

    async def _keys(self, settings: Llm) -> Keys:
        def read() -> tuple[Keys, str]:
            path = key_file(settings.key_file, self._env)
            return read_keys(path), str(path) if path is not None and readable_by_all(
                path.resolve()
            ) else ""

        try:
            keys, exposed = await asyncio.to_thread(read)
        except ConfigInvalid as error:
            failed = CallFailed("unauthorized", error.message)
            self._report("model_keys", failed.message, failed.hint)
            raise failed from error
        self._problems.clear("model_keys", "/llm")
        text = f"every user of this device can read the models' keys in {exposed}"
        self._report("model_keys_open", text if exposed else None, f"chmod o= {exposed}")
        return keys

    async def _usable(self, request: _Request, kind: type[T]) -> tuple[str, T, bool]:
        """The model that gave a usable reply, its value, and whether it is the second attempt."""
        question = request.question
        quoted = "\n".join(part.text for part in question.parts)
        messages = self._quoting.messages(question, self._prompts.data)
        limits = (question.max_tokens, question.temperature, 0.0)
        ask = Ask("", messages, request.form, *limits)
        model, answered = await self._answered(request, ask, request.models)
        try:
            return model, await asyncio.to_thread(read, answered.text, kind, question=quoted), False
        except UnreadableReply as error:
            if error.refused:
                raise
            again = self._repair(ask, answered, error.why)
        model, answered = await self._answered(request, again, (model,))
        return model, await asyncio.to_thread(read, answered.text, kind, question=quoted), True

    def _repair(self, ask: Ask, answered: Answered, why: str) -> Ask:
        cut = answered.finish == "length"
        words = self._prompts.repair.replace("{why}", _CUT_OFF if cut else why)
        shown = answered.text[:_SHOWN_CHARS].strip()
        more = (ChatMessage("assistant", shown),) if shown else ()
        messages = (*ask.messages, *more, ChatMessage("user", words))
        tokens = ask.max_tokens * (_MORE_TOKENS if cut else 1)
        return msgspec.structs.replace(ask, messages=messages, max_tokens=tokens)

    async def _answered(
        self, request: _Request, ask: Ask, models: tuple[str, ...]
    ) -> tuple[str, Answered]:
        endpoint = request.endpoint
        if endpoint is not None:
            anywhere = is_named(endpoint, self._settings().endpoint_hosts)
            ask = msgspec.structs.replace(ask, endpoint=endpoint, anywhere=anywhere)
        call = partial(self.calls.call, request.question.purpose, request.setup, request.cost)
        try:
            answer = await self.failover.reply(call, ask, models, request.until, patient=True)
        except CallFailed as error:
            if endpoint is None:
                if error.code == "unloaded":
                    self._missing_until = self._clock() + _MISSING_SECONDS
                if error.lasting or error.code == "unloaded":
                    self._report(
                        "model_failing", f"no model can be asked: {error.message}", error.hint
                    )
            raise
        if endpoint is None:
            self._problems.clear("model_failing", "/llm")
        return answer

    def _cleared(self, question: ModelQuestion) -> tuple[ModelQuestion, dict[str, int]]:
        texts, counts = cleared_of(self._clear, (part.text for part in question.parts))
        parts = tuple(
            msgspec.structs.replace(part, text=text)
            for part, text in zip(question.parts, texts, strict=True)
        )
        return msgspec.structs.replace(question, parts=parts), counts

    def _report(self, code: str, text: str | None, hint: str | None) -> None:
        self._reported = self._settings() if text else self._reported
        self._problems.set(code, "/llm", text, hint or "", lasting=False)


def build_model(
    settings: Callable[[], Llm],
    *,
    env: Mapping[str, str],
    state_dir: Path,
    write: Write,
    clear: Callable[[str], Cleared],
    problems: Problems,
    timeouts: Timeouts | None = None,
) -> ModelClient:
    """Build a client. Reads files; starts no process before the first question.

    Close it at the end; otherwise its process runs until the daemon exits. `write` replaces a file
    durably; `clear` removes secrets from a text; `timeouts` are those of the models' process.
    """
    budget = Budget(state_dir / FILE, write, time.time, settings)
    try:
        budget.load()
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        why = f"cannot read {state_dir / FILE}: {error}"
        text = f"{why}; today's cost of models is counted from now on"
        problems.report("model_usage_lost", "/llm", text, lasting=False)
    process = ModelProcess(env, lambda: settings().idle_seconds, timeouts=timeouts)
    # Jitter does not need secure randomness.
    failover = Failover(time.monotonic, asyncio.sleep, random.Random())  # noqa: S311
    calls = MeteredCalls(process, budget, UsageCounts(), problems)
    return ModelClient(settings, calls, failover, read_prompts(), env, clear, problems)


def _explained(
    error: Exception, seconds: float, endpoint: str | None
) -> tuple[str, ModelUnavailable]:
    match error:
        case CallFailed():
            hint = _KEYLESS if endpoint and error.lasting else error.hint
            return error.code, ModelUnavailable(error.message, hint=hint)
        case UnreadableReply(refused=True):
            return "refused", ModelUnavailable("the model refuses to answer")
        case UnreadableReply():
            why = f"the model's reply cannot be used, even after a second attempt: {error}"
            return "unreadable", ModelUnavailable(why)
    return "timeout", ModelUnavailable(f"no model answered within {seconds:.1f} s")
