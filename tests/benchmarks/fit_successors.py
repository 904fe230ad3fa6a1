"""Fits the model that orders a newer statement before the one that it tells the outcome of.

    python tests/benchmarks/fit_successors.py [FILE…]

From the people of `data/corrections` and those of `data/everyday` that are not sealed, with their
statements that only look alike, and the project's facts; then FILE…, collections of chats in any
format of `comparing`, whose texts alone are stored and replace nothing. Prints the weights of a
logistic regression, and how many corrections and other pairs come out on the right side, each
person's by the weights of the others.
"""

import argparse
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import comparing
import everyday
from collection import Collection
from report import table
from running import Running

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.recall.ranking import matches_of
from thermocline.daemon.recall.recall import measure_candidates
from thermocline.daemon.recall.successors import WEIGHTS, Statements

_CORRECTIONS = Path(__file__).with_name("data") / "corrections"
_GAP = "1 h"
_DEPTH = 8
# Of the best match, as in `successors`.
_LEAST_SHARE = 0.25
# A pair of a chat, or of what is outdated and another statement, counts less: there are many.
_OF_MANY = 0.3
# Few of the people's statements are close to each other; those of a project are.
_OF_FACTS = 4.0
# The first hour of a memory: so many corrections and other facts, and what a pair of them counts.
_FEW_CORRECTIONS, _FEW_FACTS = 3, 8
_OF_SMALL = 0.5
# That two statements are left in their order is the greater fault.
_EAGERNESS = 0.45
_RIDGE = 0.5
_STEPS = 12
# Each is judged by the weights of the others.
_FOLDS = 6

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
        measured = measure_candidates(asked.db, asked.request(question), Tuning())
        entries = measured.pool.entries
        matches = matches_of(measured.pool, measured.signals)
        compared = Statements(measured.pool, measured.signals, matches)
        keys = asked.keys_of(entry.row for entry in entries)
        best = sorted(compared.all, key=matches.__getitem__, reverse=True)[:_DEPTH]
        best = [at for at in best if matches[at] >= _LEAST_SHARE * matches[best[0]]]
        for older in compared.all:
            is_stale = keys[older] in question.stale
            if not is_stale and (older not in best or keys[older] not in question.right):
                continue
            for newer in compared.after(older):
                follows = is_stale and keys[newer] in question.right
                if follows == (keys[newer] in question.right) and compared.may_follow(older, newer):
                    features = compared.features(older, newer)
                    weight = worth * (_OF_MANY if is_stale and not follows else 1.0)
                    yield [features[name] for name in WEIGHTS], follows, weight


def _small(person: everyday.Person) -> Iterator[Collection]:
    """Memories of a few corrections and facts each, with all questions that they answer."""
    whole = person.corrected[_GAP]
    corrections = [question for question in whole.questions if question.kind == "now"]
    compared = {key for question in corrections for key in question.right | question.stale}
    facts = [key for key in whole.memories if key not in compared]
    for part, at in enumerate(range(0, len(corrections), _FEW_CORRECTIONS)):
        questions = corrections[at : at + _FEW_CORRECTIONS]
        keys = {key for question in questions for key in question.right | question.stale}
        keys.update(facts[part * _FEW_FACTS : (part + 1) * _FEW_FACTS])
        known = (q for q in person.facts.questions if q.right and q.right <= keys)
        memories = {key: body for key, body in whole.memories.items() if key in keys}
        name = f"{whole.name} {part}"
        yield replace(whole, name=name, memories=memories, questions=(*questions, *known))


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
        weights = [now - step for now, step in zip(weights, solved(curve, slope), strict=True)]
    weights[0] += _EAGERNESS
    return weights


def solved(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """The solution of a system of linear equations, by elimination; the matrix is positive."""
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for at, pivot in enumerate(rows):
        for other in rows[:at] + rows[at + 1 :]:
            share = other[at] / pivot[at]
            other[:] = [value - share * known for value, known in zip(other, pivot, strict=True)]
    return [row[-1] / row[at] for at, row in enumerate(rows)]


def _odds(weights: Sequence[float], features: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, features, strict=True))


def main() -> None:
    """Measure the pairs once, then fit and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    files = parser.parse_args().files
    people = [everyday.read(_CORRECTIONS / f"{name}.json") for name in everyday.names(_CORRECTIONS)]
    people += [
        everyday.read(everyday.FOLDER / f"{name}.json") for name in everyday.names(everyday.FOLDER)
    ]
    parts = [
        examples([replace(corrected, questions=corrected.questions + person.facts.questions)], 1.0)
        for person in people
        for corrected in [person.corrected[_GAP]]
    ]
    parts += [examples(_small(person), _OF_SMALL) for person in people]
    parts += [examples([person.alike], 1.0) for person in people]
    parts.append(examples(comparing.read(everyday.FOLDER.parent / "facts.json"), _OF_FACTS))
    parts += [
        examples([comparing.text_alone(chat)], _OF_MANY)
        for file in files
        for chat in comparing.read(file)
    ]
    fitted = fit(list(chain.from_iterable(parts)))
    table(
        "weights",
        {
            name: {"is": WEIGHTS[name], "fitted": value}
            for name, value in zip(WEIGHTS, fitted, strict=True)
        },
    )
    right = {kind: [0, 0] for kind in (True, False)}
    for fold in range(_FOLDS):
        others = [part for at, part in enumerate(parts) if at % _FOLDS != fold]
        weights = fit(list(chain.from_iterable(others)))
        for features, follows, _ in chain.from_iterable(parts[fold::_FOLDS]):
            right[follows][0] += (_odds(weights, features) > 0) == follows
            right[follows][1] += 1
    table(
        "pairs that come out on the right side, by the weights of the others",
        {
            "tell what became of it": {"right": f"{right[True][0]} of {right[True][1]}"},
            "do not": {"right": f"{right[False][0]} of {right[False][1]}"},
        },
    )


if __name__ == "__main__":
    main()
