"""The tools for models as Python functions, for Pydantic AI and whatever else takes functions.

from thermocline.daemon.client.adapters.functions import tools

agent = Agent("openai:gpt-5", tools=tools(agent="assistant"))
"""

from __future__ import annotations

import inspect
import threading
import types
import weakref
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, UNSET, Meta, UnsetType
from msgspec.structs import fields

from ...schemas.tools import DEFAULT, Tool
from ..client import Client
from ..errors import ApiError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

PROGRAM: Final = "functions"


def tools(
    agent: str | None = None, socket_path: str | os.PathLike[str] | None = None
) -> list[Callable[..., dict[str, Any]]]:
    """The functions recall, remember, context and forget over one agent's memory.

    Their signatures, types and docstrings say what `GET /api/tools` says. They return what a model
    can use, of a refused call `{"error": …}`. Any number of threads may call them.

    Args:
        agent: whose memory; default: the daemon's `default`.
        socket_path: the daemon's socket; default: as of `Client`.
    """
    client, lock = Client(socket_path, agent, program=PROGRAM), threading.Lock()

    def use(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with lock:
                answer: dict[str, Any] = client.use_tool(name, arguments, tools="default")
        except ApiError as error:
            return {"error": str(error)}
        return answer

    weakref.finalize(use, client.close)
    return [_function(tool, use) for tool in DEFAULT]


def _function(
    tool: Tool, use: Callable[[str, dict[str, Any]], dict[str, Any]]
) -> Callable[..., dict[str, Any]]:
    hints = get_type_hints(tool.takes, include_extras=True)
    parameters = []
    for field in fields(tool.takes):
        default = inspect.Parameter.empty if field.default is NODEFAULT else field.default
        parameters.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=None if default is UNSET else default,
                annotation=_plain(hints[field.name]),
            )
        )
    signature = inspect.Signature(parameters, return_annotation=dict[str, Any])

    def function(*args: Any, **kwargs: Any) -> dict[str, Any]:
        arguments = signature.bind(*args, **kwargs).arguments
        return use(tool.name, {k: v for k, v in arguments.items() if v is not None})

    described = [f"    {name}: {text}." for name, text in map(_described, hints.items()) if text]
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = "\n".join([tool.does, "", "Args:", *described])
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    function.__annotations__["return"] = dict[str, Any]
    return function


def _plain(hint: Any) -> Any:
    """A type without what is only meant for msgspec; None in place of a value left out."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(None if p is UnsetType else _plain(p) for p in get_args(hint))]  # noqa: UP007
    return hint


def _described(hint: tuple[str, Any]) -> tuple[str, str]:
    name, kind = hint
    kinds = (kind, *get_args(kind)) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    metas = (meta for each in kinds for meta in getattr(each, "__metadata__", ()))
    texts = (meta.description for meta in metas if isinstance(meta, Meta) and meta.description)
    return name, next(texts, "")
