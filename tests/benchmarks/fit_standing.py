"""Fits the weights by which a statement is taken for standing; see `daemon/language/standing.py`.

    python tests/benchmarks/fit_standing.py [FOLDER of further people …]

From the labelled statements of `tests/data/standing.json`, those of `standing_notes.json` that are
not held back, the orders and what is of the moment among `data/messages/fitted.tsv`, and the people
of `data/everyday` that are not sealed and of `data/corrections`: what a request needs without
naming it stands, other facts and corrections do not. Prints the weights of a logistic regression,
and what is recognised, each statement by weights that were fitted without it.
"""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fit_successors import solved
from messages import read_messages
from report import table

from thermocline.daemon.language.cues import signals_of
from thermocline.daemon.language.sentences import sentences
from thermocline.daemon.language.standing import WEIGHTS, signals

_DATA = Path(__file__).with_name("data")
_LABELLED = Path(__file__).parent.parent / "data"
_NAMES = sorted(WEIGHTS)
_RIDGE = 1.0
_STEPS = 12
_ROUNDS = 4
_FOLDS = 8
# A statement that is missed is the greater fault than one that is in the block needlessly.
_WORTH_OF_STANDING = 2.0
# They are typed as people type; the others are plainer.
_WORTH_OF_NOTES = 2.5
_CHANCE = 0.35


class Example(NamedTuple):
    """A statement: the signals of each of its sentences that is no question, by their places."""

    group: str
    stands: bool
    worth: float
    sentences: list[list[int]]


def examples(folders: Sequence[str] = ()) -> Iterator[Example]:
    for entry in _read(_LABELLED / "standing.json"):
        yield _example("labelled", entry["text"], stands=entry["standing"])
    for entry in _read(_LABELLED / "standing_notes.json"):
        if entry["fitted"]:
            yield _example("notes", entry["text"], stands=entry["standing"], worth=_WORTH_OF_NOTES)
    for message in read_messages(_DATA / "messages" / "fitted.tsv"):
        if message.is_of_the_moment or message.kind == "order":
            yield _example("messages", message.text, stands=message.kind == "order")
    for file in sorted((_DATA / "everyday").glob("*.json")):
        if file.stem != "sealed":
            yield from _of_person(_read(file))
    for folder in (_DATA / "corrections", *map(Path, folders)):
        for file in sorted(folder.glob("*.json")):
            yield from _of_person(_read(file))


def _read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def _of_person(person: dict[str, Any]) -> Iterator[Example]:
    """Nobody labelled these: where a phrase tells that one stands, it is no example of others."""
    needed = {fact for request in person["contexts"] for fact in request["needs"]}
    for fact in person["facts"]:
        if fact["id"] in needed:
            yield _example("needed", fact["text"], stands=True, worth=0.2)
        elif not _has_phrase(fact["text"]):
            yield _example("facts", fact["text"], stands=False, worth=0.8)
    for correction in person["corrections"]:
        for text in (correction["older"], correction["newer"]):
            if not _has_phrase(text):
                yield _example("corrections", text, stands=False, worth=0.7)


def _has_phrase(text: str) -> bool:
    return any(signals(part) & {"rule", "vital"} for part in sentences(text))


def _example(group: str, text: str, *, stands: bool, worth: float = 1.0) -> Example:
    plain = (part for part in sentences(text) if "question" not in signals_of(part))
    places = [[at for at, name in enumerate(_NAMES) if name in signals(part)] for part in plain]
    return Example(group, stands, worth, places)


def fit(chosen: Sequence[Example]) -> list[float]:
    """The weights, and last the constant; of a standing text its strongest sentence counts."""
    weights = [0.0] * (len(_NAMES) + 1)
    for _ in range(_ROUNDS):
        rows: list[tuple[list[int], bool, float]] = []
        for example in chosen:
            parts = example.sentences
            if example.stands:
                parts = [max(parts, key=lambda part: odds(weights, part))] if parts else []
                rows += [(part, True, _WORTH_OF_STANDING * example.worth) for part in parts]
            else:
                rows += [(part, False, example.worth) for part in parts]
        weights = regression(rows, weights)
    return weights


def regression(rows: Sequence[tuple[list[int], bool, float]], start: list[float]) -> list[float]:
    """The weights of a logistic regression, and last the constant, by Newton's method.

    A row is the places of the signals that it has, whether it is one, and its worth.
    """
    weights, size = start, len(start)
    for _ in range(_STEPS):
        slope = [_RIDGE * weight for weight in weights[:-1]] + [0.0]
        curve = [
            [_RIDGE * (row == column < size - 1) for column in range(size)] for row in range(size)
        ]
        for part, stands, worth in rows:
            likely = 1 / (1 + math.exp(-odds(weights, part)))
            places = [*part, size - 1]
            for row in places:
                slope[row] += worth * (likely - stands)
                for column in places:
                    curve[row][column] += worth * likely * (1 - likely)
        weights = [now - step for now, step in zip(weights, solved(curve, slope), strict=True)]
    return weights


def odds(weights: Sequence[float], part: Sequence[int]) -> float:
    """The logarithm of the odds of a row."""
    return weights[-1] + sum(weights[at] for at in part)


def main() -> None:
    known = list(examples(sys.argv[1:]))
    threshold = math.log(_CHANCE / (1 - _CHANCE))
    counts: dict[tuple[str, bool], list[int]] = {}
    for fold in range(_FOLDS):
        weights = fit([example for at, example in enumerate(known) if at % _FOLDS != fold])
        for example in known[fold::_FOLDS]:
            count = counts.setdefault((example.group, example.stands), [0, 0])
            count[0] += any(odds(weights, part) > threshold for part in example.sentences)
            count[1] += 1
    weights = fit(known)
    for name, weight in sorted(zip(_NAMES, weights, strict=False), key=lambda pair: -pair[1]):
        print(f'    "{name}": {weight:.1f},')
    print(f"threshold {threshold - weights[-1]:.1f}\n")
    table(
        "statements",
        {
            f"{group}, {'standing' if stands else 'not'}": {"taken for it": taken, "of": count}
            for (group, stands), (taken, count) in counts.items()
        },
    )


if __name__ == "__main__":
    main()
