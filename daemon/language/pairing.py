"""Finds the memories that repeat or contradict each other, in time that grows with their number.

Two memories are compared only if they share a key: their words, their words without a denial, the
words before a value, or the subject of a claim. Within a key only neighbours in time are compared.
Similar memories are found by their rarest words: two sets of words can overlap by a share t only
if they have one of their |words| − ⌈t·|words|⌉ + 1 rarest words in common.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, TypeAlias

import msgspec

from ..memory.records import ENTITIES, NOTE, Json, Memory, outranks
from ..memory.scoring import DAY
from ..memory.similarity import exact_key, jaccard, words
from . import comparison
from .comparison import UNRELATED, Judgement
from .normal_form import Statement, read
from .replacing import SameMeaning, replaces

Key: TypeAlias = tuple[Hashable, ...]

# ScalyClaw's.
THRESHOLD: Final = 0.85
CLUSTER: Final = 5
# Equal events more than a day apart are two events.
SAME_EPISODE: Final = DAY
_NEIGHBOURS: Final = 8
_HOLDERS: Final = 64
_ROUNDING: Final = 1e-9
_SIGN: Final = "±"


class RelatedPair(msgspec.Struct, frozen=True):
    """Two memories that repeat or contradict each other, by their time of creation.

    In reverse order if the later one was inferred and contradicts what a user stated.
    """

    older: Memory
    newer: Memory
    judgement: Judgement


def find_pairs(memories: Sequence[Memory]) -> list[RelatedPair]:
    """The duplicates and contradictions among `memories`, each older memory at most once.

    A duplicate is paired with the newest memory that says the same, and not otherwise; a
    contradicted memory with the next newer one that contradicts it. Turns of a conversation and
    retired memories are not paired, nor are memories that differ in type, actor, subject, outcome
    or data. Events (type `episodic`) are duplicates only within a day, and never contradicted.

    The order is that of `created_at` of the older memory.
    """
    ordered = sorted(filter(_eligible, memories), key=_age)
    statements = [read(memory.text) for memory in ordered]
    buckets: dict[Key, list[int]] = defaultdict(list)
    for i, statement in enumerate(statements):
        for key in _keys(statement):
            buckets[key].append(i)
    found: dict[int, RelatedPair] = {}
    candidates = {pair for bucket in buckets.values() for pair in _neighbours(bucket)}
    for i, j in candidates:
        judgement = comparison.judge_statements(statements[i], statements[j])
        if _related(ordered[i], ordered[j], judgement):
            if judgement.relation == "contradiction" and outranks(ordered[i], ordered[j]):
                i, j = j, i  # noqa: PLW2901 - the statement stays
            pair = RelatedPair(ordered[i], ordered[j], judgement)
            if _says_more(pair, found.get(i)):
                found[i] = pair
    return [found[i] for i in sorted(found)]


def find_clusters(
    memories: Sequence[Memory], threshold: float = THRESHOLD, size: int = CLUSTER
) -> list[list[Memory]]:
    """Groups of 2 to `size` memories of one type whose words overlap by `threshold` or more.

    Greedy like ScalyClaw's: the newest memory without a group collects those most similar to it.
    The groups are candidates for a summary and may contain contradictions.
    """
    ordered = sorted(filter(_eligible, memories), key=_age, reverse=True)
    sets = [frozenset(words(memory.text)) for memory in ordered]
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


def judge_pair(older: Memory, newer: Memory, same: SameMeaning | None = None) -> Judgement:
    """The relation of two memories: that of `find_pairs`, or the newer replaces the older.

    `same` decides whether two words mean the same; by default only equal words do.
    """
    if not _eligible(older) or not _eligible(newer):
        return UNRELATED
    judgement = comparison.judge(older.text, newer.text)
    if judgement.relation == "unrelated" and (reason := replaces(older.text, newer.text, same)):
        judgement = Judgement("contradiction", (reason,))
    return judgement if _related(older, newer, judgement) else UNRELATED


def is_duplicate(older: Memory, newer: Memory) -> bool:
    """Whether two memories say the same by the rules of `find_pairs`."""
    if not _eligible(older) or not _eligible(newer):
        return False
    judgement = comparison.judge(older.text, newer.text)
    return judgement.relation == "duplicate" and _related(older, newer, judgement)


def keys_of(memory: Memory) -> frozenset[int]:
    """Numbers such that a memory shares at least one with every memory that it can be paired with.

    Valid within one process. Memories without a shared number can be left out of `find_pairs`,
    which keeps all its arguments in memory.
    """
    if not _eligible(memory):
        return frozenset()
    return frozenset(map(hash, _keys(read(memory.text))))


def comparable(older: Memory, newer: Memory) -> bool:
    """Whether the fields of two memories allow that they are about the same thing."""
    return (
        _speaker(older.actor) == _speaker(newer.actor)
        and _agree(older.subject.casefold(), newer.subject.casefold())
        and _agree(older.outcome, newer.outcome)
        and (_data(older) is None or _data(newer) is None or _data(older) == _data(newer))
    )


def _speaker(actor: str) -> str:
    return "" if actor in {"user", "assistant"} else actor


def _says_more(pair: RelatedPair, known: RelatedPair | None) -> bool:
    """Whether `pair` replaces the pair known for the same older memory."""
    repeats = pair.judgement.relation == "duplicate"
    if known is None or repeats != (known.judgement.relation == "duplicate"):
        return known is None or repeats
    later = _age(pair.newer) > _age(known.newer)
    return later if repeats else not later


def _related(older: Memory, newer: Memory, judgement: Judgement) -> bool:
    if judgement.relation == "unrelated" or not comparable(older, newer):
        return False
    if judgement.relation == "contradiction":
        return older.type != "episodic"
    apart = newer.created_at - older.created_at
    return older.type == newer.type and (older.type != "episodic" or apart <= SAME_EPISODE)


def _neighbours(bucket: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each with the next few, and with the newest."""
    newest = len(bucket) - 1
    for place, older in enumerate(bucket[:-1]):
        for later in range(place + 1, min(place + _NEIGHBOURS, newest) + 1):
            yield older, bucket[later]
        if place + _NEIGHBOURS < newest:
            yield older, bucket[newest]


def _keys(statement: Statement) -> Iterator[Key]:
    """The keys of a statement; duplicates and contradictions share at least one."""
    yield ("words", *(sorted(statement.words) or (exact_key(statement.text),)))
    if statement.asks or statement.open:
        return
    yield ("core", *statement.core)
    yield ("opposite", *_without_opposites(statement))
    slot = comparison.value_slot(statement.words)
    if slot is not None:
        yield ("slot", *statement.words[:slot])
    claim = comparison.claim_of(statement)
    if claim is not None:
        yield ("claim", claim.attribute, *claim.subject)
    if not statement.text.isascii():
        yield ("ending", comparison.without_ending(statement.text))
        yield ("beginning", *statement.words[:1])


def _without_opposites(statement: Statement) -> Iterable[str]:
    """The words, with a sign in place of each word that has an opposite."""
    spaced, unspaced = _opposites()
    signed = [_SIGN if word in spaced else word for word in statement.words]
    if statement.text.isascii():
        return signed
    return unspaced.sub(_SIGN, " ".join(signed)).split()


@cache
def _opposites() -> tuple[frozenset[str], re.Pattern[str]]:
    """The words with an opposite, and a pattern for those of unspaced scripts."""
    every = comparison.opposites()
    apart = sorted(" ".join(word) for word in every if word[0] > "\u3000" and len(word) < 3)
    return every, re.compile("|".join(apart))


def _alike(sets: Sequence[frozenset[str]], threshold: float) -> list[list[int]]:
    """For each set, the sets that overlap it by `threshold`; if there are many, the nearest."""
    frequency = Counter(word for each in sets for word in each)
    holders: dict[str, list[int]] = defaultdict(list)
    alike: list[list[int]] = [[] for _ in sets]
    for i, each in enumerate(sets):
        shared_at_least = math.ceil(threshold * len(each) - _ROUNDING)
        rarest = sorted(each, key=lambda word: (frequency[word], word))
        near: set[int] = set()
        for word in rarest[: len(each) - shared_at_least + 1]:
            near.update(holders[word][-_HOLDERS:])
            holders[word].append(i)
        for j in near:
            if jaccard(each, sets[j]) >= threshold:
                alike[i].append(j)
                alike[j].append(i)
    return alike


def _eligible(memory: Memory) -> bool:
    return memory.merged_into is None and memory.position is None


def _data(memory: Memory) -> Json:
    """The data without the parts that are derived from the text."""
    if not isinstance(memory.data, dict):
        return memory.data
    return {k: v for k, v in memory.data.items() if k not in {ENTITIES, NOTE}} or None


def _age(memory: Memory) -> tuple[float, float, str]:
    return memory.created_at, memory.updated_at, memory.id


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other
