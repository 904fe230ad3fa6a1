"""What the edge uses of aiohttp beyond its documentation is there, and used in one module alone."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

import thermocline.daemon.api
from thermocline.daemon.api.connections import PeerConnection, Server
from thermocline.daemon.config import load

API = Path(thermocline.daemon.api.__file__).parent


def private_names(kind: str) -> set[str]:
    """The private attributes of itself that a class of `connections.py` uses, but not makes."""
    tree = ast.parse((API / "connections.py").read_text(encoding="utf-8"))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
    own = {
        one.name for one in found.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    own -= {"_make_error_handler"}
    used = {
        node.attr
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, (ast.Name, ast.Call))
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    }
    return used - own


async def test_aiohttp_has_every_private_attribute_that_the_edge_uses() -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    plain_server = web.Server(handler)
    plain = RequestHandler(plain_server, loop=asyncio.get_running_loop())
    ours = {name for name in PeerConnection.__slots__ if name.startswith("_")}
    of_connection = private_names("PeerConnection") - ours
    assert {
        "_current_request",
        "_messages",
        "_waiter",
        "_next_keepalive_close_time",
    } < of_connection
    assert {name for name in of_connection if not hasattr(plain, name)} == set()
    of_server = private_names("Server") - {"_settings", "_arriving"}
    assert {"_connections", "_loop"} <= of_server
    assert {name for name in of_server if not hasattr(plain_server, name)} == set()


async def test_what_they_hold_is_what_the_edge_takes_them_for() -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    server = Server(handler, None)
    connection = PeerConnection(server, asyncio.get_running_loop(), load({}).settings.socket)
    assert len(connection._messages) == 0
    assert connection._waiter is None
    assert connection._current_request is None
    assert isinstance(connection._next_keepalive_close_time, float)
    assert connection.max_field_size > 0
    assert connection.max_headers > 0
    assert len(server._connections) == 0
    assert server._loop is asyncio.get_running_loop()


def test_the_methods_that_the_edge_overrides_are_called_as_it_expects() -> None:
    for name in ("finish_response", "handle_error", "_make_error_handler"):
        theirs = inspect.signature(getattr(RequestHandler, name)).parameters
        ours = inspect.signature(getattr(PeerConnection, name)).parameters
        assert list(theirs) == list(ours), name


def test_only_one_module_knows_of_them() -> None:
    private = private_names("PeerConnection") | private_names("Server")
    for path in API.glob("*.py"):
        if path.name == "connections.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        foreign = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr in private
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
        assert not foreign, path.name
