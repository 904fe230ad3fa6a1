"""What corrects an earlier text: "at 4, not 3", "I meant 3,000", "thurs, sorry".

A correction says a new value, and maybe the old one. It applies to the newest text with the old
value, or else with a single value of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from ...memory.similarity import fold, words
from ..cues import WORD
from ..normal_form import read
from ..vocabulary import compiled, cue, not_topics
from ..vocabulary import words as language_words
from ..word_order import difference

INSTEAD: Final = r"(?i)(?P<new>.{1,300}?)[,;]? (?:{instead}) (?P<old>[^,;。]{1,60})[.!。]?$"
_MEANT: Final = r"(?i)(?:[\w']+[,.!]? ){0,3}(?:{meant}) (?P<new>\S.{0,30})$"
_DENIED: Final = r"(?i)(?:(?:{correction_words})[\s,.!-]+)+(?P<new>[^\s,]*\d\S*?)(?:[,.!]?$|, )"
_SORRY: Final = r"(?i)(?:(?:{correction_words})[\s,.!-]+)+(?P<new>(?:\S+\s+){0,2}\S+)$"
_RETRACTED: Final = r"(?i)(?P<new>[^,;]{2,30}?),? (?:{retracts_after})[.!]*"
# Somebody corrects themselves in one breath: "on Wednesday no sorry Tuesday".
_REPAIRED: Final = r"(?i)[,.…]*\s(?:(?:oh|ah|ach|uh|um|äh),?\s)*(?:{repairs})[,.!…]*\s+"
_NAMES: Final = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'’-]+(?: [A-ZÀ-ÖØ-Þ][\w'’-]+){0,2}")
_NAMED_LAST: Final = re.compile(rf".*?\b(?P<before>\w+) (?P<name>{_NAMES.pattern})[.!]?")
# How far back a correction reaches that says no old value.
_NEAR: Final = 4
# Where somebody may begin to correct themselves, and the words before the new value.
_PAUSE: Final = re.compile(r"[,;.…]+\s+|\s[-–—]\s+")
_BEHIND_DENIAL: Final = " ,.!:，。-"
_MOST_RETRACTING: Final = 6
_AT_ONCE: Final = 3
# How far back somebody goes to say something again, in words.
_RETRACED: Final = 5
# The digits of a year.
_YEAR: Final = 4
# How near a value stands to what says that it is no longer so, in words.
_BESIDE: Final = 2
# Words beside a value that say no more than the value.
_FEW: Final = 2
_NUMERIC_DATE: Final = re.compile(
    r"(?<![\w.:])\d{1,2}(?:\.\d{1,2}(?:\.(?:\d{2,4})?|$)|/\d{1,2})(?![\d/])"
)
_CLOCK: Final = re.compile(
    r"(?i)(?<![\w.:])\d{1,2}(?::\d\d(?![\d:])|(?:[:.]\d\d)? ?(?:uhr|am|pm|h)\b)"
)
_NUMBER: Final = re.compile(r"(?<![\w.:])(?:[A-HJ-Z] )?[\w.:/-]*\d(?:[\w.:/-]|,(?=\d))*(?<![.:-])")
MEASURED: Final = re.compile(r"\d ?(?P<unit>[^\W\d_]{2,12}|%)")
# "The 3rd" of April.
_ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
# "June 19th", "19. Juni", "19 de junio", where the word is a month.
DATE: Final = re.compile(
    r"(?:\b[^\W\d_]{3,10} \d{1,2}(?:st|nd|rd|th)?\b(?![.:]\d)"
    r"|\b\d{1,2}(?:st|nd|rd|th)?\.? (?:de |of )?[^\W\d_]{3,10}\b)(?:,? (?:19|20)\d\d\b)?"
)


_LATIN: Final = re.compile(r"[a-zà-ÿ]", re.IGNORECASE)


class Correction(msgspec.Struct, frozen=True):
    """A corrected text.

    Attributes:
        place: the index of the corrected text.
        text: that text with the new value, or the correction itself, which takes its place.
        is_all: whether the correction says nothing else.
    """

    place: int
    text: str
    is_all: bool = True


class _Value(msgspec.Struct, frozen=True):
    kind: str  # date, time, weekday, month, number or words
    start: int
    end: int
    text: str
    unit: str = ""

    @property
    def shape(self) -> str:
        """A number with all its digits alike."""
        return re.sub(r"\d", "9", self.text) if self.kind == "number" else self.kind

    def is_named_by(self, other: _Value) -> bool:
        """Whether the other is this value, or its number: the 3rd of "3 April", 9 of "9 Uhr"."""
        number = _ORDINAL.sub("", other.text.lower())
        numbers = re.findall(r"\d+", self.text) if other.kind == "number" != self.kind else []
        return number in (*numbers, self.text.lower())


def has_number(text: str) -> bool:
    """Whether a text has a number, in digits or words."""
    numbers = language_words("numbers")
    return bool(_NUMBER.search(text)) or not numbers.isdisjoint(words(text))


def denies(sentence: str) -> bool:
    """Whether a sentence retracts the statement before it."""
    return cue("denies").pattern.match(fold(sentence)) is not None


def retracts(sentence: str) -> bool:
    """Whether a sentence takes back the value before it: "wait no", "that was before the move"."""
    return cue("retracts").pattern.match(fold(sentence)) is not None


def without_denial(sentence: str) -> str:
    """What a sentence says behind "I was wrong:" or "that is wrong,"; else the sentence."""
    denied = cue("denies").pattern.match(fold(sentence))
    if denied is None or not cue("mistaken").any_in(denied[0]):
        return sentence
    rest = sentence[denied.end() :].lstrip(_BEHIND_DENIAL)
    # "That is wrong, it's in the cellar" says less alone.
    leans = cue("it", "they", "he", "she").pattern.match(fold(rest))
    return rest if len(WORD.findall(rest)) > _FEW and not leans else sentence


def correction_of(
    sentence: str,
    earlier: Sequence[str],
    *,
    denied: bool = False,
    corrects: bool = False,
    following: str = "",
) -> Correction | None:
    """The newest of the `earlier` texts that `sentence` corrects; None if it corrects none.

    `corrects`: whether the sentence is known to correct something.
    `denied`: whether the sentence before it denies something, so that a date alone is the new one.
    `following`: the next sentence, which may say the new value: "Saturday not. Sunday".
    """
    instead = compiled(INSTEAD).match(sentence) or compiled("{~replaced}").match(sentence)
    if instead is not None:
        return _instead(sentence, instead["new"], instead["old"], earlier)
    kinds = {item.kind for item in _values(sentence)}
    is_date = denied and kinds == {"date"} and not _about(sentence)
    if new := _values(sentence if is_date else _said_again(sentence)):
        for place in range(len(earlier) - 1, max(len(earlier) - _NEAR, 0) - 1, -1):
            if (text := _with_values(earlier[place], new)) != earlier[place]:
                return Correction(place, text)
    return (
        _restated(sentence, earlier, corrects=corrects)
        or _renamed(sentence, earlier)
        or _overtaken(sentence, earlier, following)
        or _taken_back(sentence, earlier)
    )


def corrected_within(sentence: str) -> str:
    """A sentence with the value that it corrects itself to: "17 kids, sorry, I meant 19 kids"."""
    for place, rest in sorted(_repairs(sentence)):
        before = sentence[:place]
        value = _values(rest)[0]
        known = [item for item in _values(before) if _replaces(value, item)]
        if not known:
            continue
        old = known[-1]
        start, end = old.start, old.end
        if old.kind == "date" != value.kind:
            # "12 July, no sorry, the 19th": its day alone, or its year.
            size = len(_ORDINAL.sub("", value.text))
            alike = [
                match.span()
                for match in re.finditer(r"\d+(?:st|nd|rd|th)?", old.text)
                if (len(_ORDINAL.sub("", match[0])) == _YEAR) == (size == _YEAR)
            ]
            if not alike:
                continue
            start, end = (old.start + at for at in alike[0])
        after = rest[value.end :]
        if value.unit and old.unit == value.unit:
            after = after.lstrip()[len(value.unit) :]
        return corrected_within(before[:start] + value.text + before[end:] + after)
    return _retraced(sentence)


def _retraced(sentence: str) -> str:
    """A sentence without what is said again: "in the cellar no wait the attic"."""
    for repair in compiled(_REPAIRED).finditer(sentence):
        # "I mean" also only goes on.
        if compiled("(?i){meant}").search(repair[0]):
            continue
        before = [*WORD.finditer(sentence[: repair.start()])][-_RETRACED:]
        again = [*WORD.finditer(sentence, repair.end())][:_AT_ONCE]
        for word in again:
            known = [
                item
                for item in before
                if item[0].lower() == word[0].lower() not in language_words("actors")
            ]
            # Something else follows, in the same place.
            if known and known[-1] is not before[-1]:
                return corrected_within(sentence[: known[-1].start()] + sentence[word.start() :])
    return sentence


def _repairs(sentence: str) -> Iterator[tuple[int, str]]:
    """Where a sentence takes its last value back, and what begins there and has another."""
    for repair in compiled(_REPAIRED).finditer(sentence):
        rest = sentence[repair.end() :]
        if (values := _values(rest)) and _is_soon(rest, values[0], _AT_ONCE):
            yield repair.start(), rest
    for pause in _PAUSE.finditer(sentence):
        rest = sentence[pause.end() :]
        values = [value for value in _values(rest) if value.kind not in {"weekday", "month"}]
        if not values or not _is_soon(rest, values[0], _MOST_RETRACTING):
            continue
        denied = cue("denies").pattern.match(fold(rest))
        denied = denied if denied and fold(rest)[denied.end() :][:1] in set(",.!:") else None
        if denied or retracts(rest) or compiled(_MEANT).match(rest[: values[0].end]):
            yield pause.start(), rest


def _is_soon(rest: str, value: _Value, most: int) -> bool:
    return len(WORD.findall(rest[: value.start])) <= most


def _replaces(new: _Value, old: _Value) -> bool:
    """Whether a value that is said at once behind another may take its place."""
    if new.kind == old.kind:
        return not new.unit or old.unit in {"", new.unit}
    if (new.kind, old.kind) == ("date", "number"):
        # "The 3rd, no, the 10th of May".
        return _ORDINAL.search(old.text) is not None
    # "At 2, no, 3:30"; "12 July, no, the 19th".
    return {new.kind, old.kind} == {"number", "time"} or (new.kind, old.kind) == ("number", "date")


def _instead(sentence: str, new: str, old: str, earlier: Sequence[str]) -> Correction | None:
    """The newest text with the values of `old`, or with all that `old` is about."""
    values, denied = _values(new), _values(old)
    about = _about(new)
    for place in range(len(earlier) - 1, -1, -1):
        known = frozenset(words(earlier[place]))
        if values and denied:
            text = _with_values(earlier[place], values, denied)
            if text != earlier[place] and (not about or about & known):
                return Correction(place, text)
        elif (lost := _about(old)) and lost <= known:
            return Correction(place, sentence)
    return None


def _said_again(sentence: str) -> str:
    """The part of a sentence that says a value again, if that is all it does; else ""."""
    if match := compiled(_MEANT).match(sentence) or compiled(_DENIED).match(sentence):
        return str(match["new"])
    # "Sorry, Wednesdays": nothing but the value.
    sorry = compiled(_SORRY).match(sentence)
    if sorry and _values(sorry["new"]) and not _about(sorry["new"]):
        return str(sorry["new"])
    taken = cue("retracts").pattern.match(fold(sentence))
    after = compiled(_RETRACTED).fullmatch(sentence)
    rest = after["new"] if after else sentence[taken.end() :].lstrip(" ,.!:-") if taken else ""
    clause, *others = _PAUSE.split(rest)
    # "No wait that was last year's, it's gone up to 23": what was told is surely replaced.
    is_past = retracts(clause)
    if is_past and others:
        clause = others[0]
    values = _values(clause)
    # "No wait, from the 8th" may say what was not told before.
    if not values or (values[0].kind == "number" and values[0].start and not is_past):
        return ""
    return clause if len([word for word in _about(clause) if word.isalpha()]) <= _FEW else ""


def _restated(sentence: str, earlier: Sequence[str], *, corrects: bool) -> Correction | None:
    """The newest text that says the same with another value: "no, our release day is Wednesday"."""
    rest = sentence if corrects else ""
    if denied := cue("denies").pattern.match(fold(sentence)):
        rest = sentence[denied.end() :].lstrip(_BEHIND_DENIAL)
    if not rest or cue("adds").any_in(fold(rest)):
        return None
    longest = _FEW if _LATIN.search(rest) else 2 * _FEW
    for place in range(len(earlier) - 1, max(len(earlier) - _NEAR, 0) - 1, -1):
        parts = difference(read(earlier[place]).words, read(rest).words)
        if len(parts.before) >= _FEW and 0 < len(parts.newer) <= longest and parts.older:
            # "On level 2 of the garage": what stands behind a value need not be said again.
            numbers = [words[0][:1].isdigit() for words in (parts.older, parts.newer)]
            if len(parts.older) > longest and not all(numbers):
                continue
            return Correction(place, sentence)
    return None


def _renamed(sentence: str, earlier: Sequence[str]) -> Correction | None:
    """The last text with another name at its end, if it has one there: "sorry, I meant Foxden"."""
    meant, taken = compiled(_MEANT).match(sentence), cue("retracts").pattern.match(fold(sentence))
    rest = meant["new"] if meant else sentence[taken.end() :].lstrip(" ,.!:-") if taken else ""
    name = None if _values(rest) else _NAMES.fullmatch(rest.rstrip(" .!"))
    known = _NAMED_LAST.fullmatch(earlier[-1]) if name and earlier else None
    # German writes all nouns large: what is named stands behind "is called".
    verbs = language_words("copulas", "naming") | {"is"}
    if name is None or known is None or fold(known["before"]) not in verbs:
        return None
    start, end = known.span("name")
    return Correction(len(earlier) - 1, earlier[-1][:start] + name[0] + earlier[-1][end:])


def _overtaken(sentence: str, earlier: Sequence[str], following: str) -> Correction | None:
    """The newest text with a value that is no longer so: "it's 71 now, 68 was until May"."""
    clauses = _PAUSE.split(sentence)
    overtaken = {clause: _overtaken_values(clause) for clause in clauses}
    rest = [value for clause in clauses if not overtaken[clause] for value in _values(clause)]
    for old in (value for values in overtaken.values() for value in values):
        alike = [item for item in rest or _values(following) if item.shape == old.shape]
        if len({item.text for item in alike}) == 1 and len(old.text) > 1:
            for place in range(len(earlier) - 1, -1, -1):
                text = earlier[place]
                if old.text in text and (new := _with_values(text, alike[:1], [old])) != text:
                    return Correction(place, new, is_all=False)
    return None


def _overtaken_values(clause: str) -> list[_Value]:
    """The values right beside what says that they are no longer so."""
    overtaken = cue("overtaken")
    return [
        value
        for value in _values(clause)
        if overtaken.any_in(" ".join(fold(clause[: value.start]).split()[-_BESIDE:]))
        or overtaken.any_in(" ".join(fold(clause[value.end :]).split()[:_BESIDE]))
    ]


def _taken_back(sentence: str, earlier: Sequence[str]) -> Correction | None:
    """The newest text with what takes it back: "nuts, but no almonds. Wait, almonds too"."""
    taken = cue("retracts").pattern.match(fold(sentence))
    if taken is None or _values(sentence):
        return None
    about = _about(sentence[taken.end() :])
    near = range(len(earlier) - 1, max(len(earlier) - _NEAR, 0) - 1, -1)
    for place in near if len(about) <= _FEW else ():
        if about & frozenset(words(earlier[place])):
            return Correction(place, f"{earlier[place].rstrip(' .!')}. {sentence.rstrip(' .!')}")
    return None


def _with_values(text: str, new: Sequence[_Value], old: Sequence[_Value] = ()) -> str:
    """`text` with each new value in place of the only one of its kind, or of an old one."""
    if old and new[0].kind == old[0].kind == "words":
        return text.replace(old[0].text, new[0].text)
    known = _values(text)
    taken: dict[int, _Value] = {}
    for value in new:
        alike = [item for item in known if item.kind == value.kind]
        if old:
            alike = [item for item in alike if any(item.is_named_by(other) for other in old)][-1:]
        elif len(alike) > 1:
            alike = [item for item in alike if item.unit == value.unit] or alike
            alike = [item for item in alike if item.shape == value.shape]
        if len(alike) == 1 and (alike[0].unit in {"", value.unit} or not value.unit):
            taken[known.index(alike[0])] = value
    for at in sorted(taken, reverse=True):
        text = text[: known[at].start] + taken[at].text + text[known[at].end :]
    return text


def _values(text: str) -> list[_Value]:
    """The values of a text in order, without what was put in brackets."""
    tokens = [(word, word[0].lower()) for word in WORD.finditer(text)]
    kinds = {
        "date": (*_dates(text), *_NUMERIC_DATE.finditer(text)),
        "time": _CLOCK.finditer(text),
        "weekday": (word for word, day in tokens if day in language_words("weekdays")),
        "month": (word for word, month in tokens if month in _months()),
        "number": _NUMBER.finditer(text),
    }
    values: list[_Value] = []
    for kind, matches in kinds.items():
        for match in matches:
            start, end = match.span()
            apart = all(end <= item.start or item.end <= start for item in values)
            if apart and text[:start][-1:] != "[":
                unit = _unit(text, end) if kind == "number" else ""
                values.append(_Value(kind, start, end, match[0], unit))
    if not (values or text.isascii() or _LATIN.search(text)):
        # In scripts without blanks the whole part is one.
        return [_Value("words", 0, len(text), text)]
    return sorted(values, key=lambda item: item.start)


def _unit(text: str, at: int) -> str:
    """The word behind the number that ends at a place, or ""."""
    match = MEASURED.match(text, at - 1)
    unit = match["unit"].lower() if match else ""
    return "" if unit in not_topics() else unit


def _dates(text: str) -> list[re.Match[str]]:
    dates: list[re.Match[str]] = []
    at = 0
    while match := DATE.search(text, at):
        if is_date := not _months().isdisjoint(words(match[0])):
            dates.append(match)
        # In "on the 14 of May" the date begins within a match: "the 14".
        at = match.end() if is_date else match.start() + 1
    return dates


@cache
def _months() -> frozenset[str]:
    return language_words("months") - {"am", "pm"}


def _about(part: str) -> frozenset[str]:
    """The words that say what a part of a sentence is about, without its values."""
    for value in reversed(_values(part)):
        part = part[: value.start] + " " + part[value.end :]
    telling = frozenset(words(part)) - not_topics() - _months() - language_words("days")
    correcting = cue("correction_words").pattern
    return frozenset(word for word in telling if not correcting.fullmatch(word))
