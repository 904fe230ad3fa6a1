"""What each signal of recall is worth on kinds of collection that its weights were not fitted on.

    python tests/benchmarks/fit_signals.py FILE…

Each file is one kind, in any format of `comparing`; the project's own people and facts are added.
For each kind the weights are fitted on all others. The first table has R@10 and P@1 of each kind by
these weights, by those of the release and by those fitted on everything; the second what a kind
loses, in points, without each signal. A signal stays if no kind gains more than a point without it.
"""

import argparse
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from statistics import fmean

import comparing
import everyday
import msgspec
from collection import Collection, Question
from report import table
from running import Running, encoder_settings

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.recall.recall import measure_candidates
from thermocline.daemon.recall.signals import WEIGHTS

_DATA = Path(__file__).with_name("data")
_FACTORS = (0.0, 0.5, 0.75, 1.33, 2.0)
_ROUNDS = 2
_DEPTH = 10
_LEAST_GAIN = 0.0005
# The signal that the others are measured against.
_UNIT = "words"

Weights = Mapping[str, float]
Kinds = Mapping[str, Sequence["Measured"]]


@dataclass(frozen=True)
class Measured:
    """One question: what was measured of its candidates, newest first, and which are right."""

    columns: Mapping[str, Sequence[float]]
    right: frozenset[int]
    wanted: int
    size: int

    def sums(self, weights: Weights) -> list[float]:
        """The relevance of each candidate."""
        sums = [0.0] * self.size
        for name, column in self.columns.items():
            if weight := weights[name]:
                sums = [total + weight * value for total, value in zip(sums, column, strict=True)]
        return sums

    def figures(self, sums: Sequence[float]) -> tuple[float, float]:
        """R@10 and P@1 by these relevances; among equals the newest is first."""
        if not self.size:
            return 0.0, 0.0
        best = nlargest(_DEPTH, range(self.size), key=sums.__getitem__)
        return len(self.right.intersection(best)) / self.wanted, float(best[0] in self.right)


def measured(collections: Iterable[Collection], encoder: str | None) -> list[Measured]:
    """All answerable questions of the collections of one kind."""
    settings = encoder_settings(encoder)
    model = None if encoder is None else msgspec.json.decode(settings[0].partition("=")[2])[0]
    with (
        tempfile.TemporaryDirectory(prefix="thermocline-fit-") as folder,
        Running(Path(folder), *settings) as daemon,
        closing(daemon.connect()) as wire,
    ):
        questions: list[Measured] = []
        for collection in collections:
            ours = comparing.InProcess(wire, Path(folder), collection, limit=_DEPTH, encoder=model)
            with closing(ours):
                answerable = (question for question in collection.questions if question.right)
                questions += (_measured(ours, question) for question in answerable)
    return questions


def _measured(asked: comparing.InProcess, question: Question) -> Measured:
    measured = measure_candidates(asked.db, asked.request(question), Tuning())
    entries = measured.pool.entries
    order = sorted(range(len(entries)), key=lambda at: -entries[at].created_at)
    keys = asked.keys_of(entries[at].row for at in order)
    return Measured(
        {name: [column[at] for at in order] for name, column in measured.signals.columns.items()},
        frozenset(at for at, key in enumerate(keys) if key in question.right),
        len(question.right),
        len(order),
    )


def fit(kinds: Kinds) -> dict[str, float]:
    """The weights, each changed by a factor where that helps the mean over kinds."""
    weights = dict(WEIGHTS)
    sums = {kind: [one.sums(weights) for one in questions] for kind, questions in kinds.items()}
    best = _worth(kinds, sums)
    for _ in range(_ROUNDS):
        for name in [name for name in WEIGHTS if name != _UNIT]:
            for factor in _FACTORS:
                change = weights[name] * (factor - 1)
                tried = _changed(kinds, sums, name, change)
                if (worth := _worth(kinds, tried)) > best + _LEAST_GAIN:
                    weights[name] += change
                    sums, best = tried, worth
                    break
    return weights


def _changed(
    kinds: Kinds, sums: Mapping[str, Sequence[Sequence[float]]], name: str, change: float
) -> dict[str, list[Sequence[float]]]:
    return {
        kind: [
            [total + change * value for total, value in zip(before, column, strict=True)]
            if any(column := one.columns.get(name, ()))
            else before
            for one, before in zip(questions, sums[kind], strict=True)
        ]
        for kind, questions in kinds.items()
    }


def _worth(kinds: Kinds, sums: Mapping[str, Sequence[Sequence[float]]]) -> float:
    """The mean over kinds of R@10 and P@1."""
    return fmean(
        fmean(sum(one.figures(of_one)) for one, of_one in zip(questions, sums[kind], strict=True))
        for kind, questions in kinds.items()
    )


def judged(questions: Sequence[Measured], weights: Weights) -> tuple[float, float]:
    """R@10 and P@1 of the questions of a kind."""
    figures = [one.figures(one.sums(weights)) for one in questions]
    return fmean(recall for recall, _ in figures), fmean(first for _, first in figures)


def main() -> None:
    """Measure once, then fit once for each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--encoder", metavar="URL|static:DIR", help="with vectors of this encoder")
    options = parser.parse_args()
    files, encoder = options.files, options.encoder
    people = [
        everyday.read(everyday.FOLDER / f"{name}.json").facts
        for name in everyday.names(everyday.FOLDER)
    ]
    facts = comparing.read(_DATA / "facts.json")
    kinds = {"everyday": measured(people, encoder), "facts": measured(facts, encoder)}
    kinds |= {path.stem: measured(comparing.read(path), encoder) for path in files}
    everything = fit(kinds)
    held_out = {
        kind: fit({other: of_other for other, of_other in kinds.items() if other != kind})
        for kind in kinds
        if len(kinds) > 1
    }
    rows = {}
    for kind, questions in kinds.items():
        by = {"held out": held_out.get(kind, everything), "as is": WEIGHTS, "fitted": everything}
        rows[kind] = {"questions": float(len(questions))}
        for name, weights in by.items():
            recall, first = judged(questions, weights)
            rows[kind] |= {f"R@10 {name}": recall, f"P@1 {name}": first}
    table("weights fitted on the other kinds, as they are, fitted on all", rows)
    table("points of R@10 / P@1 that a kind loses without a signal", _without(kinds, held_out))
    table("weights", {name: {"is": WEIGHTS[name], "fitted": everything[name]} for name in WEIGHTS})


def _without(kinds: Kinds, held_out: Mapping[str, Weights]) -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {name: {} for name in WEIGHTS if name != _UNIT}
    for kind, questions in kinds.items():
        weights = held_out[kind]
        whole = judged(questions, weights)
        for name, row in rows.items():
            if any(name in one.columns for one in questions):
                less = judged(questions, {**weights, name: 0.0})
                loss = [100 * (before - now) for before, now in zip(whole, less, strict=True)]
                row[kind] = f"{loss[0]:+.1f} / {loss[1]:+.1f}"
    return rows


if __name__ == "__main__":
    main()
