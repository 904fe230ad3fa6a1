"""Ids, and filters in mem0's notation, on the fields of a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

IDS: Final = ("user_id", "agent_id", "run_id")
# An `agent_id` is a tag of this and the id.
AGENT_TAG: Final = "agent:"

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda value, other: bool(value == other),
    "ne": lambda value, other: bool(value != other),
    "gt": lambda value, other: value is not None and bool(value > other),
    "gte": lambda value, other: value is not None and bool(value >= other),
    "lt": lambda value, other: value is not None and bool(value < other),
    "lte": lambda value, other: value is not None and bool(value <= other),
    "in": lambda value, other: value in other,
    "nin": lambda value, other: value not in other,
    "contains": lambda value, other: value is not None and other in value,
    "icontains": lambda value, other: str(other).lower() in str(value).lower(),
}


def ids_of(values: Mapping[str, Any]) -> dict[str, str]:
    """The ids among the values, as texts; at least one."""
    ids: dict[str, str] = {}
    for name in IDS:
        if values.get(name) is None:
            continue
        value = str(values[name]).strip()
        if not value or any(map(str.isspace, value)):
            raise ValueError(f"Invalid {name}: give an identifier without spaces (got {value!r})")
        ids[name] = value
    if not ids:
        raise ValueError(f"filters must contain at least one of: {', '.join(IDS)}.")
    return ids


def conditions_of(filters: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The daemon's filters for the ids, and what else is to be met."""
    values = {**(filters or {})}
    plain = {name: value for name, value in values.items() if not isinstance(value, Mapping)}
    ids = ids_of({name: value for name, value in plain.items() if value != "*"})
    conditions: dict[str, Any] = {}
    if "user_id" in ids:
        conditions["actor"] = ids["user_id"]
    if "run_id" in ids:
        conditions["group"] = ids["run_id"]
    if "agent_id" in ids:
        conditions["tag"] = [AGENT_TAG + ids["agent_id"]]
    return conditions, {name: value for name, value in values.items() if name not in ids}


def meets(fields: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Whether fields meet all conditions; raises `ValueError` for an unknown operator."""
    for name, condition in filters.items():
        if name == "AND":
            met = all(meets(fields, each) for each in condition)
        elif name == "OR":
            met = any(meets(fields, each) for each in condition)
        elif name == "NOT":
            met = not any(meets(fields, each) for each in condition)
        elif condition == "*":
            met = fields.get(name) is not None
        elif isinstance(condition, Mapping):
            met = all(_compared(fields.get(name), *each) for each in condition.items())
        else:
            met = fields.get(name) == condition
        if not met:
            return False
    return True


def _compared(value: Any, operator: str, other: Any) -> bool:
    if operator not in _OPERATORS:
        raise ValueError(f"Unsupported metadata filter operator: {operator}")
    return _OPERATORS[operator](value, other)
