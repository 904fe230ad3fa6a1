"""What a day may cost, and what it has."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from thermocline.daemon.config.settings import Llm
from thermocline.daemon.llm.budget import Budget
from thermocline.daemon.runtime import atomic

NOON = time.mktime((2026, 3, 14, 12, 0, 0, 0, 0, -1))
DAY = 86_400.0


@pytest.fixture
def make_budget(tmp_path: Path, wall):
    wall.seconds = NOON

    def make(tokens: int = 0, cost: float = 0.0) -> Budget:
        limits = Llm(daily_tokens=tokens, daily_cost=cost)
        budget = Budget(tmp_path / "usage.json", atomic.write, wall, lambda: limits)
        with suppress(msgspec.MsgspecError):
            budget.load()
        return budget

    return make


def spend(budget: Budget, tokens: int, cost: float | None = None) -> None:
    budget.reserve(tokens)
    budget.settle(tokens, tokens, cost)


def test_money_is_spent_when_it_reaches_the_limit_also_one_below_a_cent(make_budget):
    budget = make_budget(cost=0.5)
    spend(budget, 10, 0.3)
    assert budget.why_spent() is None
    spend(budget, 10, 0.2)
    assert budget.why_spent() == "0.50 of 0.50 dollars"
    # A price that is not known is counted as such.
    spend(budget, 10)
    assert (budget.today.cost, budget.today.unpriced, budget.today.calls) == (0.5, 1, 3)
    budget = make_budget(cost=0.005)
    spend(budget, 10, 0.02)
    assert budget.why_spent() == "0.02 of 0.005 dollars"


def test_requests_under_way_count_with_what_they_may_still_cost(make_budget):
    budget = make_budget(tokens=1000)
    budget.reserve(1000)
    assert budget.why_spent()
    budget.settle(1000, 10, None)
    assert budget.why_spent() is None
    assert budget.today.tokens == 10


def test_in_dollars_they_count_by_what_a_token_has_cost(make_budget, wall):
    budget = make_budget(cost=1.0)
    # Nothing says yet what it will cost.
    budget.reserve(1000)
    assert budget.why_spent() is None
    budget.settle(1000, 1000, 0.25)
    budget.reserve(2000)
    assert budget.why_spent() is None
    budget.reserve(1000)
    assert budget.why_spent() == ("0.25 of 1.00 dollars, and running requests may need the rest")
    budget.settle(1000, 0, 0.0)
    budget.settle(2000, 100, 0.01)
    assert budget.why_spent() is None
    budget.save()
    wall.seconds += DAY
    budget = make_budget(cost=1.0)
    budget.reserve(5000)
    assert budget.why_spent() == ("0 of 1.00 dollars, and running requests may need the rest")


def test_a_clock_that_is_set_back_does_not_renew_the_budget(make_budget, wall):
    budget = make_budget(tokens=10)
    spend(budget, 10)
    wall.seconds += DAY
    spend(budget, 3)
    wall.seconds -= DAY
    assert budget.why_spent()
    wall.seconds += DAY
    assert budget.today.tokens == 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"2026-03-14": 5}', b"\xff"])
def test_a_damaged_file_counts_as_none(make_budget, tmp_path, content):
    (tmp_path / "usage.json").write_bytes(content)
    budget = make_budget(tokens=10)
    assert budget.today.tokens == 0
    with pytest.raises(msgspec.MsgspecError):
        budget.load()
    spend(budget, 10)
    budget.save()
    assert make_budget(tokens=10).why_spent()


def test_a_month_of_days_is_kept(make_budget, wall, tmp_path):
    budget = make_budget()
    for _ in range(40):
        spend(budget, 1)
        wall.seconds += DAY
    budget.save()
    content = (tmp_path / "usage.json").read_text()
    assert content.count("2026-") == 31
    assert "2026-03-14" not in content
