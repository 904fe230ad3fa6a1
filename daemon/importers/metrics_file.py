"""Reading `metrics.json`."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ..memory.checks import shown
from ..memory.records import Json
from ..memory.scoring import DAY
from .values import kind, number, unknown_keys

LAST_CONSOLIDATION: Final = "last_consolidation"

COUNTERS: Final = (
    "retrieval_count",
    "evictions_today",
    "reinforcements_today",
    "consolidation_count",
    "context_tokens_saved",
)

# Computed anew whenever the file is written, so never read.
_COMPUTED: Final = frozenset(
    (
        "tree_index_size_bytes",
        "tree_node_count",
        "hot_memory_size_bytes",
        "warm_memory_count",
        "warm_memory_size_kb",
        "timestamp",
        "_schema_version",
    )
)
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ParsedMetrics(msgspec.Struct, frozen=True):
    """What a metrics file holds.

    Attributes:
        values: the counters, and `last_consolidation` in seconds since the epoch.
        faults: what could not be read, a line each.
        left_out: the keys that have no meaning here, a line each.
    """

    values: dict[str, float]
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def parse(document: Json, now: float) -> ParsedMetrics:
    """The counters of a metrics file: numbers that are finite and not negative.

    Counters that EvoClaw does not know are read too; what else the file says is passed over.

    EvoClaw's tools add to every number, the time of the last consolidation included: one that
    lies in the future is such a sum of times, and is left out. Never raises.
    """
    if not isinstance(document, dict):
        return ParsedMetrics({}, (f"expected an object, got {kind(document)}",))
    values: dict[str, float] = {}
    faults: list[str] = []
    unknown: dict[str, int] = {}
    for name, given in document.items():
        if name in _COMPUTED:
            continue
        if not _NAME.fullmatch(name):
            unknown[name] = 1
            continue
        value = number(given)
        if value is None or value < 0:
            if name in COUNTERS or name == LAST_CONSOLIDATION:
                faults.append(f"{name}: expected a number from 0, got {shown(given)}")
            else:
                unknown[name] = 1
        elif name != LAST_CONSOLIDATION or 0 < value <= now + DAY:
            values[name] = value
        elif value:
            faults.append(f"{name}: {shown(given)} lies in the future, so it is no time")
    return ParsedMetrics(values, tuple(faults), unknown_keys(unknown))
