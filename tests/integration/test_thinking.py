"""What a model, or the rules, make of an agent's memory: conversations, episodes, merges."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from agent_files import ruin
from scripted_model import ScriptedModel
from store_parts import add_memories, all_memories

from thermocline.daemon.language.extraction.notes import NoteFact
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.llm.replies import form_of
from thermocline.daemon.maintenance import rebuilding
from thermocline.daemon.memory.records import CONSOLIDATED, Memory
from thermocline.daemon.memory.tree_nodes import Node
from thermocline.daemon.memory.tree_rebuild import Kind, TreeChange
from thermocline.daemon.recall.sources import MEMORIES
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.records import (
    conversations,
    entities,
    hot_rows,
    memories,
    merging,
    tree_rows,
)
from thermocline.daemon.store.records.conversations import Conversation, IncomingTurn
from thermocline.daemon.tasks.extraction import Extracted, extract_next
from thermocline.daemon.tasks.model_or_rules import AskOptions, ModelOrRules
from thermocline.daemon.tasks.note_reading import read_by_model
from thermocline.daemon.tasks.similar_memories import join_similar
from thermocline.daemon.tasks.summaries import sum_up
from thermocline.daemon.tasks.tree_tasks import Proposal, propose

NOW = 1_795_000_000.0
TALK = (
    ("user", "Ada", "I prefer oolong tea in the morning, see https://a.example/tea"),
    ("assistant", "", "Noted. Anything else?"),
    ("user", "Ada", "We decided to deploy the parser to the testnet on Friday."),
)


class Rig:
    """An open memory, and a model that says what it is told."""

    def __init__(self, store: AgentStore) -> None:
        self.store = store
        self.model = ScriptedModel({})

    def says(self, purpose: str, *answers: object) -> None:
        self.model = ScriptedModel({purpose: list(answers)})

    @property
    def mind(self) -> ModelOrRules:
        return ModelOrRules(self.model, read_prompts())

    async def join_similar(self, *near: tuple[str, str, float]) -> int:
        """Merge; `near` are ids of memories and how near they are in meaning."""

        async def nearest(store: AgentStore, keys: Sequence[int]) -> dict[int, dict[int, float]]:
            rows = await store.read(lambda db: dict(db.execute("SELECT id, row FROM memories")))
            by_id = {id_: MEMORIES.key(row) for id_, row in rows.items()}
            cosines: dict[int, dict[int, float]] = {}
            for one, other, cosine in near:
                for first, second in ((one, other), (other, one)):
                    cosines.setdefault(by_id[first], {})[by_id[second]] = cosine
            return {key: cosines[key] for key in keys if key in cosines}

        return await join_similar(self.store, self.mind, AskOptions(), nearest)

    async def read_note(self, text: str) -> list[NoteFact]:
        return await read_by_model(self.store, text, {}, self.mind, AskOptions())

    async def hear(self, *talk: tuple[str, str, str], ended: bool = False) -> Conversation:
        said = [IncomingTurn(role, text, actor, at=NOW) for role, actor, text in talk]
        heard = await self.store.write(
            lambda tx: conversations.buffer_turns(tx, "c", said, ended=ended, writer="uid:7")
        )
        assert heard is not None
        return heard

    async def read(self) -> Extracted | None:
        waiting = await self.store.read(conversations.waiting)
        read = await extract_next(self.store, waiting, self.mind, AskOptions(), dt.UTC)
        return read[0] if read else None

    async def conversation(self) -> Conversation:
        found = await self.store.read(lambda db: conversations.find(db, "c"))
        assert found is not None
        return found

    async def tree(self) -> dict[str, Node]:
        return await self.store.read(tree_rows.load)

    async def texts(self) -> list[str]:
        return [memory.text for memory in (await all_memories(self.store)).values()]


@pytest.fixture
async def rig(open_store) -> Rig:
    return Rig(await open_store(now=lambda: NOW))


def memory(key: str, text: str, **fields: Any) -> Memory:
    given = {"created_at": NOW - 100, "updated_at": NOW - 100, "writer": "test"}
    return Memory(id=key, text=text, **given | fields)


# Reading


async def test_a_model_gets_all_of_it_at_once_and_what_is_known(rig):
    await add_memories(rig.store, memory("k", "Ada drinks tea in the morning"))
    rig.says(
        "observe",
        [
            {
                "text": "Ada prefers oolong\x00 tea",
                "event": "Preference_Learned",
                "subject": "Ada",
                "tags": ["Tea", "#tea", " "],
                "importance": 7,
                "turn": 0,
                "entities": [
                    {
                        "name": "Ada",
                        "type": "Person",
                        "relations": [{"relation": "Prefers", "target": "oolong"}],
                    },
                    {"name": " "},
                ],
            },
            {"text": "short", "turn": 0},
            {"text": "The parser goes to the testnet", "turn": 99, "type": "x", "event": "y"},
        ],
    )
    await rig.hear(*TALK)
    extracted = await rig.read()
    assert extracted is not None
    assert extracted.method == "llm"
    tea, parser = extracted.memories.stored
    assert (tea.text, tea.event, tea.subject) == (
        *("Ada prefers oolong tea", "preference_learned"),
        "Ada",
    )
    assert (tea.tags, tea.importance) == (("tea",), 0.7)
    assert tea.metadata.urls == ("https://a.example/tea",)
    assert (parser.type, parser.event) == ("semantic", "fact_stored")
    (asked,) = rig.model.asked
    day, known, talk = asked.parts
    assert "2026-11-18" in day.text
    assert not day.quoted
    assert "Ada drinks tea in the morning" in known.text
    assert "[0] Ada (user): I prefer oolong tea" in talk.text
    assert "Anything else?" in talk.text
    ada, _ = await rig.store.read(lambda db: entities.neighbourhood(db, "ada", 1, NOW))
    assert [(r.relation, r.target) for r in ada.relations] == [("prefers", "oolong")]


# Summing up


async def test_a_conversation_that_goes_on_is_not_over(rig):
    await rig.hear(*TALK)
    await rig.read()
    stale = await rig.conversation()
    await rig.hear(("user", "Ada", "And another thing that I wanted to say"))
    await sum_up(rig.store, stale, rig.mind, AskOptions(), patient=True)
    assert (await rig.conversation()).entry is None
    assert all(one.type != "episodic" for one in (await all_memories(rig.store)).values())


async def test_nothing_is_kept_of_a_nod(rig):
    await rig.hear(("user", "", "hi"), ("assistant", "", "hello"), ended=True)
    await rig.read()
    await sum_up(rig.store, await rig.conversation(), rig.mind, AskOptions(), patient=True)
    assert await all_memories(rig.store) == {}
    assert await rig.store.read(conversations.waiting) == []


async def test_a_damaged_database_gives_back_the_turns_it_held(rig, open_store):
    await rig.hear(*TALK)
    await rig.store.close()
    database = rig.store.place.database
    ruin(database, "rows")
    again = Rig(await open_store(rig.store.place, now=lambda: NOW))
    # The first who reads the page meets the damage.
    await again.store.read(hot_rows.load)
    assert any(database.parent.glob("*.corrupt-*"))
    extracted = await again.read()
    assert extracted is not None
    assert len(extracted.memories.stored) == 2


# Merging


ALIKE = (
    memory("a", "Ada keeps the spare key of the boat in the shed", importance=0.9, tags=("key",)),
    memory("b", "Ada keeps the spare key of the boat in the old shed", created_at=NOW - 50),
)
JOINED = {"text": "Ada keeps the boat's spare key in the old shed", "subject": "key", "tags": []}


async def test_similar_memories_become_one_that_can_be_taken_back(rig):
    await add_memories(rig.store, *ALIKE, memory("x", "Something else altogether"))
    rig.says("merge", JOINED)
    assert await rig.join_similar() == 2
    after = await all_memories(rig.store)
    (made,) = [one for one in after.values() if one.source == CONSOLIDATED]
    assert (made.text, made.importance, made.created_at) == (JOINED["text"], 0.9, NOW - 50)
    assert made.tags == ("key",)
    assert {after["a"].merged_into, after["b"].merged_into} == {made.id}
    for key in ("a", "b"):
        await rig.store.write(
            lambda tx, key=key: merging.unmerge(tx, memories.find(tx.db, key))  # type: ignore[misc]
        )
    back = await all_memories(rig.store)
    assert made.id not in back
    assert [(back[k].text, back[k].importance) for k in "ab"] == [
        (one.text, one.importance) for one in ALIKE
    ]


async def test_one_that_was_edited_since_stays_when_the_others_leave(rig):
    await add_memories(rig.store, *ALIKE)
    rig.says("merge", JOINED)
    await rig.join_similar()
    (made,) = [one for one in (await all_memories(rig.store)).values() if one.merged_into is None]

    def edit(tx: Any) -> None:
        old = memories.find(tx.db, made.id)
        memories.replace(tx, old, memory(made.id, "by hand", updated_at=NOW + 5, source=old.source))

    await rig.store.write(edit)
    for key in ("a", "b"):
        await rig.store.write(
            lambda tx, key=key: merging.unmerge(tx, memories.find(tx.db, key))  # type: ignore[misc]
        )
    assert "by hand" in await rig.texts()


@pytest.mark.parametrize(
    "told",
    [{"text": ""}, {"text": "Ada keeps a key somewhere"}, {"text": "The key 4711 is in the shed"}],
)
async def test_a_group_that_would_lose_something_is_left_and_not_asked_for_again(rig, told):
    url = "https://a.example/key"
    await add_memories(
        rig.store,
        memory("a", f"The spare key 4711 of the boat is in the shed, see {url}"),
        memory("b", f"The spare key 4711 of the boat is in the old shed, see {url}"),
    )
    rig.says("merge", told, JOINED)
    assert await rig.join_similar() == 0
    assert await rig.join_similar() == 0
    assert len(rig.model.asked) == 1
    assert all(one.merged_into is None for one in (await all_memories(rig.store)).values())


async def test_memories_that_are_near_in_meaning_alone_are_put_to_the_model(rig):
    await add_memories(
        rig.store,
        memory("a", "Ada hides the boat's key below the flower pot"),
        memory("b", "To start the dinghy, look under the geraniums", created_at=NOW - 50),
        memory("c", "The harbour master retires in June"),
    )
    text = "Ada hides the key of the boat, a dinghy, below the pot of geraniums"
    rig.says("merge", JOINED | {"text": text})
    assert await rig.join_similar(("a", "c", 0.6)) == 0
    assert rig.model.asked == []
    assert await rig.join_similar(("a", "b", 0.95), ("a", "c", 0.4)) == 2
    after = await all_memories(rig.store)
    assert after["a"].merged_into == after["b"].merged_into is not None
    assert after["c"].merged_into is None


async def test_nearness_never_decides_by_itself(rig):
    await add_memories(
        rig.store,
        memory("a", "The backup starts at 02:00"),
        memory("b", "The backup starts at 03:00"),
        memory("c", "Copies are made every night"),
    )
    rig.says("merge", {"text": ""}, JOINED)
    near = (("a", "b", 0.99), ("b", "c", 0.98), ("a", "c", 0.3))
    assert await rig.join_similar(*near) == 0
    # The pair that contradicts itself is not even asked about.
    asked = len(rig.model.asked)
    assert await rig.join_similar(*near) == 0
    assert len(rig.model.asked) == asked <= 1
    assert all(one.merged_into is None for one in (await all_memories(rig.store)).values())


# The tree


@pytest.mark.parametrize(
    ("change", "categories", "filed"),
    [
        (
            {"type": "add", "path": "boats/sails", "summary": "Cloth"},
            {"boats": "Boats", "boats/sails": "Cloth", "garden": "Garden", "old": "Old"},
            ("garden", "garden"),
        ),
        (
            {"type": "remove", "path": "old"},
            {"garden": "Garden"},
            ("garden", "garden"),
        ),
        (
            {"type": "merge", "path": "garden", "new_path": "old"},
            {"old": "Old"},
            ("old", "old"),
        ),
        (
            {"type": "rename", "path": "garden", "new_path": "home/beds"},
            {"home": "Home", "home/beds": "Beds", "old": "Old"},
            ("home/beds", "home/beds"),
        ),
        (
            {"type": "describe", "path": "garden", "summary": "What grows where"},
            {"garden": "What grows where", "old": "Old"},
            ("garden", "garden"),
        ),
        (
            {"type": "move", "path": "garden", "new_path": "a", "summary": "A",
             "ids": ["aaaaaaaa", "unknown"]},
            {"a": "A", "garden": "Garden", "old": "Old"},
            ("a", "garden"),
        ),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else None,
)  # fmt: skip
async def test_every_change_that_a_model_may_propose_is_made(rig, change, categories, filed):
    ids = ("aaaaaaaa00000001", "bbbbbbbb00000002")
    await add_memories(rig.store, *(memory(key, f"fact {key}", category="garden") for key in ids))
    await rig.store.write(lambda tx: tree_rows.ensure(tx, "old"))
    rig.says("rebuild", {"operations": [change]})
    operations = await propose(rig.store, rig.mind, AskOptions())
    rebuilt = await rig.store.write(lambda tx: rebuilding.rebuild(tx, operations))
    assert [one.type for one in rebuilt.done] == [change["type"]]
    assert {path: node.desc for path, node in (await rig.tree()).items()} == categories
    after = await all_memories(rig.store)
    assert tuple(after[key].category for key in ids) == filed


def test_the_prompt_for_the_tree_names_no_field_that_its_schema_lacks():
    fields = form_of(Proposal).schema["properties"]["operations"]["items"]["properties"]
    assert fields.keys() == set(TreeChange.__struct_fields__)
    assert fields["type"]["enum"] == list(get_args(Kind))
    assert all(fields[name]["description"] for name in fields)


# Notes


NOTE = """# 2026-11-21

## Harbour
- [x] Ordered the new pump, see https://a.example/pump
- Decided to moor at the north pier from May on
- [x] Wrote /srv/harbour/plan.md
"""


async def test_a_note_read_by_a_model_keeps_every_reference(rig):
    await add_memories(rig.store, memory("h", "the north pier is free", category="places/harbour"))
    rig.says(
        "ingest",
        [
            {
                "text": "The boat moors at the north pier from May on",
                "category": "places/harbour",
                "importance": 3,
                "metadata": {"urls": ["https://made.up/x"], "paths": ["/srv/harbour/plan.md"]},
            },
            {"text": "short"},
        ],
    )
    facts = await rig.read_note(NOTE)
    pier, pump = facts
    assert (pier.category, pier.importance, pier.line) == ("places/harbour", 0.3, 5)
    assert (pier.metadata.urls, pier.metadata.paths) == ((), ("/srv/harbour/plan.md",))
    assert pump.metadata.urls == ("https://a.example/pump",)
    categories, needed, note = rig.model.asked[0].parts
    assert "places/harbour" in categories.text
    assert needed.text == "https://a.example/pump"
    assert note.text == NOTE.rstrip("\n")


async def test_a_long_note_goes_in_parts(rig):
    lines = [f"- Decided to give pump number {n} a new coat of paint" for n in range(400)]
    rig.says("ingest", *([{"text": f"part {n} was read"}] for n in range(9)))
    facts = await rig.read_note("\n".join(lines))
    assert [one.text for one in facts] == [f"part {n} was read" for n in range(4)]
    assert "\n".join(asked.parts[-1].text for asked in rig.model.asked) == "\n".join(lines)
