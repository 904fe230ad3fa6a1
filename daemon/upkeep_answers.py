"""The shapes of what the daemon answers about upkeep; for type checkers alone.

Times are seconds since the epoch. A field that is not required is there if its step was run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from .answers import Metadata


class Scores(TypedDict):
    """How many of the warm memories stand where, by their scores."""

    hot: int
    warm: int
    cold: int
    frozen: int


class Consolidated(TypedDict):
    """What a run did, or would do: EvoClaw's fields, and what else was done."""

    mode: str
    agent_id: str
    timestamp: str
    dry_run: bool
    steps: list[str]
    took_ms: float
    merged: int
    pruned: int
    decayed: int
    evicted_warm: int
    archived_cold: int
    hot_size_bytes: int
    ingested_facts: NotRequired[int]
    ingest_skipped: NotRequired[int]
    ingest_error: NotRequired[str]
    notes_read: NotRequired[int]
    pruned_nodes: NotRequired[int]
    tree_rebuilt: NotRequired[str]
    tree_changes: NotRequired[list[str]]
    expired: NotRequired[int]
    scores: NotRequired[Scores]
    promoted: NotRequired[int]
    superseded: NotRequired[int]
    forgotten: NotRequired[int]
    model_error: NotRequired[str]


class TakenIn(TypedDict):
    """A fact of a note that was stored; one that only would be has no id."""

    id: NotRequired[str]
    text: str
    category: str
    importance: float
    metadata: Metadata


class NoteReport(TypedDict):
    """What became of one note; `why` it was refused."""

    file: str
    status: Literal["read", "unchanged", "refused"]
    found: int
    stored: int
    why: NotRequired[str]


class Ingested(TypedDict):
    """What was taken in, or would be: EvoClaw's fields, and a report on each file.

    `model_error` is why the rules had to read a note.
    """

    model_error: NotRequired[str]

    files_scanned: int
    mode: Literal["rule", "llm"]
    facts_found: int
    facts_stored: int
    facts_skipped: int
    llm_fallbacks: int
    facts: list[TakenIn]
    files: list[NoteReport]
    dry_run: bool


class Omission(TypedDict):
    """Something that a note leaves out."""

    kind: Literal["url", "command", "next_step"]
    message: str
    line: int
    suggestion: str


class Validated(TypedDict):
    """EvoClaw's answer about a note: `ok`, or `warning` with a suggestion for each warning."""

    status: Literal["ok", "warning"]
    file: str | None
    message: NotRequired[str]
    warnings_count: NotRequired[int]
    warnings: NotRequired[list[str]]
    suggestions: NotRequired[list[str]]
    omissions: NotRequired[list[Omission]]


class Running(TypedDict):
    """A run under way, and the step that was done last."""

    mode: str
    since: float
    step: str


class Schedule(TypedDict):
    """A job: when it ran last and how that went, and when it is due."""

    name: str
    cron: str | None
    every: float | None
    last: float | None
    seconds: float | None
    error: str
    next: float | None


class UpkeepStanding(TypedDict):
    """How an agent's upkeep stands."""

    agent: str
    zone: str
    running: Running | None
    schedules: list[Schedule]


class Compared(TypedDict):
    """A number over the last seven days, and how much more that is than in those before."""

    average: float
    before: float | None
    delta: float | None


class Trend(TypedDict):
    """The last seven days, of which `days` were recorded, against the seven before."""

    until: str
    days: int
    numbers: dict[str, Compared]


class History(TypedDict):
    """The days that were recorded, the oldest first."""

    days: list[dict[str, float | str]]
    trend: Trend | None


class Undone(TypedDict):
    """A rebuild of the tree that was taken back."""

    undone: bool
    at: float
    memories: int
    changes: list[str]
