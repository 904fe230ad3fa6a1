"""Which memories repeat or contradict each other, considering who stated them and when.

Two memories are compared for a repetition only if they have the same words in any order. Similar
memories are found by their rarest words: two sets of words can overlap by a share t only if they
have one of their |words| − ⌈t·|words|⌉ + 1 rarest words in common.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from ..memory.records import ENTITIES, NOTE, Json, Memory
from ..memory.scoring import DAY
from ..memory.similarity import exact_key, jaccard, words
from .comparison import UNRELATED, Judgement, judge, repeats
from .normal_form import read

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
    type, actor, subject, outcome or data. Events (type `episodic`) repeat only within a day.

    The order is that of `created_at` of the older memory.
    """
    groups: dict[int | None, list[Memory]] = defaultdict(list)
    for memory in sorted(memories, key=_age):
        groups[key_of(memory)].append(memory)
    groups.pop(None, None)
    pairs = []
    for group in groups.values():
        for at, older in enumerate(group[:-1], 1):
            for newer in (group[-1], *group[at : at + _NEIGHBOURS][::-1]):
                judgement = judge_duplicate(older, newer)
                if judgement.relation == "duplicate":
                    pairs.append(RelatedPair(older, newer, judgement))
                    break
    return sorted(pairs, key=lambda pair: _age(pair.older))


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


def judge_pair(older: Memory, newer: Memory) -> Judgement:
    """Whether a memory repeats an older one, or replaces it. Events are never replaced."""
    if not (_eligible(older) and _eligible(newer) and comparable(older, newer)):
        return UNRELATED
    judgement = judge(older.text, newer.text)
    if judgement.relation == "duplicate":
        return judge_duplicate(older, newer)
    return judgement if older.type != "episodic" else UNRELATED


def judge_duplicate(older: Memory, newer: Memory) -> Judgement:
    """`judge_pair`, without the comparison of what is not said twice."""
    if not (_eligible(older) and _eligible(newer) and comparable(older, newer)):
        return UNRELATED
    apart = newer.created_at - older.created_at
    if older.type != newer.type or (older.type == "episodic" and apart > SAME_EPISODE):
        return UNRELATED
    return repeats(older.text, newer.text)


def is_duplicate(older: Memory, newer: Memory) -> bool:
    """Whether two memories say the same by the rules of `find_duplicates`."""
    return judge_duplicate(older, newer).relation == "duplicate"


def key_of(memory: Memory) -> int | None:
    """A number that a memory shares with all that it repeats; None if it takes no part.

    Valid within one process.
    """
    if not _eligible(memory):
        return None
    return hash(tuple(sorted(read(memory.text).words)) or exact_key(memory.text))


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
