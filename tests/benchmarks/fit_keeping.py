"""Fits the weights by which a sentence of a talk is kept: `language/extraction/keeping.py`.

    python tests/benchmarks/fit_keeping.py [--show]

From the sentences that users say in the talks of `data/talks` that are not sealed, and of the
single messages of `data/messages/fitted.tsv`: those with what a person would keep are worth it,
what is no fault counts less, all others are not; from the labelled sentences of `data/lines`; and
from the phrases of `tests/data/talk_phrases.txt` and `rule_phrases.txt`. Writes `keeping.toml`, and
prints what would be kept of the talks and lines, each judged by weights that were fitted without
it. With `--show` also the sentences that are judged wrongly.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from fit_standing import by_kind, regression, write
from kept_quality import says
from messages import read_messages
from report import table

from thermocline.daemon.language import standing
from thermocline.daemon.language.extraction.extraction import judged
from thermocline.daemon.language.extraction.keeping import said_in, signals, words_in
from thermocline.daemon.language.extraction.statements import SpokenSentence
from thermocline.daemon.language.secrets import clear_turns
from thermocline.daemon.language.speech import Turn
from thermocline.daemon.language.weights import concepts_in

_DATA = Path(__file__).with_name("data")
_PEOPLE = ("everyday", "corrections")
_PHRASES = Path(__file__).parent.parent / "data" / "talk_phrases.txt"
# The section of what is never kept is among those of other rules.
_RULES = _PHRASES.with_name("rule_phrases.txt")
_NOT_KEPT = "[not observed]\n"
_FILE = Path(standing.__file__).with_name("keeping.toml")
_SEALED = "sealed"
_FOLDS = 5
# So many labelled lines are of one person.
_BLOCK = 100
# What is no fault says little; what is surely wrong, more.
_WORTH: dict[str, float] = {"keep": 1.0, "told": 0.1, "may": 0.5, "unfit": 1.0, "never": 1.5}
_KEPT = {"keep", "told", "may"}
# What is promised of a sentence counts for several of its kind.
_WORTH_OF_PHRASES = 12.0
# What is kept is worth it with at least this chance: what is lost nobody can ask for.
_CHANCE = 0.27
# Words and concepts are many: each has to have been seen more often than a signal.
_RIDGE, _RIDGE_OF_WORDS = 1.0, 4.0
# A word of fewer sentences tells nothing, nor one with less weight.
_LEAST_SEEN, _LEAST = 5, 0.15
_THRESHOLDS = (-1.5, -1.0, -0.5, 0.0, 0.5)


class Example(NamedTuple):
    """A sentence that is judged: its talk, text, label, and its features."""

    talk: str
    text: str
    label: str
    features: list[str]


def examples() -> Iterator[Example]:
    for path in sorted((_DATA / "talks").glob("*.json")):
        if path.stem != _SEALED:
            talk = json.loads(path.read_text(encoding="utf-8"))
            texts = clear_turns(text for _, text in talk["turns"])
            turns = [Turn(role, text) for (role, _), text in zip(talk["turns"], texts, strict=True)]
            for statement in judged(turns):
                yield _example(talk["name"], statement, _label(statement.text, talk))


def messages() -> Iterator[Example]:
    """The sentences of single messages; see `messages.py`."""
    for number, message in enumerate(read_messages(_DATA / "messages" / "fitted.tsv")):
        for statement in judged([Turn("user", message.text)]):
            kept = message.is_answered_by([statement.original])
            if kept or message.is_of_the_moment:
                yield _example(f"messages {number % 9}", statement, "keep" if kept else "unfit")


def lines() -> Iterator[Example]:
    """Sentences with labels: what is to be kept, and what is of the moment."""
    for path in sorted((_DATA / "lines").glob("*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            label, _, text = line.split("\t")
            asked, answers, said = text.partition("? ")
            answers = answers and said
            turns = [Turn("assistant", f"{asked}?"), Turn("user", said)] if answers else []
            for statement in judged(turns or [Turn("user", text)]):
                block = f"lines {path.stem} {number // _BLOCK}"
                yield _example(block, statement, "keep" if label == "k" else "never")


def facts() -> Iterator[Example]:
    """What the people of `data/everyday` and `data/corrections` tell: all of it is to be kept."""
    for path in sorted(chain.from_iterable((_DATA / name).glob("*.json") for name in _PEOPLE)):
        person = json.loads(path.read_text(encoding="utf-8"))
        for fact in person["facts"] if path.stem != _SEALED else ():
            for statement in judged([Turn("user", fact["text"])]):
                yield _example("facts", statement, "told")


def phrases() -> Iterator[Example]:
    """What is kept of single turns; many are like sentences of the talks."""
    section = _RULES.read_text(encoding="utf-8").partition(_NOT_KEPT)[2].partition("\n[")[0]
    never = [f"{line} =>" for line in section.splitlines()]
    for line in (*_PHRASES.read_text(encoding="utf-8").splitlines(), *never):
        told, separator, kept = line.partition(" =>")
        if line.startswith("#") or not told or not separator:
            continue
        turns = [
            Turn("assistant", turn[3:]) if turn.startswith("A: ") else Turn("user", turn)
            for turn in told.split(" // ")
        ]
        for statement in judged(turns):
            # A name may have been put into the one, a mark of emphasis left out of the other.
            forms = (statement.text, statement.original.rstrip(".!"))
            is_kept = any(form in kept for form in forms)
            yield _example("phrases", statement, "keep" if is_kept else "never")


def _example(talk: str, statement: SpokenSentence, label: str) -> Example:
    original, answers = statement.original, statement.answers
    said = said_in(original, answers=answers)
    names = signals(original, statement.signals, answers=answers)
    features = by_kind(names, concepts_in(said), words_in(said))
    return Example(talk, statement.text, label, features)


def _label(text: str, talk: dict[str, Any]) -> str:
    if any(phrase in text.lower() for phrase in talk["never"]):
        return "never"
    if any(says(text, fact["words"]) for fact in talk["keep"]):
        return "keep"
    return "may" if any(says(text, words) for words in talk["may"]) else "unfit"


def fit(chosen: Sequence[Example]) -> dict[str, float]:
    """The weights of features, and that of none."""
    seen = Counter(chain.from_iterable(item.features for item in chosen))
    names = sorted(name for name, count in seen.items() if count >= _LEAST_SEEN)
    weights = _weights_of(names, chosen)
    kept = [name for name in names if abs(weights[name]) >= _LEAST]
    return _weights_of(kept, chosen)


def _weights_of(names: Sequence[str], chosen: Iterable[Example]) -> dict[str, float]:
    places = {name: at for at, name in enumerate(names)}
    rows = [
        (
            [places[name] for name in item.features if name in places],
            item.label in _KEPT,
            _WORTH[item.label] * (_WORTH_OF_PHRASES if item.talk == "phrases" else 1.0),
        )
        for item in chosen
    ]
    ridges = [_RIDGE if name.startswith("signals") else _RIDGE_OF_WORDS for name in names]
    weights = regression(rows, [0.0] * (len(names) + 1), ridges)
    return dict(zip((*names, ""), weights, strict=True))


def _odds(weights: dict[str, float], item: Example) -> float:
    return weights[""] + sum(weights.get(name, 0.0) for name in item.features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="what is judged wrongly, left out")
    show = parser.parse_args().show
    known = [*examples(), *messages(), *lines()]
    told = [*facts()]
    talks = sorted({item.talk for item in known})
    judgements: list[tuple[Example, float]] = []
    for fold in range(_FOLDS):
        held = set(talks[fold::_FOLDS])
        weights = fit([item for item in known if item.talk not in held] + told)
        judgements += ((item, _odds(weights, item)) for item in known if item.talk in held)
    weights = fit([*known, *told, *phrases()])
    weights[""] -= math.log(_CHANCE / (1 - _CHANCE))
    write(_FILE, weights, "fit_keeping.py; see extraction/keeping.py")
    rows = {}
    for threshold in _THRESHOLDS:
        above = [item.label for item, odds_of in judgements if odds_of > threshold]
        row = {label: f"{above.count(label)} of {_count(known, label)}" for label in _WORTH}
        wrong = above.count("unfit") + above.count("never")
        rows[f"left out, above {threshold}"] = row | {"unfit share": f"{wrong / len(above):.1%}"}
    table("sentences", rows)
    if show:
        for item, odds_of in sorted(judgements, key=lambda pair: pair[1]):
            wrong = (odds_of > 0) != (item.label in _KEPT)
            if wrong:
                print(f"{odds_of:5.1f} {item.label:5} {item.talk:10} {item.text}")


def _count(known: Sequence[Example], label: str) -> int:
    return sum(item.label == label for item in known)


if __name__ == "__main__":
    main()
