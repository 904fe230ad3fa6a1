"""`/api/tree`: the categories."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..memory import tree as trees
from ..memory.checks import check_category
from ..store import documents, tree_rows
from ..store.transaction import Transaction
from ..upkeep import rebuilding
from .calls import Call, Reply, Route


class TreeAnswer(msgspec.Struct):
    """The tree in EvoClaw's shape; `nodes` counts the root, `size_bytes` is of its prompt."""

    tree: dict[str, Any]
    nodes: int
    max_nodes: int
    size_bytes: int
    max_size_bytes: int
    depth: int


class NewCategory(msgspec.Struct, forbid_unknown_fields=True):
    """A category to make; its parents come with it."""

    path: str
    desc: str = ""


class Added(msgspec.Struct):
    """Whether the category is there now; `made` tells whether it is new."""

    path: str
    added: bool
    made: bool


class PathQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The category that is meant."""

    path: str


class Removed(msgspec.Struct):
    """The category is gone, with those below it."""

    path: str
    removed: bool


class Pruned(msgspec.Struct):
    """How many idle categories were removed, and which."""

    pruned: int
    paths: list[str]


class Undone(msgspec.Struct):
    """What was taken back: when it had been done, the memories filed as before, the changes."""

    undone: bool
    at: float
    memories: int
    changes: list[str]


async def show(call: Call) -> Reply:
    """The tree."""
    async with call.store() as store:
        document = await store.read(documents.tree_document)
        nodes = await store.read(tree_rows.load)
        limits = store.rules.tree
    return Reply(
        TreeAnswer(
            document,
            len(nodes) + 1,
            limits.max_nodes,
            trees.size(nodes, limits),
            limits.max_size_bytes,
            trees.depth(nodes),
        )
    )


async def show_text(call: Call) -> Reply:
    """The tree as a person reads it."""
    async with call.store() as store:
        limits = store.rules.tree
        text = await store.read(
            lambda db: trees.show(tree_rows.load(db), *tree_rows.totals(db), limits)
        )
    return Reply(text, content_type="text/plain")


async def show_prompt(call: Call) -> Reply:
    """The tree as a model reads it, in at most `tree.max_size_bytes`."""
    async with call.store() as store:
        nodes = await store.read(tree_rows.load)
        text = trees.prompt(nodes, store.rules.tree.max_size_bytes)
    return Reply(text, content_type="text/plain")


async def add(call: Call) -> Reply:
    """Make a category, or describe one anew."""
    body = await call.body(NewCategory)

    def apply(tx: Transaction) -> tuple[str, bool]:
        before = tree_rows.load(tx.db)
        after = trees.add(before, body.path, body.desc, tx.now, tx.rules.tree)
        fresh = sorted(after.keys() - before.keys(), key=len)
        tree_rows.save(tx, before, after)
        path = check_category(body.path, tx.rules.tree.max_depth, field="path")
        tx.keep_category = path
        return path, path in fresh

    async with call.store(create=True) as store:
        path, made = await store.write(apply)
    return Reply(Added(path, True, made))


async def remove(call: Call) -> Reply:
    """Remove a category that has no memories in it or below it."""
    path = call.query(PathQuery).path

    def apply(tx: Transaction) -> None:
        before = tree_rows.load(tx.db)
        tree_rows.save(tx, before, trees.remove(before, path))

    async with call.store() as store:
        await store.write(apply)
    return Reply(Removed(path, True))


async def prune(call: Call) -> Reply:
    """Remove the categories that are empty and long unused."""
    async with call.store() as store:
        removed = await store.write(tree_rows.prune)
    return Reply(Pruned(len(removed), list(removed)))


async def undo(call: Call) -> Reply:
    """Take the last rebuild of the tree back, and file its memories as before."""
    async with call.store() as store:
        done = await rebuilding.undo(store)
    changes = [rebuilding.told(operation) for operation in done.operations]
    return Reply(Undone(True, done.at, done.memories, changes))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/tree",
        handler=show,
        summary="The category tree",
        answer=TreeAnswer,
    ),
    Route(
        method="GET",
        path="/api/tree/text",
        handler=show_text,
        summary="The category tree as text",
        types=("text/plain",),
    ),
    Route(
        method="GET",
        path="/api/tree/prompt",
        handler=show_prompt,
        summary="The category tree as a model reads it, within its 2 KB",
        types=("text/plain",),
    ),
    Route(
        method="PUT",
        path="/api/tree",
        handler=add,
        summary="Make a category, or describe one anew",
        role="write",
        body=NewCategory,
        answer=Added,
    ),
    Route(
        method="DELETE",
        path="/api/tree",
        handler=remove,
        summary="Remove a category without memories",
        role="write",
        query=PathQuery,
        answer=Removed,
    ),
    Route(
        method="POST",
        path="/api/tree/prune",
        handler=prune,
        summary="Remove empty categories that are long unused",
        role="write",
        answer=Pruned,
    ),
    Route(
        method="POST",
        path="/api/tree/undo",
        handler=undo,
        summary="Take the last rebuild of the tree back",
        role="write",
        answer=Undone,
    ),
)
