"""Sessions: stretches of work, and what went into which of their answers."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

SessionStatus: TypeAlias = Literal["active", "archived"]
# The fates of a memory other than a change of its text.
Fate: TypeAlias = Literal["merged", "superseded", "expired"]
Via: TypeAlias = Literal["recall", "context", "files"]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of work. Times are seconds since the epoch."""

    id: str
    name: str = ""
    conversation: str = ""
    user: str = ""
    category: str = ""  # it sees only memories below it; "": all, unless it names paths
    # The beginnings of the paths of files that it sees; empty: all, unless it names a category.
    paths: tuple[str, ...] = ()
    status: SessionStatus = "active"
    created_at: float
    updated_at: float  # when it was last opened, archived or reopened


class Used(msgspec.Struct, frozen=True, omit_defaults=True):
    """Part of an answer: the hash of its content at the time, and its fate at the time."""

    source: str
    id: str
    hash: str
    fate: Fate | None = None


class AnswerUsed(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a session: the question, the operation, and what went into it."""

    id: str
    at: float
    via: Via
    query: str
    used: tuple[Used, ...]
