"""Recall with vectors: what is near in meaning is found, and adds to what the words say."""

import datetime as dt
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cosines import Cosines

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.answer import Answer
from thermocline.daemon.recall.presets import scalyclaw
from thermocline.daemon.recall.recall import Request, recall
from thermocline.daemon.recall.sources import MEMORIES

NOW = dt.datetime(2023, 8, 16, 12, tzinfo=dt.UTC).timestamp()
KILN = "the kiln reaches cone six overnight"
GLAZE = "celadon needs a slow cooling"
LEDGER = "the ledger lies in the blue drawer"
PERMIT = "the permit expires in spring"


def memory(number: int, text: str, **fields: Any) -> Memory:
    values: dict[str, Any] = {"created_at": NOW - number, "updated_at": NOW - number} | fields
    return Memory(id=f"{number:016x}", text=text, **values)


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """Four facts, and 60 others."""
    facts = [
        memory(1, KILN, category="studio"),
        memory(2, GLAZE, category="studio"),
        memory(3, LEDGER, category="office"),
        memory(4, PERMIT, category="office"),
    ]
    return remembered([*facts, *(memory(9 + n, f"crate {n} is full") for n in range(60))], NOW)


def near(db: sqlite3.Connection, cosines: Mapping[str, float]) -> Cosines:
    """These cosines by text; the others lie far away, each a little farther."""
    rows = db.execute("SELECT row, text FROM memories").fetchall()
    return Cosines({MEMORIES.key(row): cosines.get(text, 0.3 - row / 1_000) for row, text in rows})


def ask(
    db: sqlite3.Connection, text: str, cosines: Mapping[str, float] | None = None, **fields: Any
) -> Answer:
    nearness = None if cosines is None else near(db, cosines)
    return recall(db, Request(text=text, now=NOW, nearness=nearness, **fields), Tuning())


def texts(answer: Answer) -> list[str]:
    return [hit.text for hit in answer.hits]


def test_words_and_meaning_add_up(db):
    words = ask(db, "which drawer has the permit")
    both = ask(db, "which drawer has the permit", {PERMIT: 0.8}, explain=True)
    assert {*texts(words)[:2]} == {*texts(both)[:2]} == {LEDGER, PERMIT}
    assert texts(both)[0] == PERMIT
    hits = {hit.text: hit for hit in both.hits}
    assert {"words", "meaning"} <= {*hits[PERMIT].signals}
    assert hits[PERMIT].relevance > {hit.text: hit for hit in words.hits}[PERMIT].relevance


def test_scalyclaw_takes_the_cosine_from_its_threshold_on(db):
    answer = ask(db, "the ledger", {KILN: 0.9, LEDGER: 0.49}, preset="scalyclaw")
    assert texts(answer) == [KILN]
    assert answer.hits[0].relevance == pytest.approx(
        scalyclaw(0.9, 1 / 86_400, 0.5).relevance, abs=1e-6
    )
