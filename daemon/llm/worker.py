"""The models' process: it alone imports litellm, and runs only while it is needed.

The same program encodes texts with static models, in another process, which never loads litellm.
Keys come with the requests, not from the environment. Output of libraries goes to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import re
import resource
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .access import ALONE, is_insecure
from .failures import CallFailed, of_status, pause_of, without
from .remote_encoder import prepared, vectors_of
from .wire import (
    LONGEST_REPLY,
    Answered,
    Ask,
    Cancel,
    Embed,
    Embedded,
    Failure,
    Load,
    Reply,
    Request,
    Setup,
    own_pipes,
    send,
    serve,
)

if TYPE_CHECKING:
    from .static_encoder import StaticEncoders

# Providers that accept a schema for every model; litellm would query their servers.
_TAKE_SCHEMAS: Final = frozenset({"ollama", "ollama_chat"})
# OpenAI's client requires a key, local servers have none.
_NO_KEY: Final = "none"
# The errors of litellm and the providers' clients without a key.
_KEYLESS: Final = re.compile(r"missing .{0,40}(?:api.?key|credentials)", re.IGNORECASE)
# llama.cpp says it with status 500.
_TOO_LARGE: Final = "too large to process"
_CLASS: Final = re.compile(r"\A(?:litellm\.)?\w+Error: ")


class _Place(msgspec.Struct, frozen=True):
    """The address and credentials for a model; never shown."""

    provider: str
    base: str | None
    credentials: dict[str, str]

    def __repr__(self) -> str:
        return "_Place(...)"


class LiteLlm:
    """litellm, imported on first use; remembers which servers accept a schema."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._litellm: Any = None
        self._structured: dict[tuple[str, str | None], bool] = {}

    async def load(self) -> str:
        """Import litellm; return its version. `ImportError` if it is missing or incomplete."""
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(_imported)
        version = importlib.import_module("importlib.metadata").version("litellm")
        return str(version)

    async def ask(self, ask: Ask) -> Answered:
        """Ask one model, with a schema; as text if its server refuses schemas."""
        place = self._place(ask.model, ask.setup or Setup())
        at = (ask.model, place.base)
        structured = self._structured.get(at)
        if structured is None:
            # Unknown servers are tried with one.
            structured = place.provider in _TAKE_SCHEMAS or place.base is not None
            structured = structured or bool(self._litellm.supports_response_schema(ask.model))
        try:
            answered = await self._once(ask, place, structured=structured)
        except CallFailed as error:
            if not structured or error.code != "bad_request":
                raise
            structured = False
            answered = await self._once(ask, place, structured=False)
        self._structured[at] = structured
        return answered

    def _place(self, model: str, setup: Setup) -> _Place:
        provider = self._provider(model)
        is_main = setup.main is not None and provider == self._provider(setup.main)
        key = setup.keys.get(provider) or (setup.keys.get(ALONE) if is_main else None)
        base = setup.bases.get(provider) or (setup.base if is_main else None)
        arguments = dict(key) if isinstance(key, dict) else {"api_key": key} if key else {}
        if base is not None:
            arguments = {"api_base": base} | arguments
            if arguments and is_insecure(arguments["api_base"]) and "api_key" in arguments:
                raise CallFailed("insecure", f"cannot send a key over http:// for {model}")
            arguments.setdefault("api_key", _NO_KEY)
        return _Place(provider, arguments.get("api_base"), arguments)

    def _provider(self, model: str) -> str:
        try:
            return str(self._litellm.get_llm_provider(model)[1])
        except self._litellm.BadRequestError:
            raise CallFailed(
                "not_found", f"litellm knows no provider of {model}; write a-provider/{model}"
            ) from None

    async def _once(self, ask: Ask, place: _Place, *, structured: bool) -> Answered:
        messages: list[dict[str, str]] = [msgspec.to_builtins(message) for message in ask.messages]
        form: dict[str, Any] = {}
        if structured:
            schema = {"name": ask.form.name, "schema": ask.form.schema, "strict": True}
            form = {"response_format": {"type": "json_schema", "json_schema": schema}}
        else:
            messages[0]["content"] += f"\n\n{self._form}\n{ask.form.words}"
        try:
            response = await self._litellm.acompletion(
                model=ask.model,
                messages=messages,
                max_tokens=ask.max_tokens,
                temperature=ask.temperature,
                timeout=ask.seconds,
                num_retries=0,
                max_retries=0,
                drop_params=True,
                **form,
                **place.credentials,
            )
            return _answer(ask, response)
        except (CallFailed, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a hundred providers raise what they like
            raise self._failure(ask, place, error) from None

    async def embed(self, embed: Embed) -> Embedded:
        """Encode texts; `CallFailed` if the model did not answer, or not with their vectors."""
        place = self._place(embed.model, embed.setup or Setup())
        texts, arguments = prepared(embed, place.provider)
        try:
            response = await self._litellm.aembedding(
                model=embed.model,
                input=texts,
                timeout=embed.seconds,
                num_retries=0,
                max_retries=0,
                drop_params=True,
                **arguments,
                **place.credentials,
            )
            vectors, dimensions = vectors_of(embed.model, response.data, len(embed.texts))
        except (CallFailed, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a hundred providers raise what they like
            raise self._failure(embed, place, error) from None
        tokens, _ = _tokens(getattr(response, "usage", None))
        cost = response._hidden_params.get("response_cost")  # noqa: SLF001 - litellm's own place
        return Embedded(vectors, dimensions, "", tokens, cost)

    def _failure(self, ask: Ask | Embed, place: _Place, error: Exception) -> CallFailed:
        litellm, model = self._litellm, ask.model
        setup = ask.setup or Setup()
        keys = (key.values() if isinstance(key, dict) else (key,) for key in setup.keys.values())
        # Without litellm's class names.
        bare = _CLASS.sub("", str(error).rpartition("Exception - ")[2])
        message = without(bare, chain.from_iterable(keys))
        for kind, code, words in (
            (litellm.Timeout, "timeout", f"{model} did not answer in time"),
            (litellm.ContextWindowExceededError, "too_long", f"it is too long for {model}"),
            (litellm.ContentPolicyViolationError, "refused", f"{model} refuses: {message}"),
        ):
            if isinstance(error, kind):
                return CallFailed(code, words)
        if _TOO_LARGE in message:
            return CallFailed("too_long", f"it is too long for {model}")
        headers = getattr(error, "litellm_response_headers", None)
        status = getattr(error, "status_code", None)
        if headers is None and "api_key" not in place.credentials and _KEYLESS.search(message):
            return CallFailed("unauthorized", f"no key for {place.provider}")
        # litellm reports requests that never reached a server with status 500 and no headers.
        lost = isinstance(error, litellm.APIConnectionError) or (headers is None and status == 500)
        if not lost and isinstance(status, int):
            own = getattr(getattr(error, "response", None), "headers", None) or {}
            return of_status(model, status, message, pause_of((headers or own).get("retry-after")))
        if "onnect" in message:
            return CallFailed("offline", f"cannot reach {model}")
        return CallFailed("nonsense", f"{model} does not answer in the expected format")


def _answer(ask: Ask, response: Any) -> Answered:
    choice = response.choices[0]
    message = choice.message
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    if refusal or choice.finish_reason == "content_filter":
        raise CallFailed("refused", f"{ask.model} refuses: {without(str(refusal or ''), ())}")
    text = message.content or ""
    if len(text) > LONGEST_REPLY:
        raise CallFailed("too_large", f"{ask.model} sends an answer that is too long")
    tokens_in, tokens_out = _tokens(getattr(response, "usage", None))
    cost = response._hidden_params.get("response_cost")  # noqa: SLF001 - litellm's own place
    return Answered(text, str(choice.finish_reason), tokens_in, tokens_out, cost)


def _imported() -> Any:
    # What it loads stays: the collector would spend a quarter of the time on it.
    gc.disable()
    try:
        litellm: Any = importlib.import_module("litellm")
    finally:
        gc.freeze()
        gc.enable()
    litellm.suppress_debug_info = True
    # Counting would download tokenizers.
    litellm.disable_token_counter = True
    litellm.disable_hf_tokenizer_download = True
    for name in ("callbacks", "input_callback", "success_callback", "failure_callback"):
        setattr(litellm, name, [])
    return litellm


def _tokens(usage: Any) -> tuple[int | None, int | None]:
    """The charged tokens; None if the server did not say, for which litellm has a 0."""
    prompt, made = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    return prompt or None, made or None


# Limits the memory that an endless answer can take.
_MOST_MEMORY: Final = 768 << 20


class Worker:
    """Answers requests, several at a time."""

    def __init__(self, out: int) -> None:
        self._out = out
        form = Path(__file__).with_name("prompts").joinpath("form.txt").read_text("utf-8")
        self._form = form.strip()
        self._models = LiteLlm(self._form)
        self._static: StaticEncoders | None = None
        self._tasks: dict[int, asyncio.Task[Any]] = {}

    def take(self, request: Request) -> None:
        if isinstance(request, Cancel):
            if (task := self._tasks.get(request.number)) is not None:
                task.cancel()
            return
        task = asyncio.create_task(self._answer(request))
        self._tasks[request.number] = task
        task.add_done_callback(lambda done: self._answered(request, done))

    async def _answer(self, request: Load | Ask | Embed) -> Any:
        match request:
            case Load():
                try:
                    return await self._models.load()
                except Exception as error:
                    why = type(error).__name__
                    if isinstance(error, ModuleNotFoundError):
                        why = f"{error.name} is not installed"
                    raise CallFailed("unloaded", f"cannot load litellm: {why}") from error
        async with asyncio.timeout(request.seconds):
            if isinstance(request, Embed):
                if request.setup is not None:
                    return await self._models.embed(request)
                if self._static is None:
                    from .static_encoder import StaticEncoders  # noqa: PLC0415 - most never need it

                    self._static = StaticEncoders()
                return await asyncio.to_thread(self._static.encode, request.model, request.texts)
            if request.endpoint is None:
                return await self._models.ask(request)
            from .endpoint_calls import ask_endpoint  # noqa: PLC0415 - most never need it

            return await ask_endpoint(request, self._form)

    def _answered(self, request: Load | Ask | Embed, task: asyncio.Task[Any]) -> None:
        del self._tasks[request.number]
        failure = None
        match None if task.cancelled() else task.exception():
            case None if task.cancelled():
                failure = Failure("cancelled", "the request was cancelled")
            case None:
                value = msgspec.Raw(msgspec.json.encode(task.result()))
                send(self._out, Reply(request.number, value))
                return
            case CallFailed() as error:
                failure = Failure(error.code, error.message, error.retry_after)
            case TimeoutError() if isinstance(request, Ask | Embed):
                who = getattr(request, "endpoint", None) or request.model
                failure = Failure("timeout", f"{who} did not answer in {request.seconds:.1f} s")
            case MemoryError():
                failure = Failure("too_large", "the answer does not fit into memory")
            case error:
                failure = Failure("nonsense", f"cannot ask: {type(error).__name__}")
        send(self._out, Reply(request.number, failure=failure))


async def _serve(requests: int, answers: int) -> None:
    worker, loop = Worker(answers), asyncio.get_running_loop()

    def handle(data: bytes) -> None:
        loop.call_soon_threadsafe(worker.take, msgspec.json.decode(data, type=Request))

    serve(requests, handle)
    send(answers, Reply(0))
    await asyncio.Event().wait()


def main() -> None:
    """Serve until standard input ends, without a core dump and with little memory."""
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, _MOST_MEMORY)):
        _, hard = resource.getrlimit(limit)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (allowed, allowed))
    asyncio.run(_serve(*own_pipes()))


if __name__ == "__main__":
    main()
