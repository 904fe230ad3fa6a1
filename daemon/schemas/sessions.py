"""Sessions: what they see, what went into their answers, and what has changed since."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.sessions import AnswerUsed, Session, SessionStatus, Used
from .common import CategoryPath, Input, Paged

Name = Annotated[str, Meta(max_length=200)]
PathStart = Annotated[str, Meta(min_length=1, max_length=4_096)]
# The fate of a part of an answer.
Change = Literal["same", "moved", "changed", "superseded", "merged", "expired", "gone"]


class SessionBody(Input):
    """A session to open.

    With a `category` or `paths` (prefixes of the paths of watched files), it only sees the memories
    below the one and the files below the other. With neither it sees everything.
    """

    name: Name = ""
    category: CategoryPath | None = None
    paths: Annotated[tuple[PathStart, ...], Meta(max_length=64)] = ()
    conversation: Name = ""
    user: Name = ""


class SessionView(Session, frozen=True, kw_only=True):
    """A session; `answers` is the number of recorded answers."""

    last_active_at: float
    answers: int


class SessionQuery(Paged):
    """Which sessions to list."""

    status: SessionStatus | None = None


class SessionPage(Struct):
    """A page of sessions, newest first, and their total number."""

    sessions: list[SessionView]
    total: int


class UsedQuery(Paged):
    """Which answers of a session, last first; `answer` names one."""

    answer: str | None = None


class UsedPage(Struct):
    """The answers of a session, last first, and their total number."""

    session: str
    answers: list[AnswerUsed]
    total: int


class ReplayedItem(Used, frozen=True, kw_only=True):
    """A part of an answer, and its fate since; `hash` is that of the time of the answer."""

    change: Change
    now: str | UnsetType = UNSET


class ReplayedAnswer(AnswerUsed, frozen=True, kw_only=True):
    """An answer with its parts; `changed` counts those that have changed."""

    used: tuple[ReplayedItem, ...]
    changed: int


class Replayed(Struct):
    """What has changed since the answers, and their numbers."""

    session: str
    answers: list[ReplayedAnswer]
    changed: int
    total: int
