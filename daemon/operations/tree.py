"""The categories."""

from __future__ import annotations

from ..errors import Conflict
from ..memory import tree as trees
from ..memory.checks import check_category
from ..memory.tree_rebuild import TreeChange
from ..shapes import tree as shapes
from ..store import documents, tree_rows
from ..store.transaction import Transaction
from ..thinking.tree_search import described
from ..upkeep import rebuilding
from .operation import Operation
from .scope import Scope


@Operation("GET", "/api/tree")
async def show(scope: Scope) -> shapes.TreeView:
    """The category tree."""
    document, nodes = await scope.read(lambda db: (documents.tree_document(db), tree_rows.load(db)))
    limits = scope.settings.tree
    return shapes.TreeView(
        document,
        len(nodes) + 1,
        limits.max_nodes,
        trees.size(nodes, limits),
        limits.max_size_bytes,
        trees.depth(nodes),
        limits.max_depth,
        limits.max_children,
    )


@Operation("GET", "/api/tree/text", type="text/plain")
async def show_text(scope: Scope) -> str:
    """The category tree as text."""
    limits = scope.settings.tree
    return await scope.read(
        lambda db: trees.show(tree_rows.load(db), *tree_rows.totals(db), limits)
    )


@Operation("GET", "/api/tree/prompt", type="text/plain")
async def show_prompt(scope: Scope) -> str:
    """The category tree as a model reads it, in at most `tree.max_size_bytes`."""
    return trees.prompt(await scope.read(described), scope.settings.tree.max_size_bytes)


@Operation("PUT", "/api/tree", role="write")
async def add(scope: Scope, body: shapes.CategoryBody) -> shapes.CategoryAdded:
    """Add a category, or change its description."""

    def apply(tx: Transaction) -> tuple[str, bool]:
        before = tree_rows.load(tx.db)
        after = trees.add(before, body.path, body.desc, tx.now, tx.rules.tree)
        tree_rows.save(tx, before, after)
        path = check_category(body.path, tx.rules.tree.max_depth, field="path")
        tx.keep_category = path
        return path, path in after.keys() - before.keys()

    path, made = await scope.write(apply, create=True)
    return shapes.CategoryAdded(path, True, made)


@Operation("DELETE", "/api/tree", role="write")
async def remove(scope: Scope, query: shapes.CategoryQuery) -> shapes.CategoryRemoved:
    """Remove a category without memories in it or below it."""

    def apply(tx: Transaction) -> None:
        before = tree_rows.load(tx.db)
        tree_rows.save(tx, before, trees.remove(before, query.path))

    await scope.write(apply)
    return shapes.CategoryRemoved(query.path, True)


@Operation("POST", "/api/tree/rename", role="write")
async def rename(scope: Scope, body: shapes.RenameBody) -> shapes.CategoryRenamed:
    """Rename or move a category with all below it, and refile its memories; can be undone."""
    depth = scope.settings.tree.max_depth
    path = check_category(body.path, depth, field="path")
    to = check_category(body.to, depth, field="to")
    change = TreeChange(type="rename", path=path, new_path=to)
    async with scope.store() as store:
        rebuilt = await rebuilding.rebuild(store, [change], "rule")
        if rebuilt.refused:
            raise Conflict(rebuilt.refused[0].why)
        undo = await store.read(rebuilding.last)
    return shapes.CategoryRenamed(path, to, 0 if undo is None else len(undo.moved))


@Operation("POST", "/api/tree/prune", role="write")
async def prune(scope: Scope) -> shapes.TreePruned:
    """Remove empty categories that were not used for long."""
    removed = await scope.write(tree_rows.prune)
    return shapes.TreePruned(len(removed), list(removed))


@Operation("POST", "/api/tree/undo", role="write")
async def undo(scope: Scope) -> shapes.RebuildUndone:
    """Undo the last rebuild or renaming of the tree, and file its memories as before."""
    async with scope.store() as store:
        return await rebuilding.undo(store)
