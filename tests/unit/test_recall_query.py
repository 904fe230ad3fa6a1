"""Reading a query: its words, and expressions that no text breaks out of."""

import datetime as dt
import sqlite3

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from thermocline.daemon.memory.indexing import index_text
from thermocline.daemon.recall.query import (
    MOST_WORDS,
    Query,
    match_expression,
    parse,
)
from thermocline.daemon.store.database.schema import MIGRATIONS

NOW = dt.datetime(2023, 8, 16, 14, 30, tzinfo=dt.UTC).timestamp()
PEOPLE = [
    "Caroline", "Melanie", "John Smith", "John Doe", "Will", "June", "José", "田中さん", "bot-7",
]  # fmt: skip


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
def finds(index):
    """Whether a query finds a text that alone is in the index."""

    def matches(query: Query, text: str) -> bool:
        index.execute("INSERT INTO memory_fts(rowid, text) VALUES (1, ?)", (index_text(text),))
        try:
            expression = match_expression(texts(query), query.phrases)
            rows = index.execute(
                "SELECT rowid, bm25(memory_fts) FROM memory_fts WHERE memory_fts MATCH ?",
                (expression,),
            )
            return len(rows.fetchall()) == 1
        finally:
            index.rollback()

    return matches


def texts(query: Query) -> tuple[str, ...]:
    """The words that stand in texts, without the phrases and dates that are met by meaning."""
    return tuple(word.text for word in query.words if word.term)


def ask(text: str) -> Query:
    return parse(text, NOW, dt.UTC, PEOPLE)


def test_the_words_of_a_query_are_those_that_tell():
    for text, words in [
        ("What is the name of the boat?", ("boat",)),
        ("What is the Garden like? A garden!", ("garden", "like")), ("boat Boat BOAT", ("boat",)),
        ("who are you", ("who", "are", "you")), ("the", ("the",)), ("to be or", ("to", "be", "or")),
        ("", ()), ("?! -- ()", ()), ("東京都", ("东京", "京都")), ("山", ("山",)),
        ("Straße", ("straße",)), ("boat AND mast OR NOT sail*", ("boat", "mast", "sail")),
        ('"quoted" text:x', ("quoted", "text", "x")),
    ]:  # fmt: skip
        assert parse(text).telling == words
        assert parse(text).empty == (not words)


def test_a_lone_character_of_a_script_in_pairs_stands_for_the_pairs_that_begin_with_it():
    assert match_expression(("山", "x", "ab")) == '"山"* OR "x" OR "ab"'


def test_a_phrase_may_stand_in_any_quotation_marks():
    for text in [
        '"dark mode"', "“dark mode”", "«dark mode»", "»dark mode«", "„dark mode“", "„dark mode”",
        "「dark mode」", "『dark mode』", "＂dark mode＂",
    ]:  # fmt: skip
        query = parse(f"editor {text}")
        assert query.phrases == (("dark", "mode"),)
        assert set(query.telling) == {"editor", "dark", "mode"}


def test_a_dash_that_excludes_nothing_is_no_exclusion():
    for text in [
        "state-of-the-art", "-5 degrees", "--force", "ls -l", "ls -la", "tea - green", "tea -", "-",
        "a–b", "2020-2023", "x=-y1z",
    ]:  # fmt: skip
        assert parse(text).excluded == ()


def test_a_dash_before_a_compound_excludes_it_whole():
    assert parse("tv -state-of-the-art").excluded == (("state", "of", "the", "art"),)
    assert parse("(tv -plasma)").excluded == (("plasma",),)
    assert parse("чай -зелёный").excluded == (("зелёный",),)


def test_people_are_named_and_their_names_count_less_than_what_is_asked_of_them():
    query = ask("What did caroline's brother do with MELANIE?")
    assert query.people == ("Caroline", "Melanie")
    count = {word.text: word.share for word in query.words}
    assert 0 < count["caroline"] == count["melanie"] < count["brother"]


def test_a_person_and_a_month_of_one_name_are_both_understood_and_quoted_they_are_words():
    query = ask("Where did June ski in June?")
    assert query.people == ("June",)
    assert "in June" in [date.text for date in query.dates]
    quoted = ask('"May 2023" "Caroline"')
    assert (quoted.dates, quoted.people) == ((), ())


def test_people_are_known_by_their_full_name_or_a_first_name_that_is_theirs_alone():
    for text, people in [
        ("john smith and John Doe", ("John Smith", "John Doe")), ("what did John buy", ()),
        ("josé called, jose came", ("José",)), ("will it rain", ()), ("Will it rain", ()),
        ("Did Will come", ("Will",)), ("will's car", ("Will",)), ("carolines and a Carolinean", ()),
        ("田中さんはどこ", ("田中さん",)), ("bot 7 broke", ("bot-7",)), ("a bot broke", ()),
    ]:  # fmt: skip
        assert ask(text).people == people


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
    ways = [match_expression(texts(query), query.phrases)]
    ways += [match_expression((), (phrase,)) for phrase in (*query.phrases, *query.excluded)]
    for expression in filter(None, ways):
        ranked = "SELECT rowid, bm25(memory_fts) FROM memory_fts WHERE memory_fts MATCH ?"
        index.execute(ranked, (expression,)).fetchall()


LETTERS = st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc"])


@given(text=st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=8).map(" ".join))
@example("İstanbul ǅ ß ﬁ Ǆ")
@example("ΣΑΣ σας Ა ᎠᏵ Ⅷ")
@example("हिन्दी ภาษาไทยก่อน ไทย")
def test_every_word_of_a_text_finds_it_again(index, finds, text):
    words = [word for word in parse(text).words if word.term]
    assume(not any(unknown(index, word.text) for word in words))
    for word in words:
        assert finds(Query((word,)), text)
        assert finds(Query((word,), phrases=((word.text,),)), text)


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
    terms = [word.term for word in query.words if word.term]
    assert len(terms) == len(set(terms))
    assert len(query.words) <= MOST_WORDS
    assert set(query.people) <= {text, *PEOPLE}


def test_a_word_or_phrase_that_a_person_declared_to_mean_the_same_is_looked_for_too():
    own = {"the shop": ["storefront-v2"]}
    for text, other in (
        ("who runs the shop?", ("storefront", "v2")),
        ("restart storefront-v2", ("shop",)),
    ):
        [word] = [word for word in parse(text, synonyms=own).words if word.synonyms]
        assert word.synonyms == (other,)
    assert not any(word.synonyms for word in parse("shop the", synonyms={"a": ["b"]}).words)
