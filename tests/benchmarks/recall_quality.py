"""Asks a real daemon questions whose answers are known, and prints how many of them it finds.

`python tests/benchmarks/recall_quality.py --everyday martha --show`

`--everyday` reads the invented people of `data/everyday/` (all but the sealed one, unless they are
named), `--collection` any files in the formats of `comparing`: LoCoMo itself is no part of the
project. Without either both are done, with the project's own collections. Beside the daemon stand
FTS5, FTS5 with Porter stemming and stop words, and `simple_ranker`. Collections are asked with all
that is stored and with the text alone; facts plainly, with small talk around the questions, beside
the turns of `--among`, and with short questions that nothing answers.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import comparing
import everyday
import facts
import locomo
from collection import Collection
from everyday import Measured, Person
from quality import Outcome, figures
from report import table
from running import Running, Wire, encoder_settings

_DATA = Path(__file__).with_name("data")
_UNANSWERABLE = _DATA / "unanswerable.json"
_OWN = (_DATA / "conversation.json", _DATA / "facts.json")
_SHOWN = 3


def main() -> None:
    """Load, ask, and print each part as soon as it is known."""
    options = _options()
    printed: dict[str, Any] = {}
    try:
        if options.sealed:
            printed["everyday"] = _sealed(options)
        if options.everyday:
            files = (options.people / f"{name}.json" for name in options.everyday)
            printed["everyday"] = _everyday([*map(everyday.read, files)], options)
        for path in options.collection:
            printed |= _compare(_variants(path, options), options)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise SystemExit(f"cannot measure: {type(error).__name__}: {error}") from error
    if options.json:
        print(json.dumps(printed, indent=2, ensure_ascii=False))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--everyday", nargs="*", metavar="NAME", help="these people; without names, all")
    add("--people", type=Path, default=everyday.FOLDER, metavar="FOLDER", help="where they are")
    add("--sealed", action="store_true", help="the sealed person alone, for a final figure")
    add("--collection", type=Path, nargs="+", action="extend", metavar="FILE", help="these files")
    add("--encoder", metavar="URL|static:DIR", help="with vectors of this encoder, too")
    add("--among", type=Path, metavar="FILE", help="LoCoMo's turns to ask the facts among")
    add("--plain", action="store_true", help="collections as they are, in no other form")
    add("--kinds", action="store_true", help="ours by the kind of question, too")
    add("--others", type=int, default=everyday.OTHERS, help="memories around a context's")
    add("--limit", type=int, default=20, help="results of collections, 1 to 100 (%(default)s)")
    add("--show", action="store_true", help="list what fails, with the first three results")
    add("--json", action="store_true", help="print JSON, at the end")
    options = parser.parse_args()
    if not 1 <= options.limit <= 100:
        parser.error("--limit must be from 1 to 100")
    if options.sealed and (options.show or options.collection or options.everyday is not None):
        parser.error("--sealed prints figures only, and stands alone")
    if not (options.sealed or options.collection or options.everyday is not None):
        options.everyday, options.collection = [], _OWN
    there = everyday.names(options.people)
    if unknown := set(options.everyday or ()) - set(there):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    options.everyday = there if options.everyday == [] else options.everyday
    options.collection = options.collection or []
    return options


@contextmanager
def _daemon(encoder: str | None) -> Iterator[Wire]:
    with (
        tempfile.TemporaryDirectory(prefix="thermocline-recall-") as folder,
        Running(Path(folder), *encoder_settings(encoder)) as daemon,
        closing(daemon.connect()) as wire,
    ):
        yield wire


def _sealed(options: argparse.Namespace) -> dict[str, Any]:
    """The figures of the sealed person; an error does not tell what it is about."""
    try:
        return _everyday([everyday.read(options.people / f"{everyday.SEALED}.json")], options)
    except Exception as error:  # noqa: BLE001 - whatever it is, it may quote the person
        raise SystemExit(f"cannot measure the sealed person: {type(error).__name__}") from None


def _everyday(people: Sequence[Person], options: argparse.Namespace) -> dict[str, Any]:
    """Each person, and where there are several all of them together."""
    together, by_name = Measured(), dict[str, Measured]()
    for person in people:
        with _daemon(options.encoder) as wire:
            by_name[person.facts.name] = measured = everyday.measure(wire, person, options.others)
        together.add(measured)
        if not options.json:
            everyday.show(person.facts.name, measured)
        if options.show:
            print(*measured.failures, sep="\n", end="\n\n")
    if len(people) > 1:
        by_name["in all"] = together
        if not options.json:
            everyday.show("in all", together)
    return {name: everyday.figures(measured) for name, measured in by_name.items()}


def _compare(
    variants: Mapping[str, Sequence[Collection]], options: argparse.Namespace
) -> dict[str, Any]:
    """Each variant beside the baselines, in a daemon of its own."""
    printed: dict[str, Any] = {}
    for name, collections in variants.items():
        tables: dict[str, dict[str, dict[str, float]]] = {}
        with _daemon(options.encoder) as wire:
            outcomes = comparing.measure(wire, collections, limit=options.limit)
            tables[name] = {ranker: figures(of) for ranker, of in outcomes.items()}
            if options.kinds:
                tables[f"{name}, by kind"] = comparing.by_kind(outcomes["thermocline"])
            of_facts = collections[0].name.startswith(facts.NAME)
            if of_facts and "small talk" not in name and not options.plain:
                for collection in collections:
                    rows = comparing.certainty(wire, collection, _UNANSWERABLE)
                    tables[f"{name}, unanswerable"] = rows
        if not options.json:
            for title, rows in tables.items():
                table(title, rows)
        if options.show:
            _show(collections, outcomes["thermocline"])
        printed |= tables
    return printed


def _show(collections: Sequence[Collection], outcomes: Sequence[Outcome]) -> None:
    """List the questions whose first result is wrong."""
    texts = [(body, question) for body in collections for question in body.questions]
    for (collection, question), outcome in zip(texts, outcomes, strict=True):
        if question.right and not outcome.any(1):
            first = (collection.memories[key]["text"] for key in outcome.keys[:_SHOWN])
            print(f"{question.kind}: {question.text}", *(f"    {text}" for text in first), sep="\n")
    print()


def _variants(path: Path, options: argparse.Namespace) -> dict[str, list[Collection]]:
    collections = comparing.read(path)
    variants = {path.stem: collections}
    if options.plain:
        return variants
    if collections[0].name != facts.NAME:
        return variants | {f"{path.stem}, text alone": [*map(comparing.text_alone, collections)]}
    if options.among is not None:
        mixed = comparing.among(collections[0], locomo.read(options.among)[:3])
        variants[f"{path.stem} among turns"] = [mixed]
    for words in (25, 45):
        chatty = [comparing.chatty(collection, words) for collection in collections]
        variants[f"{path.stem}, {words} words of small talk"] = chatty
    return variants


if __name__ == "__main__":
    main()
