"""What corrects an earlier text: "at 4, not 3", "I meant 3,000", "scratch that, 12"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from ..memory.similarity import fold, words
from .cues import WORD
from .vocabulary import compiled, cue, not_topics
from .vocabulary import words as language_words

INSTEAD: Final = r"(?i)(?P<new>.{1,300}?)[,;]? (?:{instead}) (?P<old>[^,;。]{1,60})[.!。]?$"
_MEANT: Final = r"(?i)(?:[\w']+[,.!]? ){0,3}(?:{meant}) (?P<new>\S.{0,30})$"
_DENIED: Final = r"(?i)(?:(?:{correction_words})[\s,.!-]+)+(?P<new>[^\s,]*\d\S*?)(?:[,.!]?$|, )"
# How far back "almonds too" may reach.
_NEAR: Final = 4
# How far back "scratch that, 12" may reach.
_JUST_SAID: Final = 2
# Where somebody may begin to correct themselves, and the words before the new value.
_PAUSE: Final = re.compile(r"[,;.…]+\s+|\s[-–—]+\s")
_MOST_RETRACTING: Final = 4
_RETRACTED: Final = r"(?i)(?:(?:on|am|at|um) )?(?P<new>[^,;]{2,30}?),? (?:{retracts_after})[.!]*"
_NUMERIC_DATE: Final = re.compile(
    r"(?<![\w.:])\d{1,2}(?:\.\d{1,2}(?:\.(?:\d{2,4})?|$)|/\d{1,2})(?![\d/])"
)
_CLOCK: Final = re.compile(
    r"(?i)(?<![\w.:])\d{1,2}(?::\d\d(?![\d:])|(?:[:.]\d\d)? ?(?:uhr|am|pm|h)\b)"
)
_SHAPED: Final = re.compile(
    r"(?<![\w.,:/-])(?:[A-Z] \d+|\d{2,}|\d+[.,:]\d+)(?:[.,:]\d+)*(?![\w:/-]|[.,]\d)"
)
_FEW: Final = 2
_NUMBER: Final = re.compile(r"(?<![\w.:])[\w.:/-]*\d(?:[\w.:/-]|,(?=\d{3}))*(?<![.:-])")
MEASURED: Final = re.compile(r"\d ?(?P<unit>[^\W\d_]{2,12}|%)")
# "June 19th", "19. Juni", "19 de junio", where the word is a month.
DATE: Final = re.compile(
    r"(?:\b[^\W\d_]{3,10} \d{1,2}(?:st|nd|rd|th)?\b(?![.:]\d)"
    r"|\b\d{1,2}(?:st|nd|rd|th)?\.? (?:de |of )?[^\W\d_]{3,10}\b)(?:,? (?:19|20)\d\d\b)?"
)
# "The 3rd" of April.
_ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")


class Correction(msgspec.Struct, frozen=True):
    """A corrected text.

    Attributes:
        place: the index of the corrected text.
        text: that text with the new value, or the correction if it is self-contained.
    """

    place: int
    text: str


def has_number(text: str) -> bool:
    """Whether a text has a number, in digits or words."""
    numbers = language_words("numbers")
    return bool(_NUMBER.search(text)) or not numbers.isdisjoint(words(text))


def correction_of(
    sentence: str, earlier: Sequence[str], *, denied: bool = False
) -> Correction | None:
    """The newest of the `earlier` texts, corrected by `sentence`; None if it corrects none.

    A correction may consist of the value alone: "sorry, at 4, not 3"; "I meant 3,000"; or "June
    19", if the sentence before it `denied` something.
    """
    result = compiled(INSTEAD).match(sentence) or compiled("{~replaced}").match(sentence)
    if result is None:
        plain = _added(sentence, earlier) or _scratched(sentence, earlier)
        if plain := plain or redated(sentence, earlier):
            return plain
        match = compiled(_MEANT).match(sentence) or compiled(_DENIED).match(sentence)
        part = match["new"] if match else sentence if denied else ""
        if match and (alike := _with_shape(part.rstrip(" .!"), earlier)):
            return alike
        return _with_value(part, earlier, only_date=match is None)
    new, old = _value(result["new"]), _value(result["old"])
    about = _about(result["new"].replace(new, " ")) if new != result["new"].strip() else None
    lost = _about(result["old"])
    for place in range(len(earlier) - 1, -1, -1):
        text = earlier[place]
        if new and old and (span := _standing(old, text)) is not None:
            if not about or about & frozenset(words(text)):
                return Correction(place, _dated(text[: span[0]] + new + text[span[1] :], result))
        elif not (new and old) and lost and lost <= frozenset(words(text)):
            return Correction(place, sentence)
    return None


def _added(sentence: str, earlier: Sequence[str]) -> Correction | None:
    """The newest text with what "no wait, almonds too" adds to it: it names what that excepts."""
    if not (denies(sentence) or retracts(sentence)) or not cue("also").any_in(fold(sentence)):
        return None
    about = frozenset(words(sentence)) - not_topics()
    for place in range(len(earlier) - 1, max(len(earlier) - _NEAR, 0) - 1, -1):
        if about & frozenset(words(earlier[place])):
            return Correction(place, f"{earlier[place]}. {sentence.rstrip(' .!')}")
    return None


def _scratched(sentence: str, earlier: Sequence[str]) -> Correction | None:
    """Of the last two texts the newest whose only number that of "scratch that, 12" replaces."""
    taken = cue("retracts").pattern.match(fold(sentence))
    rest = fold(sentence)[taken.end() :].lstrip(" ,.!:-") if taken else ""
    if (value := _NUMBER.match(rest)) is None:
        return None
    for place in range(len(earlier) - 1, max(len(earlier) - _JUST_SAID, 0) - 1, -1):
        known = _numbers(earlier[place])
        if len(known) == 1:
            start, end = known[0].span()
            units = {_unit(rest, value.end()), _unit(earlier[place], end)}
            if len(units - {""} - not_topics()) < 2:
                return Correction(place, earlier[place][:start] + value[0] + earlier[place][end:])
    return None


def redated(sentence: str, earlier: Sequence[str]) -> Correction | None:
    """Of the last texts the newest whose day or time "thurs, sorry" replaces."""
    taken = cue("retracts").pattern.match(fold(sentence))
    after = compiled(_RETRACTED).fullmatch(sentence)
    if (taken is None and after is None) or compiled(INSTEAD).match(sentence):
        return None
    rest = after["new"] if after else sentence[taken.end() :].lstrip(" ,.!:-") if taken else ""
    clause = _PAUSE.split(rest, maxsplit=1)[0]
    new = _moments(clause)
    others = frozenset(words(clause)) - not_topics() - _day_names() - _months()
    if not new or len([word for word in others if word.isalpha()]) > _FEW:
        return None
    for place in range(len(earlier) - 1, max(len(earlier) - _NEAR, 0) - 1, -1):
        text, known = earlier[place], _moments(earlier[place])
        if not new.keys() & known.keys():
            continue
        for kind in sorted(new.keys() & known.keys(), key=lambda kind: -known[kind].start()):
            text = text[: known[kind].start()] + new[kind][0] + text[known[kind].end() :]
        return Correction(place, text)
    return None


def overtaken(sentence: str, earlier: Sequence[str], *, following: str = "") -> Correction | None:
    """The newest text with a value that is no longer so: "it's 71 now, 68 was until May".

    `following`: the next sentence of the turn, which may say the new value: "Saturday not. Sunday".
    """
    clauses = [] if compiled(INSTEAD).match(sentence) else _PAUSE.split(sentence)
    past = [clause for clause in clauses if cue("overtaken").any_in(fold(clause))]
    rest = [value for clause in clauses if clause not in past for value in _values(clause)]
    for old in (value for clause in past for value in _values(clause)):
        alike = [value for value in rest or _values(following) if _shape(value) == _shape(old)]
        if len(set(alike)) != 1 or old.lower() == alike[0].lower():
            continue
        whole = re.compile(rf"(?i)(?<![\w.,:/-]){re.escape(old)}(?![\w:/-]|[.,]\d)")
        for place in range(len(earlier) - 1, -1, -1):
            if whole.search(earlier[place]):
                return Correction(place, whole.sub(alike[0], earlier[place]))
    return None


def _values(text: str) -> list[str]:
    """The numbers of two digits or more, those behind a letter, and weekdays; none of a date."""
    dates = [date.span() for date in _dates(text)]
    numbers = [
        match[0]
        for match in _SHAPED.finditer(text)
        if not any(start <= match.start() < end for start, end in dates)
    ]
    return numbers + [match[0] for match in WORD.finditer(text) if match[0].lower() in _day_names()]


def _shape(value: str) -> str:
    return re.sub(r"\d", "9", value) if any(map(str.isdigit, value)) else "day"


def _moments(text: str) -> dict[str, re.Match[str]]:
    """The first weekday, date and time of day in a text."""
    days = (word for word in WORD.finditer(text) if word[0].lower() in _day_names())
    firsts = {
        "weekday": next(days, None),
        "date": next(iter(_dates(text)), None) or _NUMERIC_DATE.search(text),
        "time": _CLOCK.search(text),
    }
    return {kind: match for kind, match in firsts.items() if match}


def _unit(text: str, at: int) -> str:
    """The word behind the number that ends at a place, or ""."""
    match = MEASURED.match(text, at - 1)
    return match["unit"].lower() if match else ""


def _with_shape(part: str, earlier: Sequence[str]) -> Correction | None:
    """The newest text with one value that differs in digits alone: "0 */3 * * *", "v1.2.3"."""
    if part.isdigit() or not any(map(str.isdigit, part)):
        return None
    shape = re.compile(r"(?<!\w)" + re.sub(r"\d+", r"\\d+", re.escape(part)) + r"(?!\w)")
    for place in range(len(earlier) - 1, -1, -1):
        if len(spans := [match.span() for match in shape.finditer(earlier[place])]) == 1:
            start, end = spans[0]
            return Correction(place, earlier[place][:start] + part + earlier[place][end:])
    return None


def _with_value(part: str, earlier: Sequence[str], *, only_date: bool) -> Correction | None:
    """The newest text with a single date or number, which that of a part replaces."""
    for find in (_dates, _numbers):
        if len(values := find(part)) == 1:
            break
    else:
        return None
    if only_date and (find is not _dates or _about(DATE.sub(" ", part))):
        return None
    unit = _unit(part, values[0].end())
    for place in range(len(earlier) - 1, -1, -1):
        text = earlier[place]
        known = find(text)
        # "I meant 64 beds" chooses among "46 beds and 9 rooms".
        known = [match for match in known if unit and _unit(text, match.end()) == unit] or known
        if len(known) == 1:
            start, end = known[0].span()
            return Correction(place, text[:start] + values[0][0] + text[end:])
    return None


def corrected_within(sentence: str) -> str:
    """A sentence with the value that it corrects itself to: "17 kids, sorry, I meant 19 kids"."""
    for pause in _PAUSE.finditer(sentence):
        before, rest = sentence[: pause.start()], sentence[pause.end() :]
        value = _NUMBER.search(rest)
        if value is None or len(WORD.findall(rest[: value.start()])) > _MOST_RETRACTING:
            continue
        denied = cue("denies").pattern.match(fold(rest))
        denied = denied if denied and fold(rest)[denied.end() :][:1] in set(",.!:") else None
        if not (denied or retracts(rest) or compiled(_MEANT).match(rest[: value.end()])):
            continue
        unit = _unit(rest, value.end())
        known = [
            number
            for number in _numbers(before)
            if not unit or _unit(before, number.end()) in {"", unit}
        ]
        if known:
            start, end = known[-1].span()
            after = rest[value.end() :]
            if unit and _unit(before, end) == unit:
                after = after.lstrip()[len(unit) :]
            return corrected_within(before[:start] + value[0] + before[end:] + after)
    return sentence


def _dates(text: str) -> list[re.Match[str]]:
    dates: list[re.Match[str]] = []
    at = 0
    while match := DATE.search(text, at):
        if is_date := not _months().isdisjoint(words(match[0])):
            dates.append(match)
        # In "on the 14 of May" the date begins within a match: "the 14".
        at = match.end() if is_date else match.start() + 1
    return dates


def _numbers(text: str) -> list[re.Match[str]]:
    """The numbers of a text, but for a date that was put in."""
    return [match for match in _NUMBER.finditer(text) if text[: match.start()][-1:] != "["]


def denies(sentence: str) -> bool:
    """Whether a sentence retracts the statement before it."""
    return cue("denies").pattern.match(fold(sentence)) is not None


def retracts(sentence: str) -> bool:
    """Whether a sentence takes back the value before it: "wait no", "that was before the move"."""
    return cue("retracts").pattern.match(fold(sentence)) is not None


def _dated(text: str, match: re.Match[str]) -> str:
    """`text` with the new month and weekday in place of the denied ones."""
    for dates in (_months(), language_words("days") - _months()):
        new, old = (
            [word for word in WORD.findall(match[part]) if word.lower() in dates]
            for part in ("new", "old")
        )
        if len(new) == len(old) == 1:
            text = re.sub(rf"\b{re.escape(old[0])}\b", new[0], text)
    return text


@cache
def _months() -> frozenset[str]:
    return language_words("months") - {"am", "pm"}


@cache
def _day_names() -> frozenset[str]:
    return language_words("weekdays")


def _value(part: str) -> str:
    """The only number of a part, or the whole part in scripts without blanks."""
    if not part.isascii() and " " not in part.strip() and not _NUMBER.search(part):
        return part.strip()
    numbers = _NUMBER.findall(part)
    if not numbers:
        days = [word for word in WORD.findall(part) if word.lower() in _day_names()]
        return days[0] if len(days) == 1 else ""
    return _ORDINAL.sub("", str(numbers[0])) if len(numbers) == 1 else ""


def _about(part: str) -> frozenset[str]:
    sentence = frozenset(words(part)) - not_topics() - _months() - language_words("days")
    correcting = cue("correction_words").pattern
    return frozenset(word for word in sentence if not correcting.fullmatch(word))


def _standing(value: str, text: str) -> tuple[int, int] | None:
    """The last position of a value in a text, as a whole word."""
    if value.lower() in _day_names():
        found = list(re.finditer(rf"(?i)\b{re.escape(value)}\b", text))
        return found[-1].span() if found else None
    if value.isascii():
        spans = [
            match.span() for match in _NUMBER.finditer(text) if _ORDINAL.sub("", match[0]) == value
        ]
        return spans[-1] if spans else None
    at = text.rfind(value)
    return (at, at + len(value)) if at >= 0 else None
