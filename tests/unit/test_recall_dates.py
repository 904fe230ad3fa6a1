from __future__ import annotations

import datetime as dt
import sys
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thermocline.daemon.recall.dates import BEGINNING, FOREVER, find

BERLIN = ZoneInfo("Europe/Berlin")
# A Wednesday.
NOW = dt.datetime(2023, 8, 16, 14, 30, tzinfo=BERLIN).timestamp()


@pytest.fixture
def steps():
    """Counts the calls that something makes: the same on every machine."""

    def count(action):
        calls = 0

        def on_event(_frame, _event, _argument):
            nonlocal calls
            calls += 1

        before = sys.getprofile()
        sys.setprofile(on_event)
        try:
            action()
        finally:
            sys.setprofile(before)
        return calls

    return count


def midnight(day: str, zone: dt.tzinfo = BERLIN) -> float:
    if day == "...":
        return FOREVER
    return dt.datetime.combine(dt.date.fromisoformat(day), dt.time(), zone).timestamp()


def days(text: str) -> list[tuple[str, str]]:
    """The first and the last day of every span that `text` names."""
    found = []
    for span in find(text, NOW, BERLIN).spans:
        start = "..." if span.start == BEGINNING else day_of(span.start)
        end = "..." if span.end == FOREVER else day_of(span.end - 1)
        found.append((start, end))
    return found


def day_of(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, BERLIN).date().isoformat()


DAYS = {
    "on 7 May 2023": "2023-05-07",
    "7 May": "2023-05-07",
    "the 7th of May": "2023-05-07",
    "May 7, 2023": "2023-05-07",
    "May 7th": "2023-05-07",
    "Jan. 5, 2022": "2022-01-05",
    "7 September": "2022-09-07",
    "Friday, 4 August 2023": "2023-08-04",
    "2023-05-07": "2023-05-07",
    "2023-05-07T23:30:00Z": "2023-05-07",
    "2023/5/7": "2023-05-07",
    "2023.05.07": "2023-05-07",
    "07.05.2023": "2023-05-07",
    "13/5/2023": "2023-05-13",
    "5/13/2023": "2023-05-13",
    "5/5/23": "2023-05-05",
    "29 February": "2020-02-29",
    "yesterday": "2023-08-15",
    "today": "2023-08-16",
    "tomorrow": "2023-08-17",
    "tonight": "2023-08-16",
    "last night": "2023-08-15",
    "this morning": "2023-08-16",
    "the day before yesterday": "2023-08-14",
    "the day after tomorrow": "2023-08-18",
    "3 days ago": "2023-08-13",
    "three days ago": "2023-08-13",
    "20 hours ago": "2023-08-15",
    "ten minutes ago": "2023-08-16",
    "3 days from now": "2023-08-19",
    "last Friday": "2023-08-11",
    "last Wednesday": "2023-08-09",
    "next Friday": "2023-08-18",
    "this Monday": "2023-08-14",
    "on Friday": "2023-08-11",
    "last sun": "2023-08-13",
    "the Sunday before 25 May 2023": "2023-05-21",
    "the Friday after 22 May 2023": "2023-05-26",
    "the day before 9 June 2023": "2023-06-08",
    "two days after 30 June 2023": "2023-07-02",
    "the last Friday of June 2023": "2023-06-30",
    "the first Monday of May 2023": "2023-05-01",
    "am 7. Mai 2023": "2023-05-07",
    "vor 3 Tagen": "2023-08-13",
    "gestern": "2023-08-15",
    "letzten Freitag": "2023-08-11",
    "le 7 mai 2023": "2023-05-07",
    "14 août 2022": "2022-08-14",
    "il y a 3 jours": "2023-08-13",
    "el 7 de mayo de 2023": "2023-05-07",
    "hace tres días": "2023-08-13",
    "2023年5月7日": "2023-05-07",
    "5月7日": "2023-05-07",
    "2023년 5월 7일": "2023-05-07",
    "昨天": "2023-08-15",
    "一昨日": "2023-08-14",
    "3天前": "2023-08-13",
    "十二日前": "2023-08-04",
}

SPANS = {
    "May 2023": ("2023-05-01", "2023-05-31"),
    "2023-05": ("2023-05-01", "2023-05-31"),
    "May '21": ("2021-05-01", "2021-05-31"),
    "last May": ("2023-05-01", "2023-05-31"),
    "last August": ("2022-08-01", "2022-08-31"),
    "next May": ("2024-05-01", "2024-05-31"),
    "this May": ("2023-05-01", "2023-05-31"),
    "in May": ("2023-05-01", "2023-05-31"),
    "in August": ("2023-08-01", "2023-08-31"),
    "in December": ("2022-12-01", "2022-12-31"),
    "in May of last year": ("2022-05-01", "2022-05-31"),
    "this week": ("2023-08-14", "2023-08-20"),
    "last week": ("2023-08-07", "2023-08-13"),
    "next week": ("2023-08-21", "2023-08-27"),
    "this month": ("2023-08-01", "2023-08-31"),
    "last month": ("2023-07-01", "2023-07-31"),
    "last year": ("2022-01-01", "2022-12-31"),
    "next year": ("2024-01-01", "2024-12-31"),
    "last weekend": ("2023-08-12", "2023-08-13"),
    "this weekend": ("2023-08-19", "2023-08-20"),
    "last quarter": ("2023-04-01", "2023-06-30"),
    "last summer": ("2022-06-01", "2022-08-31"),
    "this summer": ("2023-06-01", "2023-08-31"),
    "the last 3 days": ("2023-08-13", "2023-08-16"),
    "in the past week": ("2023-08-09", "2023-08-16"),
    "in the last month": ("2023-07-16", "2023-08-16"),
    "the next two weeks": ("2023-08-16", "2023-08-30"),
    "two weeks ago": ("2023-07-30", "2023-08-05"),
    "a month ago": ("2023-07-01", "2023-07-31"),
    "two years ago": ("2021-01-01", "2021-12-31"),
    "a few days ago": ("2023-08-11", "2023-08-15"),
    "since March": ("2023-03-01", "..."),
    "since 2022-03-05": ("2022-03-05", "..."),
    "from May 2022 on": ("2022-05-01", "..."),
    "after 2022": ("2023-01-01", "..."),
    "before June 2022": ("...", "2022-05-31"),
    "until June 2022": ("...", "2022-06-30"),
    "by 7 May 2023": ("...", "2023-05-07"),
    "between May and July 2023": ("2023-05-01", "2023-07-31"),
    "between May 2022 and July": ("2022-05-01", "2022-07-31"),
    "from November to February 2023": ("2022-11-01", "2023-02-28"),
    "May to July 2023": ("2023-05-01", "2023-07-31"),
    "from 7 to 9 May 2023": ("2023-05-07", "2023-05-09"),
    "between the 7th and the 9th of May": ("2023-05-07", "2023-05-09"),
    "7–9 May 2023": ("2023-05-07", "2023-05-09"),
    "July 3-5, 2023": ("2023-07-03", "2023-07-05"),
    "between 2023-01-05 and 2023-02-01": ("2023-01-05", "2023-02-01"),
    "from Monday to Friday": ("2023-08-07", "2023-08-11"),
    "2021-2023": ("2021-01-01", "2023-12-31"),
    "in 2022": ("2022-01-01", "2022-12-31"),
    "summer 2023": ("2023-06-01", "2023-08-31"),
    "the autumn of 2022": ("2022-09-01", "2022-11-30"),
    "the week before 9 June 2023": ("2023-06-02", "2023-06-08"),
    "the week after 9 June 2023": ("2023-06-10", "2023-06-16"),
    "the weekend before 17 July 2023": ("2023-07-15", "2023-07-16"),
    "the weekend after 17 July 2023": ("2023-07-22", "2023-07-23"),
    "the month before June 2023": ("2023-05-01", "2023-05-31"),
    "the week of 9 June 2023": ("2023-06-05", "2023-06-11"),
    "the first week of May 2023": ("2023-05-01", "2023-05-07"),
    "the first weekend of August 2023": ("2023-08-05", "2023-08-06"),
    "early May 2023": ("2023-05-01", "2023-05-10"),
    "at the end of 2022": ("2022-09-01", "2022-12-31"),
    "Q2 2023": ("2023-04-01", "2023-06-30"),
    "2023 Q3": ("2023-07-01", "2023-09-30"),
    "the 1990s": ("1990-01-01", "1999-12-31"),
    "the 90s": ("1990-01-01", "1999-12-31"),
    "the nineties": ("1990-01-01", "1999-12-31"),
    "im Mai 2023": ("2023-05-01", "2023-05-31"),
    "seit März": ("2023-03-01", "..."),
    "letzte Woche": ("2023-08-07", "2023-08-13"),
    "vor zwei Wochen": ("2023-07-30", "2023-08-05"),
    "la semaine dernière": ("2023-08-07", "2023-08-13"),
    "en août 2022": ("2022-08-01", "2022-08-31"),
    "el mes pasado": ("2023-07-01", "2023-07-31"),
    "de mayo a julio de 2023": ("2023-05-01", "2023-07-31"),
    "2023年5月": ("2023-05-01", "2023-05-31"),
    "上个月": ("2023-07-01", "2023-07-31"),
    "去年": ("2022-01-01", "2022-12-31"),
}

NO_DATES = [
    "may I ask what the sun does in march of the penguins",
    "may 7 people come?",
    "all 7 may come",
    "march 3 miles a day",
    "the march on Washington",
    "it may be so, they may have left",
    "an august gathering",
    "mon ami est sat",
    "a second of silence",
    "spring cleaning in the fall of the house",
    "every Friday, Black Friday and Good Friday",
    "in 2000 steps, since 2000 users, by 2048 bytes",
    "$2000, port 2022, version 1.2.10 at 10.0.0.12",
    "a 3/4 inch pipe and 7-5 in chess",
    "1,200 in 10:30",
    "the last time I saw him, next to the past tense",
    "in her 30s",
    "two weeks after the party",
    "before lunch, after work, since then, until later",
    "the week before",
    "between jobs and from scratch",
    "30 February, 31 April",
    "2023-13-45 and 99.99.2023",
    "What did Caroline take with her on the trip?",
    "Guten Morgen, wer ist hier?",
    "",
]  # fmt: skip


@pytest.mark.parametrize(("text", "day"), DAYS.items())
def test_a_day_is_read(text, day):
    assert days(text) == [(day, day)]
    assert days(f"What did we do {text}?") == [(day, day)]


@pytest.mark.parametrize(("text", "span"), SPANS.items())
def test_a_span_of_days_is_read(text, span):
    assert days(text) == [span]
    assert days(f"What did we do {text}?") == [span]


@pytest.mark.parametrize("text", NO_DATES)
def test_an_ordinary_sentence_names_no_date(text):
    assert find(text, NOW, BERLIN).spans == ()
    assert find(text, NOW, BERLIN).rest == text


def test_a_doubtful_month_needs_a_word_of_time_or_a_year():
    assert days("a trip in march") == [("2023-03-01", "2023-03-31")]
    assert days("march 2023") == [("2023-03-01", "2023-03-31")]
    assert days("what happened may 7 at noon") == [("2023-05-07", "2023-05-07")]
    assert days("what about march") == []


def test_days_are_told_apart_from_a_day_and_month_in_either_order():
    spans = find("on 7/5/2023", NOW, BERLIN).spans
    assert [(span.start, span.end) for span in spans] == [
        (midnight("2023-05-07"), midnight("2023-05-08")),
        (midnight("2023-07-05"), midnight("2023-07-06")),
    ]
    assert {(span.exact, span.position) for span in spans} == {(False, 0)}


def test_a_winter_may_be_either_of_two():
    assert days("winter 2022") == [("2022-12-01", "2023-02-28"), ("2021-12-01", "2022-02-28")]


@pytest.mark.parametrize(
    "text", ["7 May 2023", "last May", "yesterday", "3 days ago", "since March 2023", "last week"]
)
def test_what_leaves_no_choice_is_exact(text):
    assert [span.exact for span in find(text, NOW, BERLIN).spans] == [True]


@pytest.mark.parametrize(
    "text", ["7 May", "in May", "two weeks ago", "early May 2023", "on Friday"]
)
def test_what_was_guessed_is_not_exact(text):
    assert [span.exact for span in find(text, NOW, BERLIN).spans] == [False]


def test_several_dates_are_given_in_order_with_their_words_and_the_text_without_them():
    text = "Was it yesterday, or on 7 May 2023, that Mel ran?"
    found = find(text, NOW, BERLIN)
    assert [span.text for span in found.spans] == ["yesterday", "on 7 May 2023"]
    for span in found.spans:
        assert text[span.position :].startswith(span.text)
    assert found.rest == "Was it  , or  , that Mel ran?"


def test_a_sentence_that_ended_is_not_carried_on():
    assert days("He left in May. 2023 was good.") == [("2023-05-01", "2023-05-31")]
    assert days("See you. 3 days ago it rained.") == [("2023-08-13", "2023-08-13")]


def test_a_person_who_is_called_like_a_month_is_no_month():
    names = ["June", "April"]
    assert find("was it written by June?", NOW, BERLIN, names).spans == ()
    assert len(find("was it written by June?", NOW, BERLIN).spans) == 1
    (span,) = find("what did June do in June?", NOW, BERLIN, names).spans
    assert span.text == "in June"
    assert len(find("on 7 April 2023", NOW, BERLIN, names).spans) == 1


def test_a_day_has_23_or_25_hours_when_the_clock_is_changed():
    spring, autumn = find("on 26 March 2023 and on 29 October 2023", NOW, BERLIN).spans
    assert spring.end - spring.start == 23 * 3600
    assert autumn.end - autumn.start == 25 * 3600


def test_a_day_whose_midnight_is_skipped_begins_with_the_change():
    cairo = ZoneInfo("Africa/Cairo")
    before, day = find("27 April 2023, 28 April 2023", NOW, cairo).spans
    assert before.end == day.start
    assert day.end - day.start == 23 * 3600


def test_today_is_the_day_of_the_zone_that_was_given():
    now = dt.datetime(2023, 8, 16, 23, 30, tzinfo=dt.UTC).timestamp()
    tokyo = ZoneInfo("Asia/Tokyo")
    (span,) = find("today", now, tokyo).spans
    assert span.start == midnight("2023-08-17", tokyo)


def test_the_first_and_the_last_day_of_all_can_be_named():
    first, last = find("0001-01-01 and 9999-12-31", NOW, dt.UTC).spans
    assert (first.start, last.end) == (BEGINNING, FOREVER)
    assert first.end == BEGINNING + 86_400
    assert days("9999 years from now") == []


PIECES = st.sampled_from(
    [*DAYS, *SPANS, *NO_DATES, "the", "a", "of", "to", "and", "-", "–", ".", ",", "7", "31",
     "2023", "99", "'s", "day before",
     "week after", "last", "between", "from", "may", "May", "früh", "月", "年", "前", "\0", "\n"]
)  # fmt: skip
ZONES = st.sampled_from(
    [dt.UTC, BERLIN, ZoneInfo("Africa/Cairo"), ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")]
)


@given(
    text=st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=12).map(" ".join)),
    now=st.floats(-6.2e10, 2.5e11),
    zone=ZONES,
)
@example("9999 years from now, since 9999 decades ago", 2.5e11, dt.UTC)
def test_any_text_is_read_at_any_time_and_every_span_stands_in_it(text, now, zone):
    found = find(text, now, zone)
    for span in found.spans:
        assert BEGINNING <= span.start < span.end <= FOREVER
        assert text[span.position : span.position + len(span.text)] == span.text
    assert len(found.rest) <= len(text) + 2 * len(found.spans)


@given(day=st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)))
def test_every_day_of_the_calendar_is_read_however_it_is_written(day):
    month = "January February March April May June July August September October November December"
    name = month.split()[day.month - 1]
    year = f"{day.year:04}"
    for text in (
        f"{year}-{day.month:02}-{day.day:02}",
        f"on {day.day} {name} {year}",
        f"{name} {day.day}, {year}",
        f"{day.day:02}.{day.month:02}.{year}",
        f"{year}年{day.month}月{day.day}日",
    ):
        (span,) = find(text, NOW, dt.UTC).spans
        assert span.exact
        assert span.start == dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()
        assert span.end - span.start == 86_400


@pytest.mark.parametrize(
    "piece",
    ["day before ", "may ", "7 ", "friday ", "7 to ", "between ", "two weeks before ", "2023-",
     "1/", "年3", "- ", ". ", "昨", "the last ", "  ", "9" ],
)  # fmt: skip
def test_a_hostile_text_costs_no_more_steps_than_its_length(piece, steps):
    short, long = (piece * 2_000)[:2_000], (piece * 8_000)[:8_000]
    assert (
        steps(lambda: find(long, NOW, BERLIN)) < 5 * steps(lambda: find(short, NOW, BERLIN)) + 500
    )
