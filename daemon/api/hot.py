"""`/api/hot`: the state that is always in the agent's context."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ..memory import hot, markdown
from ..store import documents, hot_rows
from ..store.transaction import Transaction
from .calls import Call, Reply, Route


class HotAnswer(msgspec.Struct):
    """The document, and its size in bytes of compact JSON."""

    state: dict[str, Any]
    size_bytes: int
    max_bytes: int


class HotUpdated(msgspec.Struct):
    """What was updated; `warnings` name the values that were too long and were shortened."""

    updated: str
    warnings: list[str] | UnsetType = UNSET


class RemoveQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A key of the identity or profile, the name of a project, or the text of another entry."""

    name: str


class HotRemoved(msgspec.Struct):
    """What was removed."""

    removed: str
    name: str


class HotRebuilt(msgspec.Struct):
    """Where MEMORY.md was written, and how large the state is."""

    output: str
    size_bytes: int
    max_bytes: int


async def show(call: Call) -> Reply:
    """The hot document."""
    async with call.store() as store:
        rules = store.rules
        document = await store.read(lambda db: hot_rows.document(db, call.now, rules))
        size = hot.document_size(document)
        if call.leaves_traces:
            store.note_hot(size)
    return Reply(HotAnswer(document, size, rules.hot.max_bytes))


async def show_markdown(call: Call) -> Reply:
    """MEMORY.md as it would be written now."""
    local = datetime.now().astimezone().tzinfo
    assert local is not None
    async with call.store() as store:
        rules = store.rules
        document = await store.read(lambda db: hot_rows.document(db, call.now, rules))
        text = markdown.render(document, call.now, local)
        if call.leaves_traces:
            store.note_hot(len(text))
    return Reply(text, content_type="text/markdown")


async def update(call: Call) -> Reply:
    """Merge a value into the hot state, as EvoClaw's `hot --update KEY JSON` does."""
    key, value = call.params["key"], await call.json()

    async with call.store(create=True) as store:
        warnings = await store.write(lambda tx: hot_rows.update(tx, key, value))
    return Reply(HotUpdated(key, list(warnings) or UNSET))


async def remove(call: Call) -> Reply:
    """Take an entry out of the hot state."""
    key, name = call.params["key"], call.query(RemoveQuery).name

    def apply(tx: Transaction) -> None:
        hot_rows.save(tx, hot.remove(hot_rows.load(tx.db), key, name))

    async with call.store() as store:
        await store.write(apply)
    return Reply(HotRemoved(key, name))


async def rebuild(call: Call) -> Reply:
    """Write MEMORY.md and the state files now."""
    async with call.store(create=True) as store:
        store.want_faces(documents.FILES)
        await store.flush_faces()
        rules = store.rules
        document = await store.read(lambda db: hot_rows.document(db, call.now, rules))
        output = str(store.place.markdown)
    size = documents.section_size(document, call.now)
    return Reply(HotRebuilt(output, size, rules.hot.max_bytes))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/hot",
        handler=show,
        summary="The hot state",
        answer=HotAnswer,
    ),
    Route(
        method="GET",
        path="/api/hot/markdown",
        handler=show_markdown,
        summary="The hot state as Markdown",
        types=("text/markdown",),
    ),
    Route(
        method="PUT",
        path="/api/hot/{key}",
        handler=update,
        summary="Update identity, owner_profile, lesson, event, task or project",
        role="write",
        body=Any,
        answer=HotUpdated,
    ),
    Route(
        method="DELETE",
        path="/api/hot/{key}",
        handler=remove,
        summary="Remove an entry of the hot state",
        role="write",
        query=RemoveQuery,
        answer=HotRemoved,
    ),
    Route(
        method="POST",
        path="/api/hot/rebuild",
        handler=rebuild,
        summary="Write MEMORY.md and the state files now",
        role="write",
        answer=HotRebuilt,
    ),
)
