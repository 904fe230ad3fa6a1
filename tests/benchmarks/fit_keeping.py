"""Fits the weights by which a sentence of a talk is kept: `language/extraction/keeping.py`.

    python tests/benchmarks/fit_keeping.py

From the sentences that users say in the talks of `data/talks` that are not sealed, and of the
single messages of `data/messages/fitted.tsv`: those with what a person would keep are worth it,
what is no fault counts less, all others are not. Prints the
weights of a logistic regression of these and the phrases of `tests/data/talk_phrases.txt`, and what
is kept and unfit, each talk judged by weights that were fitted to other talks alone. With `--show`
also the sentences that are judged wrongly.
"""

import argparse
import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fit_standing import odds, regression
from kept_quality import says
from messages import FOLDER as MESSAGES
from messages import read_messages
from report import table

from thermocline.daemon.language.extraction.extraction import judged
from thermocline.daemon.language.extraction.keeping import signals
from thermocline.daemon.language.secrets import clear_turns
from thermocline.daemon.language.speech import Turn

_FOLDER = Path(__file__).with_name("data") / "talks"
_PHRASES = Path(__file__).parent.parent / "data" / "talk_phrases.txt"
_SEALED = "sealed"
_FOLDS = 9
# What is no fault says little; what is surely wrong, more.
_WORTH: dict[str, float] = {"keep": 1.0, "may": 0.5, "unfit": 1.0, "never": 1.5}
# What is kept is worth it with at least this chance: what is lost nobody can ask for.
_CHANCE = 0.35
# The least weight that decides anything.
_LEAST = 0.05
_THRESHOLDS = (-1.5, -1.0, -0.5, 0.0, 0.5)


class Example(NamedTuple):
    """A sentence that is judged: its talk, text, label, and the signals that it has."""

    talk: str
    text: str
    label: str
    names: frozenset[str]


def examples() -> Iterator[Example]:
    for path in sorted(_FOLDER.glob("*.json")):
        if path.stem != _SEALED:
            talk = json.loads(path.read_text(encoding="utf-8"))
            texts = clear_turns(text for _, text in talk["turns"])
            turns = [Turn(role, text) for (role, _), text in zip(talk["turns"], texts, strict=True)]
            for statement in judged(turns):
                text, told = statement.text, statement.signals
                names = signals(statement.original, told, answers=statement.answers)
                yield Example(talk["name"], text, _label(text, talk), names)


def messages() -> Iterator[Example]:
    """The sentences of single messages; see `messages.py`."""
    for number, message in enumerate(read_messages(MESSAGES / "fitted.tsv")):
        for statement in judged([Turn("user", message.text)]):
            names = signals(statement.original, statement.signals, answers=statement.answers)
            kept = message.is_answered_by([statement.original])
            if kept or message.is_of_the_moment:
                label = "keep" if kept else "unfit"
                yield Example(f"messages {number % _FOLDS}", statement.text, label, names)


def phrases() -> Iterator[Example]:
    """What is kept of single turns; many are like sentences of the talks."""
    for line in _PHRASES.read_text(encoding="utf-8").splitlines():
        told, separator, kept = line.partition(" =>")
        if line.startswith("#") or not separator:
            continue
        turns = [
            Turn("assistant", turn[3:]) if turn.startswith("A: ") else Turn("user", turn)
            for turn in told.split(" // ")
        ]
        for statement in judged(turns):
            names = signals(statement.original, statement.signals, answers=statement.answers)
            label = "keep" if statement.text in kept else "never"
            yield Example("phrases", statement.text, label, names)


def _label(text: str, talk: dict[str, Any]) -> str:
    if any(phrase in text.lower() for phrase in talk["never"]):
        return "never"
    if any(says(text, fact["words"]) for fact in talk["keep"]):
        return "keep"
    return "may" if any(says(text, words) for words in talk["may"]) else "unfit"


def fit(chosen: Sequence[Example], names: Sequence[str]) -> list[float]:
    rows = [
        (_places(item, names), item.label in {"keep", "may"}, _WORTH[item.label]) for item in chosen
    ]
    return regression(rows, [0.0] * (len(names) + 1))


def _places(example: Example, names: Sequence[str]) -> list[int]:
    return [at for at, name in enumerate(names) if name in example.names]


def source(names: Sequence[str], weights: Sequence[float]) -> str:
    """The lines of `keeping.py`; the weights that decide nothing are left out."""
    ranked = sorted(zip(names, weights, strict=False), key=lambda pair: -pair[1])
    fields = (f'"{name}": {weight:.1f},' for name, weight in ranked if abs(weight) >= _LEAST)
    # No line ends within a field.
    joined = " ".join(field.replace(" ", "~") for field in fields)
    lines = textwrap.fill(joined, 99, initial_indent="    ", subsequent_indent="    ")
    bias = weights[-1] - math.log(_CHANCE / (1 - _CHANCE))
    return f"_BIAS: Final = {bias:.2f}\n{lines.replace('~', ' ')}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="what is judged wrongly, left out")
    show = parser.parse_args().show
    known = [*examples(), *messages()]
    names = sorted(set().union(*(item.names for item in known)))
    talks = sorted({item.talk for item in known})
    judgements: list[tuple[Example, float]] = []
    for fold in range(_FOLDS):
        held = set(talks[fold::_FOLDS])
        weights = fit([item for item in known if item.talk not in held], names)
        judgements += (
            (item, odds(weights, _places(item, names))) for item in known if item.talk in held
        )
    weights = fit([*known, *phrases()], names)
    print(source(names, weights))
    rows = {}
    for threshold in _THRESHOLDS:
        above = [item.label for item, odds_of in judgements if odds_of > threshold]
        row = {label: f"{above.count(label)} of {_count(known, label)}" for label in _WORTH}
        wrong = above.count("unfit") + above.count("never")
        rows[f"left out, above {threshold}"] = row | {"unfit share": f"{wrong / len(above):.1%}"}
    table("sentences", rows)
    if show:
        for item, odds_of in sorted(judgements, key=lambda pair: pair[1]):
            wrong = (odds_of > 0) != (item.label in {"keep", "may"})
            if wrong:
                print(f"{odds_of:5.1f} {item.label:5} {item.talk:10} {item.text}")


def _count(known: Sequence[Example], label: str) -> int:
    return sum(item.label == label for item in known)


if __name__ == "__main__":
    main()
