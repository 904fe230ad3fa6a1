"""`thermocline metrics`: counters and sizes."""

from __future__ import annotations

import json
import time

from ..client import Client
from .terminal import moment, show_json, show_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This verb has no options of its own."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Show the agent's, then the daemon's."""
    with Client(args.socket, args.agent) as client:
        metrics = client.metrics()
    if args.json:
        show_json(metrics)
    else:
        show_rows(_rows(metrics, ""))
    return 0


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
