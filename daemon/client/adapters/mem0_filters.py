"""Filters in mem0's notation, on the fields of a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

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
