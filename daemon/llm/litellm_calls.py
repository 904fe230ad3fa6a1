"""Asks a model through litellm. Used only in the models' process, which imports it."""

from __future__ import annotations

import asyncio
import gc
import importlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from .addresses import is_insecure
from .failures import CallFailed, of_status, pause_of, without
from .keys import ALONE
from .wire import LONGEST_REPLY, Answered, Ask, Setup

# Providers that accept a schema for every model; litellm would query their servers.
_TAKE_SCHEMAS: Final = frozenset({"ollama", "ollama_chat"})
# OpenAI's client requires a key, local servers have none.
_NO_KEY: Final = "none"
# The errors of litellm and the providers' clients without a key.
_KEYLESS: Final = re.compile(r"missing .{0,40}(?:api.?key|credentials)", re.IGNORECASE)
_CLASS: Final = re.compile(r"\A(?:litellm\.)?\w+Error: ")


class _Place(msgspec.Struct, frozen=True):
    """The address and credentials for a model; never shown."""

    provider: str
    base: str | None
    given: dict[str, str]

    def __repr__(self) -> str:
        return "_Place(...)"


class LiteLlm:
    """litellm, imported on first use; remembers which servers accept a schema."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._setup = Setup()
        self._litellm: Any = None
        self._structured: dict[tuple[str, str | None], bool] = {}

    def set_up(self, setup: Setup) -> None:
        """Use these keys and servers from now on."""
        self._setup = setup

    async def load(self) -> str:
        """Import litellm; return its version.

        Raises:
            ImportError: it is missing or incomplete.
        """
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(_imported)
        version = importlib.import_module("importlib.metadata").version("litellm")
        return str(version)

    async def ask(self, ask: Ask) -> Answered:
        """Ask one model: with a schema, or with the schema as text if its server refuses schemas.

        Raises:
            CallFailed: the model did not reply.
        """
        place = self._place(ask.model)
        at = (ask.model, place.base)
        structured = self._structured.get(at)
        if structured is None:
            structured = self._takes_schema(ask.model, place)
        try:
            answered = await self._once(ask, place, structured=structured)
        except CallFailed as error:
            if not structured or error.code != "bad_request":
                raise
            structured = False
            answered = await self._once(ask, place, structured=False)
        self._structured[at] = structured
        return answered

    def window(self, model: str) -> int | None:
        """The context window of a model in tokens, from litellm's table; None if unknown."""
        table = self._litellm.model_cost
        for name in (model, model.partition("/")[2]):
            known = table.get(name) or {}
            tokens = known.get("max_input_tokens") or known.get("max_tokens")
            # Some entries of the table are documentation.
            if isinstance(tokens, int) and tokens > 0:
                return tokens
        return None

    def _place(self, model: str) -> _Place:
        provider = self._provider(model)
        setup = self._setup
        is_main = setup.main is not None and provider == self._provider(setup.main)
        key = setup.keys.get(provider) or (setup.keys.get(ALONE) if is_main else None)
        base = setup.bases.get(provider) or (setup.base if is_main else None)
        given = dict(key) if isinstance(key, dict) else {"api_key": key} if key else {}
        if base is not None:
            given = {"api_base": base} | given
            if given and is_insecure(given["api_base"]) and "api_key" in given:
                raise CallFailed("insecure", f"cannot send a key over http:// for {model}")
            given.setdefault("api_key", _NO_KEY)
        return _Place(provider, given.get("api_base"), given)

    def _provider(self, model: str) -> str:
        try:
            return str(self._litellm.get_llm_provider(model)[1])
        except self._litellm.BadRequestError:
            raise CallFailed(
                "not_found", f"litellm knows no provider of {model}; write a-provider/{model}"
            ) from None

    def _takes_schema(self, model: str, place: _Place) -> bool:
        """Whether to try with a schema, which is the default for unknown servers."""
        if place.provider in _TAKE_SCHEMAS or place.base is not None:
            return True
        return bool(self._litellm.supports_response_schema(model))

    async def _once(self, ask: Ask, place: _Place, *, structured: bool) -> Answered:
        try:
            response = await self._litellm.acompletion(
                model=ask.model,
                messages=self._messages(ask, structured=structured),
                max_tokens=ask.max_tokens,
                temperature=ask.temperature,
                timeout=ask.seconds,
                num_retries=0,
                max_retries=0,
                drop_params=True,
                **_response_format(ask, structured=structured),
                **place.given,
            )
            return _answer(ask, response)
        except (CallFailed, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a hundred providers raise what they like
            raise self._failure(ask.model, place, error) from None

    def _messages(self, ask: Ask, *, structured: bool) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = [msgspec.to_builtins(one) for one in ask.messages]
        if not structured:
            messages[0]["content"] += f"\n\n{self._form}\n{ask.form.words}"
        return messages

    def _failure(self, model: str, place: _Place, error: Exception) -> CallFailed:
        litellm = self._litellm
        said = without(_bare(error), _secrets(self._setup))
        for kind, code, words in (
            (litellm.Timeout, "timeout", f"{model} did not answer in time"),
            (litellm.ContextWindowExceededError, "too_long", f"it is too long for {model}"),
            (litellm.ContentPolicyViolationError, "refused", f"{model} refuses: {said}"),
        ):
            if isinstance(error, kind):
                return CallFailed(code, words)
        heard = getattr(error, "litellm_response_headers", None)
        status = getattr(error, "status_code", None)
        if heard is None and "api_key" not in place.given and _KEYLESS.search(said):
            return CallFailed("unauthorized", f"no key for {place.provider}")
        # litellm reports requests that never reached a server with status 500 and no headers.
        lost = isinstance(error, litellm.APIConnectionError) or (heard is None and status == 500)
        if not lost and isinstance(status, int):
            own = getattr(getattr(error, "response", None), "headers", None) or {}
            return of_status(model, status, said, pause_of((heard or own).get("retry-after")))
        if "onnect" in said:
            return CallFailed("offline", f"cannot reach {model}")
        return CallFailed("nonsense", f"{model} does not answer in the expected format")


def _response_format(ask: Ask, *, structured: bool) -> dict[str, Any]:
    if not structured:
        return {}
    schema = {"name": ask.form.name, "schema": ask.form.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


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
    return Answered(ask.number, text, str(choice.finish_reason), tokens_in, tokens_out, cost)


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
    given, made = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    return given or None, made or None


def _bare(error: Exception) -> str:
    """The provider's error message, without litellm's class names."""
    text = str(error).rpartition("Exception - ")[2]
    return _CLASS.sub("", text)


def _secrets(setup: Setup) -> Iterator[str]:
    for key in setup.keys.values():
        yield from key.values() if isinstance(key, dict) else (key,)
