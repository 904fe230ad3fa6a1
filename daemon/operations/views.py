"""Records as answers show them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput
from ..memory import checks
from ..memory.records import Memory
from ..memory.scoring import score_of, tier_of
from ..recall.answer import Hit
from ..schemas.memory import MemoryView
from ..schemas.recall import HitView
from .operation import Scope

T = TypeVar("T")
View = TypeVar("View", bound=msgspec.Struct)


def view_of(kind: type[View], record: Any, **more: Any) -> View:
    """A `kind` with the fields that a record has under the same names, and with `more`."""
    names = _shared_names(kind, record.__class__)
    return kind(**{name: getattr(record, name) for name in names} | more)


@functools.cache
def _shared_names(kind: type[Any], record: type[Any]) -> tuple[str, ...]:
    """The fields of `kind` that instances of another class have, as fields or properties."""
    return tuple(name for name in kind.__struct_fields__ if hasattr(record, name))


def memory_view(scope: Scope, memory: Memory, *, now: float = 0.0, **more: Any) -> MemoryView:
    """`memory` with its score and tier at `now`, by default the time of the call."""
    return memory_as(MemoryView, scope, memory, now=now, **more)


def memory_as(
    kind: type[View], scope: Scope, memory: Memory, *, now: float = 0.0, **more: Any
) -> View:
    """`memory` as a `kind` of `MemoryView`, with `more` fields."""
    now = now or scope.now
    score = score_of(memory, now, scope.settings.scoring)
    return view_of(
        kind,
        memory,
        content=memory.text,
        archived=memory.archived_at is not None,
        quoted_from=memory.source if memory.is_outside else UNSET,
        **{"score": round(score, 6)} | more,
        tier=tier_of(score),
    )


def superseded_ids(superseded: Sequence[Memory]) -> list[str] | UnsetType:
    """The ids of the memories that a new one replaces; unset if it replaces none."""
    return [memory.id for memory in superseded] or UNSET


def hit_view(scope: Scope, hit: Hit, now: float) -> HitView:
    """A memory among the hits of an answer, with all of its fields."""
    relevance = round(hit.relevance, 3)
    return memory_as(
        HitView,
        scope,
        hit.memory,
        now=now,
        score=relevance,
        relevance=relevance,
        search_method=hit.method,
    )


def secret_warning(kinds: Sequence[str]) -> str | UnsetType:
    """The warning for a secret that a person stores by hand, which is kept unchanged."""
    if not kinds:
        return UNSET
    return f"it holds a secret ({', '.join(kinds)}): forget --secrets finds it"


def one_line(text: str, field: str, most: int = 4_000) -> str:
    """A text on one line, stripped; `InvalidInput` if it is blank or longer than `most`."""
    text = " ".join(checks.check_short(text, field, most).split())
    if not text:
        raise InvalidInput(f"give '{field}' some words", field=field)
    return text
