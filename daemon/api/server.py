"""The edge: the socket itself, finding the route, and turning errors into answers."""

from __future__ import annotations

import asyncio
import grp
import logging
import os
import re
import socket
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec
from aiohttp import HttpVersion10, HttpVersion11, web

from ..errors import (
    AlreadyRunning,
    Conflict,
    InvalidInput,
    NotFound,
    ShuttingDown,
    ThermoclineError,
)
from ..runtime.problems import unforeseen
from .calls import Call, Reply, Route, Services
from .connections import Connection, Server, error_response

_log = logging.getLogger(__name__)
_BACKLOG: Final = 512
_AT_ONCE: Final = 4
_FAULT: Final = "something went wrong inside the daemon"
_FAULT_HINT: Final = "its log has the details"


class MethodNotAllowed(InvalidInput):
    """The path exists, and takes other methods."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, path: str, method: str, others: Collection[str]) -> None:
        self.allowed = ", ".join(sorted({*others, *({"HEAD"} if "GET" in others else ())}))
        super().__init__(f"{path[:200]} takes {self.allowed}, not {method}")


class Dispatcher:
    """Finds the route of a request, checks the caller's role, and runs the handler.

    Args:
        services: what handlers answer from.
        routes: everything that can be asked.
    """

    def __init__(self, services: Services, routes: Sequence[Route]) -> None:
        self._services = services
        self._exact: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[re.Pattern[str], Route]] = []
        for route in routes:
            if "{" in route.path:
                pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path)
                self._patterns.append((re.compile(pattern), route))
            else:
                self._exact.setdefault(route.path, {})[route.method] = route

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; whatever goes wrong becomes an answer too."""
        protocol = request.protocol
        assert isinstance(protocol, Connection)
        protocol.arrived()
        if request.version not in {HttpVersion10, HttpVersion11}:
            protocol.refuse_malformed()
            raise ConnectionResetError
        await protocol.turn()
        try:
            return _response(await self._answer(request, protocol))
        except ThermoclineError as error:
            if error.status >= 500:
                _log.info("refused: %s", error, extra={"action": error.code})
            return _closing(_refusal(error), request)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the daemon
            kind, where = unforeseen(error)
            text = "a request failed with %s:\n%s"
            _log.error(text, kind, where, extra={"action": "request_failed"})
            return _closing(error_response(ThermoclineError(_FAULT, hint=_FAULT_HINT)), request)

    async def _answer(
        self, request: web.BaseRequest, connection: Connection
    ) -> Reply | web.StreamResponse:
        if self._services.stopping.is_set():
            raise ShuttingDown("cannot answer: the daemon is stopping", hint="start it again")
        route, params = self._route(request.method, request.rel_url.raw_path)
        peer = connection.peer
        call = Call(self._services, request, peer, route, params)
        self._services.gate.require(peer, call.agent if route.agent else "*", route.role)
        call.check_parameters()
        return await route.handler(call)

    def _route(self, method: str, raw_path: str) -> tuple[Route, Mapping[str, str]]:
        path = raw_path.rstrip("/") or "/"
        by_method = self._exact.get(path, {})
        method = "GET" if method == "HEAD" else method
        if method in by_method:
            return by_method[method], {}
        others = set(by_method)
        for pattern, route in self._patterns:
            match = pattern.fullmatch(path)
            if match is None or (by_method and route.method in by_method):
                continue
            if route.method == method:
                return route, {name: _text(part) for name, part in match.groupdict().items()}
            others.add(route.method)
        if others:
            raise MethodNotAllowed(path, method, others)
        raise NotFound(f"there is nothing at {path[:200]}", hint="see GET /api/openapi.json")


def _text(part: str) -> str:
    """A part of a path, decoded."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot read '{part[:64]}' in the path: it is no UTF-8") from error


def _refusal(error: ThermoclineError) -> web.Response:
    response = error_response(error)
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = error.allowed
    return response


def _response(reply: Reply | web.StreamResponse) -> web.StreamResponse:
    if isinstance(reply, web.StreamResponse):
        return reply
    kind = reply.content_type
    if kind == "application/json":
        body = msgspec.json.encode(reply.value)
    else:
        body = str(reply.value).encode()
        kind += "; charset=utf-8"
    return web.Response(body=body, status=reply.status, headers={"Content-Type": kind})


def _closing(response: web.Response, request: web.BaseRequest) -> web.Response:
    """Do not keep a connection whose request was not read to its end."""
    if not request.content.at_eof():
        response.force_close()
    return response


def bind(path: Path, mode: int, group: str | None) -> socket.socket:
    """Bind the socket, with its permissions in force from the first moment.

    A socket that a daemon which was killed left behind is replaced; one that answers, and
    anything that is no socket, is not.

    Raises:
        AlreadyRunning: somebody listens there.
        Conflict: something that is no socket stands there.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        # The umask is for what agents remember; whoever is granted a role must reach the socket.
        path.parent.chmod(0o755)
    _clear(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o777 & ~mode)
    try:
        bound.bind(str(path))
    except OSError as error:
        bound.close()
        raise Conflict(
            f"cannot listen on {path}: {error}", hint="choose another --socket"
        ) from error
    finally:
        os.umask(previous)
    if group is not None:
        os.chown(path, -1, int(group) if group.isdigit() else grp.getgrnam(group).gr_gid)
        path.chmod(mode)
    return bound


async def listen(server: Server, bound: socket.socket) -> asyncio.Server:
    """Serve what connects to `bound`."""
    loop = asyncio.get_running_loop()
    # asyncio accepts as many connections in one go as its backlog says, and nobody is served
    # meanwhile; the kernel's queue may be longer.
    listening = await loop.create_unix_server(server.protocol, sock=bound, backlog=_AT_ONCE)
    bound.listen(_BACKLOG)
    return listening


def _clear(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise Conflict(f"cannot listen on {path}: a file that is no socket is there")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(2.0)
        probe.connect(str(path))
    except OSError:
        path.unlink()
    else:
        raise AlreadyRunning(
            f"cannot listen on {path}: another daemon answers there",
            hint="use that one, or start this one with another --socket",
        )
    finally:
        probe.close()
