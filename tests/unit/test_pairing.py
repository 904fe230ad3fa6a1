import itertools

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
from thermocline.daemon.memory.similarity import jaccard, words

NOW = 1_800_000_000.0
VOCABULARY = ["user", "likes", "hates", "never", "tea", "code", "is", "4", "5"]
SMALL = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=5), max_size=7)


def dated(*texts):
    return [
        Memory(id=str(i), text=text, created_at=NOW + i, updated_at=NOW)
        for i, text in enumerate(texts)
    ]


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
