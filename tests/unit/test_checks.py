"""What the checks of values accept, and what they say; `test_bad_input.py` has what they refuse."""

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import InvalidInput, TooLarge
from thermocline.daemon.memory.checks import (
    SECONDS,
    check_category,
    check_data,
    check_importance,
    check_tags,
    check_text,
    check_time,
    parse_expiry,
    shown,
)

NOW = 1_800_000_000.0


def expiry(value: Any) -> float | None:
    return parse_expiry(value, NOW)


# The check, what it takes, and what it makes of that.
TAKEN: list[tuple[Callable[[Any], Any], dict[Any, Any]]] = [
    (check_text, {text: text for text in (
        "x", "line\n\ttab\r\n", "\x1b[31m", "漢字 👩‍🚀", " kept as it is ", "é" * 32_768
    )}),
    (check_category, {
        "general": "general", "/projects/boat/": "projects/boat", "root": "root", "root/x": "x",
        " projects / boat ": "projects/boat", "/root/root/x": "x", "Пароход/ход": "Пароход/ход",
        "cafe\u0301": "café", "a b/c.d": "a b/c.d", "a/root": "a/root", "x" * 64: "x" * 64,
        "/".join(["y" * 49] * 4): "/".join(["y" * 49] * 4),
    }),
    (check_importance, {0: 0.0, 1: 1.0, 0.5: 0.5}),
    (check_tags, {tuple(f"{n % 32:064}" for n in range(64)): tuple(f"{n:064}" for n in range(32))}),
    (check_data, {"x" * 65_534: "x" * 65_534}),
    (check_time, {
        0: 0, 1_700_000_000: 1_700_000_000, 1_700_000_000.25: 1_700_000_000.25, "0": 0,
        "1700000000.25": 1_700_000_000.25, "2026-02-11": 1_770_768_000, "20260211": 1_770_768_000,
        "2026-02-11T08:00": 1_770_796_800, "2026-02-11 08:00:00.5": 1_770_796_800.5,
        " 2026-02-11T08:00:00Z ": 1_770_796_800, "2026-02-11T10:00:00+02:00": 1_770_796_800,
        "2026-02-11T08:00:00.125456789Z": pytest.approx(1_770_796_800.125456, abs=1e-6),
        "9999-12-31T23:59:59Z": 253_402_300_799,
    }),
    (expiry, {
        **{text: NOW + seconds for text, seconds in {
            "45s": 45, "30m": 1_800, "12h": 43_200, "7d": 604_800, "2w": 1_209_600,
            "1y": 31_536_000, "1d12h": 129_600, " 1D 12H ": 129_600, "1.5h": 5_400,
        }.items()},
        **dict.fromkeys((None, "", "  ")),
        **dict.fromkeys((
            1_800_000_060, "1800000060", "2027-01-15T08:01:00Z", "2027-01-15T08:01:00",
            "2027-01-15T10:01:00+02:00",
        ), NOW + 60),
    }),
    (shown, {
        "a\nb": r"'a\nb'", "x" * 1_000_000: "'" + "x" * 47 + "…", (1,) * 1_000_000: "a list",
        10**5_000: "a very large number", None: "None", "\ud800\x1b": r"'\ud800\x1b'",
    }),
]  # fmt: skip


def test_what_can_be_kept_is_cleaned():
    for check, cases in TAKEN:
        for value, clean in cases.items():
            assert check(value) == clean
    assert isinstance(check_importance(1), float)
    assert shown({}) == "an object"


def test_an_error_says_the_way_out():
    with pytest.raises(TooLarge) as large:
        check_text("é" * 32_769)
    assert large.value.status == 413
    with pytest.raises(InvalidInput) as past:
        expiry("-7d")
    assert "'7d'" in (past.value.hint or "")
    with pytest.raises(InvalidInput, match="5 levels") as deeper:
        check_category("a/b/c/d/e", field="memories[3].category")
    assert deeper.value.field == "memories[3].category"
    assert deeper.value.hint == "the tree has at most 4; use 'a/b/c/d'"
    assert check_category("a/b/c/d/e", 5) == "a/b/c/d/e"
    with pytest.raises(InvalidInput) as late:
        check_time(1_770_796_800_000)
    assert late.value.hint == "times are seconds, not milliseconds"


@given(st.text(max_size=60) | st.text(alphabet="/ ab.._\\root\u0301\u2000\u0338", max_size=30))
def test_a_clean_category_stays_as_it_is(path):
    try:
        clean = check_category(path)
    except InvalidInput:
        return
    assert check_category(clean) == clean
    assert unicodedata.is_normalized("NFC", clean)
    assert 1 <= len(clean.split("/")) <= 4


@given(st.text(max_size=40) | st.floats() | st.integers())
def test_whatever_is_given_a_time_is_in_range_or_an_error(value):
    for check, begin in ((check_time, 0), (expiry, NOW)):
        try:
            moment = check(value)
        except InvalidInput:
            continue
        assert moment is None or begin <= moment < 253_402_300_800


@given(st.lists(st.tuples(st.integers(1, 99), st.sampled_from("smhdw")), min_size=1, max_size=6))
def test_the_parts_of_a_duration_add_up(parts):
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert expiry(text) == NOW + sum(n * SECONDS[unit] for n, unit in parts)
