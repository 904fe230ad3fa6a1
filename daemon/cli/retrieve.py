"""`thermocline retrieve`: search the memories."""

from __future__ import annotations

import argparse
import time

from ..client import Client
from .arguments import add_cloud, number, refuse_cloud, say, text_of, whole
from .explaining import show_explained, show_understood
from .fields import TYPES
from .memories import headline, record, short
from .store import one_text
from .terminal import moment, show_json, show_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from ..answers import Found, FoundPair, Recall

_PASSED_ON: Final = (
    "limit", "max_tokens", "types", "events", "tags", "category", "tier", "source", "actor",
    "group", "since", "until", "min_importance", "include", "weights", "preset", "mode", "now",
)  # fmt: skip
_WEIGHTS: Final = ("match", "recency", "importance")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("words", nargs="?", metavar="QUERY", help="what to look for; - reads it from stdin")
    add("--query", metavar="TEXT", help="the query, in place of the first word")
    add("--limit", type=whole, default=5, metavar="N", help="at most so many (5)")
    add("--max-tokens", type=whole, metavar="N", help="of text, four characters each")
    add("--explain", action="store_true", help="show what speaks for each, and what was understood")
    add("--no-reinforce", action="store_true", help="do not count this as a use")
    add("--llm", action="store_true", help="accepted; this version answers by keywords")
    add("--llm-endpoint", metavar="URL", help="accepted, as --llm")
    _add_filters(parser)
    _add_ranking(parser)
    add_cloud(parser)
    parser.epilog = 'example:\n  thermocline retrieve "what does Ana drink?" --limit 3 --explain'


def _add_filters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what is asked").add_argument
    add("--type", dest="types", action="append", choices=TYPES, help="may be repeated")
    add("--event", dest="events", action="append", metavar="NAME", help="may be repeated")
    add("--tag", dest="tags", action="append", metavar="TAG", help="repeated: all of them")
    add("--category", metavar="PATH", help="only in this part of the tree")
    add("--tier", choices=("hot", "warm", "cold", "frozen"))
    add("--source", metavar="TEXT", help="where it comes from")
    add("--actor", metavar="TEXT", help="who said it")
    add("--group", metavar="TEXT", help="the conversation that it belongs to")
    add("--since", metavar="TIME", help="only what was stored since, as ISO 8601 or epoch seconds")
    add("--until", metavar="TIME", help="only what was stored until then")
    add("--min-importance", type=number, metavar="0-1")
    add(
        "--include",
        action="append",
        choices=("merged", "expired"),
        help="what is otherwise left out; may be repeated",
    )


def _add_ranking(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how it is ranked").add_argument
    add("--mode", choices=("keyword", "tree"), help="tree asks the categories alone")
    add("--preset", choices=("tinyclaw", "scalyclaw"), help="rank by a published formula")
    add(
        "--weights",
        type=_weights,
        metavar="NAME=N,…",
        help=f"of {', '.join(_WEIGHTS)}; one left out keeps the configuration's",
    )
    add("--now", metavar="TIME", help="the time that the question is asked at")


def run(args: argparse.Namespace) -> int:
    """Search, and show the best matches."""
    refuse_cloud(args)
    query = text_of(one_text(args.words, args.query, "--query"))
    if args.llm or args.llm_endpoint:
        say("this version answers by keywords, without a model")
    given = {name: getattr(args, name) for name in _PASSED_ON}
    options: Any = {name: value for name, value in given.items() if value is not None}
    with Client(args.socket, args.agent) as client:
        recall = client.recall(
            query, **options, explain=args.explain, reinforce=not args.no_reinforce
        )
    if args.json:
        extra = ("search_method", "relevance", "parts")
        show_json([record(found, *extra) for found in recall["results"]])
    else:
        _show(recall, explain=args.explain)
    if not recall["results"] and not recall.get("key_values"):
        say(recall.get("why") or "nothing found")
    return 0


def _weights(text: str) -> dict[str, float]:
    """`match=2,recency=0.5`, for argparse."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in _WEIGHTS or not equals or name in weights:
            names = ", ".join(_WEIGHTS)
            raise argparse.ArgumentTypeError(
                f"expected NAME=N with each of {names} once at most, got {part[:40]!r}"
            )
        weights[name] = number(value)
    return weights


def _show(recall: Recall, *, explain: bool) -> None:
    rows = _rows(recall["results"])
    if not explain:
        show_rows(rows)
    for row, found in zip(rows, recall["results"], strict=True) if explain else ():
        show_rows([row])
        show_explained(found)
    _show_pairs(recall.get("key_values", []), explain=explain)
    if explain and "understood" in recall:
        show_understood(recall["understood"])


def _rows(results: Sequence[Found]) -> list[tuple[str, ...]]:
    now = time.time()
    return [
        (
            f"{found['relevance']:.2f}",
            short(found["id"]),
            moment(found["created_at"], now),
            found["category"],
            headline(found),
        )
        for found in results
    ]


def _show_pairs(pairs: Sequence[FoundPair], *, explain: bool) -> None:
    show_rows(
        (
            f"{pair['relevance']:.2f}",
            pair["id"],
            *([", ".join(pair["words"])] if explain else []),
            pair["value"].strip(),
        )
        for pair in pairs
    )
