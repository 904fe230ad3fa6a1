"""Conversations as they happen."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from .common import Endpoint, Json, Time, Way
from .experiences import ExperienceView
from .memory import MemoryView
from .recall import Expense

Tools = tuple[str | dict[str, Json], ...]


class TurnBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """One turn: `text` or `content`, who speaks (`role`, not blank), and when; left out: now.

    `toolsUsed`, or `tools_used`, names what an agent used.
    """

    role: str
    text: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    actor: str = ""
    at: Time | UnsetType = UNSET
    tools_used: Tools = ()
    toolsUsed: Tools = ()  # noqa: N815 - profClaw's name


class Talk(Struct, kw_only=True, forbid_unknown_fields=True):
    """Up to 500 turns of a conversation, in their order: `turns`, `messages` or a `text`.

    `messages` are taken as the providers' interfaces have them: `content` may be null or a list of
    parts, `name` says who speaks, `tool_calls` what was used. One that cannot be read is left
    out, and named in `skipped`; `turns` are refused together. A `text` has lines such as
    "Ada: I like tea", which say who speaks; so does a turn of a user that begins like this.

    The conversation is named by `conversation` or `conversationId`, once.
    """

    conversation: str | UnsetType = UNSET
    conversationId: str | UnsetType = UNSET  # noqa: N815 - profClaw's name
    turns: tuple[TurnBody, ...] | UnsetType = UNSET
    messages: tuple[Json, ...] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    userId: str | None = None  # noqa: N815 - profClaw's name


class ObserveBody(Talk, kw_only=True, forbid_unknown_fields=True):
    """Turns that are read for what is worth remembering.

    They are on the disk when the answer comes, and are read after a pause (`observe` in the
    configuration). `end` ends the conversation. With `wait` they are read at once, and the answer
    shows what was stored; `llm` and `llm_endpoint`, as for distilling, are only valid with it.
    `store_turns` stores the turns as well, as `/api/turns` does.
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
    """The turns as memories, without those of systems and tools."""

    conversation: str
    stored: list[MemoryView]
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
    """The experiences that a conversation holds: those that are new, and those told again."""

    conversation: str
    stored: list[ExperienceView]
    known: list[ExperienceView]
    skipped: list[SkippedMessage] | UnsetType = UNSET
