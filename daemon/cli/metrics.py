"""`thermocline metrics`: counters and sizes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .. import shapes
from ..client import Client
from ..client.wording import moment, size
from .terminal import show_json, show_rows

_CELLS: Final = 10
_BYTES: Final = ("hot_bytes", "warm_bytes")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Add the options of `metrics`."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--report", action="store_true", help="show as bars how full everything is")
    one.add_argument(
        "--trend", action="store_true", help="compare the last seven days with the seven before"
    )


def run_metrics(args: argparse.Namespace, client: Client) -> None:
    """Show the agent's and the daemon's metrics, a report or a comparison."""
    if args.report:
        stats = client.stats()
        if not args.json:
            _show_report(stats)
            return
    elif args.trend:
        trend = client.metrics_history().trend
        if not args.json:
            _show_trend(trend)
            return
    else:
        client.metrics()
    answer = json.loads(client.answered)
    if args.json:
        show_json(answer["trend"] if args.trend else answer)
    else:
        show_rows(_rows(answer, ""))


def _rows(metrics: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in metrics.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from _rows(value, f"{prefix}{name}.")
        else:
            yield prefix + name, _value(name, value)


def _value(name: str, value: Any) -> str:
    if name == "last_consolidation" and isinstance(value, (int, float)):
        return moment(value) if value else "never"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value)


def _show_report(stats: shapes.stats.Stats) -> None:
    hot, warm, tree = stats.hot, stats.warm, stats.tree
    show_rows(
        [
            _bar("hot state", hot.size_bytes, hot.max_bytes),
            _bar("warm", warm.size_bytes, warm.max_kb * 1024),
            _bar("tree", tree.nodes, tree.max_nodes, unit="nodes"),
        ]
    )
    print()
    counted = stats.metrics
    show_rows(
        [
            ("warm memories", f"{warm.count:,}"),
            ("archived", f"{stats.cold.count:,}"),
            ("stored so far", f"{counted.total_stored:,}"),
            ("archived so far", f"{counted.total_evicted:,}"),
            ("recalled so far", f"{counted.total_retrieved:,}"),
            *(
                ("most in" if number == 0 else "", f"{top.category} ({top.count:,})")
                for number, top in enumerate(warm.top_categories)
            ),
        ]
    )


def _show_trend(trend: shapes.stats.Trend | None) -> None:
    if trend is None:
        print("nothing is recorded yet: upkeep records each day")
        return
    print(f"the week until {trend.until}: {trend.days} of 7 days are recorded")
    show_rows([("", "average", "before", "change"), *_compared(trend.numbers)])


def _compared(numbers: Mapping[str, shapes.stats.Compared]) -> Iterator[tuple[str, ...]]:
    for name, compared in numbers.items():
        delta = compared.delta
        sign = "" if delta is None else "+" if delta > 0 else "-" if delta < 0 else ""
        yield (
            name.replace("_", " "),
            _shown(name, compared.average),
            "" if compared.before is None else _shown(name, compared.before),
            "" if delta is None else sign + _shown(name, abs(delta)),
        )


def _shown(name: str, value: float) -> str:
    return size(value) if name in _BYTES else f"{value:,.6g}"


def _bar(name: str, value: int, limit: int, unit: str = "") -> tuple[str, str, str]:
    share = min(1.0, value / limit) if limit else 0.0
    full = round(share * _CELLS)
    told = f"{value:,} of {limit:,} {unit}" if unit else f"{size(value)} of {size(limit)}"
    return name, "█" * full + "░" * (_CELLS - full), f"{share:>4.0%}  {told}"
