"""What a model does with the category tree: finds where an answer lies, and proposes changes.

A search has a time limit.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, TypeAlias, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ..errors import ModelUnavailable
from ..llm.model import ModelQuestion, Part
from ..llm.replies import one_line
from ..memory.scoring import DAY
from ..memory.similarity import words
from ..memory.tree_nodes import (
    DESC_CHARS,
    ROOT,
    NamedCategory,
    Node,
    Tree,
    parent,
    prompt,
)
from ..memory.tree_rebuild import MOST_OPERATIONS, Kind, TreeChange
from ..store.agent_store import AgentStore
from ..store.records import tree_rows
from .model_or_rules import AskOptions, Derived, ModelOrRules, spent_on
from .new_memories import by_name

_MOST: Final = 5
# NamedCategorys up to this relevance are guesses.
_THRESHOLD: Final = 0.3
_LONGEST_QUESTION: Final = 2_000
_LONGEST_REASON: Final = 300


# The categories, most relevant first; none without a model's answer.
Reasoning: TypeAlias = Derived[tuple[NamedCategory, ...]]


def search_prompt(model: ModelOrRules, tree: Tree, question: str) -> str:
    """What a model would be asked by `search_tree`."""
    return model.written(_search_question(model, tree, question), list[NamedCategory])


async def search_tree(
    model: ModelOrRules, tree: Tree, question: str, options: AskOptions
) -> Reasoning:
    """Ask, within the time of the options or the configuration; errors as `Model.ask`."""
    if not tree:
        return Derived((), "rule", "the tree has no categories yet")
    if not question.strip():
        return Derived((), "rule", "the question is empty")
    prompt = _search_question(model, tree, question)
    try:
        reply = await model.ask(prompt, list[NamedCategory], options)
    except ModelUnavailable as error:
        return Derived((), "rule", error.in_full)
    return Derived(chosen(reply.value, tree), "llm", "", spent_on(reply))


def _search_question(model: ModelOrRules, tree: Tree, question: str) -> ModelQuestion:
    # Unchanged parts come first, so that a provider can cache them.
    return model.question(
        "tree",
        Part("tree", prompt(tree), stable=True),
        Part("question", question[:_LONGEST_QUESTION]),
    )


def chosen(choices: Sequence[NamedCategory], tree: Tree) -> tuple[NamedCategory, ...]:
    """The valid choices: categories of the tree, each once, above the threshold."""
    # The last level of a path is enough if it is unique.
    names = Counter(_name(path) for path in tree)
    known = {_name(path): path for path in tree if names[_name(path)] == 1}
    known |= {_key(path): path for path in tree}
    best: dict[str, NamedCategory] = {}
    for choice in choices:
        path = choice.path if choice.path in tree else known.get(_key(choice.path))
        relevance = choice.relevance if math.isfinite(choice.relevance) else 0.0
        if path is None or relevance <= _THRESHOLD:
            continue
        reason = one_line(choice.reason, _LONGEST_REASON)
        better = best.get(path)
        if better is None or better.relevance < relevance:
            best[path] = NamedCategory(path, min(1.0, relevance), reason)
    return tuple(
        sorted(best.values(), key=lambda named_category: -named_category.relevance)[:_MOST]
    )


def _name(path: str) -> str:
    return _key(path).rpartition("/")[2]


def _key(path: str) -> str:
    """A path without the additions and the case that models may use."""
    trimmed = unicodedata.normalize("NFC", path).strip().strip("/").removeprefix(f"{ROOT}/")
    return trimmed.casefold()


_EXAMPLES: Final = 4
_EXAMPLE_CHARS: Final = 100
_MOST_EXAMPLES_CHARS: Final = 8_000
# The newest memories of a category that are checked for a new subcategory.
_LOOKED_AT: Final = 2_000
_FITS: Final = 0.99
_SHORT: Final = 200
# What a model sees of an id.
_ID_CHARS: Final = 8
_KINDS: Final[Mapping[str, Kind]] = {kind: kind for kind in get_args(Kind)}


class OperationReply(msgspec.Struct, frozen=True):
    """One operation that a model proposes; its schema is all that the model knows of it."""

    type: Annotated[str, Meta(extra_json_schema={"enum": [*_KINDS]}, description="what to do")]
    path: Annotated[str, Meta(description="the category that it is about, to add: the new one")]
    new_path: Annotated[
        str,
        Meta(
            description="where things go, to merge: an existing category; to rename: the new name;"
            " to move: an existing category or a new one; else empty"
        ),
    ] = ""
    summary: Annotated[
        str,
        Meta(
            description=f"what is filed there, in at most {DESC_CHARS} characters, to add, describe"
            " or move to a new category; else empty"
        ),
    ] = ""
    ids: Annotated[
        tuple[str, ...],
        Meta(description="the ids of memories of the category path, to move them; else empty"),
    ] = ()
    reason: Annotated[str, Meta(description="one short sentence")] = ""


class Proposal(msgspec.Struct, frozen=True):
    """A model's reply: at most ten operations, and their rationale."""

    operations: tuple[OperationReply, ...]
    rationale: str = ""


async def propose(store: AgentStore, model: ModelOrRules, options: AskOptions) -> list[TreeChange]:
    """The operations that a model proposes; they are checked when they are applied.

    Memories of a category that belong in a new subcategory are moved there. Errors as `Model.ask`.
    """
    now, limits = store.now, store.rules.tree
    tree = await store.read(tree_rows.load)
    examples = await store.read(lambda db: _examples(db, tree))
    lines = [f"{shown} {path}: {text}" for shown, (_, path, text) in examples.items()]
    bounds = (
        f"At most {limits.max_nodes - 1} categories (there are {len(tree)}), {limits.max_depth}"
        f" levels, {limits.max_children} categories below one, and {limits.max_size_bytes} bytes in"
        " all."
    )
    parts = (
        Part("tree", "\n".join(_line(path, tree[path], now) for path in sorted(tree)) or ROOT),
        Part("limits", bounds, quoted=False),
        Part("examples", "\n".join(lines) or "none"),
    )
    proposal = (await model.ask(model.question("rebuild", *parts), Proposal, options)).value
    wanted = [
        operation
        for reply in proposal.operations[:MOST_OPERATIONS]
        if (operation := _operation(reply, examples)) is not None
    ]
    above = {parent(change.path.strip("/")) for change in wanted if change.type == "add"}
    texts = await store.read(lambda db: _texts(db, above & tree.keys()))
    return await asyncio.to_thread(_with_members, wanted, texts)


def _line(path: str, node: Node, now: float) -> str:
    count = node.warm_count + node.cold_count
    used = f"used {max(0, int((now - node.last_access) / DAY))} days ago"
    return f"{path} — {node.desc} ({count} memories, {used if node.last_access else 'never used'})"


def _examples(db: sqlite3.Connection, tree: Tree) -> dict[str, tuple[str, str, str]]:
    examples: dict[str, tuple[str, str, str]] = {}
    size = 0
    counts = {path: node.warm_count + node.cold_count for path, node in tree.items()}
    for path in sorted(counts, key=lambda path: (-counts[path], path)):
        rows = db.execute(
            "SELECT id, substr(text, 1, ?) FROM memories WHERE category = ? AND merged_into IS NULL"
            " ORDER BY importance DESC, created_at DESC LIMIT ?",
            (_EXAMPLE_CHARS, path, _EXAMPLES),
        )
        for key, text in rows:
            size += len(text) + len(path) + _ID_CHARS
            if size > _MOST_EXAMPLES_CHARS:
                return examples
            examples[key[:_ID_CHARS]] = key, path, one_line(text)
    return examples


def _operation(
    reply: OperationReply, examples: Mapping[str, tuple[str, str, str]]
) -> TreeChange | None:
    kind = _KINDS.get(reply.type.strip().lower())
    if kind is None:
        return None
    return TreeChange(
        type=kind,
        path=one_line(reply.path, _SHORT),
        new_path=one_line(reply.new_path, _SHORT),
        summary=one_line(reply.summary, _SHORT),
        reason=one_line(reply.reason, _SHORT),
        ids=tuple(
            examples[shown][0]
            for key in reply.ids
            if (shown := one_line(key)[:_ID_CHARS]) in examples
        ),
    )


def _texts(db: sqlite3.Connection, categories: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
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
        tree_change.path.strip("/"): Node(desc=tree_change.summary)
        for tree_change in wanted
        if tree_change.type == "add" and texts.get(parent(tree_change.path.strip("/")))
    }
    moved: dict[str, list[str]] = {path: [] for path in new}
    for above, members in texts.items():
        below = {path: node for path, node in new.items() if parent(path) == above}
        for key, text in members:
            worth = by_name(below, frozenset(words(text)))
            best = max(worth, key=lambda path: (worth[path], path), default=None)
            if best is not None and worth[best] >= _FITS:
                moved[best].append(key)
    return [_moving(item, moved.get(item.path.strip("/"), ())) for item in wanted]


def _moving(operation: TreeChange, ids: Sequence[str]) -> TreeChange:
    if operation.type != "add" or not ids:
        return operation
    path = operation.path.strip("/")
    return replace(operation, type="move", path=parent(path), new_path=path, ids=tuple(ids))
