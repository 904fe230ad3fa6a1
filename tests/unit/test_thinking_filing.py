"""Where a text is filed, by rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import pytest

from thermocline.daemon.config.settings import Rules, Tuning
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.thinking.filing import category_for

Remembered = Callable[[Iterable[Memory]], sqlite3.Connection]
NOW = 1_790_000_000.0

STORED = (
    ("people/ana", "Ana prefers oolong tea"),
    ("people/ana", "Ana's sister lives in Lisbon"),
    ("people/bob", "Bob plays the cello"),
    ("projects/boat", "The hull needs a second coat of varnish"),
    ("projects/boat", "The varnish for the hull is in the shed"),
    ("technical/deployment", "The server runs Debian and restarts at night"),
    ("general", "The shop opens at nine on weekdays"),
    ("general", "The shop opens late on Sundays"),
)


@pytest.fixture
def db(remembered: Remembered) -> sqlite3.Connection:
    return remembered(
        Memory(id=f"m{n}", text=text, category=category, created_at=NOW, updated_at=NOW)
        for n, (category, text) in enumerate(STORED)
    )


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Ana has moved to Porto", "people/ana"),
        ("Bob has bought a viola", "people/bob"),
        ("We deployed the new release to the server", "technical/deployment"),
        ("The second coat of varnish on the hull is dry", "projects/boat"),
        ("Le bateau est bleu", None),
        ("It rained all day yesterday", None),
        ("The shop opens at ten now", None),
        ("", None),
        ("🙂", None),
    ],
)
def test_a_text_goes_where_its_like_or_its_name_is(
    db: sqlite3.Connection, text: str, category: str | None
) -> None:
    assert category_for(db, text, NOW) == category


def test_in_an_empty_tree_there_is_no_place(remembered: Remembered) -> None:
    assert category_for(remembered([]), "Ana prefers tea", NOW) is None


def test_filing_searches_as_widely_as_the_configuration_says(db: sqlite3.Connection) -> None:
    text = "The second coat of varnish on the hull is dry"
    # One memory alike is not enough.
    assert category_for(db, text, NOW, Rules(recall=Tuning(candidates=1))) is None
