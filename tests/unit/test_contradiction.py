import itertools
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.comparison import (
    find_clusters,
    find_duplicates,
    is_duplicate,
    judge,
    keys_of,
)
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.similarity import exact_key, jaccard, words

FILE = Path(__file__).parents[1] / "data" / "statement_pairs.txt"
PAIRS = [
    tuple(line.split(" | "))
    for line in FILE.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
DUPLICATES = [(older, newer) for relation, older, newer in PAIRS if relation == "duplicate"]
RELATIONS = ("duplicate", "contradiction", "unrelated")


def stored(key, text, created_at):
    return Memory(id=key, text=text, created_at=created_at, updated_at=created_at)


def test_the_labelled_pairs_are_judged_without_a_false_duplicate():
    judged = Counter((label, judge(older, newer).relation) for label, older, newer in PAIRS)
    precision, recall = {}, {}
    for relation in RELATIONS:
        right = judged[relation, relation]
        precision[relation] = right / sum(judged[label, relation] for label in RELATIONS)
        recall[relation] = right / sum(judged[relation, found] for found in RELATIONS)
        print(f"{relation:14} precision {precision[relation]:.3f} recall {recall[relation]:.3f}")
    assert len(PAIRS) >= 120
    assert precision["duplicate"] == 1.0
    assert precision["contradiction"] >= 0.97
    assert recall["duplicate"] >= 0.85
    assert recall["contradiction"] >= 0.9


def test_no_other_pair_is_taken_for_a_duplicate_in_either_order():
    others = [pair[1:] for pair in PAIRS if pair[0] != "duplicate"]
    both = [*others, *(pair[::-1] for pair in others)]
    assert [pair for pair in both if judge(*pair).relation == "duplicate"] == []


@given(st.text())
def test_every_text_is_its_own_duplicate(text):
    assert judge(text, text).relation == "duplicate"


@given(st.text(), st.sampled_from([".", " ", "!", "。", " .", "\n"]))
def test_memories_with_the_same_key_are_always_found(text, end):
    same = exact_key(text) == exact_key(text + end)
    pairs = find_duplicates([stored("a", text, 1.0), stored("b", text + end, 2.0)])
    assert not same or [pair.judgement.relation for pair in pairs] == ["duplicate"]


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_two_texts_can_be_judged_and_duplicates_are_so_in_both_orders(one, other):
    forth, back = judge(one, other), judge(other, one)
    assert (forth.relation == "duplicate") == (back.relation == "duplicate")
    assert bool(forth.reasons) == (forth.relation != "unrelated")


@given(st.sampled_from(DUPLICATES), st.integers(0, 10**9), st.integers(0, 10**9))
def test_texts_that_differ_in_a_number_are_never_duplicates(pair, one, other):
    relation = judge(f"{pair[0]} {one}", f"{pair[1]} {other}").relation
    assert relation != "duplicate" or one == other


@given(st.sampled_from(PAIRS), st.sampled_from(["not", "never", "nicht", "не", "不", "jamais"]))
def test_a_denial_that_only_one_of_them_has_rules_a_duplicate_out(pair, denial):
    assert judge(pair[1], f"{pair[1]} {denial}").relation != "duplicate"


def test_reasons_tell_what_changed():
    assert judge("The gate code is 4711", "The gate code is 9902").reasons == (
        "'4711' became '9902'",
    )
    assert judge("Anna lives in Berlin", "Anna moved from Berlin to Lisbon").reasons == (
        "the place 'berlin' became 'lisbon'",
    )
    assert judge("Likes tea", "Never likes tea").reasons == ("the newer denies the older",)
    assert judge("Never likes tea", "Likes tea").reasons == ("the older denies the newer",)
    assert judge("他不喜欢茶", "他喜欢茶").reasons == ("the older denies the newer",)


def test_texts_of_the_largest_size_are_judged_at_once():
    for part in ["a ", "密码", "not ", "is 5 ", "'", "moved to "]:
        text = (part * 65_536)[:65_536]
        assert judge("x " + text, text + " x").relation in RELATIONS
        pairs = find_duplicates([stored(str(i), f"{text} {i}", float(i)) for i in range(2)])
        assert pairs == []


# Many memories

VOCABULARY = ["user", "likes", "hates", "never", "tea", "code", "is", "4", "5"]
SMALL = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=5), max_size=7)


def dated(*texts):
    return [stored(str(at), text, float(at)) for at, text in enumerate(texts)]


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
        assert not keys_of(pair.older).isdisjoint(keys_of(pair.newer))
        assert is_duplicate(pair.older, pair.newer)


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
