"""What `thermocline metrics` shows beside the bare numbers: bars, and how the days compare."""

from __future__ import annotations

from .terminal import show_rows, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final

    from ..upkeep_answers import Compared, Trend

_CELLS: Final = 10
_BYTES: Final = ("hot_bytes", "warm_bytes")


def show_report(stats: Mapping[str, Any]) -> None:
    """How full everything is, and what was counted."""
    hot, warm, tree = stats["hot"], stats["warm"], stats["tree"]
    show_rows(
        [
            _bar("hot state", hot["size_bytes"], hot["max_bytes"]),
            _bar("warm", warm["size_bytes"], warm["max_kb"] * 1024),
            _bar("tree", tree["nodes"], tree["max_nodes"], unit="nodes"),
        ]
    )
    print()
    counted = stats["metrics"]
    show_rows(
        [
            ("warm memories", f"{warm['count']:,}"),
            ("archived", f"{stats['cold']['count']:,}"),
            ("stored so far", f"{counted['total_stored']:,}"),
            ("archived so far", f"{counted['total_evicted']:,}"),
            ("recalled so far", f"{counted['total_retrieved']:,}"),
            *(
                ("most in" if number == 0 else "", f"{top['category']} ({top['count']:,})")
                for number, top in enumerate(warm["top_categories"])
            ),
        ]
    )


def show_trend(trend: Trend | None) -> None:
    """The last seven days against those before."""
    if trend is None:
        print("nothing is recorded yet; a day is, when upkeep runs")
        return
    print(f"the week until {trend['until']}: {trend['days']} of 7 days are recorded")
    show_rows([("", "average", "before", "change"), *_rows(trend["numbers"])])


def _rows(numbers: Mapping[str, Compared]) -> Iterator[tuple[str, ...]]:
    for name, compared in numbers.items():
        delta = compared["delta"]
        sign = "" if delta is None else "+" if delta > 0 else "-" if delta < 0 else ""
        yield (
            name.replace("_", " "),
            _shown(name, compared["average"]),
            "" if compared["before"] is None else _shown(name, compared["before"]),
            "" if delta is None else sign + _shown(name, abs(delta)),
        )


def _shown(name: str, value: float) -> str:
    return size(value) if name in _BYTES else f"{value:,.6g}"


def _bar(name: str, value: int, limit: int, unit: str = "") -> tuple[str, str, str]:
    share = min(1.0, value / limit) if limit else 0.0
    full = round(share * _CELLS)
    told = f"{value:,} of {limit:,} {unit}" if unit else f"{size(value)} of {size(limit)}"
    return name, "█" * full + "░" * (_CELLS - full), f"{share:>4.0%}  {told}"
