import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.similarity import (
    exact_key,
    fold,
    jaccard,
    words,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
JACCARD = json.loads((VECTORS / "tinyclaw_scoring.json").read_text())["jaccard"]


def overlap(one, other):
    return jaccard(frozenset(words(one)), frozenset(words(other)))


def test_texts_that_differ_only_in_how_they_are_written_share_their_key():
    for one, other in [
        ("The gate code is 4711", "  the GATE code\n is 4711. "),
        ("门禁密码是４７１１。", "门禁密码是4711"), ("ｺｰﾋｰが好き", "コーヒーが好き!"),
        ("Die STRASSE", "die Straße"), ("café", "cafe\u0301"),
        ("Anna isn’t here", "Anna isn't here"), ("soft\u00adhyphen\u200b", "softhyphen"),
        ("वह चाय पीता है।", "वह चाय पीता है"), ("ΟΔΟΣ", "οδος"),
    ]:  # fmt: skip
        assert exact_key(one) == exact_key(other)


@given(st.text())
def test_the_key_of_a_key_is_the_key(text):
    assert exact_key(exact_key(text)) == exact_key(text)
    assert fold(fold(text)) == fold(text)


@given(st.text(min_size=1), st.sampled_from([" ", "\n", "\u3000", "  \t"]))
def test_blanks_around_a_text_never_change_its_key(text, blank):
    assert exact_key(blank + text + blank) == exact_key(text)


# Tiny Claw leaves out words of two letters, which the second of its cases has one of.
def test_the_overlap_of_words_is_that_of_tiny_claw():
    for case in [JACCARD[0], JACCARD[2]]:
        assert overlap(case["a"], case["b"]) == pytest.approx(case["similarity"])


def test_short_words_count_for_the_overlap_too():
    assert overlap(JACCARD[1]["a"], JACCARD[1]["b"]) == pytest.approx(11 / 12)


def test_words_keep_their_marks_and_unspaced_scripts_come_in_pairs():
    assert words("हिन्दी में, ÉCOLE") == ["हिन्दी", "में", "école"]
    assert words("我喜欢茶") == ["我喜", "喜欢", "欢茶"]


@given(st.text(), st.text())
def test_overlaps_are_symmetric_shares(one, other):
    assert 0.0 <= overlap(one, other) <= 1.0
    assert overlap(one, other) == overlap(other, one)


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_jaccard_is_intersection_by_union(one, other):
    expected = len(one & other) / len(one | other) if one | other else 0.0
    assert jaccard(one, other) == expected


def test_a_text_of_the_largest_size_is_read_at_once():
    for part in ["a", "密码", "ab ", "x1/", "É", "ไม่", "a\u0301", "'", "😀"]:
        text = (part * 65_536)[:65_536]
        assert exact_key(text)
        assert overlap(text, text) == (1.0 if words(text) else 0.0)
