"""`thermocline retrieve`: search the memories."""

from __future__ import annotations

import argparse
import time

from ..client import Client
from .arguments import WrongUsage, number, say, stdin_once, text_of, whole
from .database import PATIENCE_SECONDS, add_database, database_of, patience, synced
from .explaining import show_explained, show_reasoned, show_understood
from .fields import TYPES
from .local_models import with_stand_in
from .memories import headline, record, short
from .store import one_text
from .terminal import moment, show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from ..recall_answers import Found, FoundPair, Recall

_PASSED_ON: Final = (
    "limit", "max_tokens", "types", "events", "tags", "category", "tier", "source", "actor",
    "group", "since", "until", "min_importance", "include", "weights", "preset", "mode", "now",
)  # fmt: skip
_NARROWING: Final = frozenset(_PASSED_ON) - {"limit", "weights", "preset", "mode", "now"}
_OPTIONS: Final = {"types": "type", "events": "event", "tags": "tag"}
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
    add(
        "--llm",
        action="store_true",
        help="as --mode llm; without a configured model by one that runs on this device",
    )
    add("--llm-endpoint", metavar="URL", help="the same, with the model at this address")
    _add_filters(parser)
    _add_ranking(parser)
    add_database(parser)
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
    add(
        "--mode",
        choices=("keyword", "tree", "llm", "hybrid"),
        help="tree asks the categories alone; llm has a model choose categories; hybrid likewise,"
        " if it does so at once",
    )
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
    given = one_text(args.words, args.query, "--query")
    stdin_once(given, args.token_file)
    query = text_of(given)
    database = database_of(args)
    passed = {name: getattr(args, name) for name in _PASSED_ON}
    options: Any = {name: value for name, value in passed.items() if value is not None}
    options |= _model_of(args)
    # The model's process may have to start first.
    seconds = PATIENCE_SECONDS if "mode" in options else patience(database)
    with Client(args.socket, args.agent, seconds) as client:

        def search(more: Mapping[str, Any]) -> Recall:
            given = {**options, **more}
            return client.recall(
                query, **given, explain=args.explain, reinforce=not args.no_reinforce
            )

        by_any = args.llm and not args.llm_endpoint
        recall = with_stand_in(client, search) if by_any else search({})
        synced(client, database)
    by_model = recall.get("llm")
    if by_model is not None and "why" in by_model:
        say(visible(f"by keywords, without a model: {by_model['why']}"))
    if args.json:
        extra = ("search_method", "relevance", "parts")
        show_json([record(found, *extra) for found in recall["results"]])
    else:
        _show(recall, explain=args.explain)
    if not recall["results"] and not recall.get("key_values"):
        say(recall.get("why") or "nothing found")
    return 0


def _model_of(args: argparse.Namespace) -> dict[str, str]:
    """The options that have a model take part.

    Raises:
        WrongUsage: the mode has none in it.
    """
    if not args.llm and not args.llm_endpoint:
        return {}
    if args.mode in {"keyword", "tree"}:
        raise WrongUsage(f"--mode {args.mode} asks no model; leave out --llm and --llm-endpoint")
    options = {"mode": args.mode or "llm"}
    return options | ({"llm_endpoint": args.llm_endpoint} if args.llm_endpoint else {})


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
    if explain and "llm" in recall:
        show_reasoned(recall["llm"])


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
