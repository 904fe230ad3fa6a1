"""Secrets that only the words around them tell: a PIN, a passport's number, a password.

Candidates are runs of digits, numbers of documents, tokens of mixed characters, and words behind
what names a password. Each is weighed by a logistic regression of its shape, of the naming words
(`[secrets]` of the lexicon) before and behind it, by how near they stand, and of the words beside
it. The weights of `contextual_secrets.toml` are fitted by `tests/benchmarks/fit_secrets.py`.
"""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from .secret_candidates import BEFORE, BEHIND, WORD, PossibleSecret, candidates, is_within
from .secret_names import Name, names_in
from .vocabulary import not_topics

_WEIGHTS: Final = Path(__file__).with_name("contextual_secrets.toml")
# The logarithm of the odds above which a candidate is a secret. In a talk nobody chose what is
# kept of it, so that a secret that stays is the greater fault.
_THRESHOLD: Final = 0.2
_IN_TALK: Final = -0.48
_NEAR_WORDS: Final = 3
# On either side; a text of nothing but names is read in good time.
_MOST_NAMES: Final = 8
_MOST_DIGITS: Final = 10
_LETTERS: Final = re.compile(r"[^\W\d_]+")
# So far reach the words beside a candidate, in characters; and how many count.
_BESIDE: Final = 40
_WORDS_BEFORE: Final = 5
_WORDS_BEHIND: Final = 2
_MOST_COUNTED: Final = 4
_MARK: Final = re.compile(r"\[\w[\w ]* removed\]")
# What tells that a text names a secret at all.
_NAMING: Final = frozenset({"pin", "password", "word", "login", "token", "person", "bank", "box"})
_NAMING_IN_TALK: Final = _NAMING | {"code", "entry"}

# "The alarm code at the winding house": where it is valid says nothing else of it.
_PLACED: Final = re.compile(
    r"(?i)\s+(?:(?:at|in|of|for|on|to) (?:the|my|our|his|her|their)|am|im|vom|fürs?"
    r"|(?:an|in|von) (?:der|dem)|del|de la|en el|en la|para el|para la|du|à la|pour la|pour le)"
    r"\s+(?:\w+\s+)?$"
)
_SENTENCE_END: Final = re.compile(r"[.!?…]\s+|[。！？]\s*|\n+")
_ASKED: Final = re.compile("[?？][\"'”’»)]*\\s*\\n[\"'`“„«]*$")
_LINK: Final = re.compile(
    r"(?:\s*(?:[:=→(]|['’]s|\b(?:is|was|are|it['’]?s|that['’]?s|mine['’]?s|ist|lautet|heißt|war|sind"
    r"|die|der|das|es|era|son|est|c['’]est|était|to|auf|now|jetzt|ahora|still|immer noch|übrigens"
    r"|actually|be|the|with|mit|con|avec)\b|[是为は])\s*[:=,]?)*\s*"
)
_IS: Final = re.compile(r"(?i)(?:\b(?:is|ist|es|est|lautet|it['’]?s|c['’]est)|['’]s|[是为は])\s*$")
_UNIT: Final = re.compile(
    r"(?i)\s?(?:[%€$£°]|(?:uhr|h|[ap]m|eur|euros?|dollars?|pounds?|bucks|quid|usd|gbp|chf|franken|yen"
    r"|kg|g|grams?|gramm|kilos?|km|miles?|m|met(?:er|re)s?|cm|mm|ml|lit(?:er|re)s?|[kmg]b|volt|watt"
    r"|hours?|stunden?|min\w*|sek\w*|sec\w*|days?|tagen?|weeks?|wochen?|months?|monate?n?|years?"
    r"|jahre?n?|people|leute|gäste|guests|points?|punkte|times|mal|steps|rows|lines|zeilen|items|files"
    r"|users|customers|accounts|transactions|square|sq|rounds|pages|seiten|words|characters|tokens"
    r"|stück|letters|flats|wide|breit|hoch|high|personas|horas|minutos|años|días|metros|ans|jours"
    r"|heures|mètres)\b)"
)
_DATED: Final = re.compile(
    r"(?i)(?:[$€£] ?|\b(?:at|um|gegen|version|room|chapter|port|in|since|until|by|of|from|around"
    r"|seit|im|jahr|bis|von|en|desde|depuis|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember"
    r"|enero|mayo),? )$"
)
_ARTICLE: Final = re.compile(r"(?i)\b(?:an?|eine?[nmr]?|une?|una?)\s$")
_PARTICIPLE: Final = re.compile(
    r"ge[a-zß-ÿ]+t|[a-zß-ÿ]+(?:ed|[ai]ble|ly|lich|bar|[ai]d[ao]|ing|en)"
)
_SHAPES: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(expression)
    for name, expression in {
        "year": r"^(?:19|20)\d\d$", "round": r"^\d+00$", "zero": "^0", "sign": r"[!#$%&*?^~=+@]",
        "dashes": "-.*-", "hyphen": "-", "groups": r"\d{4}[ -]\d{4}[ -]\d{4}", "small": "[a-zß-ÿ]",
        "large": "[A-ZÀ-Þ]", "phone": r"^(?:0\d{2,4}[ /-]|\+)", "letters": r"[^\W\d_]",
        "prefix": "^[A-Z]{2,} ", "digit": r"\d", "digits": r"\d.*\d.*\d",
        "within": r"[a-zß-ÿ0-9][A-ZÀ-Þ]", "under": "_", "path": r"[/.:]",
        "long": "^.{12}", "short": "^.{1,5}$", "hex": "^[0-9a-f-]{7,}$",
        "titled": "^[A-ZÀ-Þ][a-zß-ÿ]+(?: |$)", "several": " ", "snake": "^[a-z]+(?:_[a-z]+)+$",
        "unit": r"^v?\d+(?:[a-z]{1,2}|-?[a-z]{3,})$", "both": r"^(?=.*[a-z])(?=.*[A-Z]).*\d",
        "range": r"^\d{2,4}-\d{2,4}$", "many": r"\w\W+\w+\W+\w+\W+\w+\W+\w",
        "joined": "^(?:[a-z]+(?:-[a-z]+)+|[A-Z][a-z]+(?:-[A-Z]?[a-z]+)+)$",
    }.items()
}  # fmt: skip
_OF_NUMBERS: Final = frozenset({
    "year", "round", "zero", "sign", "dashes", "groups", "small", "large", "phone", "prefix",
    "range",
})  # fmt: skip


def contextual_secrets(text: str, begin: int = 0, *, in_talk: bool = False) -> list[PossibleSecret]:
    """The secrets that the words around them tell, in order; of those at or behind `begin`."""
    kinds = _NAMING_IN_TALK if in_talk else _NAMING
    names = names_in(text)
    # Most texts end here.
    if kinds.isdisjoint([name.kind for name in names]):
        return []
    least = _IN_TALK if in_talk else _THRESHOLD
    secrets = []
    for candidate, features, name in examined_candidates(text, names, in_talk=in_talk):
        weights = _weights()[candidate.kind]
        odds = math.fsum((weights["always"], *(weights.get(name, 0.0) for name in features)))
        if candidate.start >= begin and odds > least:
            secrets.append(PossibleSecret(*candidate[:3], name))
    return secrets


def examined_candidates(
    text: str, names: list[Name], *, in_talk: bool
) -> Iterator[tuple[PossibleSecret, frozenset[str], str]]:
    """The candidates near a name, each with its features and the kind of the nearest name."""
    marks = [mark.span() for mark in _MARK.finditer(text)]
    names = [name for name in names if not is_within(name.start, marks)]
    kinds = _NAMING_IN_TALK
    if not in_talk:
        # The code of a gate is stored on purpose.
        kinds = _NAMING
        names = [name._replace(kind="gate") if name.kind == "entry" else name for name in names]
    naming = [name for name in names if name.kind in kinds]
    if not naming:
        return
    ends = [name.end for name in naming]
    names = [name for name in names if name.kind != "unlike" or not _is_place(text, name, ends)]
    surroundings = _Surroundings(text, names, marks)
    for candidate in candidates(text, naming):
        if not is_within(candidate.start, marks):
            features, nearest = surroundings.of(candidate)
            shape = _shape_of(text[candidate.start : candidate.end], candidate.kind)
            yield candidate, features | shape, nearest


def _is_place(text: str, name: Name, ends: list[int]) -> bool:
    """Whether a name says where something is valid that is named before it, up to one of `ends`."""
    at = bisect_left(ends, name.start)
    near = ends[max(0, at - _MOST_NAMES) : at]
    return any(_PLACED.fullmatch(text, end, name.start) for end in near)


class _Surroundings:
    """What stands around the candidates of a text."""

    def __init__(self, text: str, names: list[Name], marks: list[tuple[int, int]]) -> None:
        self._text, self._names = text, names
        self._starts = [name.start for name in names]
        self._ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        self._marks = marks

    def of(self, candidate: PossibleSecret) -> tuple[frozenset[str], str]:
        """The features of what stands around a candidate, and the kind of the nearest name."""
        text, (start, end, *_) = self._text, candidate
        sentence = bisect_right(self._ends, start)
        # An answer goes on with its question.
        asked = candidate.kind != "words" and _ASKED.search(text, max(0, start - BEHIND), start)
        first = sentence - (2 if asked else 1)
        begins = self._ends[first] if first >= 0 else 0
        ends = self._ends[sentence] if sentence < len(self._ends) else len(text)
        features: set[str] = set()
        nearest = behind = ""
        at = bisect_left(self._starts, start)
        lowest = max(bisect_left(self._starts, start - BEFORE), at - _MOST_NAMES)
        highest = min(bisect_left(self._starts, end + BEHIND), at + _MOST_NAMES)
        for name in self._names[lowest:highest]:
            kind = name.kind
            if name.end <= start:
                features.add(kind + (" before" if name.start >= begins else " earlier"))
                if name.start >= begins:
                    nearest = kind
                    features.update(self._nearness(kind, name.end, start))
            elif name.start < end:
                features.add(f"{kind} itself")
            else:
                behind = behind or kind
                features.add(kind + (" behind" if name.start < ends else " later"))
                if name.start < ends and _words_in(text[end : name.start]) <= _NEAR_WORDS:
                    features.add(f"{kind} next")
        if nearest:
            features.add(f"nearest {nearest}")
        before = text[max(0, start - _NEAR_WORDS * 5) : start]
        listed = before.rstrip()[-1:]
        marks = {
            "colon": listed in {":", "=", "→"},
            "comma": listed == ",",
            "is": _IS.search(before) is not None,
            "alone": not text[end : end + 1].strip() or text[end] in ".,;!?)",
            "counted": _UNIT.match(text, end) is not None,
            "dated": _DATED.search(before) is not None,
            "article": _ARTICLE.search(before) is not None,
            "quoted": before[-1:] in {'"', "'", "`", "“", "„", "«"},
            "bracketed": before[-1:] == "(",
            "call": text[end : end + 1] in {"(", "=", "{", "[", "<"},
        }
        features.update(name for name, holds in marks.items() if holds)
        features.update(_words_beside(text, start, end))
        return frozenset(features), nearest or behind

    def _nearness(self, kind: str, place: int, start: int) -> Iterator[str]:
        gap = _MARK.sub("", self._text[place:start])
        count = _words_in(gap)
        if not count or _LINK.fullmatch(gap.lower()):
            yield f"{kind} is"
        elif count <= _NEAR_WORDS:
            yield f"{kind} near"


def _words_beside(text: str, start: int, end: int) -> Iterator[str]:
    """The words around a candidate: "tap <" before it, "> then" behind."""
    before = _LETTERS.findall(text[max(0, start - _BESIDE) : start].lower())
    behind = _LETTERS.findall(text[end : end + _BESIDE].lower())
    yield from (f"{word} <" for word in before[-_WORDS_BEFORE:])
    yield from (f"> {word}" for word in behind[:_WORDS_BEHIND])


def _words_in(text: str) -> int:
    return len(WORD.findall(text))


def _shape_of(value: str, kind: str) -> frozenset[str]:
    """The features of a candidate itself."""
    shapes = (name for name, pattern in _SHAPES.items() if pattern.search(value))
    if kind in {"digits", "number"}:
        # As figures, or as dictated words.
        digits = min(sum(map(str.isdigit, value)) or len(WORD.findall(value)), _MOST_DIGITS)
        return frozenset((f"{digits} digits", *_OF_NUMBERS.intersection(shapes)))
    words = [word.lower() for word in WORD.findall(value)]
    features = set(shapes)
    if kind == "words" or " " in value:
        features.add(f"{min(len(words), _MOST_COUNTED)} words")
    if not not_topics().isdisjoint(words):
        features.add("grammar")
    if words and _PARTICIPLE.fullmatch(words[0]):
        features.add("participle")
    return frozenset(features)


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    return tomllib.loads(_WEIGHTS.read_text(encoding="utf-8"))
