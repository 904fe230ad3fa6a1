"""The categories, the people and things that memories name, the hot state, and pairs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from ..errors import Conflict
from ..language.secrets import secrets_in
from ..maintenance import rebuilding
from ..memory import checks, hot, markdown, tree_nodes
from ..memory import tree as trees
from ..memory.checks import check_category, check_short
from ..memory.records import Entity, EntityType, Pair
from ..memory.tree_rebuild import TreeChange
from ..recall import tree_search
from ..recall.tree_search import described
from ..schemas import tiers as schemas
from ..schemas.common import (
    CategoryPath,
    Endpoint,
    Json,
    Limit,
    Offset,
    RecallLimit,
    Words,
    limited_by,
)
from ..schemas.tiers import Graph
from ..store.agent_store import AgentStore
from ..store.database.transaction import Transaction
from ..store.records import documents, entities, entity_rows, hot_rows, key_values, tree_rows
from ..tasks import tree_tasks
from ..tasks.model_or_rules import AskOptions
from .operation import Operation, Scope
from .views import secret_warning, view_of


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
async def search(
    scope: Scope,
    query: Words,
    mode: Literal["keyword", "llm"] = "keyword",
    limit: RecallLimit = 5,
    llm_endpoint: Endpoint | None = None,
) -> schemas.TreeSearched:
    """Find the categories that a question leads to, by its words or by a model.

    In mode `llm` the configured model, or the server at `llm_endpoint`, names them; without its
    answer the words do, and `why` says so. `llm_endpoint` needs the role `write`.
    """
    if llm_endpoint is not None:
        # A reader may not let the daemon call other servers.
        scope.require("write")
    tree = await scope.read(described)
    why: str | UnsetType = UNSET
    if mode == "llm" or llm_endpoint is not None:
        options = AskOptions(model=True, endpoint=llm_endpoint)
        model = scope.daemon.thinking.model
        reasoning = await tree_tasks.search_tree(model, tree, query, options)
        if reasoning.method == "llm":
            named = [
                view_of(schemas.CategoryHit, category, desc=tree[category.path].desc)
                for category in reasoning.value[:limit]
            ]
            return schemas.TreeSearched(query, "llm", named, len(named))
        why = reasoning.why
    named = [
        view_of(
            schemas.CategoryHit,
            hit,
            reason=f"has {', '.join(hit.words)}",
            desc=tree[hit.path].desc,
        )
        for hit in tree_search.search(tree, query, scope.now, limit)
    ]
    return schemas.TreeSearched(query, "keyword", named, len(named), why)


@Operation("GET", "/api/tree/search/prompt", type="text/plain")
async def search_prompt(scope: Scope, query: Words) -> str:
    """The prompt of a tree search, for a caller who asks a model by other means."""
    model, tree = scope.daemon.thinking.model, await scope.read(described)
    return tree_tasks.search_prompt(model, tree, query)


@Operation("PUT", "/api/tree", role="write")
async def add(scope: Scope, path: CategoryPath, desc: str = "") -> schemas.CategoryAdded:
    """Add a category with its missing parents, or change its description."""

    def apply(tx: Transaction) -> tuple[str, bool]:
        before = tree_rows.load(tx.db)
        after = trees.add(before, path, desc, tx.now, tx.rules.tree)
        tree_rows.save(tx, before, after)
        tx.keep_category = check_category(path, tx.rules.tree.max_depth, field="path")
        return tx.keep_category, tx.keep_category in after.keys() - before.keys()

    added, is_new = await scope.write(apply, create=True, trial=True)
    return schemas.CategoryAdded(added, True, is_new)


@Operation("DELETE", "/api/tree", role="write")
async def remove(scope: Scope, path: CategoryPath) -> schemas.CategoryRemoved:
    """Remove a category without memories in it or below it."""

    def apply(tx: Transaction) -> None:
        before = tree_rows.load(tx.db)
        tree_rows.save(tx, before, trees.remove(before, path))

    await scope.write(apply)
    return schemas.CategoryRemoved(path, True)


@Operation("POST", "/api/tree/rename", role="write")
async def rename(scope: Scope, path: CategoryPath, to: CategoryPath) -> schemas.CategoryRenamed:
    """Rename or move a category with all below it, and refile its memories; can be undone.

    The new path must not exist yet.
    """
    depth = scope.settings.tree.max_depth
    path, to = check_category(path, depth, field="path"), check_category(to, depth, field="to")
    change = TreeChange(type="rename", path=path, new_path=to)
    async with scope.store() as store:
        rebuilt = await store.write(lambda tx: rebuilding.rebuild(tx, [change]))
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
    return await scope.write(rebuilding.undo)


# People and things


_LONGEST: Final = 200
_Name = Annotated[str, Meta(min_length=1, max_length=_LONGEST)]


@Operation("GET", "/api/graph")
async def show_graph(
    scope: Scope,
    entity: Annotated[str, Meta(min_length=1)] | None = None,
    depth: Annotated[int, Meta(ge=0, le=5)] = 2,
    limit: Annotated[int, Meta(ge=1, le=200)] = 20,
) -> Graph:
    """Show the people and things that memories name, and their relations.

    An `entity` and what is at most `depth` relations away from it; without one those that most
    memories name, at most `limit`.
    """
    if entity is None:
        top = await scope.read(lambda db: entities.best_known(db, limit, scope.now), timed=True)
        return Graph("", bool(top), top)
    name = check_short(entity, "entity", _LONGEST)
    nearest = await scope.read(lambda db: entities.named(db, name, depth, scope.now), timed=True)
    if nearest:
        return Graph(name, True, nearest)
    alike = await scope.read(lambda db: entities.named_like(db, name, scope.now))
    message = f"no memory names '{name}'"
    if alike:
        message += f"; did you mean {', '.join(alike)}?"
    return Graph(name, False, message=message)


@Operation("PUT", "/api/graph/{name}", role="write")
async def change_entity(
    scope: Scope,
    name: str,
    type: EntityType | UnsetType = UNSET,
    aliases: Annotated[list[_Name], Meta(max_length=50)] | UnsetType = UNSET,
) -> Entity:
    """State the type or the aliases of a person or thing; what is left out stays.

    `aliases` replaces the list: an alias that is itself an entity is merged into this one.
    """
    name = check_short(name, "name", _LONGEST)
    changes: dict[str, Any] = {}
    if type is not UNSET:
        changes["type"] = type
    if aliases is not UNSET:
        changes["aliases"] = [check_short(alias, "aliases", _LONGEST) for alias in aliases]
    async with scope.store(create=True) as store:
        key = await store.write(lambda tx: entity_rows.state(tx, name, changes))
        changed = await store.read(lambda db: entities.neighbourhood(db, key, 0, scope.now))
    return changed[0]


# The hot state, which is always in the context


@Operation("GET", "/api/hot")
async def show_hot(scope: Scope) -> schemas.HotView:
    """The hot state."""
    async with scope.store() as store:
        document = await _document(scope, store)
        size = hot.document_size(document)
        if scope.leaves_traces:
            store.note_answer(None, size)
    return schemas.HotView(document, size, scope.settings.hot.max_bytes)


@Operation("GET", "/api/hot/markdown", type="text/markdown")
async def show_markdown(scope: Scope) -> str:
    """The hot state as Markdown: MEMORY.md as it would be written now."""
    async with scope.store() as store:
        document = await _document(scope, store)
        text = markdown.render(document, scope.now, scope.zone)
        if scope.leaves_traces:
            store.note_answer(None, len(text))
    return text


@Operation("PUT", "/api/hot/{key}", role="write")
async def update(scope: Scope, key: schemas.HotKey, body: Json) -> schemas.HotUpdated:
    """Update identity, owner_profile, lesson, event, task or project.

    Each is an object: `identity` and `owner_profile` with any keys, a `lesson`, an `event` and a
    `task` with a `text`, a `project` with a `name`. What takes more than its share is refused.
    """
    await scope.write(
        lambda tx: hot_rows.update(tx, key, body, by_hand=True), create=True, trial=True
    )
    warning = secret_warning(secrets_in(body))
    return schemas.HotUpdated(key, UNSET if warning is UNSET else [warning])


@Operation("DELETE", "/api/hot/{key}", role="write")
async def remove_entry(scope: Scope, key: schemas.HotKey, name: str) -> schemas.HotRemoved:
    """Remove an entry of the hot state.

    Its `name` is a key of the identity or profile, the name of a project, or the text of another
    entry.
    """

    def apply(tx: Transaction) -> None:
        hot_rows.save(tx, hot.remove(hot_rows.load(tx.db), key, name))

    await scope.write(apply)
    return schemas.HotRemoved(key, name)


@Operation("POST", "/api/hot/rebuild", role="write")
async def rebuild(scope: Scope) -> schemas.HotRebuilt:
    """Write MEMORY.md and the state files now."""
    async with scope.store(create=True) as store:
        store.request_state_files(documents.FILES)
        await store.flush_state_files()
        document = await _document(scope, store)
        output, size = str(store.place.markdown), documents.section_size(document, scope.now)
    return schemas.HotRebuilt(output, size, scope.settings.hot.max_bytes)


@Operation("GET", "/api/hot/section")
async def section(scope: Scope) -> schemas.HotSection:
    """Where MEMORY.md is, and whether the daemon writes its section there."""
    async with scope.store() as store:
        written = await store.read(documents.has_section)
        return schemas.HotSection(str(store.place.markdown), written)


@Operation("PUT", "/api/hot/section", role="write")
async def put_section(scope: Scope, written: bool) -> schemas.HotSection:
    """Take the daemon's section out of MEMORY.md, or have it written again."""
    async with scope.store(create=True) as store:
        await store.write(lambda tx: documents.want_section(tx, wanted=written))
        await store.flush_state_files()
        return schemas.HotSection(str(store.place.markdown), written)


async def _document(scope: Scope, store: AgentStore) -> dict[str, Json]:
    return await store.read(lambda db: hot_rows.document(db, scope.now, scope.settings))


# Key-value pairs


_KEY_CHARS: Final = 256


@Operation("GET", "/api/kv")
async def list_pairs(
    scope: Scope, prefix: str = "", limit: Limit = 100, offset: Offset = 0
) -> schemas.PairPage:
    """List key-value pairs."""
    limit = scope.page_limit(limit)
    page = await scope.read(lambda db: key_values.page(db, prefix, limit, offset))
    return schemas.PairPage(*page)


@Operation("GET", "/api/kv/{key}")
async def get_pair(scope: Scope, key: str) -> Pair:
    """Read a value."""
    return await scope.read(lambda db: key_values.PAIRS.get(db, key))


@Operation("PUT", "/api/kv/{key}", role="write")
async def put_pair(
    scope: Scope,
    key: schemas.Key,
    value: Annotated[str, limited_by("limits.max_text_bytes")],
) -> schemas.PairStored:
    """Store a value under a key, new or not; the value may be empty."""
    checks.check_short(checks.check_text(key, 4 * _KEY_CHARS, field="key"), "key", _KEY_CHARS)
    if value:
        # A blank value is allowed; only a value that cannot be stored is refused.
        limit = scope.settings.limits.max_text_bytes
        checks.check_text(f"-{value}", limit + 1, field="value")
    pair = await scope.write(lambda tx: key_values.put(tx, key, value), create=True)
    warning = secret_warning(secrets_in({pair.key: pair.value}))
    return view_of(schemas.PairStored, pair, warning=warning)


@Operation("DELETE", "/api/kv/{key}", role="write")
async def remove_pair(scope: Scope, key: str) -> schemas.PairDeleted:
    """Remove a value."""
    await scope.write(lambda tx: key_values.delete(tx, key))
    return schemas.PairDeleted(key)
