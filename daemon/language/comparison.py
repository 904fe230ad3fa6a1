"""Compares two statements: the newer repeats the older, contradicts it, or is unrelated.

Precision comes first. A false duplicate loses the older statement, so only the same words in the
same order are a duplicate; statements that differ in a number, name, date or denial are not. A
false contradiction ranks a true memory down, so each kind has a narrow rule:

* a denial: the same statement with "not", "never", 不, ない …;
* an opposite: "enabled" for "disabled", "is open" for "is closed";
* a changed value: of a code, an address, a time, "the gate code is 4711";
* an exclusive claim: the place that somebody lives in;
* other words that tell of a change: see `replacing`.

Everything else is unrelated. `pairing` considers speakers and times.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from typing import Final, Literal, TypeAlias

import msgspec

from ..memory.similarity import exact_key
from .normal_form import Statement, read
from .replacing import replaces
from .vocabulary import compiled, each, either, pairs, words

Relation: TypeAlias = Literal["duplicate", "contradiction", "unrelated"]

_DIGIT: Final = re.compile(r"\d")
# The verb endings that a denial may change: kana or Hangul.
_ENDINGS: Final = re.compile("[\u3041-\u309f]{0,10}|[\uac00-\ud7a3 ]{0,10}")
_LONGEST_VALUE: Final = 4
_LONGEST_CLAIM: Final = 24
_MOVES_TRIED: Final = 8


class Difference(msgspec.Struct, frozen=True):
    """The common beginning and end of two word sequences, and the different middle of each."""

    before: tuple[str, ...]
    older: tuple[str, ...]
    newer: tuple[str, ...]
    after: tuple[str, ...]


class Judgement(msgspec.Struct, frozen=True):
    """The relation of two statements, and the reasons for display; none if unrelated."""

    relation: Relation
    reasons: tuple[str, ...] = ()


UNRELATED: Final = Judgement("unrelated")


def judge(older: str, newer: str) -> Judgement:
    """The relation of the text `newer` to the text `older`."""
    judgement = repeats(older, newer)
    one, other = read(older), read(newer)
    if judgement.relation == "duplicate" or one.asks or other.asks or one.open or other.open:
        return judgement
    reason = (
        _denial(one, other)
        or _denied_ending(one, other)
        or _changed(one, other)
        or _other_claim(one, other)
        or replaces(older, newer)
    )
    return Judgement("contradiction", (reason,)) if reason else UNRELATED


def repeats(older: str, newer: str) -> Judgement:
    """Whether two texts say the same; the order does not matter."""
    if exact_key(older) == exact_key(newer):
        return Judgement("duplicate", ("the same words",))
    one, other = read(older), read(newer)
    if one.asks != other.asks or not one.words:
        return UNRELATED
    if one.words == other.words:
        return Judgement("duplicate", ("the same words but for punctuation and spelling",))
    if _fronted(one.words, other.words) or _fronted(other.words, one.words):
        return Judgement("duplicate", ("the same words, with a circumstance moved",))
    return UNRELATED


def difference(older: tuple[str, ...], newer: tuple[str, ...]) -> Difference:
    """The one stretch in which two sequences differ, without their common ends."""
    shorter = min(len(older), len(newer))
    start = 0
    while start < shorter and older[start] == newer[start]:
        start += 1
    end = 0
    while end < shorter - start and older[-1 - end] == newer[-1 - end]:
        end += 1
    stop, other_stop = len(older) - end, len(newer) - end
    return Difference(older[:start], older[start:stop], newer[start:other_stop], older[stop:])


def _fronted(plain: tuple[str, ...], moved: tuple[str, ...]) -> bool:
    """Whether only a circumstance such as "on Monday" moved from the end to the front."""
    if len(plain) != len(moved) or moved[0] not in words("fronted"):
        return False
    cuts = [at for at, word in enumerate(plain) if word == moved[0]]
    return any(plain[cut:] + plain[:cut] == moved for cut in cuts[:_MOVES_TRIED])


def _denial(older: Statement, newer: Statement) -> str:
    if bool(older.negations) == bool(newer.negations) or older.core != newer.core:
        return ""
    return _denies(bool(newer.negations)) if sum(map(len, older.core)) >= 3 else ""


def _denied_ending(older: Statement, newer: Statement) -> str:
    """A denial by the ending of the verb, as in Japanese and Korean."""
    if older.text.isascii() or newer.text.isascii():
        return ""
    ends, particles = compiled("{~denied_ending}"), compiled("{~particles}")
    texts = [statement.text.rstrip("。.") for statement in (older, newer)]
    denied = [ends.search(text) is not None for text in texts]
    if denied[0] == denied[1]:
        return ""
    parts = difference(*(tuple(particles.sub("は", text)) for text in texts))
    changed = ("".join(parts.older), "".join(parts.newer))
    ending = len(parts.before) >= 2 and all(_ENDINGS.fullmatch(part) for part in changed)
    return _denies(denied[1]) if ending else ""


def _denies(newer_denies: bool) -> str:
    return "the newer denies the older" if newer_denies else "the older denies the newer"


def _changed(older: Statement, newer: Statement) -> str:
    """The reason if a word became its opposite, or a value changed."""
    parts = difference(older.words, newer.words)
    lengths = (len(parts.older), len(parts.newer))
    if older.negations != newer.negations or not 0 < min(lengths) <= max(lengths) <= _LONGEST_VALUE:
        return ""
    if (not older.negations and _opposite(parts)) or _value_changed(parts, older, newer):
        return f"'{_shown(parts.older)}' became '{_shown(parts.newer)}'"
    return ""


def _opposite(parts: Difference) -> bool:
    pair = frozenset((_joined(parts.older), _joined(parts.newer)))
    if pair in pairs("opposite_verbs"):
        return bool(parts.before or parts.after)
    if pair not in pairs("opposite_states") or not parts.before:
        return False
    # Before more words some of them are prepositions: "on the desk".
    if parts.after and not words("placing").isdisjoint(pair):
        return False
    return parts.before[-1] in words("copulas") | {"prefer", "prefers"} or not parts.after


def _value_changed(parts: Difference, older: Statement, newer: Statement) -> bool:
    """Whether `older` and `newer`, which differ in `parts`, give the same thing two values.

    A differing number is always another value; a differing word only after a noun with a single
    value, since "the sky is blue" and "the sky is clear" are compatible.
    """
    before = parts.before
    links = words("links") | words("connecting")
    if len(before) < 2 or not links.isdisjoint(parts.older[1:] + parts.newer[1:]):
        return False
    are_numbers = _is_number(parts.older) and _is_number(parts.newer)
    between = words("links") | words("months") if are_numbers else words("now")
    opener = len(before) - 1
    while opener > 0 and before[opener] in between:
        opener -= 1
    noun = before[max(0, opener - 6) : opener]
    is_single = before[opener] in words("copulas") and (
        _ends_in_value_noun(noun) or "favorite" in before[:opener]
    )
    if are_numbers:
        # "Task code 5 is done": here the number only identifies the task.
        if parts.after and before[opener] in words("value_nouns"):
            return False
        opens = before[opener] in words("copulas") | words("state_verbs")
        opens = opens or _ends_in_value_noun(before[max(0, opener - 5) : opener + 1])
        return is_single or (opener > 0 and opens and _units(parts.older) == _units(parts.newer))
    if not is_single or not words("no_values").isdisjoint(parts.older + parts.newer):
        return False
    # "The boss is Ada", "the boss is away": only two names exclude each other.
    if before[opener - 1] in words("any_value_nouns") or "favorite" in before:
        return True
    values = ((parts.older[0], older), (parts.newer[0], newer))
    return all(word in statement.names or "@" in word for word, statement in values)


def _ends_in_value_noun(sequence: tuple[str, ...]) -> bool:
    """Whether the last word, or the last characters in unspaced scripts, is such a noun."""
    if not words("value_nouns").isdisjoint(sequence[-1:]):
        return True
    return "".join(sequence).endswith(tuple(words("value_noun_ends")))


def _is_number(value: tuple[str, ...]) -> bool:
    return any(_DIGIT.search(word) or word in words("numbers") for word in (value[0], value[-1]))


def _units(value: tuple[str, ...]) -> list[str]:
    """The units of a number: "2 cats" is not about "3 dogs"."""
    others = words("numbers") | words("months") | words("links")
    return [word for word in value if not _DIGIT.search(word) and word not in others]


def _other_claim(older: Statement, newer: Statement) -> str:
    """The reason if somebody lives or works elsewhere.

    Not if the values share a word or its beginning (a town's name may be inflected, or given
    with its country), nor if only one value is a country.
    """
    for attribute in ("place", "employer"):
        subject, value = _claim(attribute, older)
        other_subject, other = _claim(attribute, newer)
        if not value or not other or subject != other_subject:
            continue
        regions = words("regions")
        if regions.isdisjoint(value) == regions.isdisjoint(other) and not any(
            _same_name(name, other_name) for name in value for other_name in other
        ):
            return f"the {attribute} '{_shown(value)}' became '{_shown(other)}'"
    return ""


def _claim(attribute: str, statement: Statement) -> tuple[str, tuple[str, ...]]:
    """Whose single `attribute` a short statement names, and its value; empty without one.

    In scripts with capital letters the value must begin with one: "works at night" and "lives in
    fear" claim neither an employer nor a place.
    """
    sequence = statement.words
    if statement.negations or len(sequence) > _LONGEST_CLAIM:
        return "", ()
    unspaced = sum(len(word) == 1 for word in sequence) > len(sequence) // 2
    text = ("" if unspaced else " ").join(sequence)
    for pattern in _claims(attribute, unspaced):
        if match := pattern.match(text):
            # A circumstance follows the value.
            value = tuple(takewhile(_may_be_of_value, match["value"].split()))
            named = unspaced or not statement.names.isdisjoint(value[:1])
            return match["subject"], value if named and len(value) <= _LONGEST_VALUE else ()
    return "", ()


def _may_be_of_value(word: str) -> bool:
    return word not in words("after_values")


@cache
def _claims(attribute: str, unspaced: bool) -> tuple[re.Pattern[str], ...]:
    if unspaced:
        return tuple(map(re.compile, each(attribute, spaced=False)))
    now = "|".join(sorted(words("now")))
    subject = rf"^(?P<subject>(?:\S+ ){{0,3}}?\S+) (?:(?:{now}) )?"
    patterns = [rf"{subject}(?:{either(attribute)}) (?P<value>.+)$"]
    if ends := either(f"{attribute}_ends"):
        patterns.append(f"{subject}(?:{ends})$")
    return tuple(map(re.compile, patterns))


def _same_name(name: str, other: str) -> bool:
    if name.isascii():
        return name == other
    return name in other or other in name or name[:4] == other[:4]


def _joined(sequence: tuple[str, ...]) -> str:
    return ("" if all(len(word) == 1 for word in sequence) else " ").join(sequence)


def _shown(sequence: tuple[str, ...]) -> str:
    return _joined(sequence)[:80]
