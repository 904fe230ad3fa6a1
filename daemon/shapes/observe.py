"""Conversations as they happen."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from .common import Endpoint, Json, Position, Time, Way
from .experiences import ExperienceView
from .memory import MemoryView
from .recall import Expense

Tools = tuple[str | dict[str, Json], ...]


class TurnBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """One turn: `text` or `content`, the speaker (`role`, not blank), and the time (default: now).

    `position` is its place in the conversation, from 0; with it a turn is stored once for each
    place, else by the order of the texts. `toolsUsed`, or `tools_used`, names the tools that an
    agent used.
    """

    role: str
    text: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    actor: str = ""
    at: Time | UnsetType = UNSET
    position: Position | UnsetType = UNSET
    tools_used: Tools = ()
    toolsUsed: Tools = ()  # noqa: N815 - profClaw's name


class Talk(Struct, kw_only=True, forbid_unknown_fields=True):
    """Up to 500 turns of a conversation, in their order: `turns`, `messages` or a `text`.

    `messages` are those of providers' interfaces: `content` may be null or a list of parts, `name`
    is the speaker, `tool_calls` the tools used. An unreadable message is left out, and reported in
    `skipped`; `turns` are refused together. A `text` has lines such as "Ada: I like tea", which
    name the speaker; so may a turn of a user. The conversation is named by `conversation` or
    `conversationId`, once.
    """

    conversation: str | UnsetType = UNSET
    conversationId: str | UnsetType = UNSET  # noqa: N815 - profClaw's name
    turns: tuple[TurnBody, ...] | UnsetType = UNSET
    messages: tuple[Json, ...] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    userId: str | None = None  # noqa: N815 - profClaw's name


class ObserveBody(Talk, kw_only=True, forbid_unknown_fields=True):
    """Turns to extract memories from.

    They are on the disk when the answer comes, and are read after a pause (`observe` in the
    configuration). `end` ends the conversation. With `wait` they are read at once, and the answer
    shows what was stored; `llm` and `llm_endpoint`, as for distilling, need `wait`. `store_turns`
    also stores the turns themselves, as `/api/turns` does.
    """

    end: bool = False
    wait: bool = False
    store_turns: bool = False
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
    mode: Way | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: list[Expense] | UnsetType = UNSET


class ExperiencesObserved(Struct, kw_only=True):
    """The experiences in a conversation: new ones, and repeated ones."""

    conversation: str
    stored: list[ExperienceView]
    known: list[ExperienceView]
    skipped: list[SkippedMessage] | UnsetType = UNSET
