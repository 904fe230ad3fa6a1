"""Ordering candidates by match, recency and importance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.recall.fulltext import Candidate
from thermocline.daemon.recall.ranking import Weights, rank

NOW = 1_790_000_000.0


def candidate(row: int, **fields: float) -> Candidate:
    given: dict[str, float] = {"match": 1.0, "importance": 0.5, "age": 0.0} | fields
    return Candidate(
        row,
        given["match"],
        given["importance"],
        NOW - given["age"] * DAY,
        None,
        int(given.get("uses", 0)),
    )


@pytest.mark.parametrize("better", [{"match": 2.0}, {"importance": 0.9}, {"age": -1.0}])
def test_the_one_that_is_better_in_one_respect_comes_first(better: dict[str, float]) -> None:
    worse = {"age": 10.0} if "age" in better else {}
    ranked = rank([candidate(1, **better), candidate(2, **worse)], Weights(), NOW)
    assert [found.row for found in ranked] == [1, 2]
    assert ranked[0].relevance > ranked[1].relevance


def test_of_equals_the_newer_comes_first() -> None:
    assert [r.row for r in rank([candidate(1), candidate(9), candidate(4)], Weights(), NOW)] == [
        *(9, 4, 1)
    ]


def test_the_relevance_is_the_weighted_mean_of_the_parts() -> None:
    [best, second] = rank(
        [candidate(1, match=4.0), candidate(2, match=1.0)], Weights(3.0, 0.0, 1.0), NOW
    )
    assert (best.match, second.match) == (1.0, 0.25)
    assert best.relevance == pytest.approx((3 * 1.0 + 0.5) / 4)
    assert second.relevance == pytest.approx((3 * 0.25 + 0.5) / 4)


def test_recency_is_that_of_the_last_use_and_gains_by_uses() -> None:
    [fresh] = rank([Candidate(1, 1.0, 0.5, NOW - 50 * DAY, NOW, 0)], Weights(), NOW)
    assert fresh.recency == 1.0
    [old] = rank([candidate(1, age=10.0)], Weights(), NOW)
    [used] = rank([candidate(1, age=10.0, uses=10)], Weights(), NOW)
    assert old.recency == pytest.approx(0.6065, abs=1e-4)
    assert used.recency == pytest.approx(old.recency * 1.2)


def test_no_candidates_and_no_weights_are_no_trouble() -> None:
    assert rank([], Weights(), NOW) == []
    assert [r.relevance for r in rank([candidate(1)], Weights(0.0, 0.0, 0.0), NOW)] == [0.0]


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 50.0), st.floats(0.0, 1.0), st.floats(-1e4, 1e4), st.integers(0, 10**6)
        ),
        max_size=20,
    )
)
def test_every_relevance_and_every_part_is_from_0_to_1(
    given: list[tuple[float, float, float, int]],
) -> None:
    candidates = [
        candidate(row, match=match, importance=importance, age=age, uses=uses)
        for row, (match, importance, age, uses) in enumerate(given)
    ]
    ranked = rank(candidates, Weights(), NOW)
    assert {found.row for found in ranked} == set(range(len(given)))
    for found in ranked:
        for value in (found.relevance, found.match, found.recency, found.importance):
            assert 0.0 <= value <= 1.0 + 1e-9
    relevances = [found.relevance for found in ranked]
    assert relevances == sorted(relevances, reverse=True)
