"""Memories: making, storing, reading and changing them, and the references in texts."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from ..errors import InvalidInput
from ..language.extraction.distilling import without
from ..language.secrets import secrets_of
from ..language.standing import is_standing_statement
from ..memory import checks, records
from ..memory.metadata import extract, merge
from ..memory.records import Memory, check_types
from ..memory.scoring import default_importance, score_of, tier_of
from ..schemas import memory as schemas
from ..schemas.common import AgentName, MemoryId, limited_by
from ..store.database.transaction import Transaction
from ..store.records import memories, similar, uses
from ..store.records.conversations import PATH
from ..store.records.memory_rows import index_new
from ..store.records.selecting import Filters, page
from ..store.records.similar import Inserted
from .operation import Operation, Scope
from .views import memory_as, memory_view, secret_warning, superseded_ids

# The characters in which secrets are searched without a thread.
_SEARCHED_AT_ONCE: Final = 4_000
# The filters whose field in a listing has another name.
_PLURAL: Final = {"type": "types", "event": "events", "tag": "tags"}


@Operation("GET", "/api/memory")
async def index(scope: Scope, query: schemas.ListQuery) -> schemas.MemoryPage:
    """List memories."""
    scope = scope.of_user(query.user)
    return await memory_page(scope, filters_of(scope, query), query)


async def memory_page(
    scope: Scope, filters: Filters, query: schemas.ListQuery
) -> schemas.MemoryPage:
    """The page and order of `query` among the memories that pass the filters."""

    def read(db: sqlite3.Connection) -> tuple[list[Memory], int]:
        how = {name: getattr(query, name) for name in ("order", "reverse", "limit", "offset")}
        return page(db, filters, now=scope.now, scoring=scope.settings.scoring, **how)

    scope.page_limit(query.limit)
    rows, total = await scope.read(read, timed=True)
    return schemas.MemoryPage([memory_view(scope, memory) for memory in rows], total)


@Operation("POST", "/api/memory", role="write", statuses=(201,), tool="remember")
async def add(scope: Scope, body: schemas.StoreBody) -> schemas.StoredMemory:
    """Store a memory; it is on the disk before the answer leaves.

    If its text is known word for word, that memory is strengthened instead.
    """
    scope = scope.of_user(body.user)
    return (await _store(scope, [remembered(scope, body)], force=body.force))[0]


@Operation("POST", "/api/memory/batch", role="write", statuses=(201,))
async def add_batch(
    scope: Scope,
    memories: Annotated[list[schemas.NewMemory], limited_by("limits.max_batch", least=1)],
    force: bool = False,
) -> schemas.Stored:
    """Store several memories, all or nothing; known ones as when stored alone."""
    most = scope.settings.limits.max_batch
    if not 0 < len(memories) <= most:
        raise InvalidInput(
            f"send 1 to {most} memories in a batch (got {len(memories)})", field="memories"
        )

    def checked() -> list[Memory]:
        return [remembered(scope, new, f"memories[{at}].") for at, new in enumerate(memories)]

    # References are searched in up to a megabyte of text: other callers are served meanwhile.
    new = await asyncio.to_thread(checked)
    return schemas.Stored(await _store(scope, new, force=force))


async def _store(scope: Scope, new: Sequence[Memory], *, force: bool) -> list[schemas.StoredMemory]:
    def store(tx: Transaction, memory: Memory) -> Inserted:
        known = None if force else similar.known_word_for_word(tx.db, memory)
        if known is None:
            return similar.insert(tx, memory)
        return Inserted(memories.strengthen(tx, known, memory), is_known=True)

    stored = await scope.write(lambda tx: [store(tx, memory) for memory in new], create=True)
    warnings = await _warnings([inserted.memory for inserted in stored])
    return [
        memory_as(
            schemas.StoredMemory,
            scope,
            inserted.memory,
            stored=not inserted.is_known,
            known=inserted.memory.id if inserted.is_known else UNSET,
            supersedes=superseded_ids(inserted.superseded),
            warning=UNSET if inserted.is_known else warning,
        )
        for inserted, warning in zip(stored, warnings, strict=True)
    ]


async def store_unless_known(scope: Scope, memory: Memory) -> Inserted:
    """Store a memory unless one says the same already, which is then strengthened.

    One that was superseded meanwhile is true again.
    This is decided in the transaction: nothing is stored twice, even by concurrent callers.
    """

    def apply(tx: Transaction) -> Inserted:
        index_new(tx)
        same = similar.find_equivalent(tx.db, memory)
        if same is None or similar.holds_again(tx.db, same, memory):
            return similar.insert(tx, memory, file_alike=True)
        return Inserted(memories.strengthen(tx, same, memory), is_known=True)

    return await scope.write(apply, create=True)


async def _warnings(stored: Sequence[Memory]) -> list[str | UnsetType]:
    def find() -> list[str | UnsetType]:
        return [secret_warning(secrets_of(memory)) for memory in stored]

    # The search takes a millisecond for every few kilobytes: other callers are served meanwhile.
    few = sum(len(memory.text) for memory in stored) < _SEARCHED_AT_ONCE
    return find() if few else await asyncio.to_thread(find)


@Operation("GET", "/api/memory/{id}")
async def get(scope: Scope, id: MemoryId, user: AgentName | None = None) -> schemas.MemoryView:
    """Read a memory; `user` names the agent, as in `/api/recall`."""
    scope = scope.of_user(user)
    memory = await scope.read(lambda db: memories.find_living(db, id, scope.now))
    return memory_view(scope, memory)


@Operation("PUT", "/api/memory/{id}", role="write")
async def update(scope: Scope, id: MemoryId, body: schemas.NewMemory) -> schemas.Updated:
    """Change fields of a memory; those left out stay, and at least one is required."""

    def apply(tx: Transaction) -> Memory:
        old = memories.find(tx.db, id)
        return memories.replace(tx, old, changed(scope, old, body))

    memory = await scope.write(apply)
    has_text = body.text is not UNSET or body.content is not UNSET
    warning = (await _warnings([memory]))[0] if has_text else UNSET
    return memory_as(schemas.Updated, scope, memory, warning=warning)


@Operation("DELETE", "/api/memory/{id}", role="write", tool="forget")
async def remove(scope: Scope, id: MemoryId) -> schemas.Deleted:
    """Forget a memory for good."""
    async with scope.store() as store:
        key, back = await store.write(lambda tx: memories.forget(tx, id))
        await store.eraser.erase_now()
    return schemas.Deleted(key, unmerged=back or UNSET)


@Operation("POST", "/api/memory/{id}/reinforce", role="write")
async def reinforce(
    scope: Scope, id: MemoryId, user: AgentName | None = None
) -> schemas.Reinforced:
    """Count one use of a memory; `user` names the agent, as in `/api/recall`."""
    scope = scope.of_user(user)

    def apply(tx: Transaction) -> schemas.Reinforced:
        memory_id = memories.find_living(tx.db, id, scope.now).id
        uses.reinforce(tx, [memory_id])
        memory = memories.find(tx.db, memory_id)
        value = score_of(memory, scope.now, scope.settings.scoring)
        return schemas.Reinforced(memory_id, memory.access_count, round(value, 6), tier_of(value))

    return await scope.write(apply)


@Operation("POST", "/api/metadata", agent=False)
async def references(
    _scope: Scope, text: Annotated[str, Meta(min_length=1)]
) -> schemas.MetadataFound:
    """Extract URLs, commands and paths from a text. Nothing is stored.

    For the text only the limit of a body applies.
    """
    metadata = extract(text)
    counts = schemas.MetadataCounts(len(metadata.urls), len(metadata.commands), len(metadata.paths))
    return schemas.MetadataFound(metadata, counts)


def filters_of(scope: Scope, query: schemas.FilterFields) -> Filters:
    """The store's filters for a listing or a question; `InvalidInput` if one is invalid."""
    least = query.min_importance
    fields = {_PLURAL.get(name, name): value for name, value in asdict(query).items()}
    filters: dict[str, Any] = {
        name: fields[name] for name in fields.keys() & Filters.__struct_fields__
    }
    filters |= {
        "category": scope.category(query.category),
        "group": query.group and query.group.removeprefix(PATH),
        "since": None if query.since is None else scope.moment(query.since, "since"),
        "until": None if query.until is None else scope.moment(query.until, "until"),
        "min_importance": None
        if least is None
        else checks.check_importance(least, field="min_importance"),
        "merged": "merged" in query.include,
        "expired": "expired" in query.include,
    }
    return Filters(**filters)


# From a request to a memory


# Tiny Claw's types of memories are our events.
_EVENTS: Final = get_args(records.EventType)
_SHORT: Final = {
    "subject": 500,
    "outcome": 4000,
    "source": checks.SOURCE_CHARS,
    "actor": 200,
    "group": 200,
    "event": 64,
}


def _data(data: records.Json, field: str) -> records.Json:
    if isinstance(data, dict):
        check_types(data.get(records.ENTITIES), field=f"{field}.{records.ENTITIES}")
    return checks.check_data(data, field=field)


_CHECKS: Final[Mapping[str, Callable[..., Any]]] = {
    "type": lambda value, field: records.TYPES[value],  # noqa: ARG005 - called like the checks
    "tags": checks.check_tags,
    "metadata": checks.check_metadata,
    "data": _data,
    "created_at": checks.check_time,
}


def remembered(scope: Scope, new: schemas.NewMemory, at: str = "") -> Memory:
    """The memory that `new` asks for, else `InvalidInput`; `at` is its place in the body."""
    fields = _checked(scope, new, at)
    if "text" not in fields:
        raise InvalidInput("give the memory a 'text' (or 'content')", field=f"{at}text")
    event = fields.setdefault("event", records.DEFAULT_EVENT)
    fields.setdefault("importance", default_importance(event))
    fields.setdefault("category", records.DEFAULT_CATEGORY)
    fields.setdefault("created_at", scope.now)
    metadata = fields.get("metadata", records.Metadata())
    fields["metadata"] = merge(metadata, extract(fields["text"]))
    if "standing" not in fields:
        # A turn of a conversation reports; what follows from it is a memory of its own.
        is_turn = fields.get("position") is not None
        source = fields.get("source", "")
        fields["standing"] = not is_turn and is_standing_statement(fields["text"], source)
    return _trusted(
        Memory(id=secrets.token_hex(8), updated_at=scope.now, writer=scope.peer.name, **fields),
        at,
    )


def changed(scope: Scope, old: Memory, changes: schemas.NewMemory) -> Memory:
    """`old` with the changes; `InvalidInput` if there are none, or a bad one.

    References in a new text replace those of the old text, unless the caller names references.
    """
    fields = _checked(scope, changes, "")
    if not fields:
        raise InvalidInput("name at least one field to change")
    if "text" in fields:
        references = extract(old.text)
        metadata = fields.get("metadata", without(old.metadata, [references]))
        fields["metadata"] = merge(metadata, extract(fields["text"]))
    # What a person has set by hand stays.
    if "standing" not in fields and old.standing == is_standing_statement(old.text, old.source):
        text, source = fields.get("text", old.text), fields.get("source", old.source)
        fields["standing"] = old.position is None and is_standing_statement(text, source)
    return _trusted(msgspec.structs.replace(old, **fields, updated_at=scope.now), "")


def _trusted(memory: Memory, at: str) -> Memory:
    """The memory, unless it came from outside and is to hold always."""
    for name in ("standing", "pinned") if memory.is_outside else ():
        if getattr(memory, name):
            raise InvalidInput(
                f"what came from outside ('{memory.source}') cannot be {name}",
                field=f"{at}{name}",
                hint="`thermocline update ID --source user-stated` makes it your own word first",
            )
    return memory


def _checked(scope: Scope, new: schemas.NewMemory, at: str) -> dict[str, Any]:
    values = _set_fields(new)
    plain = ("pinned", "standing", "position")
    fields: dict[str, Any] = {name: values[name] for name in plain if name in values}
    text = _one_of(new.text, new.content, f"{at}text", f"{at}content")
    if text is not UNSET:
        most = scope.settings.limits.max_text_bytes
        name = "text" if new.content is UNSET else "content"
        fields["text"] = checks.check_text(text, most, field=f"{at}{name}")
    for name, chars in _SHORT.items():
        if name in values:
            fields[name] = checks.check_short(values[name], f"{at}{name}", chars)
    if fields.get("event") == "":
        raise InvalidInput("give 'event' a word, or leave it out", field=f"{at}event")
    if "category" in values:
        fields |= _filed(values["category"], scope.settings.tree.max_depth, f"{at}category")
    if "importance" in values:
        fields["importance"] = checks.check_client_importance(
            values["importance"],
            beside_content="content" in values and new.type not in _EVENTS,
            field=f"{at}importance",
        )
    for name, check in _CHECKS.items():
        if name in values:
            fields[name] = check(values[name], field=f"{at}{name}")
    expires = _one_of(new.expires, new.ttl, f"{at}expires", f"{at}ttl")
    if expires is not UNSET:
        name = "expires" if new.ttl is UNSET else "ttl"
        fields["expires_at"] = checks.parse_expiry(expires, scope.now, field=f"{at}{name}")
    return fields


def _filed(category: str, max_depth: int, field: str) -> dict[str, str]:
    """Where a memory is filed, and the category that the caller gave if that is too deep."""
    whole = checks.check_category(category, checks.CATEGORY_CHARS, field=field)
    filed = checks.filed_category(whole, max_depth)
    return {"category": filed} | ({"original_category": whole} if filed != whole else {})


def _set_fields(new: schemas.NewMemory) -> dict[str, Any]:
    values = {name: value for name, value in asdict(new).items() if value is not UNSET}
    if new.type in _EVENTS:
        values.setdefault("event", new.type)
    return values


def _one_of(first: Any, second: Any, field: str, alias: str) -> Any:
    if first is not UNSET and second is not UNSET:
        raise InvalidInput(f"give either '{field}' or '{alias}', not both", field=alias)
    return second if first is UNSET else first
