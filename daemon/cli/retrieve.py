"""`thermocline retrieve`: search the memories."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from .. import shapes
from ..client import Client
from ..client.wording import moment
from .arguments import WrongUsage, one_text, say, text_of
from .database import PATIENCE_SECONDS, add_database, database_of, patience, synced
from .local_models import with_local_model
from .memories import headline, record, short
from .options import FILTERS, add_options, given
from .reasons import show_explained, show_reasoned, show_understood
from .terminal import show_json, show_rows, visible

_ANSWER: Final = ("limit", "max_tokens", "min_relevance")
_RANKING: Final = ("mode", "preset", "weights", "now")


def add_retrieve(parser: argparse.ArgumentParser) -> None:
    """Add the options of `retrieve`."""
    add = parser.add_argument
    add("words", nargs="?", metavar="QUERY", help="what to look for; - reads it from stdin")
    add("--query", metavar="TEXT", help="the query, in place of the first word")
    limit = {"help": "maximum number of results (default: recall.limit, which is 5)"}
    add_options(parser, FILTERS, _ANSWER, limit=limit)
    add("--explain", action="store_true", help="show how each relevance came about")
    add("--no-reinforce", action="store_true", help="do not count this as a use")
    add(
        "--llm",
        action="store_true",
        help="as --mode llm; if no model is configured, with a model server on this device",
    )
    add("--llm-endpoint", metavar="URL", help="the same, with the model at this address")
    filters = {*shapes.recall.RecallBody.__struct_fields__} - {*_ANSWER, *_RANKING}
    add_options(parser.add_argument_group("filters"), FILTERS, filters)
    add_options(parser.add_argument_group("ranking"), FILTERS, _RANKING)
    add_database(parser)
    parser.epilog = 'example:\n  thermocline retrieve "what does Ana drink?" --limit 3 --explain'


def run_retrieve(args: argparse.Namespace, client: Client) -> None:
    """Search, and show the best matches."""
    text = one_text(args.words, args.query, "--query")
    query, database = text_of(text), database_of(args)
    fields = {*shapes.recall.RecallBody.__struct_fields__} & {*FILTERS}
    options = given(args, fields) | _model_of(args)
    # The model's process may have to start first.
    client.timeout = PATIENCE_SECONDS if "mode" in options else patience(database)

    def search(more: Mapping[str, Any]) -> shapes.recall.Recalled:
        wanted = {**options, **more, "explain": args.explain, "reinforce": not args.no_reinforce}
        return client.recall(query, fields="full", **wanted)

    by_any = args.llm and not args.llm_endpoint
    recall = with_local_model(client, search) if by_any else search({})
    synced(client, database)
    if recall.llm and recall.llm.why:
        say(visible(f"by keywords, without a model: {recall.llm.why}"))
    unsure = f"{shapes.recall.NOT_SURE}:" if recall.confidence == "unsure" else ""
    if args.json:
        if unsure:
            say(unsure)
        show_json([*map(_record, recall.results)])
    else:
        if unsure:
            print(unsure)
        _show(recall, explain=args.explain)
    if not recall.results:
        say(visible(recall.why or "nothing found"))


def _model_of(args: argparse.Namespace) -> dict[str, str]:
    """The options that make a model take part.

    Raises:
        WrongUsage: the mode excludes it.
    """
    if not args.llm and not args.llm_endpoint:
        return {}
    if args.mode in {"keyword", "tree"}:
        raise WrongUsage(f"--mode {args.mode} uses no model; leave out --llm and --llm-endpoint")
    options = {"mode": args.mode or "llm"}
    return options | ({"llm_endpoint": args.llm_endpoint} if args.llm_endpoint else {})


def _show(recall: shapes.recall.Recalled, *, explain: bool) -> None:
    rows = [*map(_row, recall.results)]
    if not explain:
        show_rows(rows)
    for row, result in zip(rows, recall.results, strict=True) if explain else ():
        show_rows([row])
        show_explained(result)
    if explain and recall.understood:
        show_understood(recall.understood)
    if explain and recall.llm:
        show_reasoned(recall.llm)


def _row(result: shapes.recall.RecallResult) -> tuple[str, ...]:
    memory = result.memory
    # The id of a part of a file already names it.
    path = "" if result.lines else result.path
    return (
        f"{result.relevance:.2f}",
        short(result.id) if memory else result.id,
        moment(result.created_at),
        result.category or path or result.source,
        headline(memory) if memory else " ".join(result.text.split()),
    )


def _record(result: shapes.recall.RecallResult) -> dict[str, Any]:
    """A result for programs, with a category; a memory also has the rest of EvoClaw's record."""
    lean = msgspec.structs.replace(
        result, memory=UNSET, pair=UNSET, file=UNSET, entry=UNSET, experience=UNSET, entity=UNSET
    )
    fields: dict[str, Any] = msgspec.to_builtins(lean)
    fields["search_method"] = result.search_method
    fields["category"] = result.category or result.source
    return record(result.memory) | fields if result.memory else fields
