"""What the checks of values accept, and what they say; `test_bad_input.py` has what they refuse."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import InvalidInput, TooLarge
from thermocline.daemon.memory.checks import (
    check_category,
    check_data,
    check_importance,
    check_tags,
    check_text,
    check_time,
    shown,
)


def test_a_text_that_cannot_be_kept_is_refused_with_the_position():
    for text, words in [
        ("a\0b", "NUL character at position 1"),
        ("a\ud800", "lone surrogate at position 1"),
    ]:
        with pytest.raises(InvalidInput, match=words) as caught:
            check_text(text, field="content")
        assert caught.value.field == "content"


def test_every_other_text_is_kept_as_it_is():
    for text in ["x", "line\n\ttab\r\n", "\x1b[31m", "漢字 👩‍🚀", " kept as it is "]:
        assert check_text(text) == text


def test_the_limit_of_a_text_is_in_bytes_and_the_error_names_both():
    assert check_text("é" * 32_768)
    with pytest.raises(TooLarge, match="65538 bytes, and the limit is 65536") as caught:
        check_text("é" * 32_769)
    assert caught.value.status == 413


def test_a_category_is_cleaned():
    for path, clean in [
        ("general", "general"), ("/projects/boat/", "projects/boat"),
        (" projects / boat ", "projects/boat"), ("root", "root"), ("root/x", "x"),
        ("/root/root/x", "x"), ("Пароход/ход", "Пароход/ход"), ("cafe\u0301", "café"),
        ("a b/c.d", "a b/c.d"), ("a/root", "a/root"), ("x" * 64, "x" * 64),
        ("/".join(["y" * 49] * 4), "/".join(["y" * 49] * 4)),
    ]:  # fmt: skip
        assert check_category(path) == clean


def test_a_category_that_is_too_deep_is_told_the_way_out():
    with pytest.raises(InvalidInput, match="5 levels") as caught:
        check_category("a/b/c/d/e")
    assert caught.value.hint == "the tree has at most 4; use 'a/b/c/d'"
    assert check_category("a/b/c/d/e", 5) == "a/b/c/d/e"


@given(st.text(max_size=60) | st.text(alphabet="/ ab.._\\root\u0301\u2000\u0338", max_size=30))
def test_a_clean_category_stays_as_it_is(path):
    try:
        clean = check_category(path)
    except InvalidInput:
        return
    assert check_category(clean) == clean
    assert unicodedata.is_normalized("NFC", clean)
    assert 1 <= len(clean.split("/")) <= 4


def test_an_importance_lies_from_0_to_1():
    for importance in [0, 1, 0.5, 1.0, -0.0]:
        assert check_importance(importance) == importance
        assert isinstance(check_importance(importance), float)


def test_any_other_importance_is_refused():
    for importance in [float("nan"), float("inf"), float("-inf"), -1, 11, 1.0001, True, 10**400]:
        with pytest.raises(InvalidInput, match="from 0 to 1") as caught:
            check_importance(importance)
        assert caught.value.field == "importance"


def test_the_most_tags_are_32_of_64_characters():
    tags = [f"{n:064}" for n in range(32)]
    assert check_tags([*tags, *tags]) == tuple(tags)


def test_data_is_any_json_up_to_64_kib():
    data = {"solution": [1, 2.5, None, True, "é"]}
    assert check_data(data) is data
    assert check_data("x" * 65_534)
    with pytest.raises(TooLarge, match="65537 bytes as JSON"):
        check_data("x" * 65_535)


def test_data_that_cannot_be_written_as_json_is_refused():
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    for data in (deep, "\ud800", {"a": object()}):
        with pytest.raises(InvalidInput, match="'data'"):
            check_data(data)


def test_a_time_is_seconds_or_iso_8601_in_utc():
    for value, seconds in [
        (0, 0), (1_700_000_000, 1_700_000_000), (1_700_000_000.25, 1_700_000_000.25),
        ("1700000000.25", 1_700_000_000.25), ("0", 0), ("2026-02-11", 1_770_768_000),
        ("20260211", 1_770_768_000), ("2026-02-11T08:00", 1_770_796_800),
        ("2026-02-11 08:00:00.5", 1_770_796_800.5), (" 2026-02-11T08:00:00Z ", 1_770_796_800),
        ("2026-02-11T10:00:00+02:00", 1_770_796_800),
        ("2026-02-11T08:00:00.123456789Z", 1_770_796_800.123456),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ]:  # fmt: skip
        assert check_time(value) == pytest.approx(seconds, abs=1e-6)


def test_milliseconds_are_named_as_the_likely_mistake():
    with pytest.raises(InvalidInput) as caught:
        check_time(1_770_796_800_000)
    assert caught.value.hint == "times are seconds, not milliseconds"


@given(st.text(max_size=40) | st.floats() | st.integers())
def test_whatever_is_given_a_time_is_in_range_or_an_error(value):
    try:
        moment = check_time(value)
    except InvalidInput:
        return
    assert 0 <= moment < 253_402_300_800


def test_a_value_is_quoted_short_and_on_one_line():
    for value, quoted in [
        ("a\nb", r"'a\nb'"), ("x" * 1_000_000, "'" + "x" * 47 + "…"), ([1] * 1_000_000, "a list"),
        ({}, "an object"), (10**5_000, "a very large number"), (None, "None"),
        ("\ud800\x1b", r"'\ud800\x1b'"),
    ]:  # fmt: skip
        assert shown(value) == quoted
