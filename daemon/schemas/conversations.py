"""Conversations as they happen, and condensing them and other texts."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ..memory.records import Distilled as Distilled
from .common import CategoryPath, Endpoint, Input, Json, Method, NotBlank, Position, Share, Time
from .learning import ExperienceView
from .memory import MemoryView
from .recall import Expense

Tools = tuple[str | dict[str, Json], ...]
_TURNS: Final = (
    "1 to 500 turns, or none to `end` the conversation; one of `turns`, `messages` and `text` is"
    " required"
)


class TurnBody(Input):
    """One turn: `text` or `content`, the speaker (`role`, not blank), and the time (default: now).

    `position` is its place in the conversation, from 0; with it a turn is stored once for each
    place, else by the order of the texts. `tools_used` names the tools that an agent used.
    """

    role: str
    text: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    actor: str = ""
    at: Time | UnsetType = UNSET
    position: Position | UnsetType = UNSET
    tools_used: Tools = ()


class Talk(Input):
    """Up to 500 turns of a conversation, in their order: `turns`, `messages` or a `text`.

    `messages` are those of providers' interfaces: `content` (or `parts`) may be null or a list of
    parts, `name` is the speaker, `tool_calls` the tools used. An unreadable message is left out,
    and reported in `skipped`; `turns` are refused together. A `text` has lines such as "Ada: I like
    tea", which name the speaker; so may a turn of a user. `user` is the name of a user who is not
    named.
    """

    conversation: NotBlank
    turns: Annotated[tuple[TurnBody, ...], Meta(description=_TURNS)] | UnsetType = UNSET
    messages: Annotated[tuple[Json, ...], Meta(description=_TURNS)] | UnsetType = UNSET
    text: Annotated[str, Meta(description=_TURNS)] | UnsetType = UNSET
    user: str = ""


class ObserveBody(Talk, kw_only=True):
    """Turns to extract memories from.

    They are on the disk when the answer comes, and are read after a pause (`observe` in the
    configuration). `end` ends the conversation. With `wait` they are read at once, and the answer
    shows what was stored; `llm` and `llm_endpoint`, as for distilling, need `wait`.
    """

    end: bool = False
    wait: bool = False
    llm: bool | None = None
    llm_endpoint: Endpoint | None = None


class SkippedMessage(Struct, frozen=True):
    """A message that could not be read: its place among those sent, from 0, and why."""

    at: int
    why: str


class TurnsStored(Struct):
    """The new turns as memories, without those of systems and tools; `known` counts the others.

    A conversation may be sent again as a whole, or from any turn on: what is stored of it is known.
    """

    conversation: str
    stored: list[MemoryView]
    known: int
    skipped: list[SkippedMessage] | UnsetType = UNSET


class Observed(Struct, kw_only=True):
    """The number of unread turns; with `wait`, what was stored and what was already known."""

    conversation: str
    turns: int
    buffered: int
    ended: bool
    skipped: list[SkippedMessage] | UnsetType = UNSET
    stored: list[MemoryView] | UnsetType = UNSET
    known: list[str] | UnsetType = UNSET
    mode: Method | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: list[Expense] | UnsetType = UNSET


class ExperiencesObserved(Struct, kw_only=True):
    """The experiences in a conversation: new ones, and repeated ones."""

    conversation: str
    stored: list[ExperienceView]
    known: list[ExperienceView]
    skipped: list[SkippedMessage] | UnsetType = UNSET


# Distilling


class DistilBody(Input):
    """One `text`, or 1 to 100 `texts`; none may be blank.

    `llm` true asks the configured model, false uses the rules; default: `distillation.mode` of the
    configuration. `llm_endpoint` is the URL of a server to ask instead; unless `llm` is true, texts
    of less than `llm.min_chars` go to neither. `facts` returns every statement worth keeping.
    `store` stores the result (all the facts, if requested) in the matching category of the tree, or
    else in `category`, with the `source` of the text, such as `web:https://…`; both need `store`.
    `max_bytes` and `aggression` replace those of the configuration.
    """

    text: str | None = None
    texts: Annotated[tuple[str, ...], Meta(min_length=1, max_length=100)] | None = None
    core_summary: bool = False
    facts: bool = False
    store: bool = False
    category: CategoryPath | None = None
    source: str | None = None
    llm: bool | None = None
    llm_endpoint: Endpoint | None = None
    max_bytes: Annotated[int, Meta(ge=16, le=65_536)] | None = None
    aggression: Share | None = None


class StageSizes(Struct):
    """The bytes of the text, of what was distilled from it, and of its summary."""

    raw: int
    fact: int
    core: int


class StoredFact(Struct):
    """The memory with the fact; `duplicate`: the fact was already stored.

    `supersedes` are the memories that the new one replaces.
    """

    id: str
    text: str
    category: str
    importance: float
    duplicate: bool
    supersedes: list[str] | UnsetType = UNSET


class DistilledText(Struct, kw_only=True):
    """The facts; `mode` says whether a model or the rules found them, `why` why no model did.

    `original_size` and `distilled_size` are bytes.
    """

    distilled: Distilled
    mode: Method
    original_size: int
    distilled_size: int
    compression_ratio: float
    stages: StageSizes
    core_summary: str | UnsetType = UNSET
    core_size: int | UnsetType = UNSET
    facts: list[Distilled] | UnsetType = UNSET
    stored: list[StoredFact] | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: Expense | UnsetType = UNSET


class DistilledTexts(Struct):
    """Several texts, in their order."""

    results: list[DistilledText]


# Compaction


class CompactedMessages(Struct, kw_only=True, rename="camel"):
    """The resulting messages, under profClaw's names.

    `needs_compaction` (spelt so) is the state before; `tokens` and `share` are their size before,
    in tokens and as a fraction of the window; `summary` is that of the removed messages, and `mode`
    how it was made.
    """

    messages: list[dict[str, Json]] | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    original_count: int
    compacted_count: int
    tokens_reduced: int
    was_compacted: bool
    tool_results_truncated: int | UnsetType = UNSET
    needs_compaction: bool = field(name="needs_compaction")
    tokens: int
    window: int
    share: float
    mode: Method | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: Expense | UnsetType = UNSET
