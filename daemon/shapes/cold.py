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
    """Words to look for, or none for the newest.

    With words, only the best matches are looked at, `recall.candidates` or up to the end of the
    page, and `total` counts those.
    """

    query: str = ""
    limit: Limit = 10
    offset: Offset = 0


class DatabaseBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """A database; left out: the agent's own replica.

    The `token` of that one need not be given with its `url`. Any other database is opened for
    this call alone, and naming one needs the role `admin`, since the daemon goes there itself.
    """

    url: Url | None = None
    token: Token | None = None


class Initialized(Struct):
    """The tables exist."""

    initialized: bool = True


class ColdSearchBody(DatabaseBody, kw_only=True, forbid_unknown_fields=True):
    """Words to look for in all that the database holds; without any, what matters most."""

    query: Words = ""
    limit: RecallLimit = 10


class ColdFound(Struct):
    """What holds most of the words comes first; `relevance` is its share of them."""

    results: list[HitView]
