"""Fits the weights by which a statement is taken for standing; see `daemon/language/standing.py`.

    python tests/benchmarks/fit_standing.py [FOLDER of further people …]

From the labelled statements of `tests/data/standing.json`, those of `standing_notes.json` that are
not held back, the orders and what is of the moment among `data/messages/fitted.tsv`, and the people
of `data/everyday` that are not sealed and of `data/corrections`: what a request needs without
naming it stands, other facts, corrections and random words do not. Writes `standing.toml`, and
prints what is recognised, each statement by weights that were fitted without it.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from corpus import Corpus
from messages import read_messages
from report import table

from thermocline.daemon.language import standing
from thermocline.daemon.language.cues import signals_of
from thermocline.daemon.language.standing import parts_of, signals, words_in
from thermocline.daemon.language.thesaurus import thesaurus
from thermocline.daemon.language.weights import concepts_in

_DATA = Path(__file__).with_name("data")
_LABELLED = Path(__file__).parent.parent / "data"
_FILE = Path(standing.__file__).with_name("standing.toml")
_KINDS = ("signals", "concepts", "words")
_RIDGE = 1.0
# Words and concepts are many: each has to have been seen more often than a signal.
_RIDGE_OF_WORDS = 3.0
_SWEEPS = 300
_SETTLED = 0.003
_LONGEST_STEP = 2.0
_ROUNDS = 3
_FOLDS = 5
# A word of fewer sentences tells nothing, nor one with less weight.
_LEAST_SEEN = 3
_LEAST_WEIGHT = 0.2
# A statement that is missed is the greater fault than one that is in the block needlessly.
_WORTH_OF_STANDING = 2.0
# They are typed as people type; the others are plainer.
_WORTH_OF_NOTES = 2.5
# A subject alone is no rule, as random words about it show.
_RANDOM, _SEED = 500, 77
_WORTH_OF_RANDOM = 1.0


class Example(NamedTuple):
    """A statement: the features of each of its sentences that is no question."""

    group: str
    stands: bool
    worth: float
    sentences: list[list[str]]


def examples(folders: Sequence[str] = ()) -> Iterator[Example]:
    for entry in _read(_LABELLED / "standing.json"):
        yield _example("labelled", entry["text"], stands=entry["standing"])
    for entry in _read(_LABELLED / "standing_notes.json"):
        if entry["fitted"]:
            yield _example("notes", entry["text"], stands=entry["standing"], worth=_WORTH_OF_NOTES)
    for message in read_messages(_DATA / "messages" / "fitted.tsv"):
        if message.is_of_the_moment or message.kind == "order":
            yield _example("messages", message.text, stands=message.kind == "order")
    for text in islice(Corpus().texts(_SEED), _RANDOM):
        yield _example("random words", text, stands=False, worth=_WORTH_OF_RANDOM)
    for person in _people(folders):
        yield from _of_person(person)


def _people(folders: Sequence[str]) -> Iterator[dict[str, Any]]:
    for folder in (_DATA / "everyday", _DATA / "corrections", *map(Path, folders)):
        yield from (_read(file) for file in sorted(folder.glob("*.json")) if file.stem != "sealed")


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
    return any(signals(part) & {"rule", "vital"} for part in parts_of(text))


def _example(group: str, text: str, *, stands: bool, worth: float = 1.0) -> Example:
    plain = (part for part in parts_of(text) if "question" not in signals_of(part))
    return Example(group, stands, worth, [_features(part) for part in plain])


def _features(sentence: str) -> list[str]:
    return by_kind(signals(sentence), concepts_in(sentence), words_in(sentence))


def by_kind(names: Iterable[str], codes: Iterable[str], words: Iterable[str]) -> list[str]:
    """The features of a sentence: signals by name, concepts by code, words."""
    concepts = map(thesaurus().name_of, codes)
    kinds = zip(_KINDS, (names, concepts, words), strict=True)
    return [f"{kind}/{name}" for kind, names in kinds for name in sorted(names)]


def fit(chosen: Sequence[Example]) -> dict[str, float]:
    """The weights of features, and that of none; of a standing text its likeliest part counts."""
    seen = Counter(chain.from_iterable(part for entry in chosen for part in entry.sentences))
    names = sorted(name for name, count in seen.items() if count >= _LEAST_SEEN)
    weights = _weights_of(names, chosen)
    kept = [name for name in names if _is_signal(name) or abs(weights[name]) >= _LEAST_WEIGHT]
    return _weights_of(kept, chosen)


def _weights_of(names: Sequence[str], chosen: Sequence[Example]) -> dict[str, float]:
    places = {name: at for at, name in enumerate(names)}
    ridges = [_RIDGE if _is_signal(name) else _RIDGE_OF_WORDS for name in names]
    weights = [0.0] * (len(names) + 1)
    for _ in range(_ROUNDS):
        rows: list[tuple[list[int], bool, float]] = []
        for example in chosen:
            parts = [
                [places[name] for name in part if name in places] for part in example.sentences
            ]
            if example.stands:
                parts = [max(parts, key=lambda part: odds(weights, part))] if parts else []
            worth = example.worth * (_WORTH_OF_STANDING if example.stands else 1.0)
            rows += [(part, example.stands, worth) for part in parts]
        weights = regression(rows, weights, ridges)
    return dict(zip((*names, ""), weights, strict=True))


def _is_signal(name: str) -> bool:
    return name.startswith(_KINDS[0])


def regression(
    rows: Sequence[tuple[list[int], bool, float]],
    start: Sequence[float],
    ridges: Sequence[float] | None = None,
) -> list[float]:
    """The weights of a logistic regression, and last the constant: Newton's, one after the other.

    A row is the places of the signals that it has, whether it is one, and its worth.
    """
    weights, last = [*start], len(start) - 1
    ridges = [*(ridges or [_RIDGE] * last), 0.0]
    columns: list[list[int]] = [[] for _ in weights]
    for number, (places, _, _) in enumerate(rows):
        for place in (*places, last):
            columns[place].append(number)
    logits = [odds(weights, places) for places, _, _ in rows]
    for _ in range(_SWEEPS):
        longest = 0.0
        for place, column in enumerate(columns):
            slope, curve = ridges[place] * weights[place], ridges[place]
            for number in column:
                _, stands, worth = rows[number]
                likely = 1 / (1 + math.exp(-logits[number]))
                slope += worth * (likely - stands)
                curve += worth * likely * (1 - likely)
            step = max(-_LONGEST_STEP, min(_LONGEST_STEP, slope / curve)) if curve else 0.0
            weights[place] -= step
            longest = max(longest, abs(step))
            for number in column:
                logits[number] -= step
        if longest < _SETTLED:
            break
    return weights


def odds(weights: Sequence[float], part: Sequence[int]) -> float:
    """The logarithm of the odds of a row."""
    return weights[-1] + sum(weights[at] for at in part)


def _judged(weights: dict[str, float], example: Example) -> float:
    return max(
        (weights[""] + sum(weights.get(name, 0.0) for name in part) for part in example.sentences),
        default=-math.inf,
    )


def write(file: Path, weights: dict[str, float], by: str) -> None:
    """Write weights as `FittedWeights.read` reads them; `by` names the program and the module."""
    lines = [f"# Written by tests/benchmarks/{by}.", f"always = {weights.pop(''):.2f}"]
    for kind in _KINDS:
        of_kind = sorted(
            (name.partition("/")[2], weight)
            for name, weight in weights.items()
            if name.startswith(f"{kind}/")
        )
        lines += ["", f"[{kind}]"]
        lines += [
            f"{json.dumps(name, ensure_ascii=False)} = {weight:.2f}" for name, weight in of_kind
        ]
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    known = list(examples(sys.argv[1:]))
    counts: dict[tuple[str, bool], list[int]] = {}
    for fold in range(_FOLDS):
        weights = fit([example for at, example in enumerate(known) if at % _FOLDS != fold])
        for example in known[fold::_FOLDS]:
            count = counts.setdefault((example.group, example.stands), [0, 0])
            count[0] += _judged(weights, example) > 0
            count[1] += 1
    write(_FILE, fit(known), "fit_standing.py; see standing.py")
    table(
        "statements",
        {
            f"{group}, {'standing' if stands else 'not'}": {"taken for it": taken, "of": count}
            for (group, stands), (taken, count) in counts.items()
        },
    )


if __name__ == "__main__":
    main()
