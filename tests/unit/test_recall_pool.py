"""Which memories are candidates, out of a real database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.pool import REACH, Pool, gather, texts
from thermocline.daemon.recall.postings import look_up
from thermocline.daemon.recall.query import parse
from thermocline.daemon.recall.sources import MEMORIES
from thermocline.daemon.store.selecting import Filters

NOW = 1_790_000_000.0
NUMBER = 400


def memory(number: int, text: str, **fields: Any) -> Memory:
    given: dict[str, Any] = {"created_at": NOW - NUMBER + number, "updated_at": NOW} | fields
    return Memory(id=f"{number:016x}", text=text, **given)


def gathered(
    db: sqlite3.Connection,
    text: str,
    filters: Filters | None = None,
    *,
    limit: int = 50,
    extra: Sequence[int] = (),
    neighbours: bool = False,
    share: float = 1.0,
) -> Pool:
    postings = look_up(db, parse(text, NOW), common_share=share, newest=limit)
    return gather(
        db,
        postings,
        MEMORIES.keys(extra),
        filters or Filters(),
        now=NOW,
        limit=limit,
        neighbours=neighbours,
    )


def rows(pool: Pool) -> list[int]:
    return [entry.row for entry in pool.entries]


@pytest.fixture
def rivers(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """Memories that all hold `river`; every fourth holds `stone`; a few oldest are `deep`."""
    return remembered(
        memory(
            number,
            "river stone" if number % 4 == 0 else "river",
            tags=("deep",) if number <= 3 else (),
            merged_into="0" * 16 if number == 4 else None,
        )
        for number in range(1, NUMBER + 1)
    )


def test_the_candidates_are_the_heaviest_and_of_those_the_newest(
    rivers: sqlite3.Connection,
) -> None:
    stony = [row for row in range(NUMBER, 4, -1) if row % 4 == 0]
    rest = [row for row in range(NUMBER, 0, -1) if row % 4]
    assert rows(gathered(rivers, "river stone", limit=120)) == (stony + rest)[:120]
    assert rows(gathered(rivers, "river stone", limit=NUMBER)) == stony + rest


@pytest.mark.parametrize("limit", [1, 3, 7, NUMBER])
def test_what_passes_the_filters_is_found_however_light_it_is(
    rivers: sqlite3.Connection, limit: int
) -> None:
    pool = gathered(rivers, "river stone", Filters(tags=("deep",)), limit=limit)
    assert rows(pool) == [3, 2, 1][:limit]


def test_no_more_is_loaded_than_it_takes(rivers: sqlite3.Connection) -> None:
    asked: list[str] = []
    postings = look_up(rivers, parse("river"), common_share=1.0, newest=5)
    rivers.set_trace_callback(asked.append)
    gather(rivers, postings, (), Filters(), now=NOW, limit=5, neighbours=False)
    once = len(asked)
    gather(rivers, postings, (), Filters(actor="nobody"), now=NOW, limit=5, neighbours=False)
    rivers.set_trace_callback(None)
    assert once <= 2
    # Steps that widen: the whole is walked in a few, not in one for each five.
    assert len(asked) - once <= 8


def test_merged_and_expired_take_part_only_if_they_are_asked_for(
    remembered: Callable[..., sqlite3.Connection],
) -> None:
    db = remembered(
        [
            memory(1, "river"),
            memory(2, "river", merged_into="x"),
            memory(3, "river", expires_at=NOW),
            memory(4, "river", expires_at=NOW + 1),
        ]
    )
    assert rows(gathered(db, "river")) == [4, 1]
    assert rows(gathered(db, "river", Filters(merged=True))) == [4, 2, 1]
    assert rows(gathered(db, "river", Filters(expired=True))) == [4, 3, 1]
    assert rows(gathered(db, "river", extra=[2, 3, 4])) == [4, 1]


def test_of_nothing_but_common_words_the_newest_are_the_candidates(
    rivers: sqlite3.Connection,
) -> None:
    pool = gathered(rivers, "river", limit=7, share=0.02)
    assert rows(pool) == list(range(NUMBER, NUMBER - 7, -1))


def test_rows_that_something_else_named_take_part_after_the_filters(
    rivers: sqlite3.Connection,
) -> None:
    assert rows(gathered(rivers, "zebra", extra=[9, 4, 7])) == [7, 9]
    assert rows(gathered(rivers, "zebra", Filters(until=NOW - NUMBER + 8), extra=[9, 7])) == [7]
    assert sorted(rows(gathered(rivers, "stone", limit=2, extra=[NUMBER, 9]))) == [
        *(9, NUMBER - 4, NUMBER)
    ]


@pytest.fixture
def talk(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """Two conversations of 20 turns; the tenth turn of the first has the word."""
    turns = [
        memory(
            20 * group + turn,
            "the otter swims" if (group, turn) == (0, 10) else f"small talk {group} {turn}",
            group=f"talk{group}",
            position=turn,
            actor=("Ann", "Bo")[turn % 2],
        )
        for group in (0, 1)
        for turn in range(1, 21)
    ]
    return remembered([*turns, memory(41, "alone")])


def test_the_neighbours_of_a_match_take_part(talk: sqlite3.Connection) -> None:
    pool = gathered(talk, "otter", neighbours=True)
    assert rows(pool)[0] == 10
    assert sorted(rows(pool)) == list(range(10 - REACH, 10 + REACH + 1))
    assert rows(gathered(talk, "otter")) == [10]


def test_neighbours_pass_the_filters_too(talk: sqlite3.Connection) -> None:
    pool = gathered(talk, "otter", Filters(actor="Ann"), neighbours=True)
    assert sorted(rows(pool)) == [6, 8, 10, 12, 14]


def test_the_pool_knows_who_stands_beside_whom(talk: sqlite3.Connection) -> None:
    pool = gathered(talk, "otter", neighbours=True)
    at = {entry.row: index for index, entry in enumerate(pool.entries)}
    assert pool.beside(at[10], 2) == at[12]
    assert pool.beside(at[6], -1) == -1
    around = {distance: pool.entries[near].row for distance, near in pool.around(at[8])}
    assert around == {-2: 6, -1: 7, 1: 9, 2: 10, 3: 11, 4: 12}
    alone = gathered(talk, "alone", neighbours=True)
    assert (alone.around(0), alone.beside(0, 1)) == ([], -1)


def test_matches_far_apart_have_their_own_neighbours_and_near_ones_share_theirs(
    remembered: Callable[..., sqlite3.Connection],
) -> None:
    db = remembered(
        memory(turn, "otter" if turn in (10, 15, 40) else "x", group="g", position=turn)
        for turn in range(1, 61)
    )
    asked: list[str] = []
    postings = look_up(db, parse("otter"), common_share=1.0, newest=5)
    db.set_trace_callback(asked.append)
    pool = gather(db, postings, (), Filters(), now=NOW, limit=9, neighbours=True)
    db.set_trace_callback(None)
    assert sorted(rows(pool)) == [*range(6, 20), *range(36, 45)]
    assert sum("BETWEEN" in sql for sql in asked) == 1


def test_a_phrase_brings_in_what_has_it(remembered: Callable[..., sqlite3.Connection]) -> None:
    db = remembered(
        [memory(1, "red boat"), memory(2, "boat, red"), memory(3, "island"), memory(4, "red")]
    )
    assert rows(gathered(db, '"red boat"')) == [1]
    # Beside another word the phrase is no condition, but outweighs each word.
    assert rows(gathered(db, '"red boat" island'))[0] == 1
    assert set(rows(gathered(db, '"red boat" island'))) == {1, 2, 3, 4}


def test_what_is_excluded_is_no_candidate(remembered: Callable[..., sqlite3.Connection]) -> None:
    db = remembered([memory(1, "red boat"), memory(2, "green boats"), memory(3, "boat")])
    assert rows(gathered(db, "boat -red")) == [3, 2]
    assert rows(gathered(db, 'boat -"green boats"')) == [3, 1]


def test_of_a_long_text_the_beginning_and_the_end_are_read(
    remembered: Callable[..., sqlite3.Connection],
) -> None:
    db = remembered([memory(1, "begin " + "x" * 9_000 + " end?"), memory(2, "short")])
    found = texts(db, MEMORIES.keys([1, 2, 3]))
    read = dict(zip(MEMORIES.rows(found), found.values(), strict=True))
    assert read[2] == "short"
    assert read[1].startswith("begin x")
    assert read[1].endswith("x end?")
    assert len(read[1]) < 3_000
    assert read.keys() == {1, 2}
