"""Compares two statements: the newer repeats the older, contradicts it, or is unrelated.

Precision comes first. A false duplicate loses the older statement, so only the same words in the
same order are a duplicate; statements that differ in a number, name, date or denial are not. A
false contradiction ranks a true memory down, so each kind has a narrow rule:

* a denial: the same statement with "not", "never", 不, ない …;
* an opposite: "enabled" for "disabled", "is open" for "is closed";
* a changed value: of a code, an address, a time, "the gate code is 4711";
* an exclusive claim: the place that somebody lives in.

Everything else is unrelated. `pairing` considers speakers and times.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec

from ..memory.similarity import exact_key
from .normal_form import Statement, read
from .vocabulary import compiled, each, either, pairs, words

Relation: TypeAlias = Literal["duplicate", "contradiction", "unrelated"]

_DIGIT: Final = re.compile(r"\d")
_HIRAGANA: Final = re.compile("[\u3041-\u309f\\s。、]")
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


class Claim(msgspec.Struct, frozen=True):
    """The claim that the single `attribute` of `subject` is `value`."""

    attribute: str
    subject: tuple[str, ...]
    value: tuple[str, ...]


class Judgement(msgspec.Struct, frozen=True):
    """The relation of two statements, and the reasons for display; none if unrelated."""

    relation: Relation
    reasons: tuple[str, ...] = ()


UNRELATED: Final = Judgement("unrelated")


def judge(older: str, newer: str) -> Judgement:
    """The relation of the text `newer` to the text `older`."""
    if exact_key(older) == exact_key(newer):
        return Judgement("duplicate", ("the same words",))
    return judge_statements(read(older), read(newer))


def judge_statements(older: Statement, newer: Statement) -> Judgement:
    """`judge` for texts that were already read. Duplicates are symmetric."""
    if older.asks != newer.asks:
        return UNRELATED
    if not older.words or not newer.words:
        same = exact_key(older.text) == exact_key(newer.text)
        return Judgement("duplicate", ("the same signs",)) if same else UNRELATED
    if older.words == newer.words:
        exact = exact_key(older.text) == exact_key(newer.text)
        but = "" if exact else " but for punctuation and spelling"
        return Judgement("duplicate", (f"the same words{but}",))
    if _fronted(older.words, newer.words) or _fronted(newer.words, older.words):
        return Judgement("duplicate", ("the same words, with a circumstance moved",))
    if older.asks or older.open or newer.open:
        return UNRELATED
    reason = (
        _denial(older, newer)
        or _denied_ending(older, newer)
        or _changed(older, newer)
        or _other_claim(older, newer)
    )
    return Judgement("contradiction", (reason,)) if reason else UNRELATED


def difference(older: tuple[str, ...], newer: tuple[str, ...]) -> Difference:
    """The one stretch in which two sequences differ, without their common ends."""
    shorter = min(len(older), len(newer))
    start = 0
    while start < shorter and older[start] == newer[start]:
        start += 1
    end = 0
    while end < shorter - start and older[-1 - end] == newer[-1 - end]:
        end += 1
    return Difference(
        older[:start],
        older[start : len(older) - end],
        newer[start : len(newer) - end],
        older[len(older) - end :],
    )


def value_slot(said: tuple[str, ...]) -> int | None:
    """The index where the value of "the gate code is 4711" begins, or None."""
    return next((at + 1 for at in range(len(said)) if _opens(said, at)), None)


def claim_of(statement: Statement) -> Claim | None:
    """The claim that a short statement makes, or None.

    In scripts with capital letters the value must begin with one: "works at night" and "lives in
    fear" claim neither an employer nor a place.
    """
    said = statement.words
    if statement.negations or not 3 <= len(said) <= _LONGEST_CLAIM:
        return None
    unspaced = sum(len(word) == 1 for word in said) > len(said) // 2
    text = ("" if unspaced else " ").join(said)
    for attribute in ("place", "employer"):
        for pattern in _claims(attribute, unspaced):
            found = pattern.match(text)
            if found is not None:
                value = _value(found["value"])
                named = value and (unspaced or value[0] in statement.names)
                return Claim(attribute, tuple(found["subject"].split()), value) if named else None
    return None


def without_ending(text: str) -> str:
    """`text` without hiragana: the part that a Japanese statement and its denial share."""
    return _HIRAGANA.sub("", text)


def opposites() -> frozenset[str]:
    """All words that have an opposite."""
    return frozenset[str]().union(*pairs("opposite_verbs"), *pairs("opposite_states"))


def _fronted(plain: tuple[str, ...], moved: tuple[str, ...]) -> bool:
    """Whether only a circumstance such as "on Monday" moved from the end to the front."""
    if len(plain) != len(moved) or moved[0] not in words("fronted"):
        return False
    cuts = [at for at, word in enumerate(plain) if at and word == moved[0]]
    return any(plain[cut:] + plain[:cut] == moved for cut in cuts[:_MOVES_TRIED])


def _denial(older: Statement, newer: Statement) -> str | None:
    if bool(older.negations) == bool(newer.negations) or older.core != newer.core:
        return None
    return _denies(bool(newer.negations)) if sum(map(len, older.core)) >= 3 else None


def _denied_ending(older: Statement, newer: Statement) -> str | None:
    """A denial by the ending of the verb, as in Japanese and Korean."""
    if older.text.isascii() or newer.text.isascii():
        return None
    ends, particles = compiled("{~denied_ending}"), compiled("{~particles}")
    denied = [bool(ends.search(one.text.rstrip("。."))) for one in (older, newer)]
    if denied[0] == denied[1]:
        return None
    texts = (tuple(particles.sub("は", one.text.rstrip("。."))) for one in (older, newer))
    parts = difference(*texts)
    changed = ("".join(parts.older), "".join(parts.newer))
    ending = len(parts.before) >= 2 and all(_ENDINGS.fullmatch(part) for part in changed)
    return _denies(denied[1]) if ending else None


def _denies(newer_denies: bool) -> str:
    return "the newer denies the older" if newer_denies else "the older denies the newer"


def _changed(older: Statement, newer: Statement) -> str | None:
    """The reason if a word became its opposite, or a value changed."""
    if older.negations != newer.negations:
        return None
    parts = difference(older.words, newer.words)
    lengths = (len(parts.older), len(parts.newer))
    if min(lengths) == 0 or max(lengths) > _LONGEST_VALUE:
        return None
    if (not older.negations and _opposite(parts)) or _value_changed(parts, older, newer):
        return f"'{_shown(parts.older)}' became '{_shown(parts.newer)}'"
    return None


def _opposite(parts: Difference) -> bool:
    pair = frozenset((_joined(parts.older), _joined(parts.newer)))
    if pair in pairs("opposite_verbs"):
        return bool(parts.before or parts.after)
    if pair not in pairs("opposite_states") or not parts.before:
        return False
    # Before more words some of them are prepositions: "on the desk".
    if parts.after and not words("placing").isdisjoint(pair):
        return False
    said = parts.before[-1] in words("copulas") or parts.before[-1] in {"prefers", "prefer"}
    return said or not parts.after


def _value_changed(parts: Difference, older: Statement, newer: Statement) -> bool:
    """Whether `older` and `newer`, which differ in `parts`, give the same thing two values.

    A differing number is always another value; a differing word only after a noun with a single
    value, since "the sky is blue" and "the sky is clear" are compatible.
    """
    if len(parts.before) < 2:
        return False
    for name in ("links", "connecting"):
        if not words(name).isdisjoint(parts.older[1:] + parts.newer[1:]):
            return False
    if _is_number(parts.older) and _is_number(parts.newer):
        return _number_changed(parts)
    return _word_changed(parts, older, newer)


def _number_changed(parts: Difference) -> bool:
    before = parts.before
    opener = len(before) - 1
    while opener > 0 and (before[opener] in words("links") or before[opener] in words("months")):
        opener -= 1
    # "Task code 5 is done": here the number only identifies the task.
    if parts.after and before[opener] in words("value_nouns"):
        return False
    if not _opens(before, opener):
        return False
    units = [tuple(filter(_is_unit, value)) for value in (parts.older, parts.newer)]
    return units[0] == units[1] or _has_noun(before, opener)


def _word_changed(parts: Difference, older: Statement, newer: Statement) -> bool:
    before = parts.before
    opener = len(before) - 1
    while opener > 0 and before[opener] in words("now"):
        opener -= 1
    if not _has_noun(before, opener):
        return False
    if not words("no_values").isdisjoint(parts.older + parts.newer):
        return False
    # "The boss is Ada", "the boss is away": only two names exclude each other.
    if before[opener - 1] in words("any_value_nouns") or "favorite" in before:
        return True
    names = ((parts.older[0], older), (parts.newer[0], newer))
    return all(word in one.names or "@" in word for word, one in names)


def _opens(said: tuple[str, ...], at: int) -> bool:
    """Whether a value may follow a word: "is", "costs", or "code" itself."""
    if at == 0:
        return False
    openers = ("copulas", "state_verbs", "value_nouns")
    return any(said[at] in words(name) for name in openers) or _ends_noun(
        said[max(0, at - 5) : at + 1]
    )


def _has_noun(said: tuple[str, ...], opener: int) -> bool:
    """Whether the opener is a copula right after a noun that has only one value."""
    if said[opener] not in words("copulas"):
        return False
    noun = said[opener - 1] in words("value_nouns") or _ends_noun(said[max(0, opener - 6) : opener])
    return noun or "favorite" in said[:opener]


def _ends_noun(said: tuple[str, ...]) -> bool:
    """Whether words of one character end in a noun that has only one value."""
    return "".join(said).endswith(tuple(words("value_noun_ends")))


def _is_number(value: tuple[str, ...]) -> bool:
    return any(_DIGIT.search(word) or word in words("numbers") for word in (value[0], value[-1]))


def _is_unit(word: str) -> bool:
    """Whether a word next to a number is its unit: "2 cats" is not about "3 dogs"."""
    others = ("numbers", "months", "links")
    return not (_DIGIT.search(word) or any(word in words(name) for name in others))


def _other_claim(older: Statement, newer: Statement) -> str | None:
    """The reason if one claim replaced another.

    Not if the values share a word or its beginning (a town's name may be inflected, or given
    with its country), nor if only one value is a country.
    """
    one, other = claim_of(older), claim_of(newer)
    if one is None or other is None:
        return None
    if (one.attribute, one.subject) != (other.attribute, other.subject):
        return None
    if any(_same_name(this, that) for this in one.value for that in other.value):
        return None
    if words("regions").isdisjoint(one.value) != words("regions").isdisjoint(other.value):
        return None
    return f"the {one.attribute} '{_shown(one.value)}' became '{_shown(other.value)}'"


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


def _value(said: str) -> tuple[str, ...]:
    named: list[str] = []
    for word in said.split():
        # A circumstance begins here.
        if word in words("after_values"):
            break
        named.append(word)
    fits = 1 <= len(named) <= _LONGEST_VALUE and named[0] not in words("indefinite")
    return tuple(named) if fits else ()


def _same_name(one: str, other: str) -> bool:
    if one.isascii():
        return one == other
    return one in other or other in one or one[:4] == other[:4]


def _joined(said: tuple[str, ...]) -> str:
    return ("" if all(len(word) == 1 for word in said) else " ").join(said)


def _shown(said: tuple[str, ...]) -> str:
    return _joined(said)[:80]
