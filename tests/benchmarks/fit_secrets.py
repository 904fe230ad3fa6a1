"""Fits the weights by which words tell a secret: `daemon/language/contextual_secrets.toml`.

    python tests/benchmarks/fit_secrets.py [FILE…]

From `tests/data/secret_texts.txt` and the examples of `data/secrets`, but for the unseen ones, that
are only measured, by `secrets_quality.py`; what nobody has to hide is from the people, sentences
and talks of `data`, and from FILE…, collections of chats in any format of `comparing`. Writes the
weights of a logistic regression for each kind of candidate, and prints what is removed, each
example judged by the weights of the others.
"""

import argparse
import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import comparing
from fit_standing import regression
from report import table

from thermocline.daemon.language import contextual_secrets
from thermocline.daemon.language.contextual_secrets import examined_candidates
from thermocline.daemon.language.secret_names import names_in
from thermocline.daemon.language.secrets import without_shapes

_DATA = Path(__file__).with_name("data")
_TEXTS = Path(__file__).parent.parent / "data" / "secret_texts.txt"
_WEIGHTS = Path(contextual_secrets.__file__).with_suffix(".toml")
_SEALED = "sealed"
_BEFORE = 150
# Nobody marked the numbers of these as harmless, though nearly all are; there are many.
_OF_PEOPLE, _OF_SENTENCES, _OF_CHATS = 0.5, 0.3, 0.15
_MOST_CHATS, _LONGEST = 1_500, 1_500
_FOLDS = 4
# A word beside a candidate counts if so many have it.
_BESIDE, _LEAST = re.compile("[<>]"), 5
_EXAMPLES = ("turns", "homes", "work", "identifiers")
_THRESHOLDS = (-1.0, -0.7, -0.4, 0.0, 0.4)
_LEAST_WEIGHT = 0.15
_WORTH_READING = re.compile(r"\d{3}|[a-z][A-Z]|[!#$%&*]\w|passw|login|code|token|key")


class Example(NamedTuple):
    """A candidate: the text it is of, its group and kind, its features, and what it is worth."""

    text: str
    group: str
    kind: str
    features: frozenset[str]
    is_secret: bool
    worth: float


class Text(NamedTuple):
    """A text, and where its secrets are; what stands before `begin` is of the turn before."""

    group: str
    text: str
    secrets: Sequence[str] = ()
    worth: float = 1.0
    in_talk: bool = True
    begin: int = 0
    doubtful: frozenset[str] = frozenset()  # what may be a secret or not


def examples(texts: Iterable[Text]) -> Iterator[Example]:
    for entry in texts:
        text = without_shapes(entry.text, Counter(), {}, in_talk=entry.in_talk)
        spans = [
            match.span()
            for secret in entry.secrets
            for match in re.finditer(rf"(?<!\w){re.escape(secret)}(?!\w)", text)
        ]
        for candidate, features, _ in examined_candidates(
            text, names_in(text), in_talk=entry.in_talk
        ):
            start, end = candidate.start, candidate.end
            is_secret = any(begin < end and start < close for begin, close in spans)
            if start >= entry.begin and text[start:end] not in entry.doubtful:
                yield Example(
                    entry.text, entry.group, candidate.kind, features, is_secret, entry.worth
                )


def texts(files: Sequence[str]) -> Iterator[Text]:
    yield from marked_lines()
    for name in _EXAMPLES:
        yield from _turns(_DATA / "secrets" / f"{name}.json")
    for path in (*_DATA.glob("everyday/*.json"), *_DATA.glob("corrections/*.json")):
        if path.stem != _SEALED:
            for fact in json.loads(path.read_text(encoding="utf-8"))["facts"]:
                yield Text("facts", fact["text"], worth=_OF_PEOPLE)
    for path in sorted(_DATA.glob("lines/*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield Text("sentences", line.split("\t")[2], worth=_OF_SENTENCES)
    for path in sorted(_DATA.glob("talks/*.json")):
        if path.stem != _SEALED:
            yield from _talk(json.loads(path.read_text(encoding="utf-8")))
    chats = [
        str(memory["text"])[:_LONGEST]
        for file in files
        for collection in comparing.read(Path(file))
        for memory in collection.memories.values()
    ]
    chats = [text for text in chats if _WORTH_READING.search(text)]
    random.Random(7).shuffle(chats)
    yield from (Text("chats", text, worth=_OF_CHATS) for text in chats[:_MOST_CHATS])


def marked_lines() -> Iterator[Text]:
    """The examples of the tests, whose secrets are marked."""
    for line in _TEXTS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#") and "{" not in line:
            what, marked = line.split(" | ", 1)
            text, secrets = re.sub("[⟦⟧]", "", marked), re.findall("⟦(.+?)⟧", marked)
            if what in {"secret", "none"}:
                yield Text("lines", text, secrets, in_talk=False)
            if what != "none":
                yield Text("lines of talks", text, secrets, worth=0.5 if what == "secret" else 1.0)


def _turns(path: Path) -> Iterator[Text]:
    known = json.loads(path.read_text(encoding="utf-8"))
    for entry in (*known["secret"], *known["harmless"]):
        text = "\n".join(said for _, said in entry["turns"])
        yield Text("turns", text, entry.get("secrets", ()))


def _talk(talk: dict[str, list[list[str]]]) -> Iterator[Text]:
    """Its turns, each behind the end of the one before.

    The codes of doors are no secrets of a talk's file, and yet removed.
    """
    before = ""
    for _, said in talk["turns"]:
        text = f"{before[-_BEFORE:]}\n{said}" if before else said
        codes = frozenset(re.findall(r"\*?\d{4}[#*]?", said)) - frozenset(talk["secrets"])
        is_of_door = re.search(r"(?i)code|alarm|gate|door|tor\b|tür|pad", text)
        yield Text(
            "talks", text, talk["secrets"], begin=len(text) - len(said),
            doubtful=codes if is_of_door else frozenset(),
        )  # fmt: skip
        before = said


def fit(known: Sequence[Example]) -> dict[str, float]:
    counts = Counter(name for example in known for name in example.features)
    names = sorted(
        name for name, count in counts.items() if count >= _LEAST or not _BESIDE.search(name)
    )
    places = {name: place for place, name in enumerate(names)}
    rows = [
        (
            [places[name] for name in example.features if name in places],
            example.is_secret,
            example.worth,
        )
        for example in known
    ]
    weights = regression(rows, [0.0] * (len(names) + 1))
    return dict(zip((*names, "always"), weights, strict=True))


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    known = list(examples(texts(parser.parse_args().files)))
    order = sorted({example.text for example in known})
    random.Random(1).shuffle(order)
    folds = {text: place % _FOLDS for place, text in enumerate(order)}
    kinds = sorted({example.kind for example in known})
    counts: Counter[tuple[str, float, bool]] = Counter()
    totals: Counter[tuple[str, bool]] = Counter()
    lines = ["# Written by tests/benchmarks/fit_secrets.py; see contextual_secrets.py.\n"]
    for kind in kinds:
        of_kind = [example for example in known if example.kind == kind]
        for fold in range(_FOLDS):
            weights = fit([example for example in of_kind if folds[example.text] != fold])
            for example in of_kind:
                if folds[example.text] == fold:
                    value = weights["always"] + math.fsum(
                        weights.get(name, 0.0) for name in example.features
                    )
                    totals[example.group, example.is_secret] += 1
                    for threshold in _THRESHOLDS:
                        counts[example.group, threshold, example.is_secret] += value > threshold
        weights = fit(of_kind)
        listed = sorted(weights.items(), key=lambda item: -abs(item[1]))
        lines.append(f"[{kind}]")
        lines += [
            f"{json.dumps(name) if ' ' in name else name} = {value:.2f}"
            for name, value in listed
            if abs(value) >= _LEAST_WEIGHT or name == "always"
        ]
        lines.append("")
    _WEIGHTS.write_text("\n".join(lines), encoding="utf-8")
    table("removed: secrets; others", {
        group: {
            f"odds of e^{threshold}": "; ".join(
                f"{counts[group, threshold, is_secret]} of {totals[group, is_secret]}"
                for is_secret in (True, False)
            )
            for threshold in _THRESHOLDS
        }
        for group in sorted({example.group for example in known})
    })  # fmt: skip


if __name__ == "__main__":
    main()
