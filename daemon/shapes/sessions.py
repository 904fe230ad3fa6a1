"""Sessions: what they see, what went into their answers, and what has changed since."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import CategoryPath, Limit, Offset

Name = Annotated[str, Meta(max_length=200)]
PathStart = Annotated[str, Meta(min_length=1, max_length=4_096)]
SessionStatus = Literal["active", "archived"]
# The fate of a part of an answer.
Change = Literal["same", "moved", "changed", "superseded", "merged", "expired", "gone"]


class SessionBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """A session to open.

    With a `category` or `paths` (prefixes of the paths of watched files), it only sees the memories
    below the one and the files below the other. With neither it sees everything. `conversationId`
    and `userId` are profClaw's names.
    """

    name: Name = ""
    category: CategoryPath | None = None
    paths: Annotated[tuple[PathStart, ...], Meta(max_length=64)] = ()
    conversation: Name | UnsetType = UNSET
    conversationId: Name | UnsetType = UNSET  # noqa: N815 - profClaw's name
    user: Name | UnsetType = UNSET
    userId: Name | UnsetType = UNSET  # noqa: N815 - profClaw's name


class SessionView(Struct, kw_only=True):
    """A session; `answers` is the number of recorded answers."""

    id: str
    name: str
    conversation: str
    user: str
    category: str
    paths: tuple[str, ...]
    status: SessionStatus
    created_at: float
    updated_at: float
    last_active_at: float
    answers: int


class SessionQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which sessions to list."""

    status: SessionStatus | None = None
    limit: Limit = 50
    offset: Offset = 0


class SessionPage(Struct):
    """A page of sessions, newest first, and their total number."""

    sessions: list[SessionView]
    total: int


class UsedQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which answers of a session, last first; `answer` names one."""

    answer: str | None = None
    limit: Limit = 50
    offset: Offset = 0


class UsedItem(Struct):
    """A part of an answer: the `source` of recall, the id, and a hash of its content."""

    source: str
    id: str
    hash: str


class UsedAnswer(Struct, kw_only=True):
    """An answer, through `recall`, `context` or `files`, and what went into it."""

    id: str
    at: float
    via: Literal["recall", "context", "files"]
    query: str
    used: list[UsedItem]


class UsedPage(Struct):
    """The answers of a session, last first, and their total number."""

    session: str
    answers: list[UsedAnswer]
    total: int


class ReplayedItem(UsedItem, omit_defaults=True):
    """A part of an answer, and its fate since; `hash` is that of the time of the answer."""

    change: Change
    now: str | UnsetType = UNSET


class ReplayedAnswer(Struct, kw_only=True):
    """An answer with its parts; `changed` counts those that have changed."""

    id: str
    at: float
    via: Literal["recall", "context", "files"]
    query: str
    used: list[ReplayedItem]
    changed: int


class Replayed(Struct):
    """What has changed since the answers, and their numbers."""

    session: str
    answers: list[ReplayedAnswer]
    changed: int
    total: int
