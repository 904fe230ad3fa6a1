"""The archive, and the databases that hold it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from .common import Limit, Offset, RecallLimit, Words
from .recall import HitView

Url = Annotated[
    str, Meta(max_length=2048, description="libsql:// or https://, a host and nothing else")
]
Token = Annotated[str, Meta(max_length=16_384, description="what opens the database at the url")]


class ColdQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Words to search for; without any, the newest memories.

    With words, only the best matches are examined: `recall.candidates`, or up to the end of the
    page; `total` counts those.
    """

    query: str = ""
    limit: Limit = 10
    offset: Offset = 0


class DatabaseBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """A database; default: the agent's own replica, whose `token` may be left out.

    Any other database is opened for this call only, and needs the role `admin`, since the daemon
    connects to it.
    """

    url: Url | None = None
    token: Token | None = None


class Initialized(Struct):
    """The tables exist."""

    initialized: bool = True


class ColdSearchBody(DatabaseBody, kw_only=True, forbid_unknown_fields=True):
    """Words to search for in the whole database; without any, the most important memories."""

    query: Words = ""
    limit: RecallLimit = 10


class ColdFound(Struct):
    """Memories with most of the words first; `relevance` is the fraction of the words in each."""

    results: list[HitView]
