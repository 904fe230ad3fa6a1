"""The tools of models: lists of them, and calls by name.

Each tool is an operation with arguments and an answer suited to models; an entry of `_RUN`
translates between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..errors import NotFound
from ..shapes.common import Json, convert
from ..shapes.tools import PRESETS, Preset, Tool, ToolList, ToolQuery, ToolsQuery, listed, tools_of
from . import own_tools, profclaw, scalyclaw
from .operation import Operation, Run
from .scope import Scope

_RUN: Final[Mapping[Preset, Mapping[str, Run]]] = {
    "default": own_tools.RUN,
    "scalyclaw": scalyclaw.RUN,
    "profclaw": profclaw.RUN,
}


@Operation("GET", "/api/tools", agent=False)
async def index(scope: Scope, query: ToolsQuery) -> ToolList:  # noqa: ARG001 - of every operation
    """List the tools for models, as a provider's interface takes them."""
    return ToolList(listed(query.tools, query.format))


@Operation("POST", "/api/tools/{name}")
async def call(
    scope: Scope, name: str, query: ToolQuery, body: dict[str, Json] | None = None
) -> dict[str, Json]:
    """Call a tool with its arguments.

    Whether the role `write` is needed depends on the tool. An argument that is null counts as left
    out, and a number may be text: models write both.
    """
    preset, tool = _named(name, query.tools)
    if not tool.reads:
        scope.require("write")
        scope = msgspec.structs.replace(scope, reads=False)
    given = {key: value for key, value in (body or {}).items() if value is not None}
    answer = await _RUN[preset][name](scope, convert(given, tool.takes, strict=False))
    found: dict[str, Json] = msgspec.to_builtins(answer)
    return found


def _named(name: str, preset: Preset | None) -> tuple[Preset, Tool]:
    for one in PRESETS if preset is None else (preset,):
        for tool in tools_of(one):
            if tool.name == name:
                return one, tool
    raise NotFound(f"no tool is called '{name[:64]}'", hint="see GET /api/tools")
