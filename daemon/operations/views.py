"""Records as answers show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ..config.settings import Weights
from ..errors import InvalidInput
from ..memory import checks
from ..memory.records import Memory
from ..memory.scoring import Scoring, score_of, tier_of
from ..recall.recall import Hit
from ..shapes.memory import MemoryView
from ..shapes.recall import Explanation, HitView
from .scope import Scope

_DERIVED: Final = {"content", "archived", "score", "tier", "supersedes", "warning"}
_PLAIN: Final = tuple(
    field.name for field in msgspec.structs.fields(MemoryView) if field.name not in _DERIVED
)


T = TypeVar("T")
View = TypeVar("View", bound=msgspec.Struct)


def view_of(kind: type[View], record: object, **more: Any) -> View:
    """A `kind` with the fields that a record has under the same names, and with `more`."""
    names = (name for name in kind.__struct_fields__ if hasattr(record, name))
    return kind(**{name: getattr(record, name) for name in names} | more)


def memory_view(scope: Scope, memory: Memory, superseded: Sequence[Memory] = ()) -> MemoryView:
    """`memory` with its present score and tier, and the ids of those that it has just replaced."""
    view = MemoryView(**memory_fields(memory, scope.now, scope.settings.scoring))
    view.supersedes = [older.id for older in superseded] or UNSET
    return view


def hit_view(scope: Scope, hit: Hit, now: float) -> HitView:
    """A memory among the hits of an answer, with all of its fields."""
    return HitView(
        **memory_fields(hit.memory, now, scope.settings.scoring),
        relevance=round(hit.relevance, 3),
        search_method=hit.method,
    )


def explanation(hit: Hit) -> Explanation:
    """The reasons for the rank of a hit."""
    parts = {name: round(getattr(hit.ranked, name), 6) for name in Weights.__struct_fields__}
    return view_of(Explanation, hit, **parts)


def memory_fields(memory: Memory, now: float, scoring: Scoring) -> dict[str, Any]:
    """The fields of a `MemoryView` of `memory` at `now`."""
    value = score_of(memory, now, scoring)
    fields = {name: getattr(memory, name) for name in _PLAIN}
    fields["content"] = memory.text
    fields["standing"] = memory.standing or UNSET
    fields["archived"] = memory.archived_at is not None
    fields["score"] = round(value, 6)
    fields["tier"] = tier_of(value)
    return fields


def secret_warning(kinds: Sequence[str]) -> str | UnsetType:
    """The warning for a secret that a person stores by hand, which is kept unchanged."""
    if not kinds:
        return UNSET
    return f"it holds a secret ({', '.join(kinds)}): forget --secrets finds it"


def either(ours: Any, theirs: Any, field: str, default: T) -> T:
    """The value of a field that has two names.

    Raises:
        InvalidInput: both are given.
    """
    given: list[T] = [one for one in (ours, theirs) if one is not UNSET and one is not None]
    if len(given) > 1:
        raise InvalidInput(f"give '{field}' once", field=field)
    return given[0] if given else default


def one_line(text: str, field: str, most: int = 4_000) -> str:
    """A text on one line, stripped, of at most `most` characters.

    Raises:
        InvalidInput: it is blank or too long.
    """
    text = " ".join(checks.check_short(text, field, most).split())
    if not text:
        raise InvalidInput(f"give '{field}' some words", field=field)
    return text


def name_of(ours: str | UnsetType, theirs: str | UnsetType, field: str) -> str:
    """The short name in a field that has two names; "" by default."""
    return checks.check_short(either(ours, theirs, field, ""), field, 200)
