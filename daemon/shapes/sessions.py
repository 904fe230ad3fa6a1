"""Sessions: what they see, what went into their answers, and what has changed since."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import CategoryPath, Limit, Offset

Name = Annotated[str, Meta(max_length=200)]
PathStart = Annotated[str, Meta(min_length=1, max_length=4_096)]
SessionStatus = Literal["active", "archived"]
# What has become of something that went into an answer.
Change = Literal["same", "moved", "changed", "superseded", "merged", "expired", "gone"]


class SessionBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """A session to open.

    With a `category` or `paths`, the beginnings of the paths of watched files, it sees the memories
    below the one and the files below the other, and nothing else. With neither it sees everything.
    `conversationId` and `userId` are profClaw's names.
    """

    name: Name = ""
    category: CategoryPath | None = None
    paths: Annotated[tuple[PathStart, ...], Meta(max_length=64)] = ()
    conversation: Name | UnsetType = UNSET
    conversationId: Name | UnsetType = UNSET  # noqa: N815 - profClaw's name
    user: Name | UnsetType = UNSET
    userId: Name | UnsetType = UNSET  # noqa: N815 - profClaw's name


class SessionView(Struct, kw_only=True):
    """A session; `answers` are those of which is known what went into them."""

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
    """A page of sessions, the newest first, and how many there are."""

    sessions: list[SessionView]
    total: int


class UsedQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which answers of a session, the last first; `answer` names one."""

    answer: str | None = None
    limit: Limit = 50
    offset: Offset = 0


class UsedItem(Struct):
    """Something that went into an answer: of a `source` of recall, and a hash of what it said."""

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
    """The answers of a session, the last first, and how many there are."""

    session: str
    answers: list[UsedAnswer]
    total: int


class ReplayedItem(Struct, omit_defaults=True):
    """Something that went into an answer, and what has become of it; `hash` is that of then."""

    source: str
    id: str
    hash: str
    change: Change
    now: str | UnsetType = UNSET


class ReplayedAnswer(Struct, kw_only=True):
    """An answer, with all that went into it; `changed` counts what is no longer the same."""

    id: str
    at: float
    via: Literal["recall", "context", "files"]
    query: str
    used: list[ReplayedItem]
    changed: int


class Replayed(Struct):
    """What has changed since the answers, and how much of how many."""

    session: str
    answers: list[ReplayedAnswer]
    changed: int
    total: int
