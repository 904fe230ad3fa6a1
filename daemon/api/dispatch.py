"""Dispatches requests to operations, and turns answers and errors into responses."""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from ..errors import (
    DiskFull,
    InvalidInput,
    NotFound,
    ReadOnly,
    ShuttingDown,
    ThermoclineError,
    Unavailable,
    translate_os,
)
from ..operations.operation import JSON, Operation, Scope, Stream
from ..runtime.problems import fault_of
from ..schemas.common import Input
from ..store.database.memory_database import translate
from ..store.database.transaction import acting
from ..store.readers import process
from .calls import Call, Services, agent_of, read_body
from .connections import PeerConnection
from .decoding import body_as, name_as_called, query_as
from .fairness import RateLimit
from .http import HttpRequest, HttpResponse, error_response
from .streams import streamed

_log = logging.getLogger(__name__)
_METHODS: Final = {"GET", "HEAD", "POST", "PUT", "DELETE"}
# The status is 0 if the caller left before the answer.
_REQUEST: Final = "%s %s for '%s': %d in %s ms"
_EXHAUSTED: Final = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}
_FAULT: Final = "something went wrong inside the daemon"
_FAULT_HINT: Final = "its log has the details"
_REPLACED_HINT: Final = "its program was replaced while it ran: restart it"


class MethodNotAllowed(InvalidInput):
    """The path exists, but not with this method."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, path: str, method: str, others: Collection[str]) -> None:
        self.allowed = ", ".join(sorted({*others, *({"HEAD"} if "GET" in others else ())}))
        super().__init__(f"{path[:200]} takes {self.allowed}, not {method}")


class Dispatcher:
    """Finds a request's operation, checks the role of the caller, and encodes the answer."""

    def __init__(self, services: Services, operations: Sequence[Operation]) -> None:
        self._services = services
        self._rates = RateLimit()
        self._exact: dict[str, dict[str, Operation]] = {}
        self._patterns: list[tuple[re.Pattern[str], Operation]] = []
        for operation in operations:
            if operation.parts:
                pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.path)
                self._patterns.append((re.compile(pattern), operation))
            else:
                by_method = self._exact.setdefault(operation.path, {})
                by_method.update(dict.fromkeys(operation.methods, operation))

    async def __call__(self, request: HttpRequest, connection: PeerConnection) -> HttpResponse:
        """Answer one request, and log it at debug, without parts that may hold a memory's text."""
        began, status = time.perf_counter(), 0
        known = {"path": "-", "agent": "-"}
        try:
            response = await self._respond(request, connection, known)
            status = response.status
        finally:
            if _log.isEnabledFor(logging.DEBUG):
                fields = {
                    "action": "request",
                    "method": request.method if request.method in _METHODS else "-",
                    **known,
                    "status": status,
                    "ms": round((time.perf_counter() - began) * 1000, 1),
                }
                _log.debug(_REQUEST, *[*fields.values()][1:], extra=fields)
        return response

    async def _respond(
        self, request: HttpRequest, connection: PeerConnection, known: dict[str, str]
    ) -> HttpResponse:
        """Answer one request; an error becomes an answer too.

        What is known of it before it is answered goes into `known`.
        """
        agents = request.headers("x-agent") or request.query.get("agent", [""])
        await connection.turn(agents[0])
        try:
            return await self._answer(request, connection, known)
        except ThermoclineError as error:
            return _refused(error)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the daemon
            if (reason := self._reason(error)) is not None:
                return _refused(reason)
            kind, where = fault_of(error)
            text = "a request failed with %s:\n%s"
            _log.error(text, kind, where, extra={"action": "request_failed"})
            # A module that is loaded late fits no more to those that were loaded before.
            replaced = isinstance(error, ImportError) and "thermocline" in (error.name or "")
            hint = _REPLACED_HINT if replaced else _FAULT_HINT
            return error_response(ThermoclineError(_FAULT, hint=hint))

    def _reason(self, error: Exception) -> ThermoclineError | None:
        """The error of our tree for one of the disk or of the limits of the process, else None."""
        state = Path(self._services.identity.state_dir)
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            return translate_os(error, state)
        if isinstance(error, sqlite3.Error):
            translated = translate(error, state)
            if isinstance(translated, DiskFull | ReadOnly | Unavailable):
                return translated
        return None

    async def _answer(
        self, request: HttpRequest, connection: PeerConnection, known: dict[str, str]
    ) -> HttpResponse:
        services = self._services
        if services.stopping.is_set():
            raise ShuttingDown("cannot answer: the daemon is stopping", hint="start it again")
        operation, parts = self._find(request.method, request.path)
        known["path"] = operation.path
        program = request.header("x-program")
        peer = msgspec.structs.replace(connection.peer, program=program)
        settings = services.settings()
        acting.set(peer.name)
        process.set(peer.pid)
        agent, named = agent_of(request, settings.agent_id)
        known["agent"] = agent
        services.gate.require(peer, agent if operation.agent else "*", operation.role)
        if operation.agent:
            self._rates.acquire(agent, settings.quotas.requests_per_second)
        call = Call(services, request, connection, operation, parts, peer, settings, agent, named)
        spelled: dict[str, str] = {}
        try:
            return await _run(call, spelled)
        except InvalidInput as error:
            name_as_called(error, spelled)
            raise

    def _find(self, method: str, raw_path: str) -> tuple[Operation, Mapping[str, str]]:
        path = raw_path.rstrip("/") or "/"
        by_method = self._exact.get(path, {})
        method = "GET" if method == "HEAD" else method
        if method in by_method:
            return by_method[method], {}
        others = set(by_method)
        for pattern, operation in self._patterns:
            match = pattern.fullmatch(path)
            if match is None or by_method.keys() & set(operation.methods):
                continue
            if method in operation.methods:
                return operation, {name: _text(part) for name, part in match.groupdict().items()}
            others.update(operation.methods)
        if others:
            raise MethodNotAllowed(path, method, others)
        raise NotFound(f"no such path: {path[:200]}", hint="see GET /api/openapi.json")


async def _run(call: Call, spelled: dict[str, str]) -> HttpResponse:
    operation, request = call.operation, call.request
    arguments = {**call.parts, **await _decoded(call, spelled)}
    if (fields := arguments.pop(operation.spread, None)) is not None:
        arguments |= msgspec.structs.asdict(fields)
    if operation.by_hand:
        response: HttpResponse = await operation.run(call, **arguments)
        return response
    run, kind = operation.run, operation.type
    for other, run_other in operation.others.items():
        if other.partition(";")[0] in request.header("accept"):
            run, kind = run_other, other
    scope = Scope(
        call.services,
        call.peer,
        call.agent,
        operation.role == "read",
        time.time(),
        call.settings.for_agent(call.agent),
    )
    answer = await run(scope, **arguments)
    if isinstance(answer, Stream):
        return await streamed(call, scope, kind, answer)
    if isinstance(answer, str):
        body, kind = answer.encode(), f"{kind}; charset=utf-8"
    else:
        body, kind = msgspec.json.encode(answer), JSON
    status = operation.statuses[0 if getattr(answer, "ok", True) else -1]
    return HttpResponse(body, status, {"Content-Type": kind})


async def _decoded(call: Call, spelled: dict[str, str]) -> dict[str, Any]:
    operation, request = call.operation, call.request
    if operation.also_get and request.method in {"GET", "HEAD"}:
        return {"body": query_as(request.query, operation.body, spelled)}
    query = query_as(request.query, operation.query or Input, spelled)
    arguments = {} if operation.query is None else {"query": query}
    if operation.needs_body or request.has_body:
        body = await read_body(call)
        if operation.body is not None:
            arguments["body"] = body_as(body, operation.body, spelled)
        elif body:
            body_as(body, Input, spelled)
    return arguments


def _refused(error: ThermoclineError) -> HttpResponse:
    if error.status >= 500:
        _log.info("refused: %s", error, extra={"action": error.code})
    response = error_response(error)
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = error.allowed
    return response


def _text(part: str) -> str:
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"cannot read '{part[:64]}' in the path: it is not valid UTF-8"
        ) from error
