"""Cuts a text into the tokens that dates are made of, and gives each its class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

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
_UNITS: Final = {
    "day": "u1", "week": "k7", "fortnight": "k14", "weekend": "x7", "month": "t30",
    "quarter": "z91", "year": "U365",
}  # fmt: skip
# A date without a digit has a word of one of these classes.
_TELLING: Final = frozenset("mMAwWPRsHkxtzUu")
_LISTS: Final = ("doubtful", "short", "verbs", "counted", "ahead", "before_day", "identifiers", "dotted", "own_language")

_HAN: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_NUMERALS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {
    "零": 0, "两": 2, "兩": 2,
}  # fmt: skip
_WORD: Final = re.compile(rf"(?:[^\W\d_{_HAN}][\u0300-\u036f]*)+")
_MAYBE: Final = re.compile(rf"\d|[{_HAN}\u0300-\u036f]")
# Digits after these are a price, a version, a path or an identifier.
_APART: Final = rf"(?<![^\W{_HAN}])(?<![.,:/$€£¥#@+=&])(?<![$€£¥] )"
_ORDINAL: Final = frozenset("st nd rd th er ère ere e º ª de ste ten ter".split())
_YEAR_FIRST: Final = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})")
_DAY_FIRST: Final = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)")
_NO_YEAR: Final = re.compile(r"(\d{1,2})([/.])(\d{1,2})")
_NO_DAY: Final = re.compile(r"(\d{4})-(\d\d)|(\d{1,2})/(\d{4})")
_DAY_RANGE: Final = re.compile(r"(\d{1,2})\.?[-–](\d{1,2})")


class Token(msgspec.Struct, gc=False):
    """A piece of a text.

    Attributes:
        kind: its class, one character.
        word: folded; empty for digits and punctuation.
        value: the number, month, weekday, distance ... that it means.
        last: the end of a range of days; the days of a unit; whether a word has a capital letter.
        dates: year, month and day of a date in digits, in each order that is possible.
    """

    kind: str
    start: int
    end: int
    word: str = ""
    value: int = 0
    last: int = 0
    dates: tuple[tuple[int | None, int, int | None], ...] = ()


class Lexicon(msgspec.Struct):
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

    words: dict[str, list[tuple[str, int]]]
    phrases: dict[str, list[tuple[tuple[str, ...], str, int]]]
    languages: dict[str, frozenset[str]]
    not_after: dict[str, frozenset[str]]
    lists: dict[str, frozenset[str]]
    telling: frozenset[str]
    pieces: re.Pattern[str]


@cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    words: dict[str, list[tuple[str, int]]] = {}
    phrases: dict[str, list[tuple[tuple[str, ...], str, int]]] = {}
    languages: dict[str, set[str]] = {}
    not_after: dict[str, set[str]] = {}
    lists: dict[str, set[str]] = {name: set() for name in _LISTS}
    telling: set[str] = set()
    unspaced: set[str] = set()

    for language, tables in date_words().items():
        for key, listed in tables.items():
            if key in _LISTS:
                lists[key].update(map(fold, listed.split()))
        for key, listed in tables.items():
            if key == "not_after":
                for group in listed.split():
                    befores, _, word = group.rpartition(":")
                    not_after.setdefault(fold(word), set()).update(map(fold, befores.split("/")))
            if key not in _CLASSES and key != "units":
                continue
            for names, kind, value in _entries(key, listed):
                for name in names:
                    parts = fold(name.replace("-", "_-_").replace("'", "_")).split("_")
                    classified = kind
                    if kind in "mw" and parts[0] in lists["doubtful"]:
                        classified = kind.upper()
                    elif parts[0] in lists["short"] and kind == "m":
                        classified = "A"
                    if re.search(f"[{_HAN}]", name):
                        unspaced.add(name)
                        words.setdefault(name, []).append((classified, value))
                        languages.setdefault(name, set()).add(language)
                        continue
                    if len(parts) > 1:
                        phrases.setdefault(parts[0], []).append(
                            (tuple(parts[1:]), classified, value)
                        )
                    elif (classified, value) not in words.setdefault(parts[0], []):
                        words[parts[0]].append((classified, value))
                    if classified in _TELLING:
                        telling |= {parts[-1], re.split("[_'-]", name)[-1]}
                    languages.setdefault(parts[0], set()).add(language)
                    if kind == "w" and classified == "w" and len(parts) == 1:
                        for plural in (f"{parts[0]}s", f"{parts[0]}en"):
                            words.setdefault(plural, [("P", value)])
                            telling |= {plural, f"{name}s"}
    for known in phrases.values():
        known.sort(key=lambda phrase: -len(phrase[0]))
    han = "|".join(map(re.escape, sorted(unspaced, key=len, reverse=True)))
    return Lexicon(
        words,
        phrases,
        {word: frozenset(each) for word, each in languages.items()},
        {word: frozenset(each) for word, each in not_after.items()},
        {name: frozenset(each) for name, each in lists.items()},
        frozenset(telling),
        re.compile(
            r"(?<!\w)[qQ](?P<quarter>[1-4])(?!\w)"
            rf"|(?P<word>{_WORD.pattern})"
            rf"|{_APART}(?P<number>\d+(?:[.,:/]\d+|\.?[-–]\d+)*)"
            r"(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?P<tail>[^\W\d_\u3000-\uffff]*[%°]?)"
            rf"|(?P<han>{han})|(?P<numeral>[〇零一二三四五六七八九十两兩]+)"
            rf"|(?P<other>[{_HAN}])|(?P<comma>[,:，、])|(?P<dash>[-–—])"
            r"|(?P<end>[.;!?()\[\]{}\"|/…。！？；]|\n\s*\n)"
        ),
    )


def _entries(key: str, listed: str) -> Iterator[tuple[list[str], str, int]]:
    """The names, class and value of each group "name/name:value" of a key."""
    for place, group in enumerate(listed.split()):
        names, _, value = group.rpartition(":") if ":" in group else (group, "", "")
        if key == "units":
            kind, number = _UNITS[value][0], int(_UNITS[value][1:])
        else:
            kind = _CLASSES[key]
            number = place + (key == "months") if key in ("months", "weekdays") else 0
            if value.startswith("e"):
                number = 10_000 + int(value[1:] or 0)
            elif value:
                number = int(value.replace("/", ""))
        yield names.split("/"), kind, number


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
        form = match.lastgroup
        start, end = match.span()
        if form == "word":
            word = match.group()
            folded = fold(word)
            kind, value = _classified(known.words.get(folded), tokens)
            if kind != "." and tokens and tokens[-1].word in known.not_after.get(folded, ()):
                kind = "."
            last = value if kind in "ukxtzU" else int(word[0].isupper())
            if kind in "ukxtzU" and tokens and tokens[-1].kind not in "Nd":
                _recount(tokens[-1], known)
            tokens.append(Token(kind, start, end, folded, value, last))
        elif form in ("number", "tail"):
            before = tokens[-1] if tokens else None
            tokens.append(_number(match["number"], match["tail"], text, start, end, before))
        elif form == "quarter":
            tokens.append(Token("Q", start, end, value=int(match["quarter"])))
        elif form == "han":
            word = match.group()
            kind, value = known.words[word][0]
            tokens.append(Token(kind, start, end, word, value, value))
        elif form == "numeral":
            tokens.append(Token("N", start, end, match.group(), _numeral(match.group())))
        elif form == "end" and match.group() == "." and tokens and _is_abbreviated(tokens[-1], start):
            continue
        elif form == "other":
            tokens.append(Token(".", start, end, match.group()))
        else:
            kind = {"comma": ",", "dash": "-"}.get(form or "", "|")
            tokens.append(Token(kind, start, end, match.group()))
    if not known.lists["own_language"].isdisjoint([token.word for token in tokens]):
        language = language_of(frozenset(token.word for token in tokens))
        for token in tokens:
            if token.word in known.lists["own_language"] and language not in known.languages[token.word]:
                token.kind = "."
    return _with_phrases(tokens, known)


def _classified(entries: list[tuple[str, int]] | None, tokens: list[Token]) -> tuple[str, int]:
    """The class and value of a word; after a number that of a unit: "an" in "un an"."""
    if not entries:
        return ".", 0
    if len(entries) > 1 and tokens and tokens[-1].kind in "Nd":
        return next((entry for entry in entries if entry[0] in "uktzU"), entries[0])
    return entries[0]


def _recount(token: Token, known: Lexicon) -> None:
    """Before a unit, a word that is also a number is one: "sept jours"."""
    for kind, value in known.words.get(token.word, ()):
        if kind == "N":
            token.kind, token.value = kind, value


def _with_phrases(tokens: list[Token], known: Lexicon) -> list[Token]:
    """The tokens, with one in place of those of a phrase such as "day before yesterday"."""
    if known.phrases.keys().isdisjoint([token.word for token in tokens]):
        return tokens
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        for further, kind, value in known.phrases.get(token.word, ()):
            after = at + 1 + len(further)
            if further == tuple(each.word for each in tokens[at + 1 : after]):
                last = value if kind in "ukxtzU" else 1
                token = Token(kind, token.start, tokens[after - 1].end, token.word, value, last)
                at = after - 1
                break
        joined.append(token)
        at += 1
    return joined


def _is_abbreviated(token: Token, at: int) -> bool:
    """Whether a full stop belongs to the token before it: "5. Mai", "Jan. 5"."""
    if token.end != at:
        return False
    return token.kind == "d" or (token.kind in "MAW" and token.word in lexicon().lists["dotted"])


def _numeral(text: str) -> int:
    """The number of a Chinese numeral, or of its digits."""
    if "十" not in text:
        return int("".join(str(_NUMERALS[char]) for char in text[:5]))
    tens, _, ones = text.partition("十")
    return _NUMERALS.get(tens[:1], 1) * 10 + _NUMERALS.get(ones[:1], 0)


def _number(
    digits: str, tail: str, text: str, start: int, end: int, before: Token | None
) -> Token:
    if tail:
        day = int(digits) if digits.isdigit() and len(digits) <= 2 else 0
        kind = "D" if tail.lower() in _ORDINAL and 1 <= day <= 31 else "."
        return Token(kind, start, end, value=day)
    if digits.isdigit():
        value = int(digits) if len(digits) <= 4 else 0
        if len(digits) == 4 and 1900 <= value <= 2099:
            return Token("y", start, end, value=value)
        kind = "d" if 1 <= value <= 31 and len(digits) <= 2 else "n" if value else "."
        return Token(kind, start, end, value=value)
    if match := _DAY_RANGE.fullmatch(digits):
        return Token("r", start, end, value=int(match[1]), last=int(match[2]))
    dates = _dates(digits, text[end : end + 3], before)
    end += bool(dates) and digits.count(".") == 1 and text[end : end + 1] == "."
    return Token("f" if dates else ".", start, end, dates=dates)


def _dates(
    digits: str, after: str, before: Token | None
) -> tuple[tuple[int | None, int, int | None], ...]:
    """The dates that a number may be: with full stops the day first, with strokes in any order."""
    cue = before is not None and before.kind in "qpL" or (before and before.kind in "wW")
    padded = re.match(r"0|\d+[./]0", digits) is not None
    if match := _YEAR_FIRST.fullmatch(digits):
        orders = [(int(match[1]), int(match[3]), int(match[4]))]
    elif match := _DAY_FIRST.fullmatch(digits):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        if len(match[4]) == 2:
            year += 2000
            if match[2] == "-" or not (padded or cue or match[2] == "/"):
                return ()
        orders = [(year, second, first)]
        if match[2] == "/":
            orders.append((year, first, second))
    elif match := _NO_YEAR.fullmatch(digits):
        if before and before.word in lexicon().lists["identifiers"]:
            return ()
        first, second = int(match[1]), int(match[3])
        if match[2] == ".":
            dotted = after[:1] == "." and (padded or (after[1:2] == " " and not after[2:].isupper()))
            if not cue and not dotted:
                return ()
            if before and before.kind == "p" and not padded and after[:1] != ".":
                return ()
            orders = [(None, second, first)]
        elif not cue and not padded and not (first > 12 and 10 <= second):
            return ()
        else:
            orders = [(None, second, first), (None, first, second)]
    elif match := _NO_DAY.fullmatch(digits):
        year, month = (match[1], match[2]) if match[1] else (match[4], match[3])
        return ((int(year), int(month), None),) if 1 <= int(month) <= 12 else ()
    else:
        return ()
    valid = (order for order in orders if 1 <= order[1] <= 12 and 1 <= order[2] <= 31)
    return tuple(dict.fromkeys(valid))
