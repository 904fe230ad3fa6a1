"""Key-value pairs. A pair itself is `memory.records.Pair`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Pair as Pair  # noqa: PLC0414 - an answer as it is
from .common import Limit, Offset, limited_by

Key = Annotated[str, Meta(max_length=256, description="not blank")]


class PairQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which pairs to list."""

    prefix: str = ""
    limit: Limit = 100
    offset: Offset = 0


class PairPage(Struct):
    """A page of pairs in the order of their keys, and their total number."""

    results: list[Pair]
    total: int


class PairBody(Struct, forbid_unknown_fields=True):
    """The value to store; it may be empty."""

    value: Annotated[str, limited_by("limits.max_text_bytes")]


class PairStored(Struct):
    """The pair as it is now; `warning` says that it holds a secret."""

    key: str
    value: str
    created_at: float
    updated_at: float
    updated: bool = True
    warning: str | UnsetType = UNSET


class PairDeleted(Struct):
    """The pair is deleted."""

    key: str
    deleted: bool = True
