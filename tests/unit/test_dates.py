"""Dates in texts and questions. `tests/data/dates.txt` has what is read, told on some day."""

import datetime as dt
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thermocline.daemon.language.dates import (
    DAY_CODE,
    MONTH_CODE,
    WEEKDAY_CODE,
    DateMention,
    date_codes,
    find_dates,
    seconds_of,
    sought_codes,
)

BERLIN = ZoneInfo("Europe/Berlin")
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
FILE = Path(__file__).parents[1] / "data" / "dates.txt"


def rows() -> list[tuple[str, str, list[str]]]:
    """The day of telling, the text and the expected dates of each line."""
    told, listed = "", []
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("# told "):
            told = line.removeprefix("# told ")
        elif line and not line.startswith("#"):
            text, *expected = line.split("\t")
            listed.append((told, text, expected))
    return listed


def moment(day: str) -> float | None:
    return None if day == "-" else dt.datetime.fromisoformat(f"{day}T09:00+00:00").timestamp()


def named(code: str) -> str:
    """A code in words."""
    number = ord(code)
    if number >= WEEKDAY_CODE:
        return WEEKDAYS[number - WEEKDAY_CODE]
    if number >= MONTH_CODE:
        return MONTHS[number - MONTH_CODE - 1]
    return (dt.date(2000, 1, 1) + dt.timedelta(number - DAY_CODE)).strftime("%m-%d")


def in_words(mention: DateMention) -> str:
    periods = []
    for first, after in mention.periods:
        days = [dt.date.fromordinal(first).isoformat(), dt.date.fromordinal(after - 1).isoformat()]
        periods.append("..".join(dict.fromkeys(days)))
    return " ".join([mention.kind, *periods, "|", *map(named, mention.codes)])


def sought(text: str, told: str = "2026-11-23") -> dict[str, float]:
    (mention,) = find_dates(text, moment(told), dt.UTC)
    return {named(code): worth for code, worth in sought_codes(mention).items()}


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


def test_a_text_names_these_dates():
    for told, text, expected in rows():
        found = find_dates(text, moment(told), dt.UTC)
        assert [in_words(mention) for mention in found] == expected
        if expected and len(expected) == 1:
            # A sentence around it makes no difference.
            inside = find_dates(f"Maya said: {text} -- that is all", moment(told), dt.UTC)
            assert [mention.periods for mention in inside] == [found[0].periods]


def test_a_question_seeks_the_codes_that_answer_it():
    for text, codes in [
        ("on 5 January", {"01-05": 1.0}),
        ("tomorrow", {"11-24": 1.0}),
        ("on Friday", {"fri": 0.5, "11-20": 1.0, "11-27": 1.0}),
        ("every Friday", {"fri": 1.0}),
        ("this weekend", {"11-28": 1.0, "11-29": 1.0}),
        ("in June", {"jun": 1.0}),
        ("in January next year", {"jan": 1.0}),
        ("this summer", {"jun": 1.0, "jul": 1.0, "aug": 1.0}),
        ("in 2024", {}),
        (
            "in two weeks",
            {"12-07": 1.0}
            | dict.fromkeys(["12-04", "12-05", "12-06", "12-08", "12-09", "12-10"], 0.5),
        ),
    ]:  # fmt: skip
        assert sought(text) == codes


def test_the_codes_of_a_text_are_given_once():
    codes = date_codes("5 May, 6 May and again 5 May", moment("2026-11-23"), dt.UTC)
    assert [named(code) for code in codes] == ["05-05", "may", "wed", "05-06", "thu"]


def test_today_is_the_day_of_the_zone():
    told = dt.datetime(2023, 8, 16, 23, 30, tzinfo=dt.UTC).timestamp()
    (utc,) = find_dates("today", told, dt.UTC)
    (tokyo,) = find_dates("today", told, ZoneInfo("Asia/Tokyo"))
    assert tokyo.periods[0][0] == utc.periods[0][0] + 1


def test_a_period_has_the_hours_of_its_zone():
    spring, autumn = find_dates("on 26 March 2023 and on 29 October 2023", None, BERLIN)
    lengths = []
    for mention in (spring, autumn):
        start, end = seconds_of(mention.periods[0], BERLIN)
        lengths.append((end - start) / 3600)
    assert lengths == [23, 25]


def test_easter_is_computed():
    for year, day in [
        (1818, "03-22"), (1943, "04-25"), (1954, "04-18"), (1981, "04-19"), (2000, "04-23"),
        (2008, "03-23"), (2019, "04-21"), (2024, "03-31"), (2038, "04-25"), (2049, "04-18"),
    ]:  # fmt: skip
        if year >= 1900:
            (mention,) = find_dates(f"Easter {year}", None, dt.UTC)
        else:
            told = dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()
            (mention,) = find_dates("next Easter", told, dt.UTC)
        assert dt.date.fromordinal(mention.periods[0][0]).isoformat() == f"{year}-{day}"


TEXTS = [text for _, text, _ in rows()]
PIECES = st.sampled_from(
    [*TEXTS, "the", "a", "of", "to", "and", "-", "–", ".", ",", "7", "31", "2023", "99", "'s",
     "0", "9999", "last", "between", "from", "may", "May", "früh", "月", "年", "前", "日", "第",
     "\0", "\n", "\u0301", "１２月", "٣ May", "二〇二六", "十", "Q3", "9999-12-31", "0001-01-01"]
)  # fmt: skip
ZONES = st.sampled_from([dt.UTC, BERLIN, ZoneInfo("Africa/Cairo"), ZoneInfo("Asia/Tokyo")])


@given(
    text=st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=12).map(" ".join)),
    told=st.one_of(st.none(), st.floats(), st.floats(-6.3e10, 2.6e11)),
    zone=ZONES,
)
@example("9999 years from now, in 9999 weeks, 9999 days ago", 2.5e11, dt.UTC)
@example("yesterday, last week, this year, on Monday", -62_135_596_800.0, dt.UTC)
@example("tomorrow, next week, in 3 days, Easter", 253_402_214_400.0, dt.UTC)
def test_any_text_is_read_at_any_time(text, told, zone):
    end = 0
    for mention in find_dates(text, told, zone):
        assert mention.start >= end
        end = mention.end
        assert text[mention.start : mention.end] == mention.text
        assert all(DAY_CODE <= ord(code) < WEEKDAY_CODE + 7 for code in mention.codes)
        assert set(sought_codes(mention)) <= {*mention.codes} or mention.kind == "about"
        for first, after in mention.periods:
            assert 1 <= first < after <= dt.date.max.toordinal() + 1
            start, until = seconds_of((first, after), zone)
            assert start <= until


@given(day=st.dates(dt.date(1900, 1, 1), dt.date(2099, 12, 31)))
def test_every_day_is_read_however_it_is_written(day):
    name = MONTHS[day.month - 1]
    for text in (
        day.isoformat(), f"on {day.day} {name} {day.year}",
        f"{name.capitalize()} {day.day}, {day.year}", f"{day.day:02}.{day.month:02}.{day.year}",
        f"{day.day}.{day.month}.{day.year}", f"{day.year}年{day.month}月{day.day}日",
    ):  # fmt: skip
        (mention,) = find_dates(text, None, dt.UTC)
        assert mention.periods == ((day.toordinal(), day.toordinal() + 1),)


@pytest.mark.parametrize(
    "piece",
    ["day before ", "may ", "7 ", "friday ", "7 to ", "between ", "two weeks before ", "2023-",
     "1/", "年3", "- ", ". ", "昨", "the last ", "  ", "9", "first of ", "5. ", "12.", "a a a "],
)  # fmt: skip
def test_a_hostile_text_costs_no_more_steps_than_its_length(piece, steps):
    told = moment("2026-11-23")
    find_dates(piece, told, dt.UTC)
    short, long = (piece * 2_000)[:2_000], (piece * 8_000)[:8_000]
    assert (
        steps(lambda: find_dates(long, told, dt.UTC))
        < 5 * steps(lambda: find_dates(short, told, dt.UTC)) + 500
    )


def test_a_text_without_a_word_of_dates_costs_few_steps(steps):
    text = "Maya likes to drink strong green tea with her sister when they meet at home"
    find_dates(text, 0.0, dt.UTC)
    assert steps(lambda: find_dates(text, 0.0, dt.UTC)) < 30
