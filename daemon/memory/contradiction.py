"""Whether a newer statement repeats an older one, contradicts it, or has nothing to do with it.

Precision comes first. A false duplicate loses what the older one said, so that only the same
words in the same order are one; a differing number, name, date or denial never is. A false
contradiction ranks a true memory down, so that each kind has a narrow rule of its own:

* a denial: the same statement with "not", "never", 不, ない …;
* an opposite: "enabled" for "disabled", "is open" for "is closed";
* a changed value: of a code, an address, a time, "the gate code is 4711";
* a claim of which there is one: the place that somebody lives in.

All else is unrelated. Nothing here knows who said it, or when: see `pairing`.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from .claims import claim_of, excludes
from .similarity import exact_key
from .statement import Difference, Statement, difference, read
from .values import value_changed
from .vocabulary import COPULAS, OPPOSITE_STATES, OPPOSITE_VERBS, PLACING

Relation: TypeAlias = Literal["duplicate", "contradiction", "unrelated"]

_LONGEST_VALUE: Final = 4
_FRONTED: Final = frozenset(("on", "in", "at", "every", "since", "until", "during", "after"))
_MOVES_TRIED: Final = 8
_KANA: Final = re.compile("[\u3041-\u309f]{0,10}")
# A denial often turns the particle: 魚を食べます, 魚は食べません.
_PARTICLES: Final = re.compile("[をがも]")
_KANA_DENIES: Final = re.compile("ない|なかった|なく|ません|ぬ$")
_HANGUL: Final = re.compile("[\uac00-\ud7a3 ]{0,10}")
_HANGUL_DENIES: Final = re.compile("지 (?:않|못)|없|아니|아닙|안 ")


class Judgement(msgspec.Struct, frozen=True):
    """How two statements relate, and why, in words to show; no reasons where unrelated."""

    relation: Relation
    reasons: tuple[str, ...] = ()


UNRELATED: Final = Judgement("unrelated")


def judge(older: str, newer: str) -> Judgement:
    """How the text `newer` relates to the text `older`."""
    if exact_key(older) == exact_key(newer):
        return Judgement("duplicate", ("the same words",))
    return judge_statements(read(older), read(newer))


def judge_statements(older: Statement, newer: Statement) -> Judgement:
    """`judge` for texts that were read before. Either way around a duplicate is a duplicate."""
    if older.asks != newer.asks:
        return UNRELATED
    if not older.words or not newer.words:
        same = exact_key(older.text) == exact_key(newer.text)
        return Judgement("duplicate", ("the same signs",)) if same else UNRELATED
    if older.words == newer.words:
        exact = exact_key(older.text) == exact_key(newer.text)
        but = "" if exact else " but for punctuation and spelling"
        return Judgement("duplicate", (f"the same words{but}",))
    if _fronted(older.words, newer.words):
        return Judgement("duplicate", ("the same words, with a circumstance moved",))
    if older.asks or older.open or newer.open:
        return UNRELATED
    reason = (
        _denial(older, newer)
        or _denied_ending(older, newer)
        or _difference_reason(older, newer)
        or _other_claim(older, newer)
    )
    return Judgement("contradiction", (reason,)) if reason else UNRELATED


def unkana(text: str) -> str:
    """`text` without hiragana: what a Japanese statement and its denial share."""
    return re.sub("[\u3041-\u309f\\s。、]", "", text)


def _fronted(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a circumstance such as "on Monday" only moved from the end to the front."""
    if len(one) != len(other) or sorted(one) != sorted(other):
        return False
    return _moved(one, other) or _moved(other, one)


def _moved(plain: tuple[str, ...], fronted: tuple[str, ...]) -> bool:
    cuts = [i for i, word in enumerate(plain) if i and word in _FRONTED and word == fronted[0]]
    return any(plain[cut:] + plain[:cut] == fronted for cut in cuts[:_MOVES_TRIED])


def _denial(older: Statement, newer: Statement) -> str | None:
    if bool(older.negations) == bool(newer.negations) or older.core != newer.core:
        return None
    if sum(map(len, older.core)) < 3:
        return None
    return _denies(newer.negations)


def _denied_ending(older: Statement, newer: Statement) -> str | None:
    """A denial that is told by the ending of the verb, as in Japanese and Korean."""
    if older.text.isascii() or newer.text.isascii():
        return None
    for ending, denies in ((_KANA, _KANA_DENIES), (_HANGUL, _HANGUL_DENIES)):
        denied = [bool(denies.search(text)) for text in (older.text, newer.text)]
        if denied[0] == denied[1]:
            continue
        parts = difference(
            *(tuple(_PARTICLES.sub("は", s.text.rstrip("。."))) for s in (older, newer))
        )
        changed = ("".join(parts.older), "".join(parts.newer))
        if len(parts.before) >= 2 and all(ending.fullmatch(part) for part in changed):
            return _denies(denied[1])
    return None


def _denies(newer_denies: object) -> str:
    return "the newer denies the older" if newer_denies else "the older denies the newer"


def _difference_reason(older: Statement, newer: Statement) -> str | None:
    if older.negations != newer.negations:
        return None
    parts = difference(older.words, newer.words)
    lengths = (len(parts.older), len(parts.newer))
    if min(lengths) == 0 or max(lengths) > _LONGEST_VALUE:
        return None
    if (not older.negations and _opposite(parts)) or value_changed(parts, older, newer):
        return f"'{_shown(parts.older)}' became '{_shown(parts.newer)}'"
    return None


def _opposite(parts: Difference) -> bool:
    pair = frozenset((_joined(parts.older), _joined(parts.newer)))
    if pair in OPPOSITE_VERBS:
        return bool(parts.before or parts.after)
    if pair not in OPPOSITE_STATES or not parts.before:
        return False
    if parts.after and not PLACING.isdisjoint(pair):
        return False
    said = parts.before[-1] in COPULAS or parts.before[-1] in {"prefers", "prefer"}
    return said or not parts.after


def _other_claim(older: Statement, newer: Statement) -> str | None:
    before, after = claim_of(older), claim_of(newer)
    if before is None or after is None or not excludes(before, after):
        return None
    return f"the {before.attribute} '{_shown(before.value)}' became '{_shown(after.value)}'"


def _joined(words: tuple[str, ...]) -> str:
    return ("" if all(len(word) == 1 for word in words) else " ").join(words)


def _shown(words: tuple[str, ...]) -> str:
    return _joined(words)[:80]
