"""Texts as vectors: the daemon's side of the encoder, which runs in a process of its own.

A model behind a server is asked by the models' process, with their keys, budget and pauses; a
static one, a folder on this device, by a second process of the same program, which has no keys.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ..config.settings import EMBED, STATIC, Llm, Settings
from ..errors import ModelUnavailable
from ..language.secrets import Cleared
from ..memory.vectors import cosine
from ..schemas.status import EncoderStatus, ModelState
from .access import is_local
from .calls import COMMAND, Cost
from .client import Cache, ModelClient, cleared_of
from .failures import CallFailed
from .process import ChildProcess, Timeouts
from .wire import LONGEST_LINE, Embed, Embedded, TextRole

# Encoded with every call of passages: its vector shows whether the model is still the same.
PROBE: Final = "The ferry leaves at nine, and the spare key hangs behind the blue door."
_SAME_COSINE: Final = 0.995
# Texts that are encoded at once.
MOST_TEXTS: Final = 64
# Most encoders read no more than 512 to 8,192 tokens.
_LONGEST_TEXT: Final = 8_000
# The length at which a text is tried again that was refused because of its length or its content.
_SHORT_TEXT: Final = 1_000
_OF_A_TEXT: Final = frozenset({"bad_request", "too_long", "refused"})
_MOST_QUERIES: Final = 256
_MOST_WAITING: Final = 4
# Queries are counted on the disk now and then: a write for each would wear it out.
_SAVING_SECONDS: Final = 60.0

_Call = Callable[[tuple[str, ...]], Awaitable[Embedded]]
_Send = Callable[[Embed], Awaitable[Embedded]]


class Encoding(msgspec.Struct, frozen=True):
    """Texts as vectors of one model."""

    model: str  # as it is configured
    dimensions: int
    revision: str  # the digest of the files of a static model; "" if it is unknown
    # The vector of `PROBE` as a passage; of a query, as it was last encoded, b"" before.
    probe: bytes
    # One for each text; None if a text has none, such as an empty one.
    vectors: tuple[bytes | None, ...] = ()


def same_encoder(first: Encoding, second: Encoding) -> bool:
    """Whether the vectors of two encodings can be compared: they are from the same model."""
    attributes = (first.model, first.dimensions, first.revision)
    if attributes != (second.model, second.dimensions, second.revision):
        return False
    if not first.probe or not second.probe:
        return True
    return cosine(first.probe, second.probe) >= _SAME_COSINE


class EncodingCost(Cost):
    """What the passages of a model took since the daemon started."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0
        self.calls = 0
        self.seconds = 0.0  # of all calls
        # The shortest call, as one without passages is: what a call takes whatever is in it.
        self.shortest = math.inf

    def seconds_of(self, texts: int) -> float:
        """The time in seconds for some texts, `MOST_TEXTS` in a call."""
        overhead = min(self.shortest, self.seconds / max(1, self.calls))
        each = (self.seconds - self.calls * overhead) / max(1, self.texts)
        return math.ceil(texts / MOST_TEXTS) * overhead + texts * each


class Encoder:
    """Encodes texts, which lose their secrets first, with the configured model or an earlier one.

    It shares calls, pauses and keys with `models`; `static` is the process of static models;
    `clear` removes secrets from a text before it leaves the daemon.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        models: ModelClient,
        static: ChildProcess,
        clear: Callable[[str], Cleared],
    ) -> None:
        self._settings = settings
        self._models = models
        self._static = static
        self._clear = clear
        self._clock = models.failover.clock
        self._queries = Cache[tuple[str, bytes], Encoding](_MOST_QUERIES)
        self._waiting: dict[tuple[str, bytes], asyncio.Task[Encoding]] = {}
        # The last encoding of passages by model, and what they took.
        self._known: dict[str, Encoding] = {}
        self._measured: dict[str, EncodingCost] = {}
        self._failed: tuple[Llm, str] | None = None
        self._saved = self._clock()

    @property
    def model(self) -> str | None:
        """The configured model; None: nothing is encoded."""
        return self._settings().llm.encoder

    async def encode(
        self,
        texts: Sequence[str],
        *,
        model: str,
        role: TextRole = "passage",
        deadline: float | None = None,
    ) -> Encoding:
        """Encode up to `MOST_TEXTS` texts. Passages come with a new probe, also if there are none.

        Long texts are cut. `model` is the configured one, or that of earlier vectors; `role` is
        what the texts are to be compared as; `deadline` the timeout in seconds, None: that of
        `llm.timeouts.embed`, in addition to the start of the process. `ModelUnavailable` says why
        the model cannot encode them now.
        """
        began, usage = self._clock(), self._models.calls.usage
        settings = self._settings().llm
        shown = (text[: 2 * _LONGEST_TEXT] for text in texts)
        whole, counts = await asyncio.to_thread(cleared_of, self._clear, shown)
        cleared = tuple(text[:_LONGEST_TEXT] for text in whole)
        seconds = settings.timeouts.embed if deadline is None else deadline
        usage.called(EMBED, counts)
        cost = Cost()
        try:
            async with asyncio.timeout(deadline):
                send = await self._sender(model, cost)
                # The start of a process is not the model's time.
                began = self._clock()
                async with asyncio.timeout(seconds):
                    until, patient = began + seconds, deadline is None
                    call = partial(self._reply, send, Embed(model, (), role), until, patient)
                    encoding = await self._encoding(model, role, call, cleared)
        except (CallFailed, TimeoutError) as error:
            late = CallFailed("timeout", f"{model} did not encode in {seconds:.1f} s")
            failed = error if isinstance(error, CallFailed) else late
            usage.failed(EMBED, failed.code)
            message = failed.message
            if failed.code == "resting" and self._failed is not None:
                message = f"{message}: {self._failed[1]}"
            elif deadline is None or failed.code != "timeout":
                self._failed = settings, message
            raise ModelUnavailable(message, hint=failed.hint) from error
        finally:
            due = role == "passage" or self._clock() - self._saved > _SAVING_SECONDS
            if cost.tokens_in and due:
                self._saved = self._clock()
                await self._models.calls.save()
        self._failed = None
        usage.answered(EMBED, self._clock() - began, repaired=False)
        if role == "passage":
            self._note(encoding, self._clock() - began, cost)
        return encoding

    async def encode_query(self, text: str, *, model: str) -> Encoding | None:
        """Encode a query within `recall.embed_deadline_ms`, or take it from the cache.

        None: the model is late, in which case the call goes on for the next time, or cannot encode
        it; `status` says why.
        """
        key = model, hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if (known := self._queries.get(key)) is not None:
            return _with_vector(known)
        task = self._waiting.get(key)
        if task is None:
            if len(self._waiting) >= _MOST_WAITING:
                return None
            work = self.encode((text,), model=model, role="query")
            task = self._waiting[key] = asyncio.create_task(work, name="encoding a query")
            task.add_done_callback(partial(self._encoded, key))
        seconds = self._settings().recall.embed_deadline_ms / 1_000
        try:
            return _with_vector(await asyncio.wait_for(asyncio.shield(task), seconds))
        except (ModelUnavailable, TimeoutError):
            return None

    def end_pause(self) -> None:
        """Ask the model again although it has just failed."""
        self._models.failover.forget()

    def measured(self) -> EncodingCost | None:
        """What the passages of the configured model took so far; None before the first."""
        return self._measured.get(self.model or "")

    def state(self) -> EncoderStatus | None:
        """The state of the configured model; None without one."""
        settings = self._settings().llm
        model = settings.encoder
        if model is None:
            return None
        state, why = self._standing(settings, model)
        known = self._known.get(model)
        return EncoderStatus(
            state,
            model,
            why,
            known.dimensions if known else None,
            destination(settings, model),
            self._static.pid,
            self._static.memory_bytes,
            self._queries.state,
        )

    async def close(self) -> None:
        """End the process of static models; running calls fail."""
        for task in self._waiting.values():
            task.cancel()
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)
        await self._static.close()

    def _standing(self, settings: Llm, model: str) -> tuple[ModelState, str]:
        if missing := missing_packages(model):
            return "missing", f"not installed: {', '.join(missing)}"
        why = self._models.calls.budget.why_spent()
        if why and not model.startswith(STATIC):
            return "spent", f"the models' budget is spent: {why}"
        if self._failed is not None and self._failed[0] == settings:
            return "failing", self._failed[1]
        paused = self._models.failover.paused(model)
        return ("ready", "") if paused is None else ("failing", paused.message)

    async def _sender(self, model: str, cost: Cost) -> _Send:
        failover, calls = self._models.failover, self._models.calls
        setup = None if model.startswith(STATIC) else await self._models.setup()
        if (paused := failover.paused(model)) is not None:
            raise paused
        if setup is None:
            await self._static.ready()
            return partial(self._static.ask, kind=Embedded)
        calls.check_budget()
        await calls.process.load()
        return partial(calls.embed, setup, cost)

    async def _reply(
        self, send: _Send, request: Embed, until: float, patient: bool, texts: tuple[str, ...]
    ) -> Embedded:
        request, models = msgspec.structs.replace(request, texts=texts), (request.model,)
        failover = self._models.failover
        _, embedded = await failover.reply(send, request, models, until, patient=patient)
        return embedded

    async def _encoding(
        self, model: str, role: TextRole, call: _Call, texts: tuple[str, ...]
    ) -> Encoding:
        if role == "query":
            embedded = await call(texts)
            known = self._known.get(model)
            probe = known.probe if known is not None else b""
            return Encoding(model, embedded.dimensions, embedded.revision, probe, embedded.vectors)
        try:
            embedded = await call((PROBE, *texts))
            probed, *vectors = embedded.vectors
        except CallFailed as error:
            if error.code not in _OF_A_TEXT or not texts:
                raise
            # Unless the probe alone fails too, it is the fault of one of the texts.
            embedded = await call((PROBE,))
            probed, vectors = embedded.vectors[0], await _halved(call, texts)
        if probed is None:
            raise CallFailed("nonsense", f"{model} sends vectors without a direction")
        return Encoding(model, embedded.dimensions, embedded.revision, probed, tuple(vectors))

    def _encoded(self, key: tuple[str, bytes], task: asyncio.Task[Encoding]) -> None:
        self._waiting.pop(key, None)
        if not task.cancelled() and task.exception() is None:
            self._queries.put(key, task.result())

    def _note(self, encoding: Encoding, seconds: float, cost: Cost) -> None:
        """Remember the model as it is now, and forget queries that an earlier one encoded."""
        known = self._known.get(encoding.model)
        if known is not None and not same_encoder(known, encoding):
            self._queries.drop(lambda key: key[0] == encoding.model)
            self._measured.pop(encoding.model, None)
        self._known[encoding.model] = msgspec.structs.replace(encoding, vectors=())
        measured = self._measured.setdefault(encoding.model, EncodingCost())
        measured.shortest = min(measured.shortest, seconds)
        if encoding.vectors:
            measured.texts += len(encoding.vectors)
            measured.calls += 1
            measured.seconds += seconds
            measured.add(cost.tokens_in, cost.tokens_out, cost.dollars)


async def _halved(call: _Call, texts: tuple[str, ...]) -> list[bytes | None]:
    """The vectors of texts that are not all accepted: a part at a time, long ones shortened."""
    try:
        return [*(await call(texts)).vectors]
    except CallFailed as error:
        if error.code not in _OF_A_TEXT:
            raise
    if len(texts) > 1:
        half = len(texts) // 2
        return [*await _halved(call, texts[:half]), *await _halved(call, texts[half:])]
    if len(texts[0]) > _SHORT_TEXT:
        return await _halved(call, (texts[0][:_SHORT_TEXT],))
    return [None]


def _with_vector(query: Encoding) -> Encoding | None:
    return query if query.vectors[0] is not None else None


def missing_packages(model: str) -> list[str]:
    """The packages that a model needs and that are not installed."""
    needed = ("numpy", "tokenizers") if model.startswith(STATIC) else ("litellm",)
    return [name for name in needed if find_spec(name) is None]


def destination(settings: Llm, model: str) -> str:
    """Where texts go that a model encodes: a host or a provider; "" if they stay on this device."""
    if model.startswith(STATIC):
        return ""
    provider, _, name = model.partition("/")
    base = settings.api_bases.get(provider)
    if base is None and provider == (settings.main or "").partition("/")[0]:
        base = settings.api_base
    if base is not None:
        return "" if is_local(base) else urlsplit(base).netloc
    return "" if provider == "ollama" else provider if name else f"the provider of {model}"


def build_encoder(
    settings: Callable[[], Settings],
    models: ModelClient,
    *,
    env: Mapping[str, str],
    clear: Callable[[str], Cleared],
    timeouts: Timeouts | None = None,
) -> Encoder:
    """Build an encoder. Starts no process before the first text; close it at the end.

    `clear` removes secrets from a text; `timeouts` are those of the process of static models.
    """

    def stays() -> bool:
        return (settings().llm.encoder or "").startswith(STATIC)

    static = ChildProcess(
        "the encoder's process",
        COMMAND,
        env,
        lambda: settings().llm.idle_seconds,
        timeouts or Timeouts(),
        LONGEST_LINE,
        stays=stays,
    )
    return Encoder(settings, models, static, clear)
