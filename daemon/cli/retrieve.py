"""`thermocline retrieve`: search the memories."""

from __future__ import annotations

import json
import time

from ..client import Client
from .arguments import add_cloud, refuse_cloud, say, text_of, whole
from .fields import TYPES
from .memories import headline, record, short
from .store import one_text
from .terminal import cut, moment, show_json, show_rows, visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from ..answers import Found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("words", nargs="?", metavar="QUERY", help="what to look for; - reads it from stdin")
    add("--query", metavar="TEXT", help="the query, in place of the first word")
    add("--limit", type=whole, default=5, metavar="N", help="at most so many (5)")
    add("--type", dest="types", action="append", choices=TYPES, help="may be repeated")
    add("--event", dest="events", action="append", metavar="NAME", help="may be repeated")
    add("--tag", dest="tags", action="append", metavar="TAG", help="may be repeated")
    add("--category", metavar="PATH", help="only in this part of the tree")
    add("--since", metavar="TIME", help="only what was stored since, as ISO 8601 or epoch seconds")
    add("--until", metavar="TIME", help="only what was stored until then")
    add("--explain", action="store_true", help="show the parts of each relevance")
    add("--no-reinforce", action="store_true", help="do not count this as a use")
    add("--llm", action="store_true", help="accepted; this version answers by keywords")
    add("--llm-endpoint", metavar="URL", help="accepted, as --llm")
    add_cloud(parser)
    parser.epilog = 'example:\n  thermocline retrieve "what does Ana drink?" --limit 3 --explain'


def run(args: argparse.Namespace) -> int:
    """Search, and show the best matches."""
    refuse_cloud(args)
    query = text_of(one_text(args.words, args.query, "--query"))
    if args.llm or args.llm_endpoint:
        say("this version answers by keywords, without a model")
    with Client(args.socket, args.agent) as client:
        recall = client.recall(query, **_options(args))
    if args.json:
        extra = ("search_method", "relevance", "parts")
        show_json([record(found, *extra) for found in recall["results"]])
    else:
        _show(recall["results"], explain=args.explain)
    if not recall["results"]:
        say(recall.get("why") or "nothing found")
    return 0


def _options(args: argparse.Namespace) -> Any:
    given = {
        name: getattr(args, name)
        for name in ("limit", "types", "events", "tags", "category", "since", "until")
        if getattr(args, name) is not None
    }
    return {**given, "explain": args.explain, "reinforce": not args.no_reinforce}


def _show(results: Sequence[Found], *, explain: bool) -> None:
    now = time.time()
    rows = [
        (
            f"{found['relevance']:.2f}",
            short(found["id"]),
            moment(found["created_at"], now),
            found["category"],
            headline(found),
        )
        for found in results
    ]
    if not explain:
        show_rows(rows)
        return
    for row, found in zip(rows, results, strict=True):
        show_rows([row])
        for name, part in found.get("parts", {}).items():
            print(cut(f"      {visible(name)}  {visible(_part(part))}", width()))


def _part(part: Any) -> str:
    if isinstance(part, float):
        return f"{part:.3f}"
    if isinstance(part, dict):
        return "  ".join(f"{name} {_part(value)}" for name, value in part.items())
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
