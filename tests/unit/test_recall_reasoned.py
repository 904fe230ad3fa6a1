"""Recall with the categories that a model names for a question."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.tree_nodes import NamedCategory
from thermocline.daemon.recall.answer import Answer
from thermocline.daemon.recall.recall import Request, recall
from thermocline.daemon.store.records.selecting import Filters

NOW = 1_790_000_000.0
MORNING = (NamedCategory("people/ana", 0.9, "what she drinks is about her"),)
STORED = (
    ("people/ana", "Ana prefers oolong tea"),
    ("people/ana/family", "Her sister lives in Lisbon"),
    ("people/bob", "Bob plays the cello"),
    ("projects/boat", "The hull is varnished in the morning"),
)


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    return remembered(
        [
            Memory(id=f"m{n}", text=text, category=category, created_at=NOW, updated_at=NOW)
            for n, (category, text) in enumerate(STORED)
        ],
        NOW,
    )


def ask(db: sqlite3.Connection, text: str, *reasoned: NamedCategory, **fields: object) -> Answer:
    request = Request(text=text, now=NOW, mode="llm", reasoned=reasoned, **fields)  # type: ignore[arg-type]
    return recall(db, request, Tuning())


def methods_by_text(answer: Answer) -> dict[str, str]:
    return {hit.memory.text: hit.method for hit in answer.hits}


def test_the_filters_and_what_is_excluded_hold_for_them_too(db):
    assert not ask(db, "her drink", *MORNING, filters=Filters(category="projects")).hits
    assert "Ana prefers oolong tea" not in methods_by_text(ask(db, "her drink -oolong", *MORNING))


def test_a_category_that_is_gone_meanwhile_does_no_harm(db):
    answer = ask(db, "cello", NamedCategory("people/carl", 1.0, ""))
    assert methods_by_text(answer) == {"Bob plays the cello": "keyword"}
