"""Changing the hot state by its keys."""

import pytest

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.memory.hot import HotState, update

NOW = 1_770_000_000.0


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_what_json_in_utf8_cannot_carry_is_refused():
    for value in ["a\0b", "\ud800", float("nan"), float("inf"), 10**30, nested(40), nested(100)]:
        with pytest.raises(InvalidInput, match="cannot store"):
            update(HotState(), "owner_profile", {"a": {"b": [value]}}, NOW)
