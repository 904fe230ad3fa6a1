"""`thermocline history` and `undo`: earlier versions, and how to restore them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import shapes
from ..client import Client
from ..client.wording import ago
from .arguments import whole
from .memories import short
from .options import given, refuse
from .terminal import Shown, cut, show_rows, visible

_KIND_HELP = (
    "what ID is: memory (default), pair, hot, category, note, entity, experience or session"
)
_LONGEST_VALUE = 60


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the options of `history`."""
    add = parser.add_argument
    add("id", nargs="?", metavar="ID", help="of a memory; default: the latest changes of all")
    add("--kind", default="memory", help=_KIND_HELP)
    add("--conflicts", action="store_true", help="only values that lost to another device's change")
    add("--limit", type=whole, default=20, metavar="N", help="maximum number (default 20)")
    parser.epilog = "Each line shows the fields that a change replaced, with their earlier values."


def run_history(args: argparse.Namespace, client: Client) -> Shown:
    """Show the versions, the latest first."""
    versions = client.history(args.id, kind=args.kind, conflicts=args.conflicts, limit=args.limit)
    return lambda: show_rows(
        (
            str(one.number),
            ago(one.at),
            one.why or "edited",
            visible(one.writer) or f"on {one.device[:8]}",
            f"{one.kind} {short(visible(one.id))}",
            _replaced(one),
        )
        for one in versions.results
    )


def _replaced(version: shapes.history.VersionView) -> str:
    """The fields that were replaced after this version, with the values that they had."""
    data = version.data
    return "; ".join(f"{name}: {_value(data.get(name))}" for name in version.replaced)


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(" ".join(visible(text).split()), _LONGEST_VALUE) if value is not None else "default"


def add_undo(parser: argparse.ArgumentParser) -> None:
    """Add the options of `undo`."""
    add = parser.add_argument
    add("id", nargs="?", metavar="ID", help="undo the last change of this memory")
    add("--kind", default="memory", help=_KIND_HELP)
    add(
        "--to",
        dest="number",
        type=whole,
        metavar="NUMBER",
        help="a version, numbered by thermocline history",
    )
    add("--by", metavar="WRITER", help="undo all changes of a writer, such as uid:1000")
    add("--since", metavar="TIME", help="with --by: 2h, 7d, or a date and time")
    add("--dry-run", action="store_true", help="change nothing, and show what would be put back")


def run_undo(args: argparse.Namespace, client: Client) -> Shown:
    """Restore versions; that is an ordinary change, which can be undone.

    Raises:
        WrongUsage: it is not clear what to undo.
    """
    refuse((args.id is None) == (args.by is None), "name a memory, or a writer with --by")
    refuse(args.by is not None and args.since is None, "--by needs --since, such as --since 2h")
    request = given(args, ("id", "number", "by", "since"))
    undone = client.undo(**request, kind=args.kind, dry_run=args.dry_run)
    verb = "put back" if undone.done else "would put back"
    lines = [f"{verb} {row.kind} {short(visible(row.id))}" for row in undone.results]
    return lambda: print("\n".join(lines) or "nothing to put back")
