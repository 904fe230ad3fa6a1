"""Cuts a text into the tokens that dates are made of, and gives each its class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias

import msgspec

from ..memory.indexing import fold
from ..memory.stop_words import STOP_WORDS
from .thesaurus import language_of
from .vocabulary import date_words, grammar

# The class of the words of each key of the lexicon; of `units`, by their value.
_CLASSES: Final = {
    "months": "m", "weekdays": "w", "days": "R", "relative": "l", "coming": "c", "trailing": "j",
    "numbers": "N", "ordinals": "o", "ago": "g", "ago_before": "G", "hence": "h", "parts": "E",
    "every": "e", "seasons": "s", "holidays": "H", "to": "L", "between": "B", "and": "&",
    "for": "F", "in": "p", "on": "q", "articles": "a", "of": "O", "month_mark": "K",
    "day_mark": "J", "nth_mark": "T", "nothing": ".",
}  # fmt: skip
# The class and the days of each unit.
_UNITS: Final = {
    "day": ("u", 1), "week": ("k", 7), "fortnight": ("k", 14), "weekend": ("x", 7),
    "month": ("t", 30), "quarter": ("z", 91), "year": ("U", 365),
}  # fmt: skip
# The value of a holiday is its month and day, 12/25 as 1225, or its distance from Easter above:
EASTER: Final = 10_000
# A date without a digit has a word of one of these classes.
_TELLING: Final = "mMAwWPRsHkxtzUu"
_UNIT_KINDS: Final = "ukxtzU"
_LISTS: Final = (
    "doubtful",
    "short",
    "verbs",
    "counted",
    "ahead",
    "before_day",
    "identifiers",
    "dotted",
    "own_language",
)

_HAN: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_NUMERALS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {
    "零": 0, "两": 2, "兩": 2,
}  # fmt: skip
_WORD: Final = re.compile(rf"(?:[^\W\d_{_HAN}][\u0300-\u036f]*)+")
_MAYBE: Final = re.compile(rf"\d|[{_HAN}\u0300-\u036f]")
# Digits after these are a price, a version, a path or an identifier.
_APART: Final = rf"(?<![^\W{_HAN}])(?<![.,:/$€£¥#@+=&])(?<![$€£¥] )"
_ORDINAL: Final = re.compile("st|nd|rd|th|er|[eè]re|e|º|ª|de|ste", re.IGNORECASE)
_YEAR_FIRST: Final = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})")
_DAY_FIRST: Final = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)")
_NO_YEAR: Final = re.compile(r"(\d{1,2})([/.])(\d{1,2})")
_NO_DAY: Final = re.compile(r"(\d{4})-(\d\d)|(\d{1,2})/(\d{4})")
_PADDED: Final = re.compile(r"0|\d+[./]0")
_MONTHS: Final = range(1, 13)
_DAYS: Final = range(1, 32)
_DAY_RANGE: Final = re.compile(r"(\d{1,2})\.?[-–](\d{1,2})")


# Year, month and day.
Date: TypeAlias = tuple[int | None, int, int | None]


class Token(msgspec.Struct, gc=False):
    """A piece of a text.

    Attributes:
        kind: its class, one character.
        word: folded; empty for digits and punctuation.
        value: the number, month, weekday, distance ... that it means.
        last: the end of a range of days; the days of a unit; whether a word has a capital letter
            and a number a full stop.
        dates: year, month and day of a date in digits, in each order that is possible.
    """

    kind: str
    start: int
    end: int
    word: str = ""
    value: int = 0
    last: int = 0
    dates: tuple[Date, ...] = ()


class Lexicon:
    """The words of dates in all languages, folded.

    Attributes:
        words: the class and value of each; of some, two.
        phrases: by the first word, the further words with the class and value, longest first.
        languages: the languages that a word belongs to.
        not_after: for some words, those after which they mean something else.
        lists: other sets of words.
        telling: the words, folded and not, of which a date without digits has one.
        pieces: a pattern of the tokens.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        self.words: dict[str, list[tuple[str, int]]] = {}
        self.phrases: dict[str, list[tuple[tuple[str, ...], str, int]]] = {}
        self.languages: dict[str, set[str]] = {}
        self.not_after: dict[str, set[str]] = {}
        self.telling: set[str] = set()
        listed = {key: " ".join(of.get(key, "") for of in tables.values()) for key in _LISTS}
        self.lists = {key: frozenset(map(fold, words.split())) for key, words in listed.items()}
        for table in tables.values():
            for group in table.get("not_after", "").split():
                before, _, word = group.partition(":")
                self.not_after.setdefault(fold(word), set()).update(map(fold, before.split("/")))
        unspaced: list[str] = []
        for language, table in tables.items():
            for name, kind, value in _entries(table):
                if _MAYBE.search(name):
                    unspaced.append(name)
                    self.words.setdefault(name, []).append((kind, value))
                    self.languages.setdefault(name, set()).add(language)
                else:
                    self._add(language, name, kind, value)
        for known in self.phrases.values():
            known.sort(key=lambda phrase: -len(phrase[0]))
        self.pieces = _pieces(sorted(unspaced, key=len, reverse=True))

    def _add(self, language: str, name: str, kind: str, value: int) -> None:
        first, *further = fold(name.replace("-", "_-_").replace("'", "_")).split("_")
        if kind in "mw" and first in self.lists["doubtful"]:
            kind = kind.upper()
        elif kind == "m" and first in self.lists["short"]:
            kind = "A"
        self.languages.setdefault(first, set()).add(language)
        if further:
            self.phrases.setdefault(first, []).append((tuple(further), kind, value))
        elif (kind, value) not in self.words.setdefault(first, []):
            self.words[first].append((kind, value))
        if kind in _TELLING:
            self.telling |= {further[-1] if further else first, re.split("[_'-]", name)[-1]}
        if kind == "w":
            for plural in (f"{first}s", f"{first}en"):
                self.words.setdefault(plural, [("P", value)])
            self.telling |= {f"{first}s", f"{first}en", f"{name}s"}


@cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    return Lexicon(date_words())


def _pieces(unspaced: Sequence[str]) -> re.Pattern[str]:
    """The tokens; the words of scripts without blanks are given, the longest first."""
    return re.compile(
        r"(?<!\w)[qQ](?P<quarter>[1-4])(?!\w)"
        rf"|(?P<word>{_WORD.pattern})"
        rf"|{_APART}(?P<number>\d+(?:[.,:/]\d+|\.?[-–]\d+)*)"
        r"(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?P<tail>[^\W\d_\u3000-\uffff]*[%°]?)"
        rf"|(?P<han>{'|'.join(map(re.escape, unspaced))})"
        rf"|(?P<numeral>[〇零一二三四五六七八九十两兩]+)|(?P<other>[{_HAN}])"
        r"|(?P<comma>[,:，、])|(?P<dash>[-–—])"
        r"|(?P<end>[\0.;!?()\[\]{}\"|/…。！？；]|\n\s*\n)"
    )


def _entries(table: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
    """Each name of the groups "name/name:value" of a language, with its class and value."""
    for key, listed in table.items():
        groups = listed.split() if key in _CLASSES or key == "units" else ()
        for place, group in enumerate(groups):
            names, _, text = group.partition(":")
            kind, value = _CLASSES.get(key, "."), 0
            if key == "units":
                kind, value = _UNITS[text]
            elif key in ("months", "weekdays"):
                value = place + (key == "months")
            elif text.startswith("e"):
                value = EASTER + int(text[1:])
            else:
                value = int(text.replace("/", "") or (key == "coming"))
            yield from ((name, kind, value) for name in names.split("/"))


@cache
def following_words() -> frozenset[str]:
    """Words of grammar: a number before one is not a number of it."""
    return frozenset().union(STOP_WORDS, *map(grammar, ("de", "es", "fr", "nl")))


def may_have_dates(text: str) -> bool:
    """False if `text` has no word of dates and no digits."""
    return _MAYBE.search(text) is not None or not lexicon().telling.isdisjoint(
        _WORD.findall(text.lower())
    )


def tokens_of(text: str) -> list[Token]:
    """The tokens of `text` in order; takes time linear in its length."""
    known = lexicon()
    tokens: list[Token] = []
    for match in known.pieces.finditer(text):
        match match.lastgroup:
            case "word":
                tokens.append(_word(match, tokens, known))
            case "number" | "tail":
                tokens.append(_number(match, tokens[-1] if tokens else None))
            case "end" if match.group() == "." and tokens and _is_dotted(tokens[-1], match.start()):
                # "am 5." is a day although no month follows.
                if tokens[-1].kind == "d":
                    tokens[-1].last = 1
            case form:
                tokens.append(_other(form or "", match, known))
    words = [token.word for token in tokens]
    if not known.lists["own_language"].isdisjoint(words):
        _drop_foreign(tokens, known)
    return tokens if known.phrases.keys().isdisjoint(words) else _with_phrases(tokens, known)


def _word(match: re.Match[str], tokens: list[Token], known: Lexicon) -> Token:
    word = match.group()
    folded = fold(word)
    before = tokens[-1] if tokens else None
    kind, value = _classified(known.words.get(folded), before)
    if kind == ".":
        return Token(kind, *match.span(), folded)
    if before and before.word in known.not_after.get(folded, ()):
        kind = "."
    if kind in _UNIT_KINDS:
        if before:
            _recount(before, known)
        return Token(kind, *match.span(), folded, value, value)
    return Token(kind, *match.span(), folded, value, int(word[0].isupper()))


def _other(form: str, match: re.Match[str], known: Lexicon) -> Token:
    text, value = match.group(), 0
    kind = {"numeral": "N", "quarter": "Q", "other": ".", "comma": ",", "dash": "-"}.get(form, "|")
    if form == "quarter":
        return Token(kind, *match.span(), value=int(match["quarter"]))
    if form == "numeral":
        value = _numeral(text)
    elif form == "han":
        kind, value = known.words[text][0]
    return Token(kind, *match.span(), text, value, value)


def _drop_foreign(tokens: list[Token], known: Lexicon) -> None:
    """Words that another language has too count in texts of their language only: "hier"."""
    language = language_of(frozenset(token.word for token in tokens))
    for token in tokens:
        own = token.word in known.lists["own_language"]
        if own and language not in known.languages[token.word]:
            token.kind = "."


def _classified(entries: list[tuple[str, int]] | None, before: Token | None) -> tuple[str, int]:
    """The class and value of a word; after a number that of a unit: "an" in "un an"."""
    if not entries:
        return ".", 0
    if len(entries) > 1 and before and before.kind in "Nd":
        return next((entry for entry in entries if entry[0] in _UNIT_KINDS), entries[0])
    return entries[0]


def _recount(token: Token, known: Lexicon) -> None:
    """Before a unit, a word that is also a number is one: "sept jours"."""
    for kind, value in known.words.get(token.word, ()):
        if kind == "N":
            token.kind, token.value = kind, value


def _with_phrases(tokens: list[Token], known: Lexicon) -> list[Token]:
    """The tokens, with one in place of those of a phrase such as "day before yesterday"."""
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        for further, kind, value in known.phrases.get(token.word, ()):
            after = at + 1 + len(further)
            if further == tuple(each.word for each in tokens[at + 1 : after]):
                last = value if kind in _UNIT_KINDS else 1
                token = Token(kind, token.start, tokens[after - 1].end, token.word, value, last)
                at = after - 1
                break
        joined.append(token)
        at += 1
    return joined


def _is_dotted(token: Token, at: int) -> bool:
    """Whether a full stop belongs to the token before it: "5. Mai", "Jan. 5"."""
    if token.end - at not in (0, 1):
        return False
    return token.kind in "drf" or (token.kind in "MAW" and token.word in lexicon().lists["dotted"])


def _numeral(text: str) -> int:
    """The number of a Chinese numeral, or of its digits."""
    if "十" not in text:
        return int("".join(str(_NUMERALS[char]) for char in text[:5]))
    tens, _, ones = text.partition("十")
    return _NUMERALS.get(tens[:1], 1) * 10 + _NUMERALS.get(ones[:1], 0)


def _number(match: re.Match[str], before: Token | None) -> Token:
    digits, tail, (start, end) = match["number"], match["tail"], match.span()
    if digits.isdigit():
        value = int(digits) if len(digits) <= 4 else 0
        is_day = 1 <= value <= 31 and len(digits) <= 2
        if tail:
            kind = "D" if is_day and _ORDINAL.fullmatch(tail) else "."
        elif len(digits) == 4 and 1900 <= value <= 2099:
            kind = "y"
        else:
            kind = "d" if is_day else "n" if value else "."
        return Token(kind, start, end, value=value)
    if tail:
        return Token(".", start, end)
    if days := _DAY_RANGE.fullmatch(digits):
        return Token("r", start, end, value=int(days[1]), last=int(days[2]))
    after = match.string[end : end + 1]
    dates = _with_year(digits, before) or _without_year(digits, after, before)
    valid = [date for date in dates if date[1] in _MONTHS and (date[2] is None or date[2] in _DAYS)]
    if valid and digits.count(".") == 1 and after.startswith("."):
        end += 1
    return Token("f" if valid else ".", start, end, dates=tuple(dict.fromkeys(valid)))


def _with_year(digits: str, before: Token | None) -> list[Date]:
    """2026-01-05, 5.1.2026, 05.01.26, 09/2026; with strokes the day and the month in any order."""
    if match := _YEAR_FIRST.fullmatch(digits):
        return [(int(match[1]), int(match[3]), int(match[4]))]
    if match := _NO_DAY.fullmatch(digits):
        return [(int(match[1] or match[4]), int(match[2] or match[3]), None)]
    if not (match := _DAY_FIRST.fullmatch(digits)):
        return []
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if len(match[4]) == 2:
        year += 2000
        clear = match[2] == "/" or (match[2] == "." and (_is_cue(before) or _PADDED.match(digits)))
        if not clear:
            return []
    dates: list[Date] = [(year, second, first), (year, first, second)]
    return dates if match[2] == "/" else dates[:1]


def _without_year(digits: str, after: str, before: Token | None) -> list[Date]:
    """05.01., "on 5/1": not a version, a price or a fraction."""
    match = _NO_YEAR.fullmatch(digits)
    if not match or (before and before.word in lexicon().lists["identifiers"]):
        return []
    first, second = int(match[1]), int(match[3])
    cue, padded = _is_cue(before), _PADDED.match(digits) is not None
    if match[2] == "/":
        clear = cue or padded or (first > 12 and second >= 10)
        return [(None, second, first), (None, first, second)] if clear else []
    if after.startswith("."):
        clear = cue or padded
    else:
        named = before is not None and before.word in lexicon().lists["before_day"]
        clear = named or (cue and padded and len(digits) == len("05.01"))
    return [(None, second, first)] if clear else []


def _is_cue(before: Token | None) -> bool:
    """Whether a date is likely after it: "on", "am", "bis", a weekday, but not "to"."""
    if before is None:
        return False
    return before.kind in "qpwW" or before.word in lexicon().lists["before_day"]
