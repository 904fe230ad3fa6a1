"""The state that is always in the agent's context."""

from __future__ import annotations

from msgspec import UNSET

from ..language.secrets import secrets_in
from ..memory import hot, markdown
from ..shapes.common import Json
from ..shapes.hot import HotEntryQuery, HotKey, HotRebuilt, HotRemoved, HotUpdated, HotView
from ..store import documents, hot_rows
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction
from .operation import Operation
from .scope import Scope
from .views import secret_warning


@Operation("GET", "/api/hot")
async def show(scope: Scope) -> HotView:
    """The hot state."""
    async with scope.store() as store:
        document = await _document(scope, store)
        size = hot.document_size(document)
        if scope.leaves_traces:
            store.note_hot(size)
    return HotView(document, size, scope.settings.hot.max_bytes)


@Operation("GET", "/api/hot/markdown", type="text/markdown")
async def show_markdown(scope: Scope) -> str:
    """The hot state as Markdown: MEMORY.md as it would be written now."""
    async with scope.store() as store:
        document = await _document(scope, store)
        text = markdown.render(document, scope.now, scope.zone)
        if scope.leaves_traces:
            store.note_hot(len(text))
    return text


@Operation("PUT", "/api/hot/{key}", role="write")
async def update(scope: Scope, key: HotKey, body: Json) -> HotUpdated:
    """Update identity, owner_profile, lesson, event, task or project.

    Each is an object: `identity` and `owner_profile` with any keys, a `lesson`, an `event` and a
    `task` with a `text`, a `project` with a `name`. What is too long is shortened.
    """
    warnings = [*await scope.write(lambda tx: hot_rows.update(tx, key, body), create=True)]
    if warning := secret_warning(secrets_in(body)):
        warnings.append(warning)
    return HotUpdated(key, warnings or UNSET)


@Operation("DELETE", "/api/hot/{key}", role="write")
async def remove(scope: Scope, key: HotKey, query: HotEntryQuery) -> HotRemoved:
    """Remove an entry of the hot state."""

    def apply(tx: Transaction) -> None:
        hot_rows.save(tx, hot.remove(hot_rows.load(tx.db), key, query.name))

    await scope.write(apply)
    return HotRemoved(key, query.name)


@Operation("POST", "/api/hot/rebuild", role="write")
async def rebuild(scope: Scope) -> HotRebuilt:
    """Write MEMORY.md and the state files now."""
    async with scope.store(create=True) as store:
        store.want_faces(documents.FILES)
        await store.flush_faces()
        document = await _document(scope, store)
        output, size = str(store.place.markdown), documents.section_size(document, scope.now)
    return HotRebuilt(output, size, scope.settings.hot.max_bytes)


async def _document(scope: Scope, store: AgentStore) -> dict[str, Json]:
    return await store.read(lambda db: hot_rows.document(db, scope.now, scope.settings))
