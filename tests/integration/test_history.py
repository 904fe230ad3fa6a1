"""Versions that rows had: looking at them, and putting them back."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.client.caller import Caller
from thermocline.daemon.config.settings import Rules, StoreSettings
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.store import undo as undoing
from thermocline.daemon.store.database import rows
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import history, key_values, memories, merging, tree_rows
from thermocline.daemon.store.records.key_values import PAIRS
from thermocline.daemon.store.records.memory_rows import KIND

START = 1_790_000_000.0
ME = f"uid:{os.getuid()}"


def versions(call: Any, key: str, kind: str = "memory") -> list[Any]:
    found = call.ok("GET", f"/api/history?kind={kind}&id={key}")["results"]
    return list(found)


def undo(call: Any, **wish: Any) -> list[str]:
    done = call.ok("POST", "/api/undo", wish)
    assert done["done"] is not wish.get("dry_run", False)
    return [row["id"] for row in done["results"]]


def test_a_change_to_the_same_value_is_no_version_so_that_undo_reverts_the_one_before(call):
    key = call.store("tea at four", tags=["a", "b"])["id"]
    for tags in (["a", "b"], ["b", "a"]):
        call.ok("PUT", f"/api/memory/{key}", {"text": "tea at five", "tags": tags})
        call.ok("PUT", "/api/kv/tea", {"value": "sencha"})
    assert [one["data"]["text"] for one in versions(call, key)] == ["tea at four"]
    assert versions(call, "tea", "pair") == []
    missing = call("POST", "/api/undo", {"id": key, "number": 999_999})
    assert "no version 999999 of" in missing.body["error"]["message"]
    undo(call, id=key)
    assert call.ok("GET", f"/api/memory/{key}")["text"] == "tea at four"


def test_each_edit_of_a_memory_is_kept_and_any_of_them_is_put_back(call):
    key = call.store("the first text", tags=["a"])["id"]
    path = f"/api/memory/{key}"
    call.ok("PUT", path, {"text": "the second text"})
    call.ok("PUT", path, {"text": "the third text", "tags": ["a", "b"]})
    answer = call.ok("GET", f"/api/history?kind=memory&id={key[:8]}")
    found = answer["results"]
    assert [one["data"]["text"] for one in found] == ["the second text", "the first text"]
    # Of the version in force.
    assert answer["device"] == found[0]["device"] != ""
    assert "device" not in call.ok("GET", "/api/history")
    assert [one["after"] for one in found] == [
        {"text": "the third text", "tags": ["a", "b"]}, {"text": "the second text"},
    ]  # fmt: skip
    assert {one["writer"] for one in found} == {ME}
    assert found[0]["number"] > found[1]["number"]

    assert undo(call, id=key) == [key]
    assert call.ok("GET", path)["text"] == "the second text"
    assert call.ok("GET", path)["tags"] == ["a"]
    undo(call, id=key)
    assert call.ok("GET", path)["text"] == "the third text"
    undo(call, id=key, number=found[1]["number"])
    assert call.ok("GET", path)["text"] == "the first text"
    [hit] = call.ok("POST", "/api/recall", {"query": "first"})["results"]
    assert hit["id"] == key
    again = call("POST", "/api/undo", {"id": key, "number": found[1]["number"]})
    assert again.refusal() == (409, "conflict", "number")


def test_a_pair_and_an_entry_of_the_hot_state_are_put_back(call):
    call.ok("PUT", "/api/kv/colour", {"value": "blue"})
    call.ok("PUT", "/api/kv/colour", {"value": "green"})
    undo(call, kind="pair", id="colour")
    assert call.ok("GET", "/api/kv/colour")["value"] == "blue"
    none = call("POST", "/api/undo", {"kind": "pair", "id": "colour", "number": 9_999})
    assert "`thermocline history colour --kind pair`" in none.body["error"]["hint"]
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Nova"})
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Vega"})
    [version] = versions(call, "identity/agent_name", "hot")
    assert version["data"]["value"] == "Nova"
    latest = call.ok("GET", "/api/history?kind=hot")["results"]
    assert [one["id"] for one in latest] == ["identity/agent_name"]
    undo(call, kind="hot", id="identity/agent_name")
    assert call.ok("GET", "/api/hot")["state"]["identity"]["agent_name"] == "Nova"
    wrong = call("POST", "/api/undo", {"kind": "hot", "id": "lesson"}).body["error"]
    assert wrong["message"] == "no entry of the hot state is called 'lesson'"
    assert wrong["hint"] == "earlier versions are kept of identity/agent_name"
    none = call("POST", "/api/undo", {"kind": "note", "id": "lesson"}).body["error"]
    assert none["hint"] == "no earlier version of any note is kept yet"


def test_undoing_a_merge_from_either_side_parts_the_two(call):
    for side in (0, 1):
        older = call.store("Ana drinks coffee", tags=["beans"], importance=0.5)
        newer = call.store("Ana drinks coffee!", force=True, importance=0.6)
        pair = [older["id"], newer["id"]]
        call.ok("POST", f"/api/memory/{pair[0]}/merge", {"into": pair[1]})
        assert versions(call, pair[1])[0]["why"] == f"merge:{pair[0]}"
        undo(call, id=pair[side])
        back = [call.ok("GET", f"/api/memory/{key}") for key in pair]
        assert [one["merged_into"] for one in back] == [None, None]
        assert [one["tags"] for one in back] == [["beans"], []]
        assert [one["importance"] for one in back] == [0.5, 0.6]


def test_what_a_writer_changed_since_a_time_is_taken_back_at_once(call):
    kept = call.store("as it was")["id"]
    since = time.time()
    call.ok("PUT", f"/api/memory/{kept}", {"text": "spoiled"})
    call.ok("PUT", f"/api/memory/{kept}", {"text": "spoiled again"})
    new = call.store("rubbish")["id"]
    wish = {"by": ME, "since": since}
    assert set(undo(call, **wish, dry_run=True)) == {kept, new}
    assert call.ok("GET", f"/api/memory/{kept}")["text"] == "spoiled again"
    assert call.total() == 2
    assert set(undo(call, **wish)) == {kept, new}
    assert call.ok("GET", f"/api/memory/{kept}")["text"] == "as it was"
    assert call.total() == 1
    assert undo(call, by="uid:4242424", since=since) == []


def test_what_makes_no_sense_is_refused(call):
    key = call.store("never changed")["id"]
    assert versions(call, key) == []

    def refused(**wish: Any) -> tuple[int, str, str | None]:
        return call("POST", "/api/undo", wish).refusal()  # type: ignore[no-any-return]

    assert refused(id=key) == (404, "not_found", "id")
    assert refused() == refused(id=key, by="uid:1") == (400, "invalid", "id")
    assert refused(by="uid:1") == (400, "invalid", "since")
    assert refused(id="x", kind="uses") == (400, "invalid", "kind")
    assert refused(id="nobody", kind="pair") == (404, "not_found", "id")


def robot(call: Any, method: str, path: str, body: Any = None) -> Any:
    return as_program(call, "Robot", method, path, body)


def as_program(call: Any, program: str, method: str, path: str, body: Any) -> Any:
    with Caller(call.path, call.agent, program=program) as caller:
        return caller.request(method, path, None, body)


def test_a_program_is_undone_and_the_persons_own_edits_are_spared(call):
    mine = call.store("the boat is red")["id"]
    body = {"text": "the boat is green"}
    as_program(call, "Claude Code", "PUT", f"/api/memory/{mine}", body)
    body = {"text": "the mast is short"}
    theirs = as_program(call, "Claude Code", "POST", "/api/memory", body)["id"]
    as_program(call, "cli", "PUT", f"/api/memory/{mine}", {"importance": 0.9})
    uid = os.getuid()
    assert call.ok("GET", f"/api/memory/{theirs}")["writer"] == f"uid:{uid} claude-code"
    for by in ("uid:424242", "codex", "claude", "uid", "code"):
        assert call.ok("POST", "/api/undo", {"by": by, "since": "1h"})["results"] == []
    undo = {"by": "claude-code", "since": "1h"}
    would = call.ok("POST", "/api/undo", undo | {"dry_run": True})
    done = call.ok("POST", "/api/undo", undo)
    texts = [row.pop("text", None) for row in would["results"]]
    assert "the mast is short" in texts
    assert would["results"] == done["results"]
    assert {row["id"]: row["result"] for row in done["results"]} == {
        theirs: "deleted",
        mine: "put back",
    }
    memory = call.ok("GET", f"/api/memory/{mine}")
    assert (memory["text"], memory["importance"]) == ("the boat is red", 0.9)
    refused = call("POST", "/api/undo", {"id": theirs[:8]}).body["error"]
    assert refused["message"] == (
        f"'{theirs[:8]}' was forgotten, with all its versions: it cannot come back"
    )


@pytest.mark.parametrize("by", ["uid:{}", "uid:{} mygent", "Mygent"])
def test_an_author_is_a_user_a_program_or_both(call, by):
    key = as_program(call, "my\nägent!", "POST", "/api/memory", {"text": "the oar"})["id"]
    done = call.ok("POST", "/api/undo", {"by": by.format(os.getuid()), "since": "1h"})
    assert [row["id"] for row in done["results"]] == [key]


def test_everything_that_a_program_made_is_undone(call):
    call.store("mine", category="mine")
    call.ok("PUT", "/api/kv/kept", {"value": "mine"})
    call.ok("PUT", "/api/hot/lesson", {"text": "my lesson"})

    theirs = partial(robot, call)
    old = theirs("POST", "/api/memory", {"text": "from long ago", "created_at": 1_000_000_000})
    theirs("PUT", "/api/kv/made", {"value": "theirs"})
    theirs("PUT", "/api/kv/kept", {"value": "theirs"})
    theirs("PUT", "/api/hot/lesson", {"text": "their lesson"})
    theirs("PUT", "/api/tree", {"path": "theirs", "desc": "their category"})
    lesson = {"type": "insight", "context": "c", "lesson": "their reflection"}
    theirs("POST", "/api/reflections", lesson)
    theirs("POST", "/api/episodes", {"summary": "their episode"})
    theirs("POST", "/api/skills", {"id": "their-skill", "description": "d", "text": "t"})
    lesson["lesson"] = "my reflection"
    call.ok("POST", "/api/reflections", lesson)
    by = {"by": "robot", "since": "1h"}
    would = call.ok("POST", "/api/undo", by | {"dry_run": True})["results"]
    assert call.ok("GET", "/api/kv/made")["value"] == "theirs"
    done = call.ok("POST", "/api/undo", by)["results"]
    assert {row.pop("text", None) for row in would} >= {"from long ago", None}
    assert would == done
    results = {(row["kind"], row["result"]) for row in done}
    assert results >= {
        *(("memory", "deleted"), ("pair", "deleted"), ("pair", "put back"), ("hot", "deleted")),
        *(("category", "deleted"), ("reflection", "deleted"), ("episode", "deleted")),
        ("skill", "deleted"),
    }
    assert call("GET", f"/api/memory/{old['id']}").status == 404
    assert call("GET", "/api/kv/made").status == 404
    assert call.ok("GET", "/api/kv/kept")["value"] == "mine"
    lessons = call.ok("GET", "/api/hot")["state"]["critical_lessons"]
    assert [one["text"] for one in lessons] == ["my lesson"]
    assert call("DELETE", "/api/tree?path=theirs").status == 404
    (left,) = call.ok("GET", "/api/reflections")["results"]
    assert left["lesson"] == "my reflection"
    assert call.ok("GET", "/api/episodes")["results"] == []
    assert call.ok("GET", "/api/skills")["results"] == []
    assert call.total() == 1
    assert call.ok("POST", "/api/undo", by)["results"] == []


def test_what_a_person_edits_in_a_file_is_not_undone_as_the_work_of_who_asks(call, shared_daemon):
    robot(call, "PUT", "/api/kv/made", {"value": "theirs"})
    page = Path(shared_daemon.state) / "agents" / call.agent / "memory" / "knowledge.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("# Knowledge\n\n- written by hand\n")
    done = robot(call, "POST", "/api/undo", {"by": "robot", "since": "1h"})["results"]
    assert [row["kind"] for row in done] == ["pair"]
    assert "written by hand" in page.read_text()


def test_what_cannot_be_undone_is_listed_each_time(call):
    gone, edited = (call.store(text)["id"] for text in ("mine, and gone", "mine, and edited"))
    call.ok("PUT", "/api/kv/gone", {"value": "mine"})
    since = time.time()
    robot(call, "DELETE", f"/api/memory/{gone}")
    robot(call, "DELETE", "/api/kv/gone")
    robot(call, "PUT", f"/api/memory/{edited}", {"text": "theirs now"})
    call.ok("PUT", f"/api/memory/{edited}", {"text": "mine again"})
    taken = robot(call, "POST", "/api/memory", {"text": "theirs, and then mine"})["id"]
    call.ok("PUT", f"/api/memory/{taken}", {"text": "mine now"})
    robot(call, "PUT", "/api/tree", {"path": "used", "desc": "theirs"})
    call.store("filed by me", category="used")
    own = robot(call, "POST", "/api/memory", {"text": "made and deleted by them"})["id"]
    robot(call, "DELETE", f"/api/memory/{own}")
    robot(call, "PUT", "/api/kv/theirs", {"value": "1"})
    robot(call, "DELETE", "/api/kv/theirs")
    for _ in range(2):
        done = call.ok("POST", "/api/undo", {"by": "robot", "since": since})["results"]
        assert {(row["kind"], row["id"], row["result"]) for row in done} == {
            ("memory", gone, "cannot come back: forgotten"),
            ("pair", "gone", "cannot come back: forgotten"),
            ("memory", edited, "left: others have changed it since"),
            ("memory", taken, "left: others have changed it since"),
            ("category", "used", "left: it is in use"),
        }
    assert call.ok("GET", f"/api/memory/{taken}")["text"] == "mine now"


def test_what_a_program_deleted_and_made_anew_and_changed_has_one_outcome(call):
    call.ok("PUT", "/api/kv/gate", {"value": "mine"})
    since = time.time()
    robot(call, "DELETE", "/api/kv/gate")
    for value in ("theirs", "theirs, changed"):
        robot(call, "PUT", "/api/kv/gate", {"value": value})
    done = call.ok("POST", "/api/undo", {"by": "robot", "since": since})["results"]
    lost = "deleted; what it replaced cannot come back: forgotten"
    assert [(row["id"], row["result"]) for row in done] == [("gate", lost)]
    assert call("GET", "/api/kv/gate").status == 404


def test_a_category_that_a_program_renamed_gives_its_memories_back_and_is_gone(call):
    key = call.store("filed by me", category="keep/me")["id"]
    robot(call, "POST", "/api/tree/rename", {"path": "keep/me", "to": "kept/you"})
    by = {"by": "robot", "since": "1h"}
    would = call.ok("POST", "/api/undo", by | {"dry_run": True})["results"]
    done = call.ok("POST", "/api/undo", by)["results"]
    results = [(row["id"], row["result"]) for row in done]
    assert results == [(row["id"], row["result"]) for row in would]
    assert results[:3] == [(key, "put back"), ("kept/you", "deleted"), ("kept", "deleted")]
    assert call.ok("GET", f"/api/memory/{key}")["category"] == "keep/me"
    assert "kept" not in call.ok("GET", "/api/tree")["tree"]


def test_what_was_stored_before_is_not_undone_though_its_date_is_later(call):
    key = call.store("the fair begins", created_at=time.time() + 1_000_000)["id"]
    since = time.time()
    undo(call, by=ME, since=since)
    assert call.ok("GET", f"/api/memory/{key}")["text"] == "the fair begins"


async def test_undoing_a_parting_merges_again(open_store, make_memory):
    store = await open_store()

    def merged_and_parted(tx: Transaction) -> None:
        for number in (1, 2):
            memories.insert(tx, make_memory(number, importance=0.5))
        merging.merge(tx, memories.find(tx.db, "m00001"), memories.find(tx.db, "m00002"))

    await store.write(merged_and_parted)
    await store.write(lambda tx: merging.unmerge(tx, memories.find(tx.db, "m00001")))
    await store.write(lambda tx: undoing.undo(tx, KIND, "m00001"))
    kept = await store.read(lambda db: memories.find(db, "m00002"))
    retired = await store.read(lambda db: memories.find(db, "m00001"))
    assert retired.merged_into == kept.id
    assert kept.importance == pytest.approx(0.6)


async def test_versions_and_lost_values_go_beyond_the_limit_and_after_90_days(open_store):
    rules = Rules(store=StoreSettings(history_mb=0.01))
    store = await open_store(now=lambda: START, rules=rules)
    for number in range(60):
        await store.write(partial(key_values.put, key="k", value=f"{number} " + "x" * 300))
    await store.run_maintenance()
    latest, *_ = found = await store.read(partial(history.latest, limit=100))
    assert latest.row.data["value"].startswith("58 ")
    size = sum(len("".join(filter(None, version.row.encoded()))) for version in found)
    assert 9_000 < size <= rules.store.history_max_bytes
    await store.write(partial(history.record_lost, kind=PAIRS.kind, lost=found[-1].row))
    assert await store.read(history.conflicts) == 1
    await store.close()
    # Within a day the clock may have jumped.
    for days in (91, 92):
        store = await open_store(now=lambda days=days: START + days * DAY, rules=rules)
        await store.run_maintenance()
        if days == 91:
            await store.close()
    assert await store.read(partial(history.latest, limit=100)) == []
    assert await store.read(partial(rows.live_rows, kind=history.LOST)) == []


async def test_a_category_removed_as_unused_is_known_for_90_days(open_store):
    for days, is_known in [(0, True), (89, True), (91, False)]:
        store = await open_store(now=lambda days=days: START + days * DAY)
        if days == 0:
            await store.write(partial(tree_rows.ensure, category="harbour"))
            await store.write(partial(tree_rows.remove_unused, category="harbour"))
        await store.run_maintenance()
        row = await store.read(partial(tree_rows.KIND.load, key="harbour"))
        assert (row is not None) == is_known
        await store.close()
