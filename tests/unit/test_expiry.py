import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.memory.checks import SECONDS, parse_expiry

NOW = 1_800_000_000.0


def test_a_duration_counts_from_now():
    for text, seconds in [
        ("45s", 45), ("30m", 1_800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600),
        ("1y", 31_536_000), ("1d12h", 129_600), (" 1D 12H ", 129_600), ("1.5h", 5_400),
    ]:  # fmt: skip
        assert parse_expiry(text, NOW) == NOW + seconds


def test_nothing_means_never():
    for value in [None, "", "  "]:
        assert parse_expiry(value, NOW) is None


def test_a_moment_may_be_a_number_or_iso_8601():
    for value in [
        1_800_000_060, 1_800_000_060.0, "1800000060", "2027-01-15T08:01:00Z", "2027-01-15T08:01:00",
        "2027-01-15T10:01:00+02:00",
    ]:  # fmt: skip
        assert parse_expiry(value, NOW) == NOW + 60


def test_what_is_past_or_malformed_is_refused_with_examples():
    for value in [
        "0d", "0s", 0, -1, 3_600, "3600", "2020-01-01", "-7d", "7", "7x", "d", "7dd", "soon",
        "7 days", "9" * 15 + "y", "9" * 500 + "d", "1d" * 60, 1e300, float("nan"), float("inf"),
        True, 10**400, "٧d", "\ud800",
    ]:  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            parse_expiry(value, NOW, field="ttl")
        assert caught.value.field == "ttl"
        assert "'7d'" in (caught.value.hint or "")
        assert len(caught.value.message) < 200


@given(st.text(max_size=40) | st.floats() | st.integers())
def test_whatever_is_given_the_answer_is_in_the_future_or_an_error(value):
    try:
        moment = parse_expiry(value, NOW)
    except InvalidInput:
        return
    assert moment is None or NOW < moment < 253_402_300_800


@given(st.lists(st.tuples(st.integers(1, 99), st.sampled_from("smhdw")), min_size=1, max_size=6))
def test_the_parts_of_a_duration_add_up(parts):
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_expiry(text, NOW) == NOW + sum(n * SECONDS[unit] for n, unit in parts)
