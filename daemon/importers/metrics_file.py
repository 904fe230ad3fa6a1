"""Reading `metrics.json`."""

from __future__ import annotations

import re
from typing import Final

from ..memory.checks import shown
from ..memory.hot.state import number
from ..memory.records import Json
from ..memory.scoring import DAY
from ..store.documents import STORED_METRICS
from .values import Parsed, unexpected, unknown_keys

_LAST_CONSOLIDATION: Final = "last_consolidation"
# Computed whenever the file is written, so never read.
_COMPUTED: Final = frozenset(
    (
        *("tree_index_size_bytes", "tree_node_count", "hot_memory_size_bytes"),
        *("warm_memory_count", "warm_memory_size_kb", "timestamp", "_schema_version"),
    )
)
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


def parse(document: Json, now: float) -> Parsed[dict[str, float]]:
    """The counters of a metrics file, finite and not negative; times in seconds.

    Counters that EvoClaw does not know are read too; everything else is ignored.

    EvoClaw's tools add to every number, the time of the last consolidation included: a time in the
    future is such a sum, and is left out. Never raises.
    """
    if not isinstance(document, dict):
        return Parsed({}, (unexpected("an object", document),))
    values: dict[str, float] = {}
    faults: list[str] = []
    unknown: list[str] = []
    for name, given in document.items():
        if name in _COMPUTED:
            continue
        value = number(given) if _NAME.fullmatch(name) else None
        if value is None or value < 0:
            if name in STORED_METRICS:
                faults.append(f"{name}: {unexpected('a number from 0', given)}")
            else:
                unknown.append(name)
        elif name != _LAST_CONSOLIDATION or 0 < value <= now + DAY:
            values[name] = value
        elif value:
            faults.append(f"{name}: {shown(given)} lies in the future")
    return Parsed(values, (*faults, *unknown_keys(dict.fromkeys(unknown, 1))))
