"""What may be a secret near a word that names one: digits, a document's number, a token, words."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ..memory.indexing import fold
from .secret_names import Name
from .secret_patterns import PLACEHOLDER
from .vocabulary import not_topics

# So far before and behind a candidate its names may stand.
BEFORE: Final = 150
BEHIND: Final = 90
_NEAR: Final = 60
_WITH_WORDS: Final = frozenset({"password", "word", "token"})
_SHORTEST_WORD: Final = 4

# No letter or digit beside; scripts without blanks have none of these.
_ALONE: Final = r"(?<![A-Za-zÀ-ÿ0-9.,/@€$£*_-])"
_END: Final = r"(?![A-Za-zÀ-ÿ0-9_-]|[.,:/]\d)"
_INNER: Final = r"[^\s\"'`,;<>|()\[\]“”„«»\\，。：]"
# Nothing in it looks further than a secret is long: a text of 64 KB may have no blank.
_CANDIDATE: Final = re.compile(
    # Most places end here: those within a word, and plain words, which no alternative begins with.
    r"(?:(?<![A-Za-zÀ-ÿ0-9])(?![A-Z]?[a-z]{1,38}[,;.:?]?(?:\s|\Z)|\s)|(?=[\dh]))(?:"
    # Dates, addresses, identifiers, hashes: no secrets, nor is a part of them.
    r"(?P<other>(?<!\w)(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{40}(?:[0-9a-f]{24})?)(?!\w)"
    r"|\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?|\d{1,3}(?:\.\d{1,3}){3}\S*"
    r"|\d{1,2}\.\d{1,2}\.\d{2,4}\b|https?://\S+"
    r"|(?<!\w)[^\s@]{1,64}@[^\s@]{1,253}\.\w{2,})"
    r"|(?<!\w)[\"'`“„«](?P<quoted>[^\"'`“”„«»\n\[]{3,100})[\"'`”“»](?!\w)"
    # An account, or seven digits and more.
    rf"|(?P<number>{_ALONE}(?:[A-Z]{{2}}\d{{2}}(?: [A-Z0-9]{{4}}){{3,7}}(?: [A-Z0-9]{{1,3}})?"
    r"|(?<!\d, )\d(?:, ?\d){8,23}(?!,? ?\d)"
    r"|(?:[A-Z]{1,2}[ -]?)?\d(?:[ ./-]?\d){6,23}(?:[ -]?[A-Z])?(?:[ -]?\d{1,3})?)"
    # Letters and digits, as on documents.
    rf"|{_ALONE}(?=[0-9 ]{{0,40}}[A-Z])(?=(?:[A-Z ]{{0,40}}\d){{3}})"
    r"(?!\d{1,4}(?:[KMGT]B|[AP]M|ML|KG|KM)\b)"
    rf"(?:[A-Z0-9]{{5,}}(?: [A-Z0-9]{{1,6}}){{0,4}}"
    rf"|[A-Z]{{1,5}}(?: \d{{1,6}}[A-Z]?){{1,5}}(?: [A-Z]\b)?)(?<=[A-Z0-9])){_END}"
    # Single digits with commas between them are dictated; of longer numbers it is a list.
    r"|(?P<digits>(?<![A-Za-zÀ-ÿ0-9.,/€$£*-])"
    r"(?:(?<!\d, )\d(?:(?:, ?(?:- )?| - )\d){2,7}(?!,? \d)"
    rf"|[*#]?\d(?:[ *-]?\d){{2,7}}(?:-?[A-Za-z]{{1,2}}\d{{0,2}}|[#*])?){_END})"
    rf"|(?P<token>{_ALONE.replace('.,', '.').replace('€$£*', '+#')}"
    rf"(?={_INNER}{{0,64}}[^\W\d_])(?={_INNER}{{0,64}}(?:\d|[!#$%&*?=~^_@+]\w|\w[!#$*]|[a-zß-ÿ]-?[A-ZÀ-Þ]|-))"
    rf"[A-Za-zÀ-ÿ0-9]{_INNER}{{2,63}}(?<![.!?:])))"
)
# Digits as they are dictated: "eight oh three seven", "m vier sieben eins".
_SPOKEN_DIGIT: Final = (
    r"(?:(?:double|triple|doppel) )?(?:zero|oh|nought|one|two|three|four|five|six|seven|eight|nine"
    r"|null|eins|zwei|zwo|drei|vier|fünf|sechs|sieben|acht|neun"
    r"|cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve"
    r"|zéro|un|deux|trois|quatre|cinq|sept|huit|neuf)"
)
_SPOKEN: Final = re.compile(
    rf"(?i)(?<![\w'’-])(?:[a-z] )?{_SPOKEN_DIGIT}(?:[ ,-]{{1,2}}{_SPOKEN_DIGIT}){{2,15}}(?![\w'’-])"
)
_LONGEST_CODE: Final = 8
# "Pins 3, 4, 5" are several.
_COUNTED: Final = "0123456789"
_LETTERS_BEFORE: Final = re.compile(r"([A-Z]{2,5}) ")
# Words behind a naming word: "the password of the shared drive is", "password,", "password".
_TELLS: Final = re.compile(
    r"[^.!?\n\[\d]{0,50}?(?:[:=→]|\b(?:is|was|are|it['’]?s|that['’]?s|mine['’]?s|ist|lautet|heißt"
    r"|war|es|era|est|c['’]est|to|auf|put|said|hab|puse|mis)\b|['’]s\b|,|\?)\s+|\s",
    re.IGNORECASE,
)
_IS_NAMED: Final = re.compile(
    r"(?i)(?<![\w'’-])(?P<word>[^\W\d_][\w'’-]{3,30}) (?:is|as|als|ist|es|de|como|comme|est)"
    r"(?: (?:the|a|my|our|das|mein|unser|la|mi|le|mon))?(?: \w+)? $"
)
# "Quel est le mot de passe ?" names none.
_ASKING: Final = frozenset({
    "cual", "cuales", "quel", "quelle", "quels", "quelles", "qual", "quale", "welche", "welcher",
    "welches", "welchen",
})  # fmt: skip
WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_MOST_WORDS: Final = 4
_MOST_SKIPPED: Final = 3


class PossibleSecret(NamedTuple):
    """A candidate in a text.

    Attributes:
        kind: its model: `digits`, `number`, `token`, `words`.
        name: the kind of the naming word that stands nearest before it, else behind it, or "".
    """

    start: int
    end: int
    kind: str
    name: str = ""


def candidates(text: str, naming: list[Name]) -> Iterator[PossibleSecret]:
    """What may be a secret near the naming words, in order and apart from each other."""
    found: list[PossibleSecret] = []
    for start, end in _windows(text, naming):
        for match in _CANDIDATE.finditer(text, start, end):
            kind = match.lastgroup or ""
            first, last = match.span(kind)
            letters = _LETTERS_BEFORE.match(text, first, last) if kind == "number" else None
            if letters and any(name.start <= first < letters.end(1) <= name.end for name in naming):
                # The letters are a name: "CVC 092".
                first = letters.end()
            value = text[first:last]
            if kind in {"token", "quoted"} and PLACEHOLDER.match(value):
                kind = "other"
            digits = "".join(filter(str.isdigit, value))
            if kind == "digits" and "," in value and digits in _COUNTED:
                kind = "other"
            found.append(PossibleSecret(first, last, "token" if kind == "quoted" else kind))
        for match in _SPOKEN.finditer(text, start, end):
            kind = "digits" if len(WORD.findall(match.group())) <= _LONGEST_CODE else "number"
            found.append(PossibleSecret(*match.span(), kind))
    spans = [(candidate.start, candidate.end) for candidate in sorted(found)]
    found += (
        words
        for words in _words_near(text, naming)
        if not is_within(words.start, spans) and not is_within(words.end - 1, spans)
    )
    yield from sorted(item for item in found if item.kind != "other")


def is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a place is within one of some spans, which are in order and apart."""
    at = bisect_right(spans, (place, sys.maxsize)) - 1
    return at >= 0 and place < spans[at][1]


def _words_near(text: str, naming: Iterable[Name]) -> Iterator[PossibleSecret]:
    """The words behind or before what names a password, apart from each other."""
    end = 0
    for name in naming:
        if name.kind in _WITH_WORDS:
            for words in (_words_before(text, name.start), _words_behind(text, name.end)):
                if words and words.start >= end:
                    yield words
                    end = words.end


def _windows(text: str, naming: list[Name]) -> Iterator[tuple[int, int]]:
    """The parts of a text that are near enough to a naming word, at blanks."""
    start = end = 0
    for name in naming:
        first = max(0, name.start - BEHIND)
        if first > end:
            if end:
                yield start, end
            start = text.rfind(" ", end, first) + 1 or end
        following = text.find(" ", name.end + BEFORE)
        end = following if following >= 0 else len(text)
    yield start, end


def _words_behind(text: str, place: int) -> PossibleSecret | None:
    """The first words behind what names a password that are none of grammar."""
    tells = _TELLS.match(text, place)
    if not tells:
        return None
    start = end = at = tells.end()
    count = skipped = 0
    while word := WORD.match(text, at):
        if word.group().lower() in not_topics():
            skipped += 1
            if count or skipped > _MOST_SKIPPED:
                break
            start = word.end() + 1
        else:
            count, end = count + 1, word.end()
        at = word.end() + 1
        if count == _MOST_WORDS or text[at - 1 : at] != " ":
            break
    return PossibleSecret(start, end, "words") if count and end - start >= _SHORTEST_WORD else None


def _words_before(text: str, place: int) -> PossibleSecret | None:
    """The word of "sunflower is the password", "I use sunflower as my password"."""
    match = _IS_NAMED.search(text, max(0, place - _NEAR), place)
    if not match or fold(match["word"]) in not_topics() | _ASKING:
        return None
    return PossibleSecret(*match.span("word"), "words")
