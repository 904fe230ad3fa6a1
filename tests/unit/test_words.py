"""Words: their keys, stems and irregular forms, how texts overlap, and what is indexed of them."""

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.han import simplified
from thermocline.daemon.memory.indexing import index_text, indexed_columns
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.similarity import (
    exact_key,
    fold,
    jaccard,
    words,
)
from thermocline.daemon.memory.stemming import stem, variants

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
JACCARD = json.loads((VECTORS / "tinyclaw_scoring.json").read_text())["jaccard"]


def overlap(one, other):
    return jaccard(frozenset(words(one)), frozenset(words(other)))


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


def test_a_text_of_the_largest_size_is_read_at_once():
    for part in ["a", "密码", "ab ", "x1/", "É", "ไม่", "a\u0301", "'", "😀"]:
        text = (part * 65_536)[:65_536]
        assert exact_key(text)
        assert overlap(text, text) == (1.0 if words(text) else 0.0)


WORD_LIST = Path(__file__).parents[1] / "benchmarks" / "words.txt"
ENDINGS = "ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness"
ENDINGS += " fulness ousness aliti iviti biliti logi icate ative alize iciti ical ful ness al ance"
ENDINGS += " ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize ed ing eed ies"
ENDINGS += " sses ss s y e ll ting bled ffing sion"
HEADS = ("t", "tr", "tro", "trop", "hop", "fall", "adopt", "relat", "oper", "vy", "yell")


def test_a_stem_is_the_one_that_the_full_text_index_makes():
    words = [*WORD_LIST.read_text(encoding="ascii").split()]
    words += [head + ending for head in HEADS for ending in ENDINGS.split()]
    words = sorted({word.lower() for word in words if word.isalpha()})
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')")
    db.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, instance)")
    db.execute("INSERT INTO texts VALUES (?)", (" ".join(words),))
    made = [term for (term,) in db.execute("SELECT term FROM terms ORDER BY offset")]
    db.close()
    assert {word: stem(word) for word in words} == dict(zip(words, made, strict=True))


def test_no_form_is_its_own_variant_and_every_family_leads_back():
    forms = {
        form for start in ("went", "child", "lay", "best", "being") for form in variants(start)
    }
    for form in forms:
        assert form not in variants(form)
        assert all(form in variants(other) for other in variants(form))


@given(st.text(max_size=20))
def test_any_text_may_be_asked_for(word):
    assert all(other.islower() and other != word for other in variants(word))


@given(st.text(alphabet="東京都庁大阪府ab ", max_size=30))
def test_every_part_of_a_run_is_found_by_its_own_pairs(text):
    whole = f" {' '.join(index_text(text).split())} "
    for run in simplified(text).split():
        for start in range(len(run) - 1):
            part = run[start : start + 2]
            if all(char not in "ab" for char in part):
                assert f" {part} " in whole


@given(st.text())
def test_any_text_can_be_indexed(text):
    assert isinstance(index_text(text), str)


def test_the_columns_are_text_with_outcome_then_subject_then_tags():
    memory = Memory(
        id="1",
        text="broke the mast",
        outcome="repaired",
        subject="boat",
        tags=("sea", "東京都"),
        created_at=0.0,
        updated_at=0.0,
    )
    text, subject, tags = indexed_columns(memory)
    assert text.split() == ["broke", "the", "mast", "repaired"]
    assert subject == "boat"
    assert tags == "sea 東京都"
