"""Asks a real daemon questions whose answers are known, and prints how many of them it finds.

`python tests/benchmarks/recall_quality.py --data locomo.json --only 1,2 --weights recency=0`

With neither `--data` nor `--facts` both of the project's own files are used. LoCoMo itself is no
part of the project: its file is named with `--data`.

`--collection FILE` (any number of them; `comparing` has the formats) prints recall beside FTS5
and beside FTS5 with Porter stemming and stop words, with all that is stored and with the text
alone. Facts are asked plainly, with small talk around the questions, beside the turns of `--among`,
and with short questions that nothing answers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import comparing
import conversations
import fact_recall
import facts
import fitting
import locomo
from collection import Collection
from report import table
from running import Running, Wire

_DATA = Path(__file__).with_name("data")
_UNANSWERABLE = _DATA / "unanswerable.json"


def main() -> None:
    """Load, ask, and print each part as soon as it is known."""
    options = _options()
    if options.collection:
        _compare(options)
        return
    try:
        talks, known = _collections(options)
        if options.split is not None:
            fitting.folds([one.name for one in talks], options.split)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise SystemExit(f"cannot measure: {type(error).__name__}: {error}") from error
    made = _made(talks, known, options)
    if options.json:
        print(json.dumps(made, indent=2, ensure_ascii=False))


def _compare(options: argparse.Namespace) -> None:
    """Each collection under its variants, with both baselines in the same run."""
    made: dict[str, Any] = {}
    for path in options.collection:
        try:
            variants = _variants(path, options.among)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"cannot measure {path}: {type(error).__name__}: {error}") from error
        for name, collections in variants.items():
            with (
                tempfile.TemporaryDirectory(prefix="thermocline-recall-") as folder,
                Running(Path(folder)) as daemon,
                closing(daemon.connect()) as wire,
            ):
                state = Path(folder)
                made[name] = comparing.measure(wire, state, collections, limit=options.limit)
                if collections[0].name.startswith(facts.NAME) and "small talk" not in name:
                    made[f"{name}, unanswerable"] = comparing.refusals(
                        wire, state, collections, _UNANSWERABLE
                    )
        if not options.json:
            for title, rows in made.items():
                table(title, rows)
            made.clear()
    if options.json:
        print(json.dumps(made, indent=2))


def _variants(path: Path, turns: Path | None) -> dict[str, list[Collection]]:
    collections = comparing.read(path)
    variants = {path.stem: collections}
    if collections[0].name != facts.NAME:
        return variants | {f"{path.stem}, text alone": [*map(comparing.text_alone, collections)]}
    if turns is not None:
        mixed = comparing.among(collections[0], locomo.read(turns)[:3])
        variants[f"{path.stem} among turns"] = [mixed]
    for words in (25, 45):
        chatty = [comparing.chatty(one, words) for one in collections]
        variants[f"{path.stem}, {words} words of small talk"] = chatty
    return variants


def _made(
    talks: Sequence[Collection], known: Collection | None, options: argparse.Namespace
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="thermocline-recall-", dir=options.folder) as folder,
        Running(Path(folder)) as daemon,
    ):
        wire = daemon.connect()
        if talks:
            made |= _conversations(wire, talks, options)
        if known:
            made["facts"] = _facts(wire, known, options)
        wire.close()
    return made


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, metavar="FILE", help="conversations in LoCoMo's format")
    add("--facts", type=Path, metavar="FILE", help="short facts and questions")
    add("--collection", type=Path, action="append", metavar="FILE", help="compare on these")
    add("--among", type=Path, metavar="FILE", help="LoCoMo's turns to ask the facts among")
    add(
        "--only",
        type=_names,
        default=(),
        metavar="NAME,…",
        help="categories or kinds of questions, and conversations or languages",
    )
    add(
        "--weights",
        type=_weights,
        default={},
        metavar="match=…,recency=…,importance=…",
        help="instead of the configuration's",
    )
    add("--limit", type=int, default=20, help="hits to ask for, 1 to 100 (%(default)s)")
    add("--now", action="store_true", help="ask as of the day after a conversation's last turn")
    add(
        "--split",
        nargs="?",
        type=_names,
        const=(),
        metavar="CONVERSATION,…",
        help="fit the weights on these and report on the others; without names, hold out each once",
    )
    add("--json", action="store_true", help="print JSON, at the end")
    add("--folder", help="where to make the state folder (the system's temporary folder)")
    options = parser.parse_args()
    if not 1 <= options.limit <= 100:
        parser.error("--limit must be from 1 to 100")
    if options.split is not None and (options.facts or options.weights):
        parser.error("--split chooses weights itself, and only for conversations")
    return _with_defaults(options)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _weights(text: str) -> dict[str, float]:
    try:
        return fitting.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _with_defaults(options: argparse.Namespace) -> argparse.Namespace:
    if options.data is None and options.facts is None:
        options.data = _DATA / "conversation.json"
        options.facts = _DATA / "facts.json" if options.split is None else None
    return options


def _collections(options: argparse.Namespace) -> tuple[list[Collection], Collection | None]:
    """The conversations and the facts, with the questions that were asked for."""
    talks = locomo.read(options.data) if options.data else []
    known = [facts.read(options.facts, time.time())] if options.facts else []
    _check_names(options.only, [*talks, *known])
    talks = _chosen(talks, options.only)
    return talks, next(iter(_chosen(known, options.only)), None)


def _check_names(names: Sequence[str], collections: Sequence[Collection]) -> None:
    questions = [question for one in collections for question in one.questions]
    there = {question.kind for question in questions} | {question.origin for question in questions}
    if unknown := set(names) - there:
        raise SystemExit(
            f"cannot find {', '.join(sorted(unknown))}; there are {', '.join(sorted(there))}"
        )


def _chosen(collections: Sequence[Collection], names: Sequence[str]) -> list[Collection]:
    """Those with questions of the kinds and of the origins named; none named means all."""
    questions = [question for one in collections for question in one.questions]
    kinds = set(names) & {question.kind for question in questions}
    origins = set(names) & {question.origin for question in questions}
    if names and not kinds | origins:
        return []
    kept = [
        one.keeping(
            lambda question: (
                (not kinds or question.kind in kinds)
                and (not origins or question.origin in origins)
            )
        )
        for one in collections
    ]
    return [one for one in kept if one.questions]


def _conversations(
    wire: Wire, talks: Sequence[Collection], options: argparse.Namespace
) -> dict[str, Any]:
    if options.split is None:
        made = conversations.measure(
            wire, talks, limit=options.limit, dated=options.now, weights=options.weights
        )
        name, show = "conversations", conversations.show
    else:
        made = conversations.split(
            wire, talks, options.split, limit=options.limit, dated=options.now
        )
        name, show = "split", conversations.show_split
    if not options.json:
        show(made)
    return {name: made}


def _facts(wire: Wire, known: Collection, options: argparse.Namespace) -> dict[str, Any]:
    made = fact_recall.measure(wire, known, limit=options.limit, weights=options.weights)
    if not options.json:
        fact_recall.show(made)
    return made


if __name__ == "__main__":
    main()
