"""Ordering candidates: by our parts, by a published formula, by the tree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.config.settings import Weights
from thermocline.daemon.memory.scoring import DAY, Scoring, score
from thermocline.daemon.recall.pool import Pool, places_of
from thermocline.daemon.recall.presets import scalyclaw, tinyclaw
from thermocline.daemon.recall.ranking import rank, rank_as, rank_by_tree
from thermocline.daemon.recall.signals import Signals
from thermocline.daemon.recall.sources import MEMORIES, Candidate
from thermocline.daemon.recall.tree_search import TreeHit

NOW = 1_790_000_000.0


def entry(row: int, *, age: float = 0.0, **fields: Any) -> Candidate:
    made = NOW - age * DAY
    given: dict[str, Any] = {"created_at": made, "updated_at": made} | fields
    return Candidate(key=MEMORIES.key(row), **given)


def pool(*entries: Candidate) -> Pool:
    return Pool(entries, places_of(entries))


def signals(*relevance: float, bm25: Any = None) -> Signals:
    """What the pool's entries are worth; each has two words of the question."""
    return Signals(
        columns={},
        relevance=relevance,
        bm25=bm25 or (1.0,) * len(relevance),
        met=[{"red": "", "boat": ""}] * len(relevance),
        asked=frozenset(),
        dated=False,
        words=2,
    )


ALL = Weights(match=1.0, recency=2.0, importance=1.0)


def rows(of: Pool, ranked: Any) -> list[int]:
    return [of.entries[place.at].row for place in ranked]


@pytest.mark.parametrize("better", [{"match": 0.9}, {"importance": 0.9}, {"age": 1.0}])
def test_the_one_that_is_better_in_one_respect_comes_first(better: dict[str, float]) -> None:
    fields = {name: value for name, value in better.items() if name != "match"}
    entries = pool(entry(1, **{"age": 9.0} | fields), entry(2, age=9.0))
    ranked = rank(entries, signals(better.get("match", 0.5), 0.5), ALL, NOW)
    assert rows(entries, ranked) == [1, 2]


def test_of_equals_the_newer_comes_first() -> None:
    entries = pool(entry(1, age=3.0), entry(9, age=2.0), entry(4, age=1.0), entry(5, age=1.0))
    assert rows(entries, rank(entries, signals(1, 1, 1, 1), Weights(), NOW)) == [5, 4, 9, 1]


def test_the_order_is_that_of_the_relevance_by_any_weights() -> None:
    entries = pool(entry(1, importance=0.1), entry(2, importance=0.9))
    for weights, order in (
        (Weights(), [1, 2]),
        (Weights(1.0, 0.0, 1.0), [2, 1]),
        (Weights(0.0, 0.0, 1.0), [2, 1]),
    ):
        ranked = rank(entries, signals(0.8, 0.5), weights, NOW)
        assert rows(entries, ranked) == order
        relevances = [place.relevance for place in ranked]
        assert relevances == sorted(relevances, reverse=True)


def test_age_alone_makes_no_answer_worse() -> None:
    entries = pool(entry(1, age=900.0), entry(2))
    assert rows(entries, rank(entries, signals(0.51, 0.5), Weights(), NOW)) == [1, 2]


def test_recency_fades_from_the_last_use_or_else_from_the_making() -> None:
    entries = pool(
        entry(1, age=10.0), entry(2, age=50.0, last_accessed_at=NOW), entry(3, age=-10.0)
    )
    ranked = rank(entries, signals(1, 1, 1), Weights(), NOW)
    recency = {entries.entries[place.at].row: place.recency for place in ranked}
    assert recency == {1: pytest.approx(0.6065, abs=1e-4), 2: 1.0, 3: 1.0}


@pytest.mark.parametrize(("once", "order"), [(False, [3, 2, 1]), (True, [1, 2, 3])])
def test_a_memory_yields_to_those_that_replaced_it_unless_the_past_is_asked_for(
    once: bool, order: list[int]
) -> None:
    entries = pool(entry(1, age=9.0, superseded_by=2), entry(2, superseded_by=3), entry(3, age=-1))
    ranked = rank(entries, signals(0.9, 0.2, 0.6), Weights(), NOW, once=once)
    assert rows(entries, ranked) == order
    assert ranked[0].relevance == max(place.relevance for place in ranked)


def test_what_has_hardly_any_of_the_best_match_is_no_result() -> None:
    entries = pool(entry(1), entry(2), entry(3))
    assert rows(entries, rank(entries, signals(1.0, 0.2, 0.001), Weights(), NOW)) == [1, 2]
    assert rank(entries, signals(0, -0.2, 0), Weights(), NOW) == []


def test_an_empty_pool_has_no_results() -> None:
    assert rank(pool(), signals(), Weights(), NOW) == []
    assert rank_as(pool(), signals(), "tinyclaw", NOW) == []
    assert rank_by_tree(pool(), signals(), [], Scoring(), NOW) == []


AGED = (
    entry(1, age=30.0, importance=0.9),
    entry(2, age=3.0, importance=0.3, last_accessed_at=NOW - DAY, access_count=4),
    entry(3, age=300.0, updated_at=NOW - 2 * DAY, importance=0.1),
    entry(4),
)
BM25 = (1.0, 0.7, 0.6, 0.0)


def test_tinyclaws_numbers_are_those_of_its_formula() -> None:
    entries = pool(*AGED)
    ranked = rank_as(entries, signals(1, 2, 3, 4, bm25=BM25), "tinyclaw", NOW)
    found = {entries.entries[one.at].row: one.relevance for one in ranked}
    assert found == {
        # The importance of both has faded to the least that there is.
        1: pytest.approx(tinyclaw(1.0, 30.0, 0, 0.05).relevance),
        2: pytest.approx(tinyclaw(0.7, 1.0, 4, 0.3).relevance),
        3: pytest.approx(tinyclaw(0.6, 300.0, 0, 0.05).relevance),
    }
    assert list(found) == sorted(found, key=lambda row: -found[row])


def test_tinyclaws_importance_is_what_is_left_after_days_without_use() -> None:
    entries = pool(entry(1, age=10.0, importance=0.9), entry(2, age=7.0, importance=0.9))
    ranked = rank_as(entries, signals(1, 2, bm25=(1.0, 1.0)), "tinyclaw", NOW)
    found = {entries.entries[one.at].row: one.importance for one in ranked}
    # Three days beyond the seven hold twelve of its runs.
    assert found == {1: pytest.approx(0.9 * 0.95**12), 2: 0.9}


def test_scalyclaws_numbers_are_those_of_its_formula_for_every_match() -> None:
    entries = pool(*AGED)
    ranked = rank_as(entries, signals(1, 2, 3, 4, bm25=(1.0, 0.4, 0.6, 0.0)), "scalyclaw", NOW)
    found = {entries.entries[one.at].row: one for one in ranked}
    assert found.keys() == {1, 2, 3}
    for row, parts in {1: scalyclaw(1.0, 30.0, 0.9), 3: scalyclaw(0.6, 2.0, 0.1)}.items():
        assert found[row].relevance == pytest.approx(parts.relevance)
        assert found[row].importance == pytest.approx(parts.importance)


def _path(path: str, relevance: float) -> TreeHit:
    return TreeHit(path, relevance, ("x",), ("root", path), 0.5, 1.0, 1.0)


def test_the_tree_ranks_by_its_categories_and_within_one_by_the_score() -> None:
    entries = pool(
        entry(1, category="a/b", importance=0.2),
        entry(2, category="ab", importance=1.0),
        entry(3, category="c", importance=0.1),
        entry(4, category="a", importance=0.9, age=90.0),
        entry(5, category="a", importance=0.5, access_count=3),
    )
    ranked = rank_by_tree(
        entries, signals(1, 1, 1, 1, 1), [_path("c", 2.1), _path("a", 0.75)], Scoring(), NOW
    )
    worth = [score(i, NOW - age * DAY, n, NOW, Scoring()) for i, age, n in (
        (0.5, 0, 3), (0.2, 0, 0), (0.9, 90, 0),
    )]  # fmt: skip
    assert worth == sorted(worth, reverse=True)
    assert rows(entries, ranked) == [3, 5, 1, 4]
    assert [found.relevance for found in ranked] == [2.1, 0.75, 0.75, 0.75]


@given(
    st.lists(
        st.tuples(
            st.floats(-5.0, 50.0), st.floats(0.0, 1.0), st.floats(-1e4, 1e4), st.integers(0, 10**6)
        ),
        max_size=20,
    )
)
def test_every_relevance_and_every_part_is_from_0_to_1(
    given: list[tuple[float, float, float, int]],
) -> None:
    entries = pool(*(
        entry(row, importance=importance, age=age, access_count=uses)
        for row, (_, importance, age, uses) in enumerate(given)
    ))  # fmt: skip
    told = signals(*(match for match, *_ in given))
    for found in rank(entries, told, Weights(), NOW):
        for value in (found.relevance, found.match, found.recency, found.importance):
            assert 0.0 <= value <= 1.0 + 1e-9
    for ranked in (
        rank_as(entries, told, "tinyclaw", NOW),
        rank_as(entries, told, "scalyclaw", NOW),
    ):
        assert sorted(rows(entries, ranked)) == list(range(len(given)))
        for found in ranked:
            for value in (found.relevance, found.match, found.recency, found.importance):
                assert 0.0 <= value <= 1.0 + 1e-9
        relevances = [found.relevance for found in ranked]
        assert relevances == sorted(relevances, reverse=True)
