"""What speaks for a candidate, each signal by itself."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.recall import question
from thermocline.daemon.recall.pool import Pool, places_of
from thermocline.daemon.recall.postings import Posting, Postings
from thermocline.daemon.recall.query import parse
from thermocline.daemon.recall.signals import WEIGHTS, Signals, measure
from thermocline.daemon.recall.sources import Candidate

NOW = dt.datetime(2023, 8, 16, 12, tzinfo=dt.UTC).timestamp()
PEOPLE = ("Ann", "Bo")
OF_TURNS = ("answer", "addresses", "names", "details", "opens")


def entry(row: int, **fields: Any) -> Candidate:
    given: dict[str, Any] = {
        "group": "",
        "position": None,
        "actor": "",
        "category": "general",
        "created_at": NOW,
        "updated_at": NOW,
        "last_accessed_at": None,
        "access_count": 0,
        "importance": 0.5,
        "superseded": False,
        "length": 40,
    }
    given["is_turn"] = fields.get("position") is not None
    return Candidate(key=row, **given | fields)


def turns(number: int, group: str = "g", first: int = 1) -> list[Candidate]:
    return [entry(row, group=group, position=row) for row in range(first, first + number)]


def measured(
    entries: Sequence[Candidate],
    words: Mapping[str, Iterable[int]] | None = None,
    text: str = "",
    *,
    said: Mapping[int, str] | None = None,
    kin: Iterable[int] = (),
    phrased: Iterable[int] = (),
    naming: Iterable[int] = (),
    categories: Mapping[str, float] | None = None,
) -> Signals:
    """The signals of `entries`, in which each word of `words` stands in the rows given."""
    postings = tuple(
        Posting(word, word, 1.0, frozenset(rows), frozenset(kin), 0.5 if kin else 0.0)
        for word, rows in (words or {}).items()
    )
    entries = [
        msgspec.structs.replace(
            one,
            terms=" ".join(
                [
                    *(word for word, rows in (words or {}).items() if one.key in rows),
                    *(["ann"] if one.key in naming else []),
                    *["filling"] * (one.length // 10),
                ]
            ),
        )
        for one in entries
    ]
    query = parse(text, NOW, dt.UTC, PEOPLE)
    return measure(
        query,
        question.read(text, query),
        Postings(
            words=postings,
            common=(),
            unknown=(),
            unmet=0.0,
            newest=(),
            phrased=frozenset(phrased),
            naming=frozenset(),
            size=100,
            mean_length=5.0,
            searched=frozenset({"memory", "pair"}),
        ),
        Pool(tuple(entries), places_of(entries)),
        categories or {},
        lambda rows: {row: (said or {}).get(row, "") for row in rows},
    )


def column(signals: Signals, name: str) -> list[float]:
    return [round(value, 4) for value in signals.columns[name]]


def day(*date: int) -> float:
    year, month, number = date
    return dt.datetime(year, month, number, 12, tzinfo=dt.UTC).timestamp()


def test_the_score_is_the_sum_of_what_the_signals_add() -> None:
    entries = [
        *turns(6),
        entry(9, actor="Ann", category="a/b"),
        entry(10, created_at=day(2023, 5, 7)),
    ]
    told = measured(
        entries,
        {"otter": {2, 9}, "swims": {2, 3}},
        "When did Ann see the otter on 7 May 2023?",
        said={row: f"Is Carl there {'x ' * row}?" for row in range(11)},
        kin={4},
        phrased={2},
        categories={"a": 0.5},
    )
    for at in range(len(entries)):
        added = sum(told.added(name, at) for name in WEIGHTS)
        assert told.scores[at] == pytest.approx(added)


def test_more_of_the_words_are_better_and_a_short_text_is_than_a_long_one() -> None:
    entries = [entry(1), entry(2), entry(3, length=4_000), entry(4)]
    told = measured(entries, {"red": {1, 2, 3}, "boat": {1}})
    assert told.bm25[0] == 1.0
    assert told.bm25[0] > told.bm25[1] > told.bm25[2] > told.bm25[3] == 0.0
    relevance = [told.relevance(at) for at in range(4)]
    assert relevance == sorted(relevance, reverse=True)
    assert relevance[0] > 0.85
    assert relevance[3] < 0.02


def test_what_has_a_word_that_begins_alike_has_something_of_it() -> None:
    told = measured([entry(1), entry(2), entry(3)], {"red": {1}}, kin={2})
    assert column(told, "kin")[1] > column(told, "kin")[2] == 0
    assert told.relevance(0) > told.relevance(1) > told.relevance(2)


def test_a_match_lends_to_its_neighbours_the_less_the_farther_they_are() -> None:
    told = measured([*turns(11), entry(99)], {"otter": {6}})
    around = column(told, "around")
    # It has the word itself.
    assert around[5] == 0.0
    assert around[:5] == sorted(around[:5])
    assert around[6:11] == sorted(around[6:11], reverse=True)
    assert around[1] > 0
    assert (around[0], around[10], around[11]) == (0, 0, 0)


def test_of_several_neighbours_with_one_word_the_best_lends() -> None:
    one = column(measured(turns(5), {"otter": {1}}), "around")
    both = column(measured(turns(5), {"otter": {1, 5}}), "around")
    assert both[2] == one[2]
    assert both[3] > one[3]


def test_different_words_of_different_neighbours_add_up() -> None:
    told = measured([*turns(3), entry(9)], {"otter": {1}, "swims": {3}})
    around = column(told, "around")
    alone = column(measured(turns(3), {"otter": {1}}), "around")
    assert around[1] > alone[1]
    assert told.bm25[1] == 0.0


def test_neighbours_in_another_conversation_do_not_lend() -> None:
    told = measured([*turns(2), *turns(2, group="h", first=3)], {"otter": {2}})
    assert column(told, "around")[2:] == [0.0, 0.0]


def test_a_conversation_speaks_for_all_in_it() -> None:
    told = measured([*turns(30), entry(99)], {"otter": {1, 2, 3}}, "what is said of the otter")
    assert set(column(told, "group")) == {1.0, 0.0}
    assert column(told, "group")[29:] == [1.0, 0.0]


def test_facts_of_a_category_speak_for_each_other_and_turns_do_not() -> None:
    entries = [
        entry(1, category="a"),
        entry(2, category="a"),
        entry(3, category="b"),
        *turns(1, first=4),
    ]
    filed = column(measured(entries, {"otter": {1, 4}}), "filed")
    assert filed[0] == filed[1] == 1.0
    assert filed[2:] == [0.0, 0.0]


def test_of_two_facts_that_say_the_same_the_older_counts_less() -> None:
    said = {"otter": {1, 2, 3}, "river": {1, 2}, "den": {1, 2, 3}}
    entries = [
        entry(1, created_at=NOW - 9_000), entry(2), entry(3, category="elsewhere"),
    ]  # fmt: skip
    told = measured(entries, said)
    assert column(told, "older")[0] > 0.3
    assert column(told, "older")[1:] == [0.0, 0.0]
    assert told.scores[0] < told.scores[1]


def test_who_asks_how_it_was_before_is_told_what_was_overtaken() -> None:
    said = {"otter": {1, 2}, "river": {1, 2}}
    entries = [entry(1, created_at=NOW - 9_000), entry(2)]
    talk = "Before I forget it, one more thing about the zoo. Where does the otter swim now?"
    assert "older" not in measured(entries, said, "where did the otter swim before?").columns
    assert "older" not in measured(entries, said, "wo schwamm der Otter früher?").columns
    assert measured(entries, said, talk).columns["older"][0] > 0


def test_the_best_facts_lend_what_they_share_to_others_with_the_same_words() -> None:
    said = {"red": {1, 2, 3}, "old": {1, 2, 3}, "boat": {1, 2, 3}, "varnish": {1, 2}}
    told = measured([entry(row) for row in (1, 2, 3)], said)
    lent = column(told, "feedback")
    assert lent[0] == lent[1] > lent[2]


def test_what_the_one_named_person_said_is_boosted_and_nothing_is_shut_out() -> None:
    entries = [entry(1, actor="Ann"), entry(2, actor="Bo"), entry(3)]
    told = measured(entries, {"otter": {1, 2, 3}}, "what did Ann say of the otter?")
    assert column(told, "actor") == [1, 0, 0]
    assert "subject" not in told.columns
    assert told.scores[0] == pytest.approx(told.scores[1] + WEIGHTS["actor"])
    assert told.scores[1] > 0


def test_of_two_people_the_one_who_acts_is_the_subject() -> None:
    entries = [entry(1, actor="Ann"), entry(2, actor="Bo")]
    told = measured(entries, {"otter": {1, 2}}, "What did Bo give Ann?")
    assert column(told, "subject") == [0, 1]
    assert "actor" not in told.columns


@pytest.mark.parametrize("text", ["What do Ann and Bo both like?", "What do Bo and Ann like?"])
def test_of_two_people_together_neither_is_the_subject(text: str) -> None:
    told = measured([entry(1, actor="Ann")], {"otter": {1}}, text)
    assert not {"actor", "subject"} & told.columns.keys()


def test_an_exact_day_counts_most_and_fades_faster_before_than_after() -> None:
    days = [day(2023, 5, 7), day(2023, 5, 8), day(2023, 5, 6), day(2023, 5, 20), day(2022, 5, 7)]
    entries = [entry(at, created_at=when) for at, when in enumerate(days)]
    told = column(measured(entries, {}, "what happened on 7 May 2023?"), "day")
    assert told[0] == 1.0
    assert told[0] > told[1] > told[2] > 0
    assert told[3] < 0.1
    assert told[4] == 0.0


def test_a_day_also_names_its_month() -> None:
    entries = [entry(1, created_at=day(2023, 5, 30)), entry(2, created_at=day(2023, 6, 1))]
    told = measured(entries, {}, "what happened on 7 May 2023?")
    assert column(told, "date") == [1.0, 0.0]


def test_a_month_counts_whole_and_a_year_less() -> None:
    entries = [entry(at, created_at=when) for at, when in enumerate(
        [day(2023, 5, 1), day(2023, 5, 31), day(2023, 4, 30), day(2022, 5, 9)]
    )]  # fmt: skip
    assert column(measured(entries, {}, "what was in May 2023?"), "date") == [1, 1, 0, 0]
    assert column(measured(entries, {}, "what was in May 2023?"), "day") == [0, 0, 0, 0]
    year = column(measured(entries, {}, "what was in 2023?"), "date")
    assert 0 < year[0] < 1
    assert year == [year[0]] * 3 + [0]


def test_a_month_whose_year_was_guessed_is_that_of_the_year_nearest_to_the_memory() -> None:
    whens = [day(2021, 5, 9), day(2023, 5, 9), day(2019, 6, 20)]
    entries = [entry(at, created_at=when) for at, when in enumerate(whens)]
    assert column(measured(entries, {}, "what was in May?"), "date") == [1, 1, 0]
    assert column(measured(entries, {}, "what was in May 2023?"), "date") == [0, 1, 0]


def test_a_question_without_a_date_measures_none() -> None:
    assert not {"day", "date"} & measured([entry(1)], {"x": {1}}, "what is x?").columns.keys()


def test_what_follows_a_question_is_more_of_an_answer() -> None:
    said = {2: "Where is the otter?", 3: "By the river.", 4: "I see."}
    told = measured(turns(3, first=2), {"otter": {2}}, "where is the otter", said=said)
    answer = column(told, "answer")
    assert answer[1] > 0
    assert (answer[0], answer[2]) == (0, 0)


def test_who_asks_when_is_answered_by_what_names_a_time() -> None:
    said = {1: "the otter came last week", 2: "the otter came"}
    entries = [entry(1), entry(2)]
    when = measured(entries, {"otter": {1, 2}}, "when did the otter come?", said=said)
    assert column(when, "when") == [1, 0]
    where = measured(entries, {"otter": {1, 2}}, "where did the otter come?", said=said)
    assert column(where, "when") == [0, 0]


def test_a_turn_that_tells_more_counts_more() -> None:
    said = {2: "ok", 3: "the otter swam, dived and met Carl, Dora and Emil"}
    told = measured(turns(3), {"otter": {2, 3}}, said=said)
    for name in ("names", "details"):
        assert column(told, name)[1] == 0 < column(told, name)[2] <= 1


def test_a_conversation_opens_with_its_first_turns() -> None:
    talk = [entry(row, group="g", position=row) for row in range(4)]
    assert column(measured(talk, {"otter": {0}}), "opens") == [1, 1, 0, 0]


def test_who_speaks_to_another_tells_less_of_themselves() -> None:
    talk = [entry(row, group="g", position=row, actor="Ann") for row in (1, 2)]
    said = {1: "I love otters", 2: "you love otters"}
    told = measured(talk, {"otter": {1, 2}}, "what does Ann love?", said=said)
    assert column(told, "addresses")[0] == 0 < column(told, "addresses")[1]
    assert told.added("addresses", 1) < 0


@pytest.mark.parametrize(
    ("text", "signal", "answer"),
    [
        ("where does the otter live", "name", "the otter lives near Kiel"),
        ("how many cubs has the otter", "number", "the otter has three cubs"),
        ("how long is the otter", "number", "the otter measures 90 cm"),
    ],
)
def test_the_kind_of_thing_that_is_asked_for_speaks_for_what_has_one(
    text: str, signal: str, answer: str
) -> None:
    said = {1: answer, 2: "otters, otters"}
    told = measured([entry(1), entry(2)], {"otter": {1, 2}}, text, said=said)
    assert column(told, signal)[0] > 0 == column(told, signal)[1]
    plain = measured([entry(1), entry(2)], {"otter": {1, 2}}, "otters swim", said=said)
    assert column(plain, signal) == [0, 0]


def test_isolated_facts_are_not_touched_by_what_is_told_of_turns() -> None:
    said = {1: "You, Carl, Dora and Emil swam with the otter?", 2: "otter"}
    told = measured([entry(1), entry(2)], {"otter": {1, 2}}, "the otter", said=said)
    assert all(set(column(told, name)) == {0.0} for name in OF_TURNS)
    assert told.scores[0] == told.scores[1]


def test_a_fact_that_nobody_said_is_about_a_person_whom_it_names() -> None:
    facts = [entry(1, actor=""), entry(2, actor=""), entry(3, actor="Bo")]
    found = measured(facts, {"like": [1, 2, 3]}, "what does Ann like", naming=[2, 3])
    assert column(found, "actor") == [0.0, 1.0, 0.0]


def test_a_phrase_outweighs_the_words_apart() -> None:
    told = measured([entry(1), entry(2)], {"red": {1, 2}, "boat": {1, 2}, "x": {2}}, phrased={1})
    assert told.scores[0] > told.scores[1]


def test_a_category_counts_for_all_below_it_and_for_no_other_of_a_like_name() -> None:
    entries = [entry(at, category=name) for at, name in enumerate(("a", "a/b", "ab", "c"))]
    told = measured(entries, {"otter": {0, 1, 2, 3}}, categories={"a": 0.5, "a/b": 0.75})
    assert column(told, "category") == [0.5, 0.75, 0, 0]


def test_nothing_to_measure_is_no_trouble() -> None:
    told = measured([], {"otter": {1}}, "When did Ann come on 7 May?")
    assert (told.scores, told.bm25) == ((), ())
    bare = measured([entry(1)])
    assert (bare.scores, bare.bm25) == ((0.0,), (0.0,))
    assert bare.relevance(0) < 0.01


@given(
    st.lists(st.tuples(st.sampled_from("gh"), st.integers(0, 12)), max_size=12, unique=True),
    st.dictionaries(st.sampled_from(("red", "boat", "sea")), st.sets(st.integers(0, 14))),
    st.sampled_from(("when in May 2023 did Ann?", "7 May", "what?", "Bo and Ann")),
)
def test_every_measure_is_finite_and_every_relevance_from_0_to_1(
    where: list[tuple[str, int]], words: dict[str, set[int]], text: str
) -> None:
    entries = [
        entry(row, group=group, position=position) for row, (group, position) in enumerate(where)
    ]
    told = measured(entries, words, text, said=dict.fromkeys(range(15), "Carl?"))
    for name, values in told.columns.items():
        assert len(values) == len(entries)
        assert all(math.isfinite(value) and value >= 0 for value in values)
        assert all(value <= 10 for value in values), name
    relevances = map(told.relevance, range(len(entries)))
    assert all(0 <= share <= 1 + 1e-9 for share in (*told.bm25, *relevances))


def test_a_guessed_day_is_sought_in_every_year() -> None:
    entries = [entry(at, created_at=day(year, 5, 7)) for at, year in enumerate((2019, 2021, 2023))]
    told = column(measured(entries, {}, "what was on 7 May?"), "day")
    assert all(value > math.exp(-0.3) for value in told), told
