"""The shapes of what the daemon takes and gives, for type checkers and for readers.

Nothing is checked at run time: an answer is the plain JSON. Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json: TypeAlias = Any
Type: TypeAlias = Literal["semantic", "episodic", "procedural"]
Tier: TypeAlias = Literal["hot", "warm", "cold", "frozen"]
Order: TypeAlias = Literal["newest", "oldest", "score", "importance"]
Time: TypeAlias = float | str


class Metadata(TypedDict):
    """The references found in a text."""

    urls: list[str]
    commands: list[str]
    paths: list[str]


class Memory(TypedDict):
    """A memory as the API gives it; every key is always there."""

    id: str
    text: str
    content: str
    type: Type
    event: str
    subject: str
    outcome: str
    category: str
    original_category: str
    tags: list[str]
    importance: float
    source: str
    actor: str
    group: str
    position: int | None
    metadata: Metadata
    data: Json
    created_at: float
    updated_at: float
    last_accessed_at: float | None
    access_count: int
    expires_at: float | None
    merged_into: str | None
    superseded_by: str | None
    archived: bool
    score: float
    tier: Tier
    writer: str


Memories: TypeAlias = list[Memory]


class Updated(Memory):
    """A memory after a change."""

    updated: bool


class Fields(TypedDict, total=False):
    """What a caller may say about a memory besides its text.

    `expires` is a duration (`7d`), an ISO 8601 time, seconds since the epoch, or None.
    """

    type: Type
    event: str
    subject: str
    outcome: str
    category: str
    tags: Sequence[str]
    importance: float
    source: str
    actor: str
    group: str
    position: int
    metadata: Mapping[str, Sequence[str]]
    data: Json
    expires: Time | None


class NewFields(Fields, total=False):
    """The same for a new memory."""

    created_at: Time


class Changes(Fields, total=False):
    """The same for a change; what is left out stays as it is."""

    text: str
    merged_into: str | None


class Filters(TypedDict, total=False):
    """What a listing can be narrowed to.

    One of the types and of the events must fit, all tags must be there, and `url` is any part
    of one.
    """

    limit: int
    offset: int
    type: Type | Sequence[Type]
    event: str | Sequence[str]
    category: str
    tags: Sequence[str]
    url: str
    actor: str
    group: str
    source: str
    archived: bool
    tier: Tier
    since: Time
    until: Time
    min_importance: float
    include: Sequence[Literal["merged", "expired"]]
    order: Order


class Page(TypedDict):
    """One page of a listing, and how many there are in all."""

    results: list[Memory]
    total: int


class Database(TypedDict, total=False):
    """Another database than the agent's own replica; the token of that one may be left out."""

    url: str
    token: str


class Initialized(TypedDict):
    """The tables of a database are there."""

    initialized: bool


class Synced(TypedDict):
    """How many rows were sent and were new; `refused` ones came in, and made no sense."""

    synced: bool
    sent: int
    received: int
    refused: int
    took_ms: float


class Deleted(TypedDict):
    """What was deleted; `unmerged` names the memories that were merged into it, and are back."""

    deleted: bool
    id: NotRequired[str]
    unmerged: NotRequired[list[str]]


class Forgotten(TypedDict):
    """How many memories fit; `results` are the newest of them, before they are forgotten."""

    total: int
    forgotten: bool
    results: list[Memory]


class Merged(TypedDict):
    """Both memories after a merge: the one that stays, and the one that left the search."""

    kept: Memory
    retired: Memory


class Unmerged(TypedDict):
    """The memory that is back, and the one that it was merged into, if that is still there."""

    restored: Memory
    kept: Memory | None


class TidyPair(TypedDict):
    """Two memories that say the same, or of which the newer contradicts the older, by id."""

    older: str
    newer: str
    relation: Literal["duplicate", "contradiction"]
    reasons: list[str]
    older_text: str
    newer_text: str


class Tidied(TypedDict):
    """What tidying did, or would do; of many pairs the first are named."""

    merged: int
    superseded: int
    archived: int
    examined: int
    pairs: list[TidyPair]


class Reinforced(TypedDict):
    """A memory's standing after one more use."""

    id: str
    access_count: int
    score: float
    tier: Tier


class Hot(TypedDict):
    """The hot state and its size against its cap."""

    state: dict[str, Json]
    size_bytes: int
    max_bytes: int


class HotUpdated(TypedDict):
    """The part of the hot state that was changed."""

    updated: str
    warnings: NotRequired[list[str]]


class HotRemoved(TypedDict):
    """The entry of the hot state that was removed."""

    removed: str
    name: str | None


class HotRebuilt(TypedDict):
    """Where MEMORY.md was written."""

    output: str
    size_bytes: int
    max_bytes: int


class Tree(TypedDict):
    """The category tree, by path, and its sizes against their caps."""

    tree: dict[str, Json]
    nodes: int
    max_nodes: int
    size_bytes: int
    max_size_bytes: int
    depth: int


class NodeAdded(TypedDict):
    """The node is there now; `made` tells whether it is new."""

    path: str
    added: bool
    made: bool


class NodeRemoved(TypedDict):
    """Whether the node was there."""

    path: str
    removed: bool


class Pruned(TypedDict):
    """How many nodes of the tree were pruned."""

    pruned: int


class Pair(TypedDict):
    """A key and its value."""

    key: str
    value: str
    created_at: float
    updated_at: float


class Pairs(TypedDict):
    """One page of pairs, by key."""

    results: list[Pair]
    total: int


class Extracted(TypedDict):
    """The references in a text, and their numbers."""

    metadata: Metadata
    summary: dict[str, int]


Event: TypeAlias = tuple[str, str, Json]
