import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.stemming import variants
from thermocline.daemon.recall.query import match_expression


def test_an_irregular_form_brings_its_family():
    for word, other in [
        ("went", "go"), ("go", "went"), ("gone", "went"), ("buy", "bought"), ("bought", "buy"),
        ("children", "child"), ("child", "children"), ("taught", "teach"), ("feet", "foot"),
        ("best", "good"), ("worse", "bad"), ("lay", "lie"), ("lay", "laid"), ("Went", "gone"),
        ("wives", "wife"), ("people", "person"), ("rewritten", "rewrite"),
    ]:  # fmt: skip
        assert other in variants(word)


def test_a_regular_ending_of_an_irregular_verb_brings_the_forms_that_stemming_misses():
    for word, other in [("going", "went"), ("making", "made"), ("running", "ran"), ("sees", "saw")]:
        assert other in variants(word)


def test_a_regular_word_stands_alone():
    for word in ["walk", "walking", "thing", "s", "ing", "", "北京", "less", "media"]:
        assert variants(word) == ()


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


def test_variants_find_what_the_stemmer_does_not(index):
    index.execute("INSERT INTO memory_fts(rowid, text) VALUES (1, 'we bought two mice')")
    for word in ("buy", "buying", "mouse"):
        found = "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?"
        assert index.execute(found, (match_expression((word,)),)).fetchall() == []
        wider = match_expression((word, *variants(word)))
        assert index.execute(found, (wider,)).fetchall() == [(1,)]


@pytest.fixture
def index():
    db = sqlite3.connect(":memory:")
    db.execute('CREATE VIRTUAL TABLE memory_fts USING fts5(text, tokenize = "porter unicode61")')
    yield db
    db.close()
