"""What models may cost, what is counted, and which answers are kept."""

import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from thermocline.daemon.config.settings import Llm
from thermocline.daemon.llm.budget import Budget, UsageCounts
from thermocline.daemon.llm.client import Cache, key_of
from thermocline.daemon.llm.model import ModelQuestion, Part
from thermocline.daemon.runtime import atomic
from thermocline.daemon.schemas.status import CacheState

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
    budget.charge(tokens, tokens, cost)


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
    budget.charge(1000, 10, None)
    assert budget.why_spent() is None
    assert budget.today.tokens == 10


def test_in_dollars_they_count_by_what_a_token_has_cost(make_budget, wall):
    budget = make_budget(cost=1.0)
    # Nothing says yet what it will cost.
    budget.reserve(1000)
    assert budget.why_spent() is None
    budget.charge(1000, 1000, 0.25)
    budget.reserve(2000)
    assert budget.why_spent() is None
    budget.reserve(1000)
    assert budget.why_spent() == ("0.25 of 1.00 dollars, and running requests may need the rest")
    budget.charge(1000, 0, 0.0)
    budget.charge(2000, 100, 0.01)
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


ASKED = ModelQuestion("distil", "do", (Part("note", "x"),), 100, 0.0)


def test_the_answer_that_was_not_used_for_longest_goes_first():
    cache = Cache[int, str](2)
    cache.put(1, "a")
    cache.put(2, "b")
    assert cache.get(1) == "a"
    cache.put(3, "c")
    assert cache.get(2) is None
    assert cache.get(1) == "a"
    assert cache.state == CacheState(entries=2, hits=2, misses=1)
    cache.drop(lambda key: key == 1)
    assert cache.get(1) is None
    assert cache.get(3) == "c"


def test_every_word_of_a_question_counts():
    for other in [
        msgspec.structs.replace(ASKED, purpose="tree"),
        msgspec.structs.replace(ASKED, system="do it"),
        msgspec.structs.replace(ASKED, parts=(Part("note", "y"),)),
        msgspec.structs.replace(ASKED, parts=(Part("tree", "x"),)),
        msgspec.structs.replace(ASKED, max_tokens=101),
        msgspec.structs.replace(ASKED, temperature=0.1),
    ]:
        assert key_of(["m"], ASKED, "s") != key_of(["m"], other, "s")


def test_usage_counts_by_purpose():
    usage = UsageCounts()
    for seconds in range(1, 101):
        usage.called("tree", {})
        usage.answered("tree", float(seconds), repaired=seconds == 1)
        usage.charged("tree", 10, 5, 0.001)
    usage.called("tree", {"api_key": 2})
    usage.answered("tree", None, repaired=False)
    usage.called("distil", {"api_key": 1, "password": 1})
    usage.failed("distil", "timeout")
    tree, distil = usage.purposes()["tree"], usage.purposes()["distil"]
    assert (tree.calls, tree.errors, tree.cached, tree.repaired) == (101, 0, 1, 1)
    assert (tree.tokens_in, tree.tokens_out, tree.cost) == (1000, 500, 0.1)
    assert (tree.p50_seconds, tree.p95_seconds) == (50.0, 95.0)
    assert (distil.calls, distil.errors, distil.last_error) == (1, 1, "timeout")
    assert (distil.p50_seconds, distil.p95_seconds) == (0.0, 0.0)
    assert usage.cleared() == {"api_key": 3, "password": 1}
