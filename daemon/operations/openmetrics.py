"""Numbers in the text format of OpenMetrics 1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
_COUNTERS: Final = {
    "retrieval_count": "retrievals",
    "consolidation_count": "consolidations",
    "total_stored": "memories_stored",
    "total_evicted": "memories_archived",
    "total_retrieved": "memories_retrieved",
}


def exposition(agent: str, numbers: Mapping[str, Any], daemon: Mapping[str, float]) -> str:
    """The agent's and the daemon's numbers, each family with its type, closed by `# EOF`."""
    lines: list[str] = []
    label = f'{{agent="{agent}"}}'
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if name in _COUNTERS:
            family = f"thermocline_{_COUNTERS[name]}"
            lines += [f"# TYPE {family} counter", f"{family}_total{label} {value}"]
        else:
            lines += [f"# TYPE thermocline_{name} gauge", f"thermocline_{name}{label} {value}"]
    for name, value in daemon.items():
        lines.append(f"# TYPE thermocline_daemon_{name} gauge")
        lines.append(f"thermocline_daemon_{name} {value}")
    return "\n".join([*lines, "# EOF", ""])
