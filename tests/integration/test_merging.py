"""Joining memories and parting them again, on a real database and over the socket."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from agent_files import files_holding, ruin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_parts import Bench, add_memories, all_memories, settled

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.memory.records import Memory, Metadata
from thermocline.daemon.memory.scoring import DAY, WarmLimits
from thermocline.daemon.store.agent_paths import AgentPaths
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import (
    documents,
    hot_rows,
    memories,
    memory_rows,
    merging,
    tree_rows,
)
from thermocline.daemon.store.records.memory_rows import SELECT, from_row

NOW = 1_790_000_000.0
OLD, NEW = "m00001", "m00002"
# So little warm room that most of the memories stand in the archive.
CROWDED = Rules(warm=WarmLimits(max_kb=3))


def found_by(db: sqlite3.Connection, word: str) -> set[str]:
    """The ids of the live memories that the index finds."""
    rows = db.execute(
        "SELECT id FROM memory_fts JOIN memories ON row = memory_fts.rowid"
        " WHERE memory_fts MATCH ? AND merged_into IS NULL",
        (f'"{word}"',),
    )
    return {key for (key,) in rows}


def everything(db: sqlite3.Connection) -> dict[str, Any]:
    """All that can be seen of a memory, but for the order of writing."""
    rules = Rules()
    return {
        "memories": {m.id: m for m in map(from_row, db.execute(SELECT))},
        "tree": {p: (n.warm_count, n.cold_count) for p, n in tree_rows.load(db).items()},
        "totals": tree_rows.totals(db),
        "warm": {r["id"] for r in documents.warm_document(db, NOW, rules)},
        "hot": [memory.id for memory in hot_rows.promoted(db, NOW, rules)],
        "apart": merging.merge_exclusions(db),
        "found": {word: found_by(db, word) for word in ("coffee", "beans", "Ana", "kitchen")},
    }


def coffee(make_memory) -> tuple[Memory, Memory]:
    """Two memories that say the same, each with something that the other lacks."""
    times = {"created_at": NOW - 90, "updated_at": NOW - 80}
    older = make_memory(
        1,
        text="Ana drinks coffee",
        subject="Ana",
        outcome="awake",
        category="people/ana",
        tags=("beans", "morning"),
        importance=0.5,
        metadata=Metadata(urls=("https://coffee.example/a",), paths=("/cups",)),
        data={"cups": 3},
        access_count=7,
        last_accessed_at=NOW - 50,
        **times,
    )
    newer = make_memory(
        2, text="Ana drinks coffee.", category="kitchen", importance=0.8, access_count=2, **times
    )
    return older, newer


def get(tx: Transaction, key: str) -> Memory:
    return memories.find(tx.db, key)


async def merged(store: AgentStore, older: str = OLD, newer: str = NEW) -> Memory:
    _, kept = await store.write(lambda tx: merging.merge(tx, get(tx, older), get(tx, newer)))
    return kept


async def unmerged(store: AgentStore, key: str = OLD) -> Memory:
    return await store.write(lambda tx: merging.unmerge(tx, get(tx, key)))


async def test_a_merge_shows_at_once_everywhere_and_undoing_it_gives_everything_back(
    open_store, make_memory
):
    store = await open_store(now=lambda: NOW)
    await add_memories(store, *coffee(make_memory))
    before = await store.read(everything)
    assert before["tree"]["people/ana"] == before["tree"]["kitchen"] == (1, 0)

    kept = await merged(store)
    assert (kept.access_count, kept.importance) == (9, pytest.approx(0.9))
    assert (kept.subject, kept.outcome, kept.data) == ("Ana", "awake", {"cups": 3})
    assert kept.tags == ("beans", "morning")
    between = await store.read(everything)
    assert (between["totals"], between["warm"]) == ((1, 0), {NEW})
    assert between["tree"]["people/ana"] == (0, 0)
    assert between["found"] == {
        "coffee": {NEW}, "beans": {NEW}, "Ana": {NEW}, "kitchen": set(),
    }  # fmt: skip
    assert between["memories"][OLD].merged_into == NEW

    await unmerged(store)
    assert await store.read(everything) == before | {"apart": {OLD}}


class Merges(Bench):
    """Merges in a database of six memories."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, NOW)
        self.commit(lambda tx: [memories.insert(tx, small(number)) for number in range(6)])

    def merge(self, older: str, newer: str) -> bool:
        """Merge the two, if they can be."""
        pair = [memory_rows.fetch(self.db, key) for key in (older, newer)]
        older_one, newer_one = pair
        assert older_one is not None
        assert newer_one is not None
        if older == newer or any(one is not None and one.merged_into for one in pair):
            return False
        self.commit(lambda tx: merging.merge(tx, older_one, newer_one))
        return True

    def unmerge(self, older: str) -> None:
        self.commit(lambda tx: merging.unmerge(tx, get(tx, older)))

    def states(self) -> dict[str, Any]:
        """What can be seen of each memory, its lists without their order."""
        found = {}
        for memory in map(from_row, self.db.execute(SELECT)):
            state = msgspec.structs.asdict(memory)
            state["tags"] = set(memory.tags)
            state["metadata"] = set(memory.metadata.urls)
            state["importance"] = round(memory.importance, 9)
            found[memory.id] = state
        return found


def small(number: int) -> Memory:
    return Memory(
        id=f"m{number}",
        text=f"number {number}",
        subject="s" * (number % 2),
        tags=(f"t{number}", f"t{number % 3}"),
        importance=0.01 * (number + 1),
        metadata=Metadata(urls=(f"u{number}", f"u{number % 3}")),
        data=number if number % 3 else None,
        access_count=10**number,
        last_accessed_at=NOW + number if number % 2 else None,
        expires_at=None if number % 4 == 3 else NOW + 1000 + number,
        created_at=NOW,
        updated_at=NOW,
    )


KEYS = st.integers(0, 5).map(lambda number: f"m{number}")
PAIRS = st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=8)


@contextmanager
def merges() -> Iterator[Merges]:
    """For one example: a fixture would be made once for all of them."""
    with tempfile.TemporaryDirectory() as folder:
        made = Merges(folder)
        yield made
        made.db.close()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(PAIRS, st.integers(0, 7))
def test_undoing_the_last_merges_gives_back_what_was_before_them(wanted, number):
    with merges() as bench:
        done, states = [], [bench.states()]
        for pair in wanted:
            if bench.merge(*pair):
                done.append(pair)
                states.append(bench.states())
        for older, _ in list(reversed(done))[: number + 1]:
            bench.unmerge(older)
            states.pop()
            assert bench.states() == states[-1]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(PAIRS, st.randoms(use_true_random=False))
def test_merges_undone_in_any_order_bring_every_memory_back(wanted, order):
    """With its text and its uses; what one gave to another that gave it on stays there."""
    with merges() as bench:
        before = bench.states()
        done = [pair for pair in wanted if bench.merge(*pair)]
        order.shuffle(done)
        for older, _ in done:
            bench.unmerge(older)
        after = bench.states()
        for name in ("text", "access_count", "last_accessed_at", "merged_into", "category"):
            assert {key: m[name] for key, m in after.items()} == {
                key: m[name] for key, m in before.items()
            }


async def test_forgetting_a_kept_memory_forgets_what_says_the_same(open_store, make_memory):
    store = await open_store(now=lambda: NOW)
    same = make_memory(1, text="My bicycle is called Blitz", created_at=NOW - 90)
    kept = make_memory(2, text="The user's bicycle is called Blitz", created_at=NOW - 80)
    await add_memories(store, same, kept)
    await merged(store)
    assert await store.write(lambda tx: memories.delete(tx, get(tx, NEW))) == ()
    assert await all_memories(store) == {}


async def test_of_a_forgotten_memory_nothing_is_left_in_what_it_was_merged_into(
    open_store, make_memory
):
    store = await open_store(rules=CROWDED)
    secret = make_memory(
        1,
        text="the passphrase is xylophoneq",
        subject="xylophoneq",
        outcome="xylophoneq",
        metadata=Metadata(urls=("https://xylophoneq.example",)),
        data={"xylophoneq": 1},
    )
    await add_memories(store, secret, *map(make_memory, range(2, 40)))
    # Merges before, after and above it, all of whose records have seen what it gave.
    for older, newer in (("m00003", NEW), (OLD, NEW), ("m00004", NEW), (NEW, "m00009")):
        await merged(store, older, newer)
    await merged(store, "m00008", "m00009")
    await store.flush_state_files()
    await store.write(lambda tx: memories.delete(tx, get(tx, OLD)))
    await store.run_maintenance()
    await store.close()
    assert files_holding(store.place, b"xylophone") == []
    again = await open_store(store.place, rules=CROWDED)
    after = await all_memories(again)
    keys = ("m00003", "m00004", NEW, "m00008", "m00009")
    assert [after[key].merged_into for key in keys] == [NEW, None, None, None, None]


# What supersedes


async def contradicting(store: AgentStore, make_memory) -> None:
    """Two gate codes, the later of which is known to hold."""
    for number, code in ((1, 4711), (2, 9902)):
        memory = make_memory(number, text=f"The gate code is {code}", importance=1.0)
        memory = msgspec.structs.replace(memory, created_at=NOW + number)
        await store.write(lambda tx, memory=memory: memories.insert(tx, memory))
    assert await store.write(lambda tx: merging.supersede(tx, OLD, NEW)) is not None


async def links(store: AgentStore) -> dict[str, str | None]:
    found = await all_memories(store)
    return {key: memory.superseded_by for key, memory in found.items()}


@pytest.mark.parametrize("key", [OLD, NEW])
async def test_a_new_text_on_either_side_opens_the_question_again(open_store, make_memory, key):
    store = await open_store()
    await contradicting(store, make_memory)

    def edit(tx: Transaction, **fields: Any) -> None:
        old = get(tx, key)
        memories.replace(tx, old, msgspec.structs.replace(old, **fields))

    await store.write(lambda tx: edit(tx, importance=0.3, tags=("a",)))
    assert await links(store) == {OLD: NEW, NEW: None}
    await store.write(lambda tx: edit(tx, text="The garden is large"))
    assert await links(store) == {OLD: None, NEW: None}


async def linked(open_store, make_memory, place: AgentPaths) -> dict[str, Any]:
    """A closed memory with two merges in a chain and a contradiction; what can be seen of it."""
    store = await open_store(place, now=lambda: NOW, rules=CROWDED)
    await add_memories(store, *coffee(make_memory))
    for number in range(3, 30):
        text = f"The code of door {number // 2} is {number}"
        memory = make_memory(number, text=text, created_at=NOW - 60 + number)
        await store.write(lambda tx, memory=memory: memories.insert(tx, memory))
    await merged(store)
    await merged(store, NEW, "m00029")
    assert await store.write(lambda tx: merging.supersede(tx, "m00004", "m00005")) is not None
    await merged(store, "m00010", "m00012")
    await unmerged(store, "m00010")
    seen = await store.read(everything)
    await store.close()
    return seen


async def test_a_rebuilt_memory_keeps_its_links_and_every_merge_can_still_be_undone(
    open_store, make_place, make_memory
):
    place = make_place()
    before = await linked(open_store, make_memory, place)
    ruin(place.database, "memories_by_time")
    # The whole database is read once a week.
    store = await open_store(place, now=lambda: NOW + 8 * DAY, rules=CROWDED)
    await settled()
    assert list(place.folder.glob("memory.db.corrupt-*"))
    after = await store.read(everything)
    for seen in (before, after):
        # Which of them are warm is derived anew.
        seen["memories"] = {
            key: msgspec.structs.replace(memory, archived_at=None)
            for key, memory in seen["memories"].items()
        }
    for part in ("memories", "totals", "found", "apart"):
        assert after[part] == before[part], part
    await unmerged(store)
    await unmerged(store, NEW)
    back = await all_memories(store)
    assert (back[OLD], back[NEW]) == coffee(make_memory)


def test_a_merge_over_the_socket_answers_with_both_and_can_be_undone(call):
    older = call.store("Ana drinks coffee", tags=["beans"], importance=0.5)
    newer = call.store("Ana drinks coffee!", force=True, importance=0.6)
    call.ok("POST", f"/api/memory/{older['id']}/reinforce")
    done = call.ok("POST", f"/api/memory/{older['id'][:10]}/merge", {"into": newer["id"][:10]})
    assert (done["retired"]["id"], done["retired"]["merged_into"]) == (older["id"], newer["id"])
    assert (done["kept"]["access_count"], done["kept"]["tags"]) == (1, ["beans"])
    assert done["kept"]["importance"] == pytest.approx(0.7)
    assert call.ok("GET", "/api/memory")["results"] == [done["kept"]]
    back = call.ok("POST", f"/api/memory/{older['id']}/unmerge")
    for shown, stored in ((back["kept"], newer), (back["restored"], older)):
        changing = {"score", "access_count", "last_accessed_at", "stored"}
        assert {k: shown[k] for k in stored.keys() - changing} == {
            k: stored[k] for k in stored.keys() - changing
        }
    assert (back["restored"]["access_count"], back["kept"]["access_count"]) == (1, 0)


def test_a_merge_that_cannot_be_is_refused_by_its_field(call, eventually):
    one, two, three = (call.store(text)["id"] for text in ("one", "two", "three"))
    expired = call.store("four", expires="0.3s")["id"]
    eventually(lambda: call("GET", f"/api/memory/{expired}").status == 404, "it expires")
    target = f"/api/memory/{one}"
    assert call("POST", f"{target}/unmerge").refusal() == (409, "conflict", "id")
    assert call("POST", f"{target}/merge", {"into": one}).refusal() == (409, "conflict", "into")
    for into in ("0123456789abcdef", expired):
        refused = call("POST", f"{target}/merge", {"into": into})
        assert refused.refusal()[:2] == (404, "not_found")
    for body in ({}, {"into": 7}, {"into": two, "more": 1}):
        assert call("POST", f"{target}/merge", body).refusal()[:2] == (400, "invalid")
    call.ok("POST", f"{target}/merge", {"into": two})
    for path, into in ((target, three), (f"/api/memory/{three}", one)):
        refused = call("POST", f"{path}/merge", {"into": into})
        assert refused.refusal() == (409, "conflict", "into")
    assert call("POST", "/api/memory/nobody/merge", {"into": two}).status == 404
    assert call("POST", "/api/memory/nobody/unmerge").status == 404
