"""`thermocline metrics`: counters and sizes."""

from __future__ import annotations

import json
import time

from ..client import Client
from .terminal import moment, show_json, show_rows
from .trends import show_report, show_trend

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--report", action="store_true", help="how full everything is, in bars")
    one.add_argument(
        "--trend", action="store_true", help="the last seven days against the seven before"
    )


def run(args: argparse.Namespace) -> int:
    """Show the agent's, then the daemon's; or how they compare."""
    with Client(args.socket, args.agent) as client:
        if args.report:
            _tell(client.request("GET", "/api/memory/stats"), show_report, as_json=args.json)
            return 0
        if args.trend:
            trend = client.request("GET", "/api/metrics/history")["trend"]
            _tell(trend, show_trend, as_json=args.json)
            return 0
        metrics = client.metrics()
    if args.json:
        show_json(metrics)
    else:
        show_rows(_rows(metrics, ""))
    return 0


def _tell(answer: Any, show: Callable[[Any], None], *, as_json: bool) -> None:
    if as_json:
        show_json(answer)
    else:
        show(answer)


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
        return moment(value, time.time()) if value else "never"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value)
