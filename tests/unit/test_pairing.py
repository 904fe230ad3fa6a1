import itertools
import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.comparison import (
    find_clusters,
    find_duplicates,
    judge,
    judge_pair,
    key_of,
)
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.memory.similarity import jaccard, words

NOW = 1_800_000_000.0
VOCABULARY = ["user", "likes", "hates", "never", "tea", "code", "is", "4", "5"]
SMALL = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=5), max_size=7)


def stored(key, text, created_at=NOW, **fields):
    return Memory(id=key, text=text, created_at=created_at, updated_at=NOW, **fields)


def dated(*texts, **fields):
    return [stored(str(i), text, NOW + i, **fields) for i, text in enumerate(texts)]


def brief(pairs):
    return [(pair.older.id, pair.newer.id) for pair in pairs]


def test_repeated_memories_are_paired_with_the_newest():
    texts = ["User likes tea", "Server is down", "user likes tea.", "User likes tea!"]
    pairs = find_duplicates(dated(*texts))
    assert brief(pairs) == [("0", "3"), ("2", "3")]


def test_the_order_of_the_list_does_not_matter_only_the_time_of_saying_does():
    memories = dated("User likes tea", "User never likes tea", "User likes tea")
    expected = brief(find_duplicates(memories))
    for order in itertools.permutations(memories):
        assert brief(find_duplicates(order)) == expected


def test_memories_that_differ_in_what_matters_are_no_duplicates():
    for fields in [
        {"actor": "Ben"}, {"subject": "Ben"}, {"outcome": "failed"}, {"data": {"n": 2}},
        {"type": "procedural"}, {"position": 4}, {"merged_into": "x"},
    ]:  # fmt: skip
        known = {"actor": "Anna", "subject": "Anna", "outcome": "done", "data": {"n": 1}}
        older = stored("a", "Likes tea", **known)
        assert (
            find_duplicates([older, stored("b", "Likes tea", NOW + 1, **{**known, **fields})]) == []
        )


def test_what_happened_on_two_days_happened_twice():
    memories = [
        stored("a", "Had pizza", NOW, type="episodic"),
        stored("b", "Had pizza", NOW + 3 * DAY, type="episodic"),
        stored("c", "Had pizza", NOW + 3 * DAY + 60, type="episodic"),
    ]
    assert brief(find_duplicates(memories)) == [("b", "c")]


def test_what_happened_is_contradicted_by_nothing_but_can_contradict():
    fact, event = "Anna lives in Berlin", "Anna moved to Lisbon"
    semantic, episodic = {"type": "semantic"}, {"type": "episodic"}
    moved = judge_pair(stored("a", fact, **semantic), stored("b", event, NOW + 1, **episodic))
    assert moved.relation == "contradiction"
    back = judge_pair(stored("a", event, **episodic), stored("b", fact, NOW + 1, **semantic))
    assert back.relation == "unrelated"


@given(SMALL)
def test_every_memory_that_has_a_duplicate_is_found_and_shares_its_key(lists):
    memories = dated(*(" ".join(parts) or "nothing" for parts in lists))
    expected = {
        older.id
        for older, newer in itertools.combinations(memories, 2)
        if judge(older.text, newer.text).relation == "duplicate"
    }
    pairs = find_duplicates(memories)
    assert {pair.older.id for pair in pairs} == expected
    for pair in pairs:
        assert key_of(pair.older) == key_of(pair.newer)
        assert judge_pair(pair.older, pair.newer) == pair.judgement


def test_what_takes_no_part_has_no_key_and_no_relation():
    for fields in [{"merged_into": "x"}, {"position": 4}]:
        one, other = dated("User likes tea", "User likes tea")
        apart = msgspec.structs.replace(other, **fields)
        assert key_of(apart) is None
        assert judge_pair(one, apart).relation == "unrelated"
        assert judge_pair(one, other).relation == "duplicate"


def test_five_thousand_memories_are_paired_without_comparing_all():
    chance = random.Random(11)
    names = ["".join(chance.choices("abcdefghijklmnop", k=5)) for _ in range(1_000)]
    texts = [" ".join(chance.choices(names, k=12)) for _ in range(3_000)]
    texts += [f"User likes {name}" for name in names]
    texts += [f"Door {name} code is {i}" for i, name in enumerate(names)]
    memories = dated("User prefers dark mode", *texts, "the user prefers dark mode")
    # One by one, the twelve million pairs would outlast the time that a test may take.
    assert ("0", str(len(memories) - 1)) in brief(find_duplicates(memories))
    assert find_clusters(memories)


def test_clusters_gather_what_is_alike_but_not_the_same():
    base = "the weekly backup of the photo archive runs on the small server in the cellar"
    memories = dated(f"{base} now", "Anna likes tea", f"{base} again", f"{base} today")
    clusters = find_clusters(memories, threshold=0.8)
    assert [[memory.id for memory in cluster] for cluster in clusters] == [["3", "2", "0"]]


def test_a_cluster_has_five_members_at_most_and_no_memory_is_in_two():
    memories = dated(*["the very same words every time"] * 12)
    clusters = find_clusters(memories)
    assert [len(cluster) for cluster in clusters] == [5, 5, 2]
    assert len({memory.id for cluster in clusters for memory in cluster}) == 12


def test_clusters_hold_one_type_only():
    memories = dated("one two three four", "one two three four")
    mixed = [memories[0], msgspec.structs.replace(memories[1], type="procedural")]
    assert find_clusters(mixed) == []


@given(
    st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=8), max_size=9),
    st.sampled_from([0.4, 0.5, 0.6, 0.75, 0.85, 1.0]),
)
def test_every_memory_with_one_alike_is_compared_with_it(lists, threshold):
    memories = dated(*(" ".join(parts) for parts in lists))
    clustered = {m.id for cluster in find_clusters(memories, threshold, 2) for m in cluster}
    for one, other in itertools.combinations(memories, 2):
        if jaccard({*words(one.text)}, {*words(other.text)}) >= threshold:
            assert one.id in clustered or other.id in clustered
