"""What a model says of a text, and where rules file one."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping

import pytest
from cosines import Cosines
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from thermocline.daemon.config.settings import Distillation, Rules, Tuning, Weights
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.memory.metadata import extract
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.sources import MEMORIES
from thermocline.daemon.tasks.distillation import distil
from thermocline.daemon.tasks.model_or_rules import AskOptions, ModelOrRules
from thermocline.daemon.tasks.new_memories import category_by_meaning, category_for, memory_of

ASKED = AskOptions(model=True)


def mind(*answers: object) -> ModelOrRules:
    return ModelOrRules(ScriptedModel({"distil": list(answers)} if answers else {}), read_prompts())


words = st.text(max_size=80)


@given(
    told=st.fixed_dictionaries(
        {"fact": words},
        optional={
            "emotion": words,
            "people": st.lists(words, max_size=9),
            "topics": st.lists(words, max_size=9),
            "actions": st.lists(words, max_size=9),
            "outcome": words,
        },
    ),
    text=st.text(min_size=1, max_size=200),
    most=st.integers(16, 300),
)
async def test_whatever_it_says_the_limits_hold_and_it_can_be_stored(told, text, most):
    thought = await distil(text, Distillation(max_distilled_bytes=most), mind(told), ASKED)
    assert len(thought.value.fact.encode()) <= most
    assert len(thought.value.fact.encode()) <= len(text.encode())
    found = extract(text)
    assert (thought.value.urls, thought.value.paths) == (found.urls, found.paths)
    memory = memory_of(thought.value, "general", now=1.0, writer="test")
    memory.text.encode()
    assert "\0" not in memory.text


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


def test_a_text_goes_where_its_like_or_its_name_is(db, remembered):
    for text, category in [
        ("Ana has moved to Porto", "people/ana"),
        ("Bob has bought a viola", "people/bob"),
        ("We deployed the new release to the server", "technical/deployment"),
        ("The second coat of varnish on the hull is dry", "projects/boat"),
        ("Le bateau est bleu", None),
        ("It rained all day yesterday", None),
        ("The shop opens at ten now", None),
        ("", None),
        ("🙂", None),
    ]:
        assert category_for(db, text, NOW) == category
    assert category_for(remembered([]), "Ana prefers tea", NOW) is None, "the tree is empty"


def test_filing_ranks_by_the_weights_of_the_configuration(remembered):
    ferries = (("general", f"The hull of ferry {n} and its second coat", 1.0) for n in range(9))
    stored = (*((*one, 0.5) for one in STORED), *ferries)
    db = remembered(
        Memory(
            id=f"m{n}", text=text, category=category, importance=worth, created_at=NOW,
            updated_at=NOW,
        )
        for n, (category, text, worth) in enumerate(stored)
    )  # fmt: skip
    text = "The second coat of varnish on the hull is dry"
    assert category_for(db, text, NOW) == "projects/boat"
    important = Rules(recall=Tuning(weights=Weights(match=0, recency=0, importance=1)))
    assert category_for(db, text, NOW, important) is None


def test_a_text_that_fits_no_category_by_words_goes_where_most_of_the_nearest_are(db):
    rows = dict(db.execute("SELECT text, row FROM memories"))
    hull, varnish, tea = (MEMORIES.key(rows[STORED[at][1]]) for at in (3, 4, 0))
    others = {MEMORIES.key(row): 0.1 for row in rows.values()}

    def filed(near: Mapping[int, float]) -> str | None:
        return category_by_meaning(db, Cosines(others | near))

    assert filed({hull: 0.8, varnish: 0.7, tea: 0.2}) == "projects/boat"
    assert filed({hull: 0.8, tea: 0.8}) is None
    shop = [MEMORIES.key(rows[STORED[at][1]]) for at in (6, 7)]
    assert filed(dict.fromkeys(shop, 0.9)) is None
