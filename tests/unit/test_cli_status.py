"""What `thermocline status` makes of numbers."""

from __future__ import annotations

import pytest

from thermocline.daemon.cli.status import dollars


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (1234.5, "1,234.50"),
        (0.25, "0.25"),
        (0.0312, "0.031"),
        (0.004, "0.004"),
        (0.00012, "0.00012"),
        (0.000001, "less than 0.0001"),
    ],
)
def test_less_than_a_cent_is_not_shown_as_nothing(amount: float, shown: str) -> None:
    assert dollars(amount) == shown
