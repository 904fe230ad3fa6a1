"""Asks an endpoint that a caller named, in one of the two protocols of EvoClaw's tools.

Used only in the models' process. It sends no key, follows no redirect, uses no proxy, and connects
only to allowed addresses, which are checked after resolving the name.
"""

from __future__ import annotations

import socket
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from .access import is_allowed, parts_of, style_of, target_of
from .failures import CallFailed, of_status, pause_of, without
from .wire import LONGEST_REPLY, Answered, Ask

_LONGEST_BODY: Final = 4 << 20
_PLAIN_FIELDS: Final = ("text", "response", "content")
_AS_IT_IS: Final = {"Accept-Encoding": "identity"}
# EvoClaw's name; most local servers accept it for their only model.
_ANY_MODEL: Final = "default"
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Json = Any


async def ask_endpoint(ask: Ask, form: str) -> Answered:
    """Ask the endpoint of a request one question; `CallFailed` if it did not reply.

    `form` is the text before the schema of the reply.
    """
    assert ask.endpoint is not None
    url = target_of(ask.endpoint)
    host = parts_of(url).hostname or ""
    try:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_Allowed(anywhere=ask.anywhere), use_dns_cache=False
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        ) as session:
            url = _literal_allowed(url, host, anywhere=ask.anywhere)
            return await _ask_known_model(session, url, _body(ask, form))
    except (aiohttp.ClientConnectorError, aiohttp.ServerDisconnectedError) as error:
        if isinstance(error.__cause__, _NotAllowed):
            raise CallFailed("address", str(error.__cause__)) from None
        raise CallFailed("offline", f"cannot reach the endpoint {url}") from None
    except aiohttp.ClientError:
        raise CallFailed("nonsense", f"the endpoint {url} broke off its answer") from None


async def _ask_known_model(session: aiohttp.ClientSession, url: str, body: Json) -> Answered:
    """The answer of any model; some servers require the name of a model that they have."""
    try:
        return await _posted(session, url, body)
    except CallFailed as error:
        unknown = error.code == "not_found" or (
            error.code == "bad_request" and "model" in error.message.lower()
        )
        name = await _first_model(session, url) if unknown and "model" in body else None
        if name is None:
            raise
    return await _posted(session, url, body | {"model": name})


async def _posted(session: aiohttp.ClientSession, url: str, body: Json) -> Answered:
    async with session.post(url, json=body, headers=_AS_IT_IS, allow_redirects=False) as response:
        return await _answer(response)


async def _first_model(session: aiohttp.ClientSession, url: str) -> str | None:
    """The first chat model that a server lists; None if it lists none."""
    place, version, _ = url.rpartition("/v1/")
    if not version:
        return None
    async with session.get(
        f"{place}/v1/models", headers=_AS_IT_IS, allow_redirects=False
    ) as response:
        content = await _read(response)
    try:
        names = [str(item["id"]) for item in msgspec.json.decode(content)["data"]]
    except (*_UNREADABLE, LookupError, TypeError):
        return None
    return next((name for name in names if name != _ANY_MODEL and "embed" not in name), None)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > _LONGEST_BODY:
            url = response.url
            raise CallFailed("too_large", f"the endpoint {url} sends an answer that is too long")
    return bytes(content)


async def _answer(response: aiohttp.ClientResponse) -> Answered:
    url = str(response.url)
    content = await _read(response)
    if response.status >= 300:
        message = without(content[:2000].decode("utf-8", "replace"), ())
        pause = pause_of(response.headers.get("Retry-After"))
        raise of_status(f"the endpoint {url}", response.status, message, pause)
    try:
        return _whole(msgspec.json.decode(content))
    except (*_UNREADABLE, LookupError, TypeError, AttributeError):
        raise CallFailed(
            "nonsense", f"the endpoint {url} does not answer in the expected format"
        ) from None


def _body(ask: Ask, form: str) -> Json:
    system, *others = ask.messages
    instructions = f"{system.content}\n\n{form}\n{ask.form.words}"
    limits = {"max_tokens": ask.max_tokens, "temperature": ask.temperature}
    assert ask.endpoint is not None
    if style_of(ask.endpoint) == "plain":
        prompt = "\n\n".join([instructions, *(message.content for message in others)])
        return {"prompt": prompt, **limits}
    messages = [{"role": "system", "content": instructions}]
    messages += [msgspec.to_builtins(message) for message in others]
    return {"messages": messages, **limits, "model": _ANY_MODEL}


def _whole(body: Json) -> Answered:
    if "choices" not in body:
        texts = [body[name] for name in _PLAIN_FIELDS if isinstance(body.get(name), str)]
        return Answered(texts[0][:LONGEST_REPLY], "stop")
    choice = body["choices"][0]
    message = choice.get("message") or {}
    if refusal := message.get("refusal"):
        raise CallFailed("refused", f"the model refuses: {without(str(refusal), ())}")
    text = message.get("content") or choice.get("text") or ""
    usage = body.get("usage") or {}
    return Answered(
        str(text)[:LONGEST_REPLY],
        str(choice.get("finish_reason") or "stop"),
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
    )


class _NotAllowed(OSError):
    pass


class _Allowed(AbstractResolver):
    """Resolves a name to those of its addresses that are allowed."""

    def __init__(self, *, anywhere: bool) -> None:
        self._anywhere = anywhere
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._inner.resolve(host, port, family)
        allowed = [
            address for address in addresses if is_allowed(address["host"], anywhere=self._anywhere)
        ]
        if not allowed:
            raise _NotAllowed(_not_allowed(host))
        return allowed

    async def close(self) -> None:
        await self._inner.close()


def _literal_allowed(url: str, host: str, *, anywhere: bool) -> str:
    """The URL; raises if its host is an IP address that is not allowed."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        return url
    if not is_allowed(host, anywhere=anywhere):
        raise CallFailed("address", _not_allowed(host))
    return url


def _not_allowed(host: str) -> str:
    return f"may not ask {host}: an endpoint must be on this device, or in llm.endpoint_hosts"
