from __future__ import annotations

import datetime as dt
import sqlite3

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from thermocline.daemon.memory.indexing import index_text
from thermocline.daemon.recall.query import (
    MOST_CHARS,
    MOST_PHRASES,
    MOST_WORDS,
    Query,
    match_expression,
    parse,
)
from thermocline.daemon.store.schema import MIGRATIONS

NOW = dt.datetime(2023, 8, 16, 14, 30, tzinfo=dt.UTC).timestamp()
PEOPLE = [
    "Caroline",
    "Melanie",
    "John Smith",
    "John Doe",
    "Will",
    "June",
    "José",
    "田中さん",
    "bot-7",
]


@pytest.fixture(scope="module")
def index():
    """The full-text table as the store makes it."""
    db = sqlite3.connect(":memory:")
    (table,) = [
        statement
        for migration in MIGRATIONS
        for statement in migration.statements
        if "VIRTUAL TABLE memory_fts" in statement
    ]
    db.execute(table)
    yield db
    db.close()


@pytest.fixture(scope="module")
def found(index):
    """Whether a query finds a text that alone is in the index."""

    def matches(query: Query, text: str) -> bool:
        index.execute("INSERT INTO memory_fts(rowid, text) VALUES (1, ?)", (index_text(text),))
        try:
            expression = match_expression(query.words, query.phrases, query.excluded)
            rows = index.execute(
                "SELECT rowid, bm25(memory_fts) FROM memory_fts WHERE memory_fts MATCH ?",
                (expression,),
            )
            return len(rows.fetchall()) == 1
        finally:
            index.rollback()

    return matches


def ask(text: str) -> Query:
    return parse(text, NOW, dt.UTC, PEOPLE)


def test_words_are_kept_once_without_those_that_build_the_sentence():
    assert parse("What is the Garden like? A garden!").words == ("garden", "like")
    assert parse("to be or").words == ("to", "be", "or")
    assert parse("  ?! ").empty
    assert len(parse(" ".join(f"w{i}" for i in range(99))).words) == MOST_WORDS


@pytest.mark.parametrize(
    "text",
    ['"dark mode"', "“dark mode”", "«dark mode»", "»dark mode«", "„dark mode“", "„dark mode”",
     "「dark mode」", "『dark mode』", "＂dark mode＂"],
)  # fmt: skip
def test_a_phrase_may_stand_in_any_quotation_marks(text):
    query = parse(f"editor {text}")
    assert query.phrases == (("dark", "mode"),)
    assert set(query.words) == {"editor", "dark", "mode"}


def test_a_quotation_that_is_not_closed_is_plain_words():
    assert parse('5" disk').phrases == ()
    assert parse('5" disk').words == ("5", "disk")


def test_a_phrase_is_demanded_and_other_words_only_add(found):
    query = parse('"dark mode" editor')
    assert found(query, "she likes dark mode")
    assert found(query, "dark mode in the editor")
    assert not found(query, "the mode is dark in the editor")


def test_what_is_excluded_is_not_found(found):
    query = parse('tea -green -"black leaf"')
    assert query.excluded == (("green",), ("black", "leaf"))
    assert query.words == ("tea",)
    assert found(query, "tea with black sugar and a leaf")
    assert not found(query, "greens and tea")
    assert not found(query, "tea, black leaf")


@pytest.mark.parametrize(
    "text",
    ["state-of-the-art", "-5 degrees", "--force", "ls -l", "ls -la", "tea - green", "tea -", "-",
     "a–b", "2020-2023", "x=-y1z"],
)  # fmt: skip
def test_a_dash_that_excludes_nothing_is_no_exclusion(text):
    assert parse(text).excluded == ()


def test_a_dash_before_a_compound_excludes_it_whole():
    assert parse("tv -state-of-the-art").excluded == (("state", "of", "the", "art"),)
    assert parse("(tv -plasma)").excluded == (("plasma",),)
    assert parse("чай -зелёный").excluded == (("зелёный",),)


def test_an_exclusion_alone_looks_for_nothing():
    query = parse("-tea")
    assert query.empty
    assert match_expression(query.words, query.phrases, query.excluded) == ""


def test_people_are_kept_out_of_the_words_while_others_remain():
    query = ask("What did caroline's brother do with MELANIE?")
    assert query.people == ("Caroline", "Melanie")
    assert query.words == ("brother",)
    assert query.name_words == ("caroline", "melanie")
    assert ask("Caroline").words == ("caroline",)


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("john smith and John Doe", ("John Smith", "John Doe")),
        ("what did John buy", ()),
        ("josé called, jose came", ("José",)),
        ("will it rain", ()),
        ("Will it rain", ()),
        ("Did Will come", ("Will",)),
        ("will's car", ("Will",)),
        ("carolines and a Carolinean", ()),
        ("田中さんはどこ", ("田中さん",)),
        ("bot 7 broke", ("bot-7",)),
        ("a bot broke", ()),
    ],
)
def test_people_are_known_by_their_full_name_or_a_first_name_that_is_theirs_alone(text, people):
    assert ask(text).people == people


def test_dates_are_kept_out_of_the_words_while_others_remain():
    query = ask("Where did Caroline ski on 7 May 2023?")
    assert query.words == ("ski",)
    assert query.date_words == ("7", "may", "2023")
    (span,) = query.dates
    assert span.start == dt.datetime(2023, 5, 7, tzinfo=dt.UTC).timestamp()
    assert ask("last May").date_words == ("last", "may")


def test_a_person_and_a_month_of_one_name_are_both_understood():
    query = ask("Where did June ski in June?")
    assert query.people == ("June",)
    assert [span.text for span in query.dates] == ["in June"]


def test_quoted_dates_and_names_are_words():
    query = ask('"May 2023" "Caroline"')
    assert (query.dates, query.people) == ((), ())
    assert query.phrases == (("may", "2023"), ("caroline",))


def test_no_date_reaches_across_what_was_taken_out():
    assert ask('in May -tea 2023 "x" May').date_words == ("may",)


def test_without_a_time_no_dates_are_looked_for():
    assert parse("yesterday").dates == ()
    assert parse("yesterday").words == ("yesterday",)


def test_what_is_beyond_the_limits_is_not_read():
    assert parse("tea " + " " * MOST_CHARS + "coffee").words == ("tea",)
    assert len(parse('"a b" ' * 3 + "".join(f'"x{i} y" -z{i}z ' for i in range(99))).phrases) == (
        MOST_PHRASES
    )


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我去了北京大学", "北京大学"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("ภาษาไทยก่อน", "ภาษาไทย"),
        ("Grüße aus Köln", "grüße"),
        ("Елка в лесу", "ЕЛКА"),
        ("snake_case_name", "snake_case_name"),
        ("서울에서 만났다", "서울"),
    ],
)
def test_words_of_any_script_are_found(found, text, query):
    assert found(parse(query), text)


HOSTILE = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            ['"', "“", "”", "„", "«", "»", "「", "」", "-", "*", "(", ")", "^", ":", "+", "NEAR",
             "AND", "OR", "NOT", "NEAR(", "text", "{", "}", "'", ";", "--", "\0", "\ud800", "_",
             "a", "tea", "北", "北京", "́", "\u0e48", "-tea", "last May", "Will", "%", "\\"]
        ),
        max_size=14,
    ).map(" ".join),
    st.lists(st.sampled_from('"“”-* ()a北_'), max_size=30).map("".join),
)  # fmt: skip


@given(text=HOSTILE)
@example('"" -"" AND')
def test_no_text_breaks_the_index(index, text):
    query = ask(text)
    expression = match_expression(query.words, query.phrases, query.excluded)
    assert bool(expression) == (not query.empty)
    if expression:
        found = "SELECT rowid, bm25(memory_fts) FROM memory_fts WHERE memory_fts MATCH ?"
        index.execute(found, (expression,)).fetchall()


LETTERS = st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc"])


@given(text=st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=8).map(" ".join))
@example("İstanbul ǅ ß ﬁ Ǆ")
@example("ΣΑΣ σας Ა ᎠᏵ Ⅷ")
@example("हिन्दी ภาษาไทยก่อน ไทย")
def test_every_word_of_a_text_finds_it_again(index, found, text):
    words = parse(text).words
    assume(not any(unknown(index, word) for word in words))
    for word in words:
        assert found(Query((word,)), text)
        assert found(Query((word,), phrases=((word,),)), text)


def unknown(index, word: str) -> bool:
    """Whether the index takes some character of `word` for a blank."""
    index.execute("CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5vocab(memory_fts, row)")
    index.execute("INSERT INTO memory_fts(rowid, text) VALUES (1, ?)", (word,))
    terms = [term for (term,) in index.execute("SELECT term FROM terms")]
    index.rollback()
    return len(terms) != 1


@given(text=st.text(max_size=60))
def test_any_query_is_read_with_any_people(text):
    query = parse(text, NOW, dt.UTC, [text, *PEOPLE, ""])
    assert len(query.words) == len(set(query.words)) <= MOST_WORDS
    assert set(query.people) <= {text, *PEOPLE}


def test_words_that_may_be_said_of_anything_count_less_and_least_in_a_message():
    short = parse("where does the otter live now?")
    assert short.shares.keys() == {"live"}
    assert 0.5 < short.shares["live"] < 1.0
    talk = "I had a long walk at the zoo and it was lovely there. Where does the otter live now?"
    long = parse(talk)
    assert long.shares["live"] < short.shares["live"]
    assert long.shares["zoo"] < 1.0
    assert "otter" not in long.shares
