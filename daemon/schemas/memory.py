"""Memories: storing, reading, changing, merging and forgetting them, and their earlier versions.

Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import GivenType, Memory, Metadata, Order, Tier, Type, Undoing
from .common import (
    AgentName,
    CategoryPath,
    Included,
    Input,
    Json,
    Limit,
    MemoryId,
    NotBlank,
    Offset,
    PageOf,
    Position,
    Share,
    Time,
    limited_by,
)

Text = Annotated[str, limited_by("limits.max_text_bytes")]
Importance = Annotated[float | int, Meta(description="0 to 1, or an integer from 2 to 10")]


class NewMemory(Input):
    """A statement to remember. `content` is another name for `text`, `ttl` for `expires`.

    `importance` is 0 to 1, or an integer from 2 to 10, which means tenths; 1 means 0.1 with
    `content`, else 1.0. The types `fact`, `analysis` and `research` are stored as `semantic`,
    `conversation` as `episodic`; Tiny Claw's, such as `correction`, are the `event` of an episodic
    memory, whose importance 1 is 1.0. `expires` may also be a duration such as `7d`. A `pinned`
    memory stays hot and in the hot state. A `standing` one is in every context block; if it is left
    out, it follows from the text. What comes from outside, by a `source` of the kind `web`, `tool`,
    `file`, `mail` or `agent` (`web:https://…`), is quoted wherever an agent reads it, and is
    neither standing, pinned nor hot.
    """

    text: Text | UnsetType = UNSET
    content: Text | UnsetType = UNSET
    type: GivenType | UnsetType = UNSET
    event: NotBlank | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    category: CategoryPath | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    standing: bool | UnsetType = UNSET
    source: str | UnsetType = UNSET
    actor: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    position: Position | UnsetType | None = UNSET
    metadata: Metadata | UnsetType = UNSET
    data: Json | UnsetType = UNSET
    expires: Time | UnsetType | None = UNSET
    ttl: Time | UnsetType | None = UNSET
    created_at: Time | UnsetType = UNSET


class StoreBody(NewMemory, kw_only=True):
    """A statement to remember, unless its text is known word for word, of the same actor.

    Then that memory counts as used, and gets the tags, references, pin, later expiry and higher
    importance that are new. `force` stores the statement once more. A turn of a conversation, which
    has a `position`, is always stored. `user` names the agent, as in `/api/recall`.
    """

    force: bool = False
    user: AgentName | None = None


class FilterFields(Input):
    """Filters for memories; `include` adds merged and expired ones."""

    standing: bool | None = None
    category: CategoryPath | None = None
    tier: Tier | None = None
    source: str | None = None
    actor: str | None = None
    group: str | None = None
    since: Time | None = None
    until: Time | None = None
    min_importance: Share | None = None
    include: tuple[Included, ...] = ()


class ListQuery(FilterFields, kw_only=True):
    """The memories to list: any of the types and events must match, and all of the tags.

    `url` is any part of a URL that the memory mentions. `merged_into` lists those that were merged
    into one memory. `outside` lists those with a source such as `web:…`, `tool:…` or `file:…`, for
    which nobody's word stands yet. `include` adds merged and expired ones. `reverse` reverses the
    order. `user` names the agent, as in `/api/recall`.
    """

    type: tuple[Type, ...] = ()
    event: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    url: str | None = None
    archived: bool | None = None
    outside: bool | None = None
    merged_into: MemoryId | None = None
    limit: Limit = 50
    offset: Offset = 0
    order: Order = "newest"
    reverse: bool = False
    user: AgentName | None = None


class MemoryView(Memory, frozen=True, kw_only=True, omit_defaults=False):
    """A memory as an answer shows it. Times are seconds since the epoch.

    `content` repeats `text` under its other name. `score` and `tier` are those of this moment;
    `archived` tells whether it has left the warm memories. `superseded_by` names a newer memory
    that contradicts it; `supersedes`, in the answer to a store, the memories that the new one
    replaces. `warning` reports a secret in a memory just stored or changed. `quoted_from` is the
    source of a memory from outside, for which nobody's word stands.
    """

    content: str
    archived: bool
    score: float
    tier: Tier
    supersedes: list[str] | UnsetType = UNSET
    warning: str | UnsetType = UNSET
    quoted_from: str | UnsetType = UNSET


class StoredMemory(MemoryView, frozen=True, kw_only=True):
    """The new memory, or the `known` memory with its text, which was strengthened."""

    stored: bool = True
    known: str | UnsetType = UNSET


class MemoryPage(PageOf[MemoryView]):
    """A page of memories, and the number of all that match."""


class Stored(Struct):
    """The memories of a batch, in its order."""

    results: list[StoredMemory]


class Updated(MemoryView, frozen=True, kw_only=True):
    """The memory as it is now."""

    updated: bool = True


class Deleted(Struct):
    """The memory is deleted; `unmerged` are memories once merged into it, now restored."""

    id: str
    deleted: bool = True
    unmerged: tuple[str, ...] | UnsetType = UNSET


class Reinforced(Struct):
    """One more use is counted."""

    id: str
    access_count: int
    score: float
    tier: Tier


class Forgotten(Struct):
    """The number of matching memories; `results` are the newest, as they were before.

    With only `secrets`, `elsewhere` names other places of a secret: "pair KEY", "hot SECTION/KEY",
    "category PATH", "history KIND/ID", "file PATH".
    """

    total: int
    forgotten: bool
    results: list[MemoryView] = []
    elsewhere: list[str] | UnsetType = UNSET


class TidyPair(Struct):
    """Two memories by their ids, their relation, and the reasons."""

    older: str
    newer: str
    relation: Literal["duplicate", "contradiction"]
    reasons: tuple[str, ...]
    older_text: str
    newer_text: str


class Tidied(Struct):
    """What was or would be done; at most 500 pairs are listed."""

    merged: int
    superseded: int
    archived: int
    examined: int
    pairs: list[TidyPair]


class Merged(Struct):
    """Both memories as they are now."""

    kept: MemoryView
    retired: MemoryView


class Unmerged(Struct):
    """The restored memory, and the memory that it was merged into, if that still exists."""

    restored: MemoryView
    kept: MemoryView | None


class MetadataCounts(Struct):
    """The number of each."""

    urls_count: int
    commands_count: int
    paths_count: int


class MetadataFound(Struct):
    """What was found, in the order of the text."""

    metadata: Metadata
    summary: MetadataCounts


# Earlier versions


class VersionView(Struct):
    """A version that was replaced: when (`at`), by whom, on which device, and why.

    `data` is the whole version; `replaced` names the fields that the next change gave other values,
    and `after` has those values; a field missing there was removed. `seen_at` is when somebody
    looked at a value that was lost in a conflict, on any device.
    """

    number: int
    kind: str
    id: str
    at: float
    writer: str
    device: str
    why: str
    data: dict[str, Json]
    replaced: list[str]
    after: dict[str, Json] = {}
    seen_at: float | None = None


class ConflictsSeen(Struct):
    """How many of them were new."""

    seen: int


class VersionList(Struct):
    """Versions, latest first; of one row also the `device` that wrote the current version."""

    results: list[VersionView]
    device: str | UnsetType = UNSET


class UndoneRow(Struct):
    """A row by its kind and id, and what became of it.

    With `dry_run`, what would be deleted has the beginning of its `text`.
    """

    kind: str
    id: str
    result: Undoing
    text: str | UnsetType = UNSET


class Undone(Struct):
    """The rows that were restored or, if the change created them, deleted; and what was left."""

    results: list[UndoneRow]
    done: bool
