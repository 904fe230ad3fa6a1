"""`thermocline distill`: condense a text to its facts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .. import shapes
from ..client import Client
from .arguments import WrongUsage, say, text_in, text_of, whole
from .database import PATIENCE_SECONDS
from .local_models import local_model
from .memories import short
from .options import refuse
from .terminal import show_json, show_rows, visible

_MOST_TEXTS: Final = 50
_LISTS: Final = ("people", "topics", "actions", "urls", "commands", "paths")


def add_distill(parser: argparse.ArgumentParser) -> None:
    """Add the options of `distill`."""
    add = parser.add_argument
    add("words", nargs="?", metavar="TEXT", help="the text; - reads it from stdin")
    add("--text", metavar="TEXT", help="the text, in place of the first word")
    add("--file", dest="files", action="append", metavar="FILE", help="a text; may be repeated")
    add("--core-summary", action="store_true", help="add a summary of at most 30 bytes")
    add("--facts", action="store_true", help="all facts; default: the best one")
    add("--max-bytes", type=whole, metavar="N", help="maximum size of a fact with its fields")
    model = parser.add_argument_group("model or rules").add_argument
    model(
        "--llm",
        action="store_true",
        help="with the configured model, or a model server on this device; else by rules",
    )
    model("--llm-endpoint", metavar="URL", help="with the model at this address")
    model("--rules", action="store_true", help="by rules, even if a model is configured")
    keeping = parser.add_argument_group("storing").add_argument
    keeping("--store", action="store_true", help="store the facts as memories")
    keeping("--category", metavar="PATH", help="used if no existing category fits better")
    parser.epilog = (
        "examples:\n"
        '  thermocline distill "User: Ship it on Friday? Agent: Yes, decided." --core-summary\n'
        "  thermocline distill --file meeting.md --facts --store --category projects/x"
    )


def run_distill(args: argparse.Namespace, client: Client) -> None:
    """Distil one text or several."""
    texts = _texts(args)
    body = _request(args)
    results: list[shapes.distill.DistilledText] = []
    answers: list[dict[str, Any]] = []
    client.timeout = PATIENCE_SECONDS
    if args.llm and not args.llm_endpoint:
        body |= local_model(client)
    for start in range(0, len(texts), _MOST_TEXTS):
        some = [text for _, text in texts[start : start + _MOST_TEXTS]]
        results += client.distill_all(some, **body).results
        answers += json.loads(client.answered)["results"]
    if args.json:
        _show_json(texts, answers)
    else:
        for (name, _), result in zip(texts, results, strict=True):
            _show(name if len(texts) > 1 else "", result)
    for why in dict.fromkeys(result.why for result in results if result.why):
        say(visible(f"by rules, without a model: {why}"))


def _texts(args: argparse.Namespace) -> list[tuple[str, str]]:
    """The texts, each with the file that it came from, or ""."""
    given = [value for value in (args.words, args.text) if value is not None]
    if bool(given) == bool(args.files) or len(given) > 1:
        raise WrongUsage("give a text once: as a word, with --text or with --file")
    if given:
        return [("", text_of(given[0]))]
    return [(name, text_in(name)) for name in args.files]


def _request(args: argparse.Namespace) -> dict[str, Any]:
    refuse(args.rules and (args.llm or args.llm_endpoint), "give either --rules or a model")
    refuse(args.category is not None and not args.store, "--category needs --store")
    request: dict[str, Any] = {
        "core_summary": args.core_summary,
        "facts": args.facts,
        "store": args.store,
        "category": args.category,
        "llm": False if args.rules else args.llm or None,
        "llm_endpoint": args.llm_endpoint,
        "max_bytes": args.max_bytes,
    }
    return {name: value for name, value in request.items() if value is not None}


def _show_json(texts: Sequence[tuple[str, str]], results: Sequence[Mapping[str, Any]]) -> None:
    """One object for one text, as EvoClaw has it; a list for several files."""
    named = [
        {"file": name, **result} if name and len(texts) > 1 else {**result}
        for (name, _), result in zip(texts, results, strict=True)
    ]
    show_json(named[0] if len(named) == 1 else named)


def _show(name: str, result: shapes.distill.DistilledText) -> None:
    if name:
        print(visible(f"{name}:"))
    for fact in result.facts or [result.distilled]:
        show_rows(_rows(fact))
    sizes = f"{result.original_size} to {result.distilled_size} bytes"
    told = [("mode", result.mode), ("size", sizes)]
    if result.core_summary:
        told.append(("summary", result.core_summary))
    show_rows(told)
    for stored in result.stored or ():
        how = "already stored as" if stored.duplicate else "stored"
        print(how, short(stored.id), "in", visible(stored.category))


def _rows(fact: shapes.distill.Distilled) -> list[tuple[str, str]]:
    rows = [("fact", fact.fact)]
    rows += [(name, ", ".join(getattr(fact, name))) for name in _LISTS if getattr(fact, name)]
    if fact.emotion != "neutral":
        rows.append(("emotion", fact.emotion))
    return [*rows, ("outcome", fact.outcome)]
