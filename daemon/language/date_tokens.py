"""Cuts a text into the tokens that dates are made of, and gives each its class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

import msgspec

from ..memory.indexing import fold
from ..memory.stemming import STOP_WORDS
from .thesaurus import language_of
from .vocabulary import grammar, named_languages

# The class of the words of each key of the lexicon.
_CLASSES: Final = {
    "months": "m", "weekdays": "w", "days": "R", "relative": "l", "coming": "c", "trailing": "j",
    "numbers": "N", "ordinals": "o", "away": "g", "parts": "E", "every": "e", "seasons": "s",
    "holidays": "H", "to": "L", "between": "B", "and": "&", "for": "F", "in": "p", "on": "q",
    "articles": "a", "of": "O", "nothing": ".",
}  # fmt: skip
# The class and the days of each value of the key `units`.
_UNITS: Final = {
    "day": ("u", 1), "week": ("k", 7), "fortnight": ("k", 14), "weekend": ("x", 7),
    "month": ("t", 30), "quarter": ("z", 91), "year": ("U", 365),
}  # fmt: skip
# The value of a holiday is its month and day, 12/25 as 1225, or its distance from Easter above:
EASTER: Final = 10_000
# A date without a digit has a word of one of these classes.
_TELLING: Final = "mMwWPRsHkxtzUu"
_SETS: Final = ("abbreviations", "ambiguous", "verbs", "counted", "identifiers")

_HAN: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_NUMERALS: Final = str.maketrans("〇零一二两兩三四五六七八九", "0012223456789")
_NUMERAL: Final = "[〇零一二两兩三四五六七八九十]"
_WORD: Final = re.compile(rf"(?:[^\W\d_{_HAN}][\u0300-\u036f]*)+")
_MAYBE: Final = re.compile(rf"\d|[{_HAN}\u0300-\u036f]")
# Digits after these are a price, a version, a path or an identifier.
_APART: Final = rf"(?<![^\W{_HAN}])(?<![.,:/$€£¥#@+=&])(?<![$€£¥] )"
_ORDINAL: Final = re.compile("st|nd|rd|th|er|[eè]re|e|º|ª|de|ste", re.IGNORECASE)
_DAY_RANGE: Final = re.compile(r"(\d{1,2})\.?[-–](\d{1,2})")
# Forms of dates in digits, and how clear it has to be that each is a date: not a version, a price
# or a fraction.
_DIGITS: Final = [
    (re.compile(form), least)
    for form, least in (
        (r"(?P<y>\d{4})([-/.])(?P<m>\d\d?)\2(?P<d>\d\d?)", 0),
        (r"(?P<y>\d{4})-(?P<m>\d\d)", 0),
        (r"(?P<m>\d\d?)/(?P<y>\d{4})", 0),
        (r"(?P<d>\d\d?)([-/.])(?P<m>\d\d?)\2(?P<y>\d{4})", 0),
        (r"(?P<d>\d\d?)/(?P<m>\d\d?)/(?P<y>\d\d)", 0),
        (r"(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d\d)", 1),
        (r"(?P<d>\d\d?)/(?P<m>\d\d?)", 1),
        (r"(?P<d>\d\d?)\.(?P<m>\d\d?)\.", 1),
        (r"(?P<d>\d\d)\.(?P<m>\d\d)", 2),
        (r"(?P<d>\d\d?)\.(?P<m>\d\d?)", 3),
    )
]
_MONTHS: Final = range(1, 13)
_DAYS: Final = range(1, 32)

# Year, month and day.
Date: TypeAlias = tuple[int | None, int, int | None]


class Token(msgspec.Struct, gc=False):
    """A piece of a text.

    Attributes:
        kind: its class, one character.
        word: folded; empty for digits and punctuation.
        value: the number, month, weekday, distance, days of a unit ... that it means.
        last: the end of a range of days.
        marked: whether a word has a capital letter, and a number a full stop.
        dates: year, month and day of a date in digits, in each order that is possible.
    """

    kind: str
    start: int
    end: int
    word: str = ""
    value: int = 0
    last: int = 0
    marked: bool = False
    dates: tuple[Date, ...] = ()


class Lexicon:
    """The words of dates in all languages, folded.

    Attributes:
        words: the class and value of each.
        phrases: by the first word, the further words with the class and value, longest first.
        own_language: the language of words that count in texts of that language only.
        sets: other sets of words.
        telling: the words, folded and not, of which a date without digits has one.
        pieces: a pattern of the tokens.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        def listed(key: str) -> list[str]:
            return " ".join(table.get(key, "") for table in tables.values()).split()

        self.words: dict[str, tuple[str, int]] = {}
        self.phrases: dict[str, list[tuple[tuple[str, ...], str, int]]] = {}
        self.telling: set[str] = set()
        self.sets = {key: frozenset(map(fold, listed(key))) for key in _SETS}
        self.own_language = {
            word: language
            for language, table in tables.items()
            for word in table.get("own_language", "").split()
        }
        unspaced: list[str] = []
        for table in tables.values():
            for name, kind, value in _entries(table):
                if _MAYBE.search(name):
                    unspaced.append(name)
                    self.words.setdefault(name, (kind, value))
                else:
                    self._add(name, kind, value)
        for phrases in self.phrases.values():
            phrases.sort(key=lambda phrase: -len(phrase[0]))
        marks = {key: "|".join(listed(key)) for key in ("nothing", *_MARKED)}
        self.pieces = _pieces(sorted(unspaced, key=len, reverse=True), marks)

    def _add(self, name: str, kind: str, value: int) -> None:
        first, *further = fold(name.replace("-", "_-_").replace("'", "_")).split("_")
        if kind in "mw" and (first in self.sets["abbreviations"] | self.sets["ambiguous"]):
            kind = kind.upper()
        if further:
            self.phrases.setdefault(first, []).append((tuple(further), kind, value))
        else:
            self.words.setdefault(first, (kind, value))
        if kind in _TELLING:
            self.telling |= {further[-1] if further else first, re.split("[_'-]", name)[-1]}
        if kind == "w":
            for plural in (f"{first}s", f"{first}en"):
                self.words.setdefault(plural, ("P", value))
            self.telling |= {f"{first}s", f"{first}en", f"{name}s"}


@cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    return Lexicon({name: language.dates for name, language in named_languages().items()})


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


# The class of a number with such a mark, its digits and its least and greatest value.
_MARKED: Final = {
    "year_mark": ("Y", "{4}", 1000, 9999),
    "month_mark": ("m", "{1,3}", 1, 12),
    "day_mark": ("J", "{1,3}", 1, 31),
    "nth_mark": ("o", "{1,3}", 1, 31),
}


def _pieces(unspaced: Sequence[str], marks: Mapping[str, str]) -> re.Pattern[str]:
    """The tokens; the words of scripts without blanks are given, the longest first."""
    numbers = {
        key: rf"(?:{_APART}\d{digits}|{_NUMERAL}{digits})"
        for key, (_, digits, *_) in _MARKED.items()
    }
    return re.compile(
        r"(?<!\w)[qQ](?P<quarter>[1-4])(?!\w)"
        rf"|(?P<word>{_WORD.pattern})"
        + "".join(
            rf"|(?P<{key}>{numbers[key]}\s?(?!{marks['nothing']})(?:{marks[key]}))"
            for key in ("year_mark", "month_mark", "day_mark")
        )
        + rf"|(?P<nth_mark>(?:{marks['nth_mark']}){_NUMERAL}{{1,3}})"
        rf"|{_APART}(?P<number>\d+(?:[.,:/]\d+|\.?[-–]\d+)*)"
        r"(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?P<tail>[^\W\d_\u3000-\uffff]*[%°]?)"
        rf"|(?P<han>{'|'.join(map(re.escape, unspaced))})"
        rf"|(?P<numeral>{_NUMERAL}+)|(?P<other>[{_HAN}])"
        r"|(?P<comma>[,:，、])|(?P<dash>[-–—])"
        r"|(?P<end>[\0.;!?()\[\]{}\"|/…。！？；]|\n\s*\n)"
    )


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
        before = tokens[-1] if tokens else None
        match match.lastgroup:
            case "word":
                kind, folded, value, capital = _word(match.group())
                tokens.append(Token(kind, *match.span(), folded, value, marked=capital))
            case "number" | "tail":
                tokens.append(_number(match, before))
            case "end" if match.group() == "." and before and _is_dotted(before, match.start()):
                # "am 5." is a day although no month follows.
                before.marked = before.marked or before.kind == "d"
            case form:
                tokens.append(_other(form or "", match, known))
    words = [token.word for token in tokens]
    if not known.own_language.keys().isdisjoint(words):
        for at, token in enumerate(tokens):
            own = known.own_language.get(token.word)
            if own and language_of(frozenset(words[max(0, at - 4) : at + 4])) != own:
                token.kind = "."
    return tokens if known.phrases.keys().isdisjoint(words) else _with_phrases(tokens, known)


@lru_cache(2_048)
def _word(word: str) -> tuple[str, str, int, bool]:
    """The class of a word, the folded word, its value, and whether it is capitalized."""
    folded = fold(word)
    kind, value = lexicon().words.get(folded, (".", 0))
    return kind, folded, value, word[0].isupper()


def _other(form: str, match: re.Match[str], known: Lexicon) -> Token:
    text = match.group()
    if form in _MARKED:
        kind, _, least, most = _MARKED[form]
        value = _numeral(re.sub(rf"(?!\d|{_NUMERAL}).", "", text))
        return Token(kind if least <= value <= most else ".", *match.span(), text, value)
    match form:
        case "quarter":
            return Token("Q", *match.span(), value=3 * int(match["quarter"]) - 2)
        case "numeral":
            return Token("N", *match.span(), text, _numeral(text))
        case "han":
            kind, value = known.words[text]
            return Token(kind, *match.span(), text, value)
    kind = {"other": ".", "comma": ",", "dash": "-"}.get(form, "|")
    return Token(kind, *match.span(), text)


def _numeral(text: str) -> int:
    """The number of a Chinese numeral, or of its digits."""
    tens, ten, ones = (part.translate(_NUMERALS) for part in text.partition("十"))
    return int(tens[:4]) if not ten else 10 * int(tens[:1] or 1) + int(ones[:1] or 0)


def _with_phrases(tokens: list[Token], known: Lexicon) -> list[Token]:
    """The tokens, with one in place of those of a phrase such as "day before yesterday"."""
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        for further, kind, value in known.phrases.get(token.word, ()):
            after = at + 1 + len(further)
            if further == tuple(each.word for each in tokens[at + 1 : after]):
                end = tokens[after - 1].end
                token = Token(kind, token.start, end, token.word, value, marked=True)
                at = after - 1
                break
        joined.append(token)
        at += 1
    return joined


def _is_dotted(token: Token, at: int) -> bool:
    """Whether a full stop belongs to the token before it: "5. Mai", "Jan. 5"."""
    if token.end - at not in (0, 1):
        return False
    abbreviations = lexicon().sets["abbreviations"]
    return token.kind in "drf" or (token.kind in "MW" and token.word in abbreviations)


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
    # "05.01." is clearer than "05.01".
    stop = "." if digits.count(".") == 1 and match.string.startswith(".", end) else ""
    dates = _dates(digits + stop, before)
    return Token("f" if dates else ".", start, end + len(stop), dates=dates)


def _dates(digits: str, before: Token | None) -> tuple[Date, ...]:
    """The dates that digits may be; with strokes, the day and the month are in any order."""
    clarity = 1 if re.match(r"0|\d+/0|\d\d\.0", digits) else 0
    if before and before.word in lexicon().sets["identifiers"]:
        clarity = 0
    elif before and before.kind in "qaL" and before.value:
        clarity += 3  # am, bis
    elif before and before.kind in "qpwW":
        clarity += 1
    for form, least in _DIGITS:
        if clarity >= least and (match := form.fullmatch(digits)):
            parts = {name: int(part) for name, part in match.groupdict().items()}
            year, month, day = parts.get("y"), parts["m"], parts.get("d")
            if year is not None and year < 100:
                year += 2000
            orders = [(year, month, day)]
            if day and "/" in digits and match.start("d") == 0:
                orders.append((year, day, month))
            valid = [date for date in orders if date[1] in _MONTHS and (date[2] or 1) in _DAYS]
            return tuple(dict.fromkeys(valid))
    return ()
