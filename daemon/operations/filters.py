"""Translates the filters of a request into those of the store."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..memory import checks
from ..shapes.memory import ListQuery, Narrowing
from ..shapes.recall import RecallQuery
from ..store.conversations import PATH
from ..store.selecting import Filters
from .scope import Scope

_SAME: Final = tuple(
    field.name
    for field in msgspec.structs.fields(Narrowing)
    if field.name not in {"category", "since", "until", "include", "min_importance", "group"}
)


def filters_of(scope: Scope, asked: ListQuery | RecallQuery, **more: Any) -> Filters:
    """The store's filters for a listing or a question, with `more` that only one of them has.

    Raises:
        InvalidInput: a category, a time or an importance is invalid.
    """
    least = asked.min_importance
    return Filters(
        **{name: getattr(asked, name) for name in _SAME},
        category=scope.category(asked.category),
        group=asked.group and asked.group.removeprefix(PATH),
        since=_time(asked.since, "since"),
        until=_time(asked.until, "until"),
        min_importance=None
        if least is None
        else checks.check_importance(least, field="min_importance"),
        merged="merged" in asked.include,
        expired="expired" in asked.include,
        **more,
    )


def _time(given: str | float | None, field: str) -> float | None:
    return None if given is None else checks.check_time(given, field=field)
