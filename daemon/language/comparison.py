"""Compares two statements: the newer repeats the older, contradicts it, or is unrelated.

Precision comes first. A false duplicate loses the older statement, so only the same words are a
duplicate, in the same order but for a circumstance and equals; articles and words that mean the
same wherever they stand do not matter. A false contradiction ranks a true memory down, so each kind
has a narrow rule:

* a denial: the same statement with "not", "never", 不, ない …;
* an opposite: "enabled" for "disabled", "is open" for "is closed";
* a changed value: of a code, an address, a time, "the gate code is 4711";
* an exclusive claim: the place that somebody lives in;
* other words that tell of a change: see `replacing`.

Everything else is unrelated. For memories speakers, fields and times count as well. Two of them are
compared for a repetition only if they have the same words in any order. Similar ones are found by
their rarest words: two sets of words can overlap by a share t only if they have one of their
|words| − ⌈t·|words|⌉ + 1 rarest words in common.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import takewhile
from typing import Final, Literal, TypeAlias

import msgspec

from ..memory.records import (
    ENTITIES,
    IMPORTED,
    NOTE,
    SPOKEN_CONTEXT,
    Json,
    Memory,
    is_outside,
)
from ..memory.scoring import DAY
from ..memory.similarity import exact_key, jaccard
from ..memory.similarity import words as words_of
from .normal_form import Statement, gist_of, negations, read, wordings_of
from .replacing import are_two_beings, replaces
from .vocabulary import compiled, each, either, pairs, words
from .word_order import Difference, circumstance_moved, difference, equals_swapped

Relation: TypeAlias = Literal["duplicate", "contradiction", "unrelated"]

_DIGIT: Final = re.compile(r"\d")
# The verb endings that a denial may change: kana or Hangul.
_ENDINGS: Final = re.compile("[\u3041-\u309f]{0,10}|[\uac00-\ud7a3 ]{0,10}")
_LONGEST_VALUE: Final = 4
_LONGEST_CLAIM: Final = 24
# Letters of a word by which two statements are compared first, and how many words may differ.
_BEGINNING: Final = 3
_REWORDED: Final = 10


class Judgement(msgspec.Struct, frozen=True):
    """The relation of two statements, and the reasons for display; none if unrelated."""

    relation: Relation
    reasons: tuple[str, ...] = ()


UNRELATED: Final = Judgement("unrelated")


def judge(older: str, newer: str) -> Judgement:
    """The relation of the text `newer` to the text `older`."""
    judgement = repeats(older, newer)
    if judgement.relation == "duplicate":
        return judgement
    reason = _contradiction(older, newer)
    return Judgement("contradiction", (reason,)) if reason else UNRELATED


def _contradiction(older: str, newer: str) -> str:
    first, other = read(older), read(newer)
    if first.asks or other.asks or first.open or other.open:
        return ""
    contrasted = _contrasted(first, newer)
    if contrasted is None:
        return ""
    reason = (
        contrasted
        or _denial(first, other)
        or _denied_ending(first, other)
        or _changed(first, other)
        or _other_claim(first, other)
        # "We use pnpm, never npm" is not about npm.
        or replaces(_contrast().sub("", older), newer)
    )
    return "" if reason and are_two_beings(older, newer) else reason


def _contrasted(older: Statement, newer: str) -> str | None:
    """The reason if a newer text "A, not B" denies what the older says; None if it confirms it."""
    match = _contrast().search(newer)
    values = _values(older)
    if match is None or not values:
        return ""
    confirmed = read(newer[: match.start()])
    # The first word of a statement is no name by its capital letter alone.
    contrast = read(f"not {match['denied']}")
    denied = _values(contrast)
    if denied and denied.isdisjoint(values) and values <= _values(confirmed):
        return None
    rest = {*gist_of(older)} - denied - {*gist_of(contrast)}
    if older.negations or denied.isdisjoint(values) or not rest <= {*gist_of(confirmed)}:
        return ""
    return f"the newer denies '{_shown(tuple(sorted(values & denied)))}'"


@cache
def _contrast() -> re.Pattern[str]:
    denials = "|".join(map(re.escape, sorted(negations(), key=len, reverse=True)))
    return re.compile(rf"[,;–—]\s*(?:{denials})\s+(?P<denied>[^,;!?]+?)[.!]?$", re.IGNORECASE)


def _values(statement: Statement) -> frozenset[str]:
    return statement.names | {word for word in statement.words if _DIGIT.search(word)}


def repeats(older: str, newer: str) -> Judgement:
    """Whether two texts say the same; the order does not matter."""
    if exact_key(older) == exact_key(newer):
        return Judgement("duplicate", ("the same words",))
    statements = read(older), read(newer)
    # Without most words beginning alike the wordings need not be compared.
    begins, others = (frozenset(word[:_BEGINNING] for word in each.words) for each in statements)
    if statements[0].asks != statements[1].asks or len(begins ^ others) > _REWORDED:
        return UNRELATED
    texts = statements[0].text, statements[1].text
    names = statements[0].names | statements[1].names
    for first, other in zip(*map(wordings_of, statements), strict=True):
        if first and sorted(first) == sorted(other):
            reason = ""
            if first == other:
                reason = "the same words but for spelling and small words"
            elif circumstance_moved(first, other):
                reason = "the same words, with a circumstance moved"
            elif equals_swapped(first, other, texts, names):
                reason = "the same words, with equals in another order"
            if reason:
                return Judgement("duplicate", (reason,))
    return UNRELATED


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
    parts = difference(_lasting_words(older), _lasting_words(newer))
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
    if len(before) < 2 or not words("links", "connecting").isdisjoint(
        parts.older[1:] + parts.newer[1:]
    ):
        return False
    are_numbers = _is_number(parts.older) and _is_number(parts.newer)
    between = words("links", "months") if are_numbers else frozenset()
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
        opens = before[opener] in words("copulas", "state_verbs")
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
    others = words("numbers", "months", "links")
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
    sequence = _lasting_words(statement)
    if statement.negations or len(sequence) > _LONGEST_CLAIM:
        return "", ()
    unspaced = sum(len(word) == 1 for word in sequence) > len(sequence) // 2
    text = ("" if unspaced else " ").join(sequence)
    after = words("after_values")
    for pattern in _claims(attribute, unspaced):
        if match := pattern.match(text):
            # A circumstance follows the value.
            value = tuple(takewhile(lambda word: word not in after, match["value"].split()))
            named = unspaced or not statement.names.isdisjoint(value[:1])
            return match["subject"], value if named and len(value) <= _LONGEST_VALUE else ()
    return "", ()


def _lasting_words(statement: Statement) -> tuple[str, ...]:
    """Its words but "now"."""
    return tuple(word for word in statement.words if word not in words("now"))


@cache
def _claims(attribute: str, unspaced: bool) -> tuple[re.Pattern[str], ...]:
    if unspaced:
        return tuple(map(re.compile, each(attribute, spaced=False)))
    subject = r"^(?P<subject>(?:\S+ ){0,3}?\S+) "
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


# In `data`: what is derived from a text, what was said beside it, and where it comes from.
_BESIDE_TEXT: Final = frozenset({ENTITIES, IMPORTED, NOTE, SPOKEN_CONTEXT})
# ScalyClaw's.
THRESHOLD: Final = 0.85
CLUSTER: Final = 5
# Equal events more than a day apart are two events.
SAME_EPISODE: Final = DAY
_NEIGHBOURS: Final = 8
_HOLDERS: Final = 64
_ROUNDING: Final = 1e-9


class RelatedPair(msgspec.Struct, frozen=True):
    """Two memories, of which the newer repeats or replaces the older."""

    older: Memory
    newer: Memory
    judgement: Judgement


def find_duplicates(memories: Sequence[Memory]) -> list[RelatedPair]:
    """The memories that repeat another, each with the newest that says the same.

    Turns of a conversation and retired memories are not paired, nor are memories that differ in
    type, event, actor, subject, outcome or data. Events (type `episodic`) repeat only within a day.

    The order is that of `created_at` of the older memory.
    """
    groups: dict[int, list[Memory]] = defaultdict(list)
    for memory in sorted(memories, key=_age):
        for key in keys_of(memory):
            groups[key].append(memory)
    pairs: dict[str, RelatedPair] = {}
    for group in groups.values():
        for at, older in enumerate(group[:-1], 1):
            for newer in (group[-1], *group[at : at + _NEIGHBOURS][::-1]):
                judgement = judge_duplicate(older, newer)
                if judgement.relation == "duplicate":
                    known = pairs.get(older.id)
                    if known is None or _age(known.newer) < _age(newer):
                        pairs[older.id] = RelatedPair(older, newer, judgement)
                    break
    return sorted(pairs.values(), key=lambda pair: _age(pair.older))


def find_clusters(
    memories: Sequence[Memory], threshold: float = THRESHOLD, size: int = CLUSTER
) -> list[list[Memory]]:
    """Groups of 2 to `size` memories of one type whose words overlap by `threshold` or more.

    Greedy like ScalyClaw's: the newest memory without a group collects those most similar to it.
    The groups are candidates for a summary and may contain contradictions.
    """
    ordered = sorted(filter(_eligible, memories), key=_age, reverse=True)
    sets = [frozenset(words_of(memory.text)) for memory in ordered]
    alike = _alike(sets, threshold)
    taken: set[int] = set()
    clusters = []
    for seed in range(len(ordered)):
        if seed in taken:
            continue
        near = [i for i in alike[seed] if i not in taken and ordered[i].type == ordered[seed].type]
        near.sort(key=lambda i: (-jaccard(sets[seed], sets[i]), i))
        members = [seed, *near[: size - 1]]
        if len(members) > 1:
            taken.update(members)
            clusters.append([ordered[i] for i in members])
    return clusters


def contradicts(older: Memory, newer: Memory) -> bool:
    """Whether a memory contradicts an older one. Events are never replaced."""
    return bool(contradiction(older, newer))


def contradiction(older: Memory, newer: Memory) -> str:
    """Why a memory contradicts an older one, for display, or ""; see `contradicts`."""
    # In the order of what each costs: most pairs contradict nothing.
    if older.type == "episodic" or not (_eligible(older) and _eligible(newer)):
        return ""
    if not comparable(_without_own_subject(older), _without_own_subject(newer)):
        return ""
    reason = _contradiction(older.text, newer.text)
    return "" if reason and repeats(older.text, newer.text).relation == "duplicate" else reason


def _without_own_subject(memory: Memory) -> Memory:
    """A memory without a subject that its text names: "Debian" of "the server has Debian 12"."""
    is_own = memory.subject and memory.subject.casefold() in memory.text.casefold()
    return msgspec.structs.replace(memory, subject="") if is_own else memory


def judge_duplicate(older: Memory, newer: Memory) -> Judgement:
    """Whether a memory repeats an older one."""
    if not (_eligible(older) and _eligible(newer) and comparable(older, newer)):
        return UNRELATED
    if is_outside(older.source) != is_outside(newer.source):
        return UNRELATED
    apart = newer.created_at - older.created_at
    if (older.type, older.event) != (newer.type, newer.event) or (
        older.type == "episodic" and apart > SAME_EPISODE
    ):
        return UNRELATED
    return repeats(older.text, newer.text)


def is_duplicate(older: Memory, newer: Memory) -> bool:
    """Whether two memories say the same by the rules of `find_duplicates`."""
    return judge_duplicate(older, newer).relation == "duplicate"


def keys_of(memory: Memory) -> frozenset[int]:
    """Numbers of which a memory shares one with each that it repeats; none if it takes no part.

    Valid within one process.
    """
    if not _eligible(memory):
        return frozenset()
    wordings = wordings_of(read(memory.text))
    return frozenset(hash(tuple(sorted(words)) or exact_key(memory.text)) for words in wordings)


def comparable(older: Memory, newer: Memory) -> bool:
    """Whether the fields of two memories allow that they are about the same thing."""
    return (
        _speaker(older.actor) == _speaker(newer.actor)
        # What came from outside replaces nothing that somebody's word stands for.
        and (is_outside(older.source) or not is_outside(newer.source))
        and _agree(older.subject.casefold(), newer.subject.casefold())
        and _agree(older.outcome, newer.outcome)
        and (_data(older) is None or _data(newer) is None or _data(older) == _data(newer))
    )


def _speaker(actor: str) -> str:
    return "" if actor in {"user", "assistant"} else actor


def _alike(sets: Sequence[frozenset[str]], threshold: float) -> list[list[int]]:
    """For each set, the sets that overlap it by `threshold`; if there are many, the nearest."""
    frequency = Counter(word for bag in sets for word in bag)
    holders: dict[str, list[int]] = defaultdict(list)
    alike: list[list[int]] = [[] for _ in sets]
    for i, bag in enumerate(sets):
        shared_at_least = math.ceil(threshold * len(bag) - _ROUNDING)
        rarest = sorted(bag, key=lambda word: (frequency[word], word))
        near: set[int] = set()
        for word in rarest[: len(bag) - shared_at_least + 1]:
            near.update(holders[word][-_HOLDERS:])
            holders[word].append(i)
        for j in near:
            if jaccard(bag, sets[j]) >= threshold:
                alike[i].append(j)
                alike[j].append(i)
    return alike


def _eligible(memory: Memory) -> bool:
    return memory.merged_into is None and memory.position is None


def _data(memory: Memory) -> Json:
    """The data of a memory's own."""
    if not isinstance(memory.data, dict):
        return memory.data
    return {k: v for k, v in memory.data.items() if k not in _BESIDE_TEXT} or None


def _age(memory: Memory) -> tuple[float, float, str]:
    return memory.created_at, memory.updated_at, memory.id


def _agree(first: str, other: str) -> bool:
    return not first or not other or first == other
