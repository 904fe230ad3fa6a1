"""Fits the weights of recall's signals, and tells what they give on what they were not fitted on.

    python tests/benchmarks/fit_signals.py FILE… [--drop]

Each file is one set, in any format of `comparing`. The figures are R@10 as the mean over the
conversations of a set: with the weights as they are, with those fitted on everything, and held out,
where the weights for each conversation are fitted on all others. A set that is one piece is held
out a fifth of its questions at a time. `--drop` tells instead what each signal earns.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from statistics import fmean

import comparing
from collection import Collection, Question
from report import table
from running import Running

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.recall.recall import look
from thermocline.daemon.recall.signals import WEIGHTS

_FACTORS = (0.5, 0.8, 1.25, 2.0)
_ROUNDS = 2
_DEPTH = 10
_LEAST_GAIN = 0.0005
_PARTS = 5


@dataclass(frozen=True)
class Measured:
    """One question: what was measured of its candidates, and which of these are right."""

    columns: Mapping[str, Sequence[float]]
    recency: Sequence[float]
    right: frozenset[int]
    wanted: int

    def scores(self, weights: Mapping[str, float]) -> list[float]:
        """The score of each candidate."""
        sums = list(self.recency)
        for name, column in self.columns.items():
            weight = weights[name]
            sums = [total + weight * value for total, value in zip(sums, column, strict=True)]
        return sums

    def recall(self, scores: Sequence[float]) -> float:
        """The share of the right ones among the first ten by these scores."""
        best = nlargest(_DEPTH, range(len(scores)), key=scores.__getitem__)
        return len(self.right.intersection(best)) / self.wanted


def measured(collections: Sequence[Collection]) -> dict[str, list[Measured]]:
    """All questions of a set by their conversations, or by its parts if it is one piece."""
    made: dict[str, list[Measured]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="thermocline-fit-") as folder,
        Running(Path(folder)) as daemon,
        closing(daemon.connect()) as wire,
    ):
        for one in collections:
            with closing(comparing.InProcess(wire, Path(folder), one, limit=_DEPTH)) as ours:
                found = [_measured(ours, question) for question in one.questions if question.right]
            if len(collections) > 1:
                made[one.name] = found
            else:
                made |= {f"part {part + 1}": found[part::_PARTS] for part in range(_PARTS)}
    return {name: questions for name, questions in made.items() if questions}


def _measured(asked: comparing.InProcess, question: Question) -> Measured:
    request, tuning = asked.request(question), Tuning()
    looked = look(asked.db, request, tuning)
    recency = [
        0.0
        if entry.is_turn
        else tuning.weights.recency
        * math.exp(-tuning.decay_per_day * max(0.0, request.now - entry.created_at) / DAY)
        for entry in looked.pool.entries
    ]
    keys = asked.keys_of(entry.row for entry in looked.pool.entries)
    right = frozenset(at for at, key in enumerate(keys) if key in question.right)
    return Measured(looked.signals.columns, recency, right, len(question.right))


def fit(folds: Sequence[Sequence[Measured]]) -> dict[str, float]:
    """The weights, each changed by a factor where that helps the mean over sets."""
    weights = dict(WEIGHTS)
    scores = [[one.scores(weights) for one in fold] for fold in folds]
    best = _mean(folds, scores)
    for _ in range(_ROUNDS):
        for name in WEIGHTS:
            for factor in _FACTORS:
                change = weights[name] * (factor - 1)
                tried = [
                    [
                        [
                            total + change * value
                            for total, value in zip(sums, one.columns[name], strict=True)
                        ]
                        if any(one.columns.get(name, ()))
                        else sums
                        for one, sums in zip(fold, of_fold, strict=True)
                    ]
                    for fold, of_fold in zip(folds, scores, strict=True)
                ]
                if (found := _mean(folds, tried)) > best + _LEAST_GAIN:
                    weights[name] *= factor
                    scores, best = tried, found
                    break
    return weights


def _mean(
    folds: Sequence[Sequence[Measured]], scores: Sequence[Sequence[Sequence[float]]]
) -> float:
    return fmean(
        fmean(one.recall(sums) for one, sums in zip(fold, of_fold, strict=True))
        for fold, of_fold in zip(folds, scores, strict=True)
    )


def judged(of_set: Mapping[str, Sequence[Measured]], weights: Mapping[str, float]) -> float:
    """R@10 as the mean over the conversations of a set."""
    return fmean(_recall(questions, weights) for questions in of_set.values())


def _recall(questions: Sequence[Measured], weights: Mapping[str, float]) -> float:
    return fmean(one.recall(one.scores(weights)) for one in questions)


def held_out(sets: Mapping[str, Mapping[str, list[Measured]]], of_set: str) -> float:
    """R@10 of a set, each conversation by weights that were fitted on all others."""
    found: list[float] = []
    for name, questions in sets[of_set].items():
        folds = [_all(one, name if title == of_set else "") for title, one in sets.items()]
        found.append(_recall(questions, fit([fold for fold in folds if fold])))
    return fmean(found)


def _all(of_set: Mapping[str, list[Measured]], but: str = "") -> list[Measured]:
    return [one for name, questions in of_set.items() if name != but for one in questions]


def main() -> None:
    """Measure once, then fit as often as there are conversations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--drop", action="store_true", help="tell what each signal earns")
    options = parser.parse_args()
    sets = {path.stem: measured(comparing.read(path)) for path in options.files}
    if options.drop:
        table("R@10 without", _without(sets))
        return
    fitted = fit([_all(of_set) for of_set in sets.values()])
    rows = {
        name: {
            "as it is": judged(of_set, WEIGHTS),
            "fitted on all": judged(of_set, fitted),
            "held out": held_out(sets, name),
        }
        for name, of_set in sets.items()
    }
    table("R@10", rows)
    table("weights", {name: {"is": WEIGHTS[name], "fitted": fitted[name]} for name in WEIGHTS})


def _without(sets: Mapping[str, Mapping[str, list[Measured]]]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for name in ("nothing", *WEIGHTS):
        weights = WEIGHTS | {name: 0.0}
        rows[name] = {title: judged(of_set, weights) for title, of_set in sets.items()}
    return rows


if __name__ == "__main__":
    main()
