"""`thermocline history`: the versions that a memory had, and values that lost a conflict."""

from __future__ import annotations

import time

from ..client import Client
from .memories import short
from .terminal import ago, show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="of a memory; default: the latest of all"
    )
    parser.add_argument(
        "--kind", default="memory", help="what ID is: memory, pair, hot, category or note"
    )
    parser.add_argument(
        "--conflicts", action="store_true", help="only what lost when two devices changed a field"
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="default 20")


def run(args: argparse.Namespace) -> int:
    """Show the versions, the latest first."""
    wanted = {"kind": args.kind, "limit": args.limit}
    if args.id is not None:
        wanted["id"] = args.id
    if args.conflicts:
        wanted["conflicts"] = "true"
    with Client(args.socket, args.agent) as client:
        versions = client.request("GET", "/api/history", wanted)
    if args.json:
        show_json(versions)
        return 0
    now = time.time()
    show_rows(
        (
            str(one["number"]),
            ago(one["at"], now),
            one["why"] or "edited",
            visible(one["writer"]) or f"on {one['device'][:8]}",
            f"{one['kind']} {short(visible(one['id']))}",
            _said(one["data"]),
        )
        for one in versions["results"]
    )
    return 0


def _said(data: Mapping[str, Any]) -> str:
    """The field that a version is about."""
    said = data.get("text", data.get("value", data.get("desc", "")))
    line = " ".join(visible(str(said)).split())
    return line if len(line) <= 60 else f"{line[:59]}…"
