"""The tools of models: lists of them, calls by name, and ours.

Each tool is an operation with arguments and an answer suited to models; a function translates
between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import NotFound
from ..language.cues import is_injected
from ..language.secrets import secrets_of
from ..recall.context_items import age_of, plain
from ..schemas import tools as schemas
from ..schemas.common import Json, convert
from ..schemas.memory import NewMemory
from ..schemas.recall import NOT_SURE, RecallBody, RecallResult
from ..schemas.tools import PRESETS, Preset, Tool, ToolFormat, ToolList, listed, tools_of
from . import memories, profclaw, scalyclaw
from .context import ask as context_block
from .operation import Operation, Run, Scope
from .recall import ask as ask_recall
from .views import secret_warning, view_of

# A whole file would not fit into a model's window.
_TOKENS: Final = 4_000
_CHARS: Final = 2_000
# Beside a sure first result, others below this share of its relevance are left out.
_LEAST_SHARE: Final = 1 / 3


async def _recall(scope: Scope, arguments: schemas.RecallArguments) -> schemas.RecalledItems:
    body = RecallBody(
        query=arguments.query,
        limit=arguments.limit,
        max_tokens=_TOKENS,
        category=arguments.category or None,
        actor=arguments.actor or None,
        types=(arguments.type,) if arguments.type else (),
        since=arguments.since or None,
        until=arguments.until or None,
    )
    answer = await ask_recall(scope, body)
    results = answer.results
    if answer.confidence == "sure":
        least = _LEAST_SHARE * results[0].relevance
        results = [result for result in results if result.relevance >= least]
    notes = [NOT_SURE] if answer.confidence == "unsure" else []
    notes += [answer.note] if answer.note else []
    return schemas.RecalledItems(
        confidence=answer.confidence,
        note="; ".join(notes) or UNSET,
        results=[_item(result, scope.now) for result in results],
        why=answer.why,
    )


# Whose statement it is that tells a model to ignore its instructions.
_REPEATED: Final = "tool:remember"


async def _remember(scope: Scope, arguments: schemas.RememberArguments) -> schemas.Remembered:
    fields = {name: getattr(arguments, name) for name in arguments.__struct_fields__}
    if arguments.source is UNSET and is_injected(arguments.text):
        # No user says so: the model repeats a page.
        fields["source"] = _REPEATED
    result = await memories.store_unless_known(
        scope, memories.remembered(scope, NewMemory(**fields))
    )
    memory, is_known = result.memory, result.is_known
    return schemas.Remembered(
        id=memory.id,
        stored=not is_known,
        category=memory.category,
        merged_with=schemas.KnownMemory(memory.id, memory.text) if is_known else UNSET,
        supersedes=[older.id for older in result.superseded] or UNSET,
        contradicts=[schemas.KnownMemory(older.id, older.text) for older in result.superseded]
        or UNSET,
        warning=UNSET if is_known else secret_warning(secrets_of(memory)),
    )


async def _context(scope: Scope, arguments: schemas.ContextArguments) -> schemas.ContextText:
    block = await context_block(scope, arguments.query, arguments.max_tokens)
    return schemas.ContextText(block.text or "")


async def _forget(scope: Scope, arguments: schemas.ForgetArguments) -> schemas.ForgottenMemory:
    deleted = await memories.remove(scope, arguments.id)
    return schemas.ForgottenMemory(deleted.id, deleted.deleted, [*(deleted.unmerged or ())])


def _item(result: RecallResult, now: float) -> schemas.RecalledItem:
    at = result.updated_at if isinstance(result.updated_at, float) else result.created_at
    text = f"{result.text} → {result.outcome}" if result.outcome else result.text
    if len(text) > _CHARS:
        text = f"{text[:_CHARS]} … [cut: {len(text)} characters in all]"
    return view_of(schemas.RecalledItem, result, text=text, age=age_of(at, now))


_RUN: Final[Mapping[Preset, Mapping[str, Run]]] = {
    "default": {
        "recall": _recall,
        "remember": _remember,
        "context": _context,
        "forget": _forget,
    },
    "scalyclaw": scalyclaw.RUN,
    "profclaw": profclaw.RUN,
}


@Operation("GET", "/api/tools", agent=False)
async def list_tools(
    _scope: Scope, tools: Preset = "default", format: ToolFormat = "mcp"
) -> ToolList:
    """List the tools for models of a preset, as a provider's interface takes them."""
    return ToolList(listed(tools, format))


@Operation("POST", "/api/tools/{name}")
async def call_tool(
    scope: Scope, name: str, tools: Preset | None = None, body: dict[str, Json] | None = None
) -> dict[str, Json]:
    """Call a tool with its arguments.

    `tools` is its preset, by default the first with it of ours, ScalyClaw's, profClaw's.
    Whether the role `write` is needed depends on the tool. An argument that is null counts as left
    out, and a number may be text: models write both.
    """
    preset, tool = _named(name, tools)
    if not tool.reads:
        scope.require("write")
        scope = msgspec.structs.replace(scope, reads=False)
    arguments = {key: value for key, value in (body or {}).items() if value is not None}
    answer = await _RUN[preset][name](scope, convert(arguments, tool.takes, strict=False))
    encoded: dict[str, Json] = _visible(msgspec.to_builtins(answer))
    return encoded


def _visible(answer: Any) -> Any:
    """An answer without characters that a model reads and nobody sees."""
    if isinstance(answer, str):
        return plain(answer)
    if isinstance(answer, list):
        return [_visible(item) for item in answer]
    if isinstance(answer, dict):
        return {name: _visible(item) for name, item in answer.items()}
    return answer


def _named(name: str, preset: Preset | None) -> tuple[Preset, Tool]:
    for candidate in PRESETS if preset is None else (preset,):
        for tool in tools_of(candidate):
            if tool.name == name:
                return candidate, tool
    raise NotFound(f"no tool is called '{name[:64]}'", hint="see GET /api/tools")
