"""The categories, and the people and things that memories name."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, UnsetType

from ..errors import Conflict
from ..maintenance import rebuilding
from ..memory import tree as trees
from ..memory import tree_nodes
from ..memory.checks import check_category, check_short
from ..memory.entities import Entity
from ..memory.tree_rebuild import TreeChange
from ..recall import tree_search
from ..recall.tree_search import described
from ..schemas import tree as schemas
from ..schemas.tree import EntityChanges, Graph, GraphQuery
from ..store import documents, entities, entity_rows, tree_rows
from ..store.transaction import Transaction
from ..tasks.model_or_rules import AskOptions
from .operation import Operation
from .scope import Scope
from .views import view_of


@Operation("GET", "/api/tree")
async def show(scope: Scope) -> schemas.TreeView:
    """The category tree."""
    document, nodes = await scope.read(lambda db: (documents.tree_document(db), described(db)))
    limits = scope.settings.tree
    return schemas.TreeView(
        document,
        len(nodes) + 1,
        limits.max_nodes,
        tree_nodes.size(nodes, limits),
        limits.max_size_bytes,
        tree_nodes.depth(nodes),
        limits.max_depth,
        limits.max_children,
    )


@Operation("GET", "/api/tree/text", type="text/plain")
async def show_text(scope: Scope) -> str:
    """The category tree as text."""
    limits = scope.settings.tree
    return await scope.read(
        lambda db: tree_nodes.show(described(db), *tree_rows.totals(db), limits)
    )


@Operation("GET", "/api/tree/prompt", type="text/plain")
async def show_prompt(scope: Scope) -> str:
    """The category tree as a model reads it, in at most `tree.max_size_bytes`."""
    return tree_nodes.prompt(await scope.read(described), scope.settings.tree.max_size_bytes)


@Operation("POST", "/api/tree/search")
async def search(scope: Scope, body: schemas.TreeSearchBody) -> schemas.TreeSearched:
    """Find the categories that a question leads to, by its words or by a model."""
    if body.llm_endpoint is not None:
        # A reader may not let the daemon call other servers.
        scope.require("write")
    tree = await scope.read(described)
    why: str | UnsetType = UNSET
    if body.mode == "llm" or body.llm_endpoint is not None:
        options = AskOptions(model=True, endpoint=body.llm_endpoint)
        reasoning = await scope.daemon.thinking.reasoner.search(tree, body.query, options)
        if reasoning.method == "llm":
            named = [
                view_of(schemas.CategoryHit, category, desc=tree[category.path].desc)
                for category in reasoning.value[: body.limit]
            ]
            return schemas.TreeSearched(body.query, "llm", named, len(named))
        why = reasoning.why
    named = [
        view_of(
            schemas.CategoryHit,
            hit,
            reason=f"has {', '.join(hit.words)}",
            desc=tree[hit.path].desc,
        )
        for hit in tree_search.search(tree, body.query, scope.now, body.limit)
    ]
    return schemas.TreeSearched(body.query, "keyword", named, len(named), why)


@Operation("GET", "/api/tree/search/prompt", type="text/plain")
async def search_prompt(scope: Scope, query: schemas.TreeSearchQuery) -> str:
    """The prompt of a tree search, for a caller who asks a model by other means."""
    return scope.daemon.thinking.reasoner.prompt(await scope.read(described), query.query)


@Operation("PUT", "/api/tree", role="write")
async def add(scope: Scope, body: schemas.CategoryBody) -> schemas.CategoryAdded:
    """Add a category, or change its description."""

    def apply(tx: Transaction) -> tuple[str, bool]:
        before = tree_rows.load(tx.db)
        after = trees.add(before, body.path, body.desc, tx.now, tx.rules.tree)
        tree_rows.save(tx, before, after)
        path = check_category(body.path, tx.rules.tree.max_depth, field="path")
        tx.keep_category = path
        return path, path in after.keys() - before.keys()

    path, is_new = await scope.write(apply, create=True)
    return schemas.CategoryAdded(path, True, is_new)


@Operation("DELETE", "/api/tree", role="write")
async def remove(scope: Scope, query: schemas.CategoryQuery) -> schemas.CategoryRemoved:
    """Remove a category without memories in it or below it."""

    def apply(tx: Transaction) -> None:
        before = tree_rows.load(tx.db)
        tree_rows.save(tx, before, trees.remove(before, query.path))

    await scope.write(apply)
    return schemas.CategoryRemoved(query.path, True)


@Operation("POST", "/api/tree/rename", role="write")
async def rename(scope: Scope, body: schemas.RenameBody) -> schemas.CategoryRenamed:
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
    return schemas.CategoryRenamed(path, to, 0 if undo is None else len(undo.moved))


@Operation("POST", "/api/tree/prune", role="write")
async def prune(scope: Scope) -> schemas.TreePruned:
    """Remove empty categories that were not used for long."""
    removed = await scope.write(tree_rows.prune)
    return schemas.TreePruned(len(removed), list(removed))


@Operation("POST", "/api/tree/undo", role="write")
async def undo(scope: Scope) -> schemas.RebuildUndone:
    """Undo the last rebuild or renaming of the tree, and file its memories as before."""
    async with scope.store() as store:
        return await rebuilding.undo(store)


# People and things


_LONGEST: Final = 200


@Operation("GET", "/api/graph")
async def show_graph(scope: Scope, query: GraphQuery) -> Graph:
    """Show the people and things that memories name, and their relations."""
    if query.entity is None:
        top = await scope.read(
            lambda db: entities.best_known(db, query.limit, scope.now), timed=True
        )
        return Graph("", bool(top), top)
    name = check_short(query.entity, "entity", _LONGEST)
    nearest = await scope.read(
        lambda db: entities.named(db, name, query.depth, scope.now), timed=True
    )
    if nearest:
        return Graph(name, True, nearest)
    alike = await scope.read(lambda db: entities.named_like(db, name, scope.now))
    message = f"no memory names '{name}'"
    if alike:
        message += f"; did you mean {', '.join(alike)}?"
    return Graph(name, False, message=message)


@Operation("PUT", "/api/graph/{name}", role="write")
async def change_entity(scope: Scope, name: str, body: EntityChanges) -> Entity:
    """Set the type or the aliases of a person or thing."""
    name = check_short(name, "name", _LONGEST)
    changes: dict[str, Any] = {}
    if body.type is not UNSET:
        changes["type"] = body.type
    if body.aliases is not UNSET:
        changes["aliases"] = [check_short(alias, "aliases", _LONGEST) for alias in body.aliases]
    async with scope.store(create=True) as store:
        key = await store.write(lambda tx: entity_rows.state(tx, name, changes))
        changed = await store.read(lambda db: entities.around(db, key, 0, scope.now))
    return changed[0]
