"""Asks a model for improvements of the category tree."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..llm.model import Part
from ..llm.replies import one_line
from ..memory.scoring import DAY
from ..memory.similarity import words
from ..memory.tree_nodes import ROOT, Node, Tree, TreeLimits, parent
from ..memory.tree_rebuild import MOST_OPERATIONS, Kind, TreeChange
from ..store import tree_rows
from ..store.agent_store import AgentStore
from .filing import by_name
from .model_or_rules import AskOptions, ModelOrRules

_EXAMPLES: Final = 4
_EXAMPLE_CHARS: Final = 100
_MOST_EXAMPLES_CHARS: Final = 8_000
# The newest memories of a category that are checked for a new subcategory.
_LOOKED_AT: Final = 2_000
_FITS: Final = 0.99
_SHORT: Final = 200
_KINDS: Final[Mapping[str, Kind]] = {
    "add": "add",
    "remove": "remove",
    "merge": "merge",
    "rename": "rename",
    "describe": "describe",
    "update_desc": "describe",
}


class OperationReply(msgspec.Struct, frozen=True):
    """One operation that a model proposes."""

    type: str
    path: str
    new_path: str = ""
    description: str = ""
    reason: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """A model's reply: at most ten operations, and their rationale."""

    operations: tuple[OperationReply, ...]
    rationale: str = ""


async def propose(store: AgentStore, model: ModelOrRules, options: AskOptions) -> list[TreeChange]:
    """The operations that a model proposes; they are checked when they are applied.

    Memories of a category that belong in a new subcategory are moved there.

    Raises:
        ModelUnavailable: no model answers usefully.
        InvalidInput: the endpoint is not an address.
        ThermoclineError: the memory cannot be read.
    """
    now, limits = store.now, store.rules.tree
    tree = await store.read(tree_rows.load)
    examples = await store.read(lambda db: _examples(db, tree))
    parts = (
        Part("tree", "\n".join(_line(path, tree[path], now) for path in sorted(tree)) or ROOT),
        Part("limits", _told(limits, len(tree)), quoted=False),
        Part("examples", examples or "none"),
    )
    proposal = (await model.ask(model.question("rebuild", *parts), Proposal, options)).value
    wanted = [
        operation
        for told in proposal.operations[:MOST_OPERATIONS]
        if (operation := _operation(told)) is not None
    ]
    texts = await store.read(lambda db: _texts(db, _overfull(wanted, tree)))
    return await asyncio.to_thread(_with_members, wanted, texts)


def _line(path: str, node: Node, now: float) -> str:
    count = node.warm_count + node.cold_count
    used = f"used {max(0, int((now - node.last_access) / DAY))} days ago"
    return f"{path} — {node.desc} ({count} memories, {used if node.last_access else 'never used'})"


def _told(limits: TreeLimits, nodes: int) -> str:
    return (
        f"At most {limits.max_nodes - 1} categories (there are {nodes}), {limits.max_depth} levels,"
        f" {limits.max_children} categories below one, and {limits.max_size_bytes} bytes in all."
    )


def _examples(db: sqlite3.Connection, tree: Tree) -> str:
    lines: list[str] = []
    size = 0
    counts = {path: node.warm_count + node.cold_count for path, node in tree.items()}
    for path in sorted(counts, key=lambda path: (-counts[path], path)):
        rows = db.execute(
            "SELECT substr(text, 1, ?) FROM memories WHERE category = ? AND merged_into IS NULL"
            " ORDER BY importance DESC, created_at DESC LIMIT ?",
            (_EXAMPLE_CHARS, path, _EXAMPLES),
        )
        for (text,) in rows:
            line = f"{path}: {one_line(text)}"
            size += len(line)
            if size > _MOST_EXAMPLES_CHARS:
                return "\n".join(lines)
            lines.append(line)
    return "\n".join(lines)


def _operation(told: OperationReply) -> TreeChange | None:
    kind = _KINDS.get(told.type.strip().lower())
    if kind is None:
        return None
    return TreeChange(
        type=kind,
        path=one_line(told.path, _SHORT),
        new_path=one_line(told.new_path, _SHORT),
        summary=one_line(told.description, _SHORT),
        reason=one_line(told.reason, _SHORT),
    )


def _overfull(wanted: Sequence[TreeChange], tree: Tree) -> list[str]:
    above = {parent(one.path.strip("/")) for one in wanted if one.type == "add"}
    return [path for path in above if path in tree]


def _texts(db: sqlite3.Connection, categories: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    return {
        category: db.execute(
            "SELECT id, subject || ' ' || substr(text, 1, 1000) || ' ' || tags FROM memories"
            " WHERE category = ? AND merged_into IS NULL ORDER BY created_at DESC LIMIT ?",
            (category, _LOOKED_AT),
        ).fetchall()
        for category in categories
    }


def _with_members(
    wanted: Sequence[TreeChange], texts: Mapping[str, Sequence[tuple[str, str]]]
) -> list[TreeChange]:
    """The operations; a category that memories belong in is created by moving them."""
    new = {
        one.path.strip("/"): Node(desc=one.summary)
        for one in wanted
        if one.type == "add" and texts.get(parent(one.path.strip("/")))
    }
    moved: dict[str, list[str]] = {path: [] for path in new}
    for above, members in texts.items():
        below = {path: node for path, node in new.items() if parent(path) == above}
        for key, text in members:
            worth = by_name(below, frozenset(words(text)))
            best = max(worth, key=lambda path: (worth[path], path), default=None)
            if best is not None and worth[best] >= _FITS:
                moved[best].append(key)
    return [_moving(one, moved.get(one.path.strip("/"), ())) for one in wanted]


def _moving(operation: TreeChange, ids: Sequence[str]) -> TreeChange:
    if operation.type != "add" or not ids:
        return operation
    path = operation.path.strip("/")
    return replace(operation, type="move", path=parent(path), new_path=path, ids=tuple(ids))
