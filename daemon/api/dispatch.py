"""Dispatches requests to operations, and turns answers and errors into responses."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from aiohttp.http import HttpVersion10, HttpVersion11
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from ..errors import InvalidInput, NotFound, ShuttingDown, ThermoclineError
from ..operations.operation import JSON, Operation, Stream
from ..operations.scope import Scope
from ..runtime.problems import unforeseen
from ..store.transaction import acting
from .calls import Call, NoParameters, Services, agent_of, body_of, query_of
from .connections import PeerConnection, error_response
from .rates import Rates
from .streaming import streamed

_log = logging.getLogger(__name__)
_METHODS: Final = {"GET", "HEAD", "POST", "PUT", "DELETE"}
# The status is 0 if the caller left before the answer.
_REQUEST: Final = "%s %s for '%s': %d in %s ms"
_FAULT: Final = "something went wrong inside the daemon"
_FAULT_HINT: Final = "its log has the details"


class MethodNotAllowed(InvalidInput):
    """The path exists, but not with this method."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, path: str, method: str, others: Collection[str]) -> None:
        self.allowed = ", ".join(sorted({*others, *({"HEAD"} if "GET" in others else ())}))
        super().__init__(f"{path[:200]} takes {self.allowed}, not {method}")


class Dispatcher:
    """Finds the operation of a request, checks the caller's role, runs it, and encodes its answer.

    Args:
        services: what operations run with.
        operations: all operations.
    """

    def __init__(self, services: Services, operations: Sequence[Operation]) -> None:
        self._services = services
        self._rates = Rates()
        self._exact: dict[str, dict[str, Operation]] = {}
        self._patterns: list[tuple[re.Pattern[str], Operation]] = []
        for operation in operations:
            if operation.parts:
                pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.path)
                self._patterns.append((re.compile(pattern), operation))
            else:
                self._exact.setdefault(operation.path, {})[operation.method] = operation

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer one request, and log it at debug, without parts that may hold a memory's text."""
        began, status = time.perf_counter(), 0
        known = {"path": "-", "agent": "-"}
        try:
            response = await self._respond(request, known)
            status = response.status
        finally:
            if _log.isEnabledFor(logging.DEBUG):
                said = {
                    "action": "request",
                    "method": request.method if request.method in _METHODS else "-",
                    **known,
                    "status": status,
                    "ms": round((time.perf_counter() - began) * 1000, 1),
                }
                _log.debug(_REQUEST, *[*said.values()][1:], extra=said)
        return response

    async def _respond(self, request: BaseRequest, known: dict[str, str]) -> StreamResponse:
        """Answer one request; an error becomes an answer too.

        What is known of it before it is answered goes into `known`.
        """
        protocol = request.protocol
        assert isinstance(protocol, PeerConnection)
        protocol.arrived()
        if request.version not in {HttpVersion10, HttpVersion11}:
            protocol.refuse_malformed()
            raise ConnectionResetError
        await protocol.turn(request.headers.get("X-Agent") or request.query.get("agent", ""))
        try:
            return await self._answer(request, protocol, known)
        except ThermoclineError as error:
            if error.status >= 500:
                _log.info("refused: %s", error, extra={"action": error.code})
            response = error_response(error)
            if isinstance(error, MethodNotAllowed):
                response.headers["Allow"] = error.allowed
            return _closing(response, request)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the daemon
            kind, where = unforeseen(error)
            text = "a request failed with %s:\n%s"
            _log.error(text, kind, where, extra={"action": "request_failed"})
            return _closing(error_response(ThermoclineError(_FAULT, hint=_FAULT_HINT)), request)

    async def _answer(
        self, request: BaseRequest, connection: PeerConnection, known: dict[str, str]
    ) -> StreamResponse:
        services = self._services
        if services.stopping.is_set():
            raise ShuttingDown("cannot answer: the daemon is stopping", hint="start it again")
        operation, parts = self._find(request.method, request.rel_url.raw_path)
        known["path"] = operation.path
        peer, settings = connection.peer, services.settings()
        acting.set(peer.name)
        agent, named = agent_of(request, settings.agent_id)
        known["agent"] = agent
        services.gate.require(peer, agent if operation.agent else "*", operation.role)
        if operation.agent:
            self._rates.take(agent, settings.quotas.requests_per_second)
        call = Call(services, request, operation, parts, peer, settings, agent, named)
        return await _run(call)

    def _find(self, method: str, raw_path: str) -> tuple[Operation, Mapping[str, str]]:
        path = raw_path.rstrip("/") or "/"
        by_method = self._exact.get(path, {})
        method = "GET" if method == "HEAD" else method
        if method in by_method:
            return by_method[method], {}
        others = set(by_method)
        for pattern, operation in self._patterns:
            match = pattern.fullmatch(path)
            if match is None or (by_method and operation.method in by_method):
                continue
            if operation.method == method:
                return operation, {name: _text(part) for name, part in match.groupdict().items()}
            others.add(operation.method)
        if others:
            raise MethodNotAllowed(path, method, others)
        raise NotFound(f"no such path: {path[:200]}", hint="see GET /api/openapi.json")


async def _run(call: Call) -> StreamResponse:
    operation, request = call.operation, call.request
    given: dict[str, Any] = dict(call.parts)
    query = query_of(request, operation.query or NoParameters)
    if operation.query is not None:
        given["query"] = query
    if operation.needs_body or (operation.body is not None and request.body_exists):
        given["body"] = await body_of(call, operation.body)
    run, kind = operation.run, operation.type
    if operation.by_hand:
        response: StreamResponse = await operation.run(call, **given)
        return response
    accepted = request.headers.get("Accept", "")
    for other, in_other in operation.others.items():
        if other.partition(";")[0] in accepted:
            run, kind = in_other, other
    reads = operation.role == "read"
    scope = Scope(
        call.services,
        call.peer,
        call.agent,
        reads,
        time.time(),
        call.settings.for_agent(call.agent),
    )
    value = await run(scope, **given)
    if isinstance(value, Stream):
        return await streamed(call, scope, kind, value)
    if isinstance(value, str):
        body, kind = value.encode(), f"{kind}; charset=utf-8"
    else:
        body, kind = msgspec.json.encode(value), JSON
    status = operation.statuses[0 if getattr(value, "ok", True) else -1]
    return Response(body=body, status=status, headers={"Content-Type": kind})


def _text(part: str) -> str:
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"cannot read '{part[:64]}' in the path: it is not valid UTF-8"
        ) from error


def _closing(response: Response, request: BaseRequest) -> Response:
    """Close a connection whose request was not read to its end."""
    if not request.content.at_eof():
        response.force_close()
    return response
