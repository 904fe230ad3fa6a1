"""Fits the model that orders a newer statement before the one that it tells the outcome of.

    python tests/benchmarks/fit_successors.py [FILE…]

From `data/corrections` the people of `_FITTED` and from `data/everyday` those that are not sealed;
then FILE…, collections of chats in any format of `comparing`, whose texts alone are stored and
replace nothing. Prints the weights of a logistic regression, and how many corrections and other
pairs come out on the right side, also of the people that were not fitted.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import comparing
import everyday
from collection import Collection
from report import table
from running import Running

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.recall.ranking import matches_of
from thermocline.daemon.recall.recall import look
from thermocline.daemon.recall.successors import WEIGHTS, Statements

_CORRECTIONS = Path(__file__).with_name("data") / "corrections"
_FITTED = ("lucia", "oskar", "priya", "wendell")
_GAP = "1 h"
_DEPTH = 3
# A pair of a chat counts less, for there are many.
_OF_CHATS = 0.3
# That two statements are left in their order is the lesser fault.
_EAGERNESS = 1.2
_RIDGE = 0.5
_STEPS = 40

# The features, whether the newer tells what became of the older, and the weight of the example.
Example = tuple[Sequence[float], bool, float]


def examples(collections: Iterable[Collection], worth: float) -> list[Example]:
    """The pairs of statements that the questions of some collections compare."""
    with (
        tempfile.TemporaryDirectory(prefix="thermocline-fit-") as folder,
        Running(Path(folder)) as daemon,
        closing(daemon.connect()) as wire,
    ):
        pairs: list[Example] = []
        for collection in collections:
            asked = comparing.InProcess(wire, Path(folder), collection, limit=_DEPTH)
            with closing(asked):
                pairs += _pairs(asked, collection, worth)
    return pairs


def _pairs(asked: comparing.InProcess, collection: Collection, worth: float) -> Iterator[Example]:
    for question in collection.questions:
        if not question.right or question.kind == "before":
            continue
        looked = look(asked.db, asked.request(question), Tuning())
        entries = looked.pool.entries
        matches = matches_of(looked.pool, looked.signals)
        compared = Statements(looked.pool, looked.signals, matches)
        keys = asked.keys_of(entry.row for entry in entries)
        best = sorted(compared.all, key=matches.__getitem__, reverse=True)[:_DEPTH]
        for older in compared.all:
            is_stale = keys[older] in question.stale
            if not is_stale and (older not in best or keys[older] not in question.right):
                continue
            for newer in compared.after(older):
                follows = is_stale and keys[newer] in question.right
                if follows == (keys[newer] in question.right) and compared.may_follow(older, newer):
                    features = compared.features(older, newer)
                    yield [features[name] for name in WEIGHTS], follows, worth


def fit(pairs: Sequence[Example]) -> list[float]:
    """The weights of a logistic regression with a ridge, by Newton's method."""
    size = len(WEIGHTS)
    weights = [0.0] * size
    for _ in range(_STEPS):
        slope = [_RIDGE * weight for weight in weights]
        curve = [[_RIDGE * (row == column) for column in range(size)] for row in range(size)]
        for features, follows, worth in pairs:
            likely = 1 / (1 + math.exp(-_odds(weights, features)))
            for row in range(size):
                slope[row] += worth * (likely - follows) * features[row]
                for column in range(size):
                    spread = worth * likely * (1 - likely)
                    curve[row][column] += spread * features[row] * features[column]
        weights = [now - step for now, step in zip(weights, _solved(curve, slope), strict=True)]
    weights[0] += _EAGERNESS
    return weights


def _solved(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """The solution of a system of linear equations, by elimination; the matrix is positive."""
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for at, pivot in enumerate(rows):
        for other in rows[:at] + rows[at + 1 :]:
            share = other[at] / pivot[at]
            other[:] = [value - share * known for value, known in zip(other, pivot, strict=True)]
    return [row[-1] / row[at] for at, row in enumerate(rows)]


def _odds(weights: Sequence[float], features: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, features, strict=True))


def _right(pairs: Sequence[Example], weights: Sequence[float], *, follows: bool) -> str:
    of_kind = [features for features, is_so, _ in pairs if is_so == follows]
    right = sum((_odds(weights, features) > 0) == follows for features in of_kind)
    return f"{right} of {len(of_kind)}"


def main() -> None:
    """Measure the pairs once, then fit and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    files = parser.parse_args().files
    names = everyday.names(_CORRECTIONS)
    people = {name: everyday.read(_CORRECTIONS / f"{name}.json").corrected[_GAP] for name in names}
    for name in everyday.names(everyday.FOLDER):
        person = everyday.read(everyday.FOLDER / f"{name}.json")
        corrected = person.corrected[_GAP]
        people[name] = replace(corrected, questions=corrected.questions + person.facts.questions)
    held = examples((people.pop(name) for name in names if name not in _FITTED), 1.0)
    known = examples(people.values(), 1.0)
    known += examples(comparing.read(everyday.FOLDER.parent / "facts.json"), 1.0)
    for file in files:
        known += examples(map(comparing.text_alone, comparing.read(file)), _OF_CHATS)
    fitted = fit(known)
    is_now = list(WEIGHTS.values())
    table(
        "weights",
        {
            name: {"is": WEIGHTS[name], "fitted": value}
            for name, value in zip(WEIGHTS, fitted, strict=True)
        },
    )
    table(
        "pairs that come out on the right side",
        {
            title: {
                f"{kind}, {label}": _right(pairs, weights, follows=follows)
                for kind, follows in (("tell what became of it", True), ("do not", False))
                for label, weights in (("is", is_now), ("fitted", fitted))
            }
            for title, pairs in (("people fitted", known), ("other people", held))
        },
    )


if __name__ == "__main__":
    main()
