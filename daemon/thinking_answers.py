"""The shapes of what distilling, observing, compacting and the graph take and give.

They are for type checkers alone: as with `answers`, nothing is checked at run time. Times are
seconds since the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answers import Json, Memories, Time


class Distilling(TypedDict, total=False):
    """What is to become of a text, and by what; `max_bytes` is the most that a fact may have."""

    core_summary: bool
    facts: bool
    store: bool
    category: str
    llm: bool
    llm_endpoint: str
    max_bytes: int
    aggression: float


class Fact(TypedDict):
    """What a text comes to, in EvoClaw's shape."""

    fact: str
    emotion: str
    people: list[str]
    topics: list[str]
    actions: list[str]
    outcome: Literal["positive", "negative", "pending", "ongoing"]
    urls: list[str]
    commands: list[str]
    paths: list[str]


class DistilledText(TypedDict):
    """What was distilled, with sizes in bytes; `why`: why no model did it."""

    distilled: Fact
    mode: Literal["rule", "llm"]
    original_size: int
    distilled_size: int
    compression_ratio: float
    stages: dict[str, int]
    core_summary: NotRequired[str]
    core_size: NotRequired[int]
    facts: NotRequired[list[Fact]]
    stored: NotRequired[list[Json]]
    why: NotRequired[str]
    llm: NotRequired[Json]


class Turn(TypedDict):
    """What somebody says in a conversation: "user", "assistant", "tool" or "system"."""

    role: str
    text: str
    actor: NotRequired[str]
    at: NotRequired[Time]
    tools_used: NotRequired[Sequence[str]]


class Reading(TypedDict, total=False):
    """Whether turns are read at once, and by what; without `wait` there is a pause before it."""

    wait: bool
    llm: bool
    llm_endpoint: str


class Observed(TypedDict):
    """How many turns came and how many wait to be read.

    With `wait` also what was `stored` of them, the ids of what was `known` already, and which
    way it was found.
    """

    conversation: str
    turns: int
    buffered: int
    ended: bool
    stored: NotRequired[Memories]
    known: NotRequired[list[str]]
    mode: NotRequired[Literal["rule", "llm"]]
    why: NotRequired[str]
    llm: NotRequired[list[Json]]


class Relation(TypedDict):
    """What relates an entity to another; `strength` is how many memories say so."""

    relation: str
    target: str
    strength: int


class Entity(TypedDict):
    """Somebody or something that memories name."""

    name: str
    type: str
    mentionCount: int
    firstSeen: float
    lastSeen: float
    relations: list[Relation]


class Graph(TypedDict):
    """The entity first, then the nearest; where no memory names it, a `message` says so."""

    entity: str
    found: bool
    graph: NotRequired[list[Entity]]
    message: NotRequired[str]


class Compacting(TypedDict, total=False):
    """When to compact and how far; see `POST /api/compact`. The shares are of the window."""

    window: int
    threshold: float
    target: float
    preserve_recent: int
    min_messages: int
    max_tool_result_tokens: int
    check: bool


class Compacted(TypedDict):
    """The messages as they should go on; with `check` only whether it is time."""

    messages: NotRequired[list[dict[str, Json]]]
    summary: NotRequired[str]
    originalCount: int
    compactedCount: int
    tokensReduced: int
    wasCompacted: bool
    toolResultsTruncated: NotRequired[int]
    needs_compaction: bool
    tokens: int
    window: int
