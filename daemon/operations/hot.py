"""The hot state, which is always in the context, and key-value pairs."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from ..language.secrets import secrets_in
from ..memory import checks, hot, markdown
from ..memory.records import Pair
from ..schemas import hot as schemas
from ..schemas.common import Json
from ..store import documents, hot_rows, key_values
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction
from .operation import Operation
from .scope import Scope
from .views import secret_warning, view_of


@Operation("GET", "/api/hot")
async def show(scope: Scope) -> schemas.HotView:
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
    await scope.write(lambda tx: hot_rows.update(tx, key, body, by_hand=True), create=True)
    warning = secret_warning(secrets_in(body))
    return schemas.HotUpdated(key, UNSET if warning is UNSET else [warning])


@Operation("DELETE", "/api/hot/{key}", role="write")
async def remove(
    scope: Scope, key: schemas.HotKey, query: schemas.HotEntryQuery
) -> schemas.HotRemoved:
    """Remove an entry of the hot state."""

    def apply(tx: Transaction) -> None:
        hot_rows.save(tx, hot.remove(hot_rows.load(tx.db), key, query.name))

    await scope.write(apply)
    return schemas.HotRemoved(key, query.name)


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
async def put_section(scope: Scope, body: schemas.SectionBody) -> schemas.HotSection:
    """Take the daemon's section out of MEMORY.md, or have it written again."""
    async with scope.store(create=True) as store:
        await store.write(lambda tx: documents.want_section(tx, wanted=body.written))
        await store.flush_state_files()
        return schemas.HotSection(str(store.place.markdown), body.written)


async def _document(scope: Scope, store: AgentStore) -> dict[str, Json]:
    return await store.read(lambda db: hot_rows.document(db, scope.now, scope.settings))


# Key-value pairs


_KEY_CHARS: Final = 256


@Operation("GET", "/api/kv")
async def list_pairs(scope: Scope, query: schemas.PairQuery) -> schemas.PairPage:
    """List key-value pairs."""
    limit = scope.page_limit(query.limit)
    page = await scope.read(lambda db: key_values.page(db, query.prefix, limit, query.offset))
    return schemas.PairPage(*page)


@Operation("GET", "/api/kv/{key}")
async def get_pair(scope: Scope, key: str) -> Pair:
    """Read a value."""
    return await scope.read(lambda db: key_values.PAIRS.get(db, key))


@Operation("PUT", "/api/kv/{key}", role="write")
async def put_pair(scope: Scope, key: schemas.Key, body: schemas.PairBody) -> schemas.PairStored:
    """Store a value under a key, new or not."""
    checks.check_short(checks.check_text(key, 4 * _KEY_CHARS, field="key"), "key", _KEY_CHARS)
    if body.value:
        # A blank value is allowed; only a value that cannot be stored is refused.
        limit = scope.settings.limits.max_text_bytes
        checks.check_text(f"-{body.value}", limit + 1, field="value")
    pair = await scope.write(lambda tx: key_values.put(tx, key, body.value), create=True)
    warning = secret_warning(secrets_in({pair.key: pair.value}))
    return view_of(schemas.PairStored, pair, warning=warning)


@Operation("DELETE", "/api/kv/{key}", role="write")
async def remove_pair(scope: Scope, key: str) -> schemas.PairDeleted:
    """Remove a value."""
    await scope.write(lambda tx: key_values.delete(tx, key))
    return schemas.PairDeleted(key)
