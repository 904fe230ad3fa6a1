"""Reading a query: its words, and expressions that no text breaks out of."""

from __future__ import annotations

import datetime as dt
import sqlite3

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from thermocline.daemon.language.dates import seconds_of
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


def shares(text: str) -> dict[str, float]:
    return {word.text: word.share for word in parse(text).words}


def ask(text: str) -> Query:
    return parse(text, NOW, dt.UTC, PEOPLE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the name of the boat?", ("boat",)),
        ("What is the Garden like? A garden!", ("garden", "like")),
        ("boat Boat BOAT", ("boat",)),
        ("who are you", ("who", "are", "you")),
        ("the", ("the",)),
        ("to be or", ("to", "be", "or")),
        ("", ()),
        ("?! -- ()", ()),
        ("東京都", ("東京", "京都")),
        ("山", ("山",)),
        ("Straße", ("straße",)),
        ("boat AND mast OR NOT sail*", ("boat", "mast", "sail")),
        ('"quoted" text:x', ("quoted", "text", "x")),
    ],
)
def test_the_words_of_a_query_are_those_that_tell(text, words):
    assert parse(text).telling == words
    assert parse(text).empty == (not words)


def test_words_of_grammar_count_little_but_count():
    weights = shares("What is my boat called?")
    assert 0 < weights["my"] == weights["what"] < 0.3 < weights["boat"] == 1.0


def test_a_query_has_at_most_so_many_words():
    assert len(parse(" ".join(f"word{number}" for number in range(500))).words) == MOST_WORDS


def test_a_lone_character_of_a_script_in_pairs_stands_for_the_pairs_that_begin_with_it():
    assert match_expression(("山", "x", "ab")) == '"山"* OR "x" OR "ab"'


@pytest.mark.parametrize(
    "text",
    ['"dark mode"', "“dark mode”", "«dark mode»", "»dark mode«", "„dark mode“", "„dark mode”",
     "「dark mode」", "『dark mode』", "＂dark mode＂"],
)  # fmt: skip
def test_a_phrase_may_stand_in_any_quotation_marks(text):
    query = parse(f"editor {text}")
    assert query.phrases == (("dark", "mode"),)
    assert set(query.telling) == {"editor", "dark", "mode"}


def test_a_quotation_that_is_not_closed_is_plain_words():
    assert parse('5" disk').phrases == ()
    assert parse('5" disk').telling == ("5", "disk")


def test_a_phrase_is_demanded_and_other_words_only_add(found):
    query = parse('"dark mode" editor')
    assert found(query, "she likes dark mode")
    assert found(query, "dark mode in the editor")
    assert not found(query, "the mode is dark in the editor")


def test_what_is_excluded_is_no_word_of_the_query():
    query = parse('tea -green -"black leaf"')
    assert query.excluded == (("green",), ("black", "leaf"))
    assert query.telling == ("tea",)


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
    assert parse("-tea").empty


def test_people_are_named_and_their_names_count_less_than_what_is_asked_of_them():
    query = ask("What did caroline's brother do with MELANIE?")
    assert query.people == ("Caroline", "Melanie")
    assert query.name_words == ("caroline", "melanie")
    count = {word.text: word.share for word in query.words}
    assert 0 < count["caroline"] == count["melanie"] < count["brother"]
    assert ask("Caroline").telling == ("caroline",)


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


def test_a_date_is_a_time_and_words():
    query = ask("Where did Caroline ski on 7 May 2023?")
    [date] = query.dates
    [period] = date.periods
    assert seconds_of(period, dt.UTC)[0] == dt.datetime(2023, 5, 7, tzinfo=dt.UTC).timestamp()
    assert {"ski", "7", "may", "2023"} <= set(texts(query))
    assert date.text in [word.text for word in query.words if word.codes]
    assert not query.of_time
    assert ask("what was on 7 May 2023?").of_time


def test_a_person_and_a_month_of_one_name_are_both_understood():
    query = ask("Where did June ski in June?")
    assert query.people == ("June",)
    assert "in June" in [date.text for date in query.dates]


def test_quoted_dates_and_names_are_words():
    query = ask('"May 2023" "Caroline"')
    assert (query.dates, query.people) == ((), ())
    assert query.phrases == (("may", "2023"), ("caroline",))


def test_no_date_reaches_across_what_was_taken_out():
    assert [date.text for date in ask('in May -tea 2023 "x" May').dates] == ["in May"]


def test_what_is_beyond_the_limits_is_not_read():
    assert parse("tea " + " " * MOST_CHARS + "coffee").telling == ("tea",)
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
    ways = [match_expression(texts(query), query.phrases)]
    ways += [match_expression((), (phrase,)) for phrase in (*query.phrases, *query.excluded)]
    for expression in filter(None, ways):
        found = "SELECT rowid, bm25(memory_fts) FROM memory_fts WHERE memory_fts MATCH ?"
        index.execute(found, (expression,)).fetchall()


LETTERS = st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc"])


@given(text=st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=8).map(" ".join))
@example("İstanbul ǅ ß ﬁ Ǆ")
@example("ΣΑΣ σας Ა ᎠᏵ Ⅷ")
@example("हिन्दी ภาษาไทยก่อน ไทย")
def test_every_word_of_a_text_finds_it_again(index, found, text):
    words = [word for word in parse(text).words if word.term]
    assume(not any(unknown(index, word.text) for word in words))
    for word in words:
        assert found(Query((word,)), text)
        assert found(Query((word,), phrases=((word.text,),)), text)


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


def test_words_that_may_be_said_of_anything_count_less_and_least_in_a_message():
    short = shares("where does the otter live now?")
    talk = "I had a long walk at the zoo and it was lovely there. Where does the otter live now?"
    long = shares(talk)
    assert 0 < long["live"] < short["live"] < 1.0
    assert short["otter"] == long["otter"] == 1.0


def test_a_word_or_phrase_that_a_person_declared_to_mean_the_same_is_looked_for_too():
    own = {"the shop": ["storefront-v2"]}
    for text, other in (
        ("who runs the shop?", ("storefront", "v2")),
        ("restart storefront-v2", ("shop",)),
    ):
        [word] = [word for word in parse(text, synonyms=own).words if word.synonyms]
        assert word.synonyms == (other,)
    assert not any(word.synonyms for word in parse("shop the", synonyms={"a": ["b"]}).words)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("which car do we have?", "car"),
        ("car", "car"),
        ("where does my son go to school?", "son"),
        ("what is wrong with the door?", "door"),
        ("who drives the van?", "van"),
        ("wo ist mein Kind?", "kind"),
    ],
)
def test_a_word_that_names_something_is_no_word_of_another_languages_grammar(text, word):
    [asked] = [one for one in parse(text).words if one.text == word]
    assert asked.share > 0.5
    assert asked.codes
    assert word in parse(text).telling


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wer hat die Katze?", {"hat", "die"}),
        ("où sont mes clés, car son père attend?", {"car", "son"}),
        ("what kind of boat is it?", {"kind"}),
    ],
)
def test_words_of_grammar_are_those_of_the_language_of_the_text(text, words):
    assert words <= {one.text for one in parse(text).words if one.is_grammar}
