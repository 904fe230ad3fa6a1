"""What a second import changes, and what it leaves: each entry is known by its id and its text."""

import json
from typing import Any

import pytest

THEN = 1_700_000_000.0
LATER = THEN + 86_400.0
FACT = {
    "id": "fact0001",
    "text": "The garage server has 64 GB of memory",
    "category": "technical/server",
    "importance": 0.8,
    "created_at": THEN,
    "updated_at": THEN,
}
LESSON = {
    "id": "lesson01",
    "type": "task_solution",
    "intent": "restart the printer",
    "solution": {"fact": "hold the green key"},
    "tags": ["printer", "hall"],
    "created_at": THEN,
    "last_used_at": THEN,
}


@pytest.fixture
def take(call: Any) -> Any:
    """`take(memories=…)` imports into an agent of its own, and returns the report."""
    call.ok("PUT", "/api/kv/here", {"value": "now"})

    def taken(**body: Any) -> Any:
        if isinstance(document := body.get("text"), list | dict):
            body["text"] = json.dumps(document)
        return call.ok("POST", "/api/import", body)

    return taken


@pytest.fixture
def memory(call: Any) -> Any:
    return lambda key: call.ok("GET", f"/api/memory/{key}")


def listed(call: Any) -> dict[str, str]:
    page = call.ok("GET", "/api/memory?limit=100")
    return {one["id"]: one["text"] for one in page["results"]}


def test_a_text_that_is_here_under_another_id_is_counted_and_not_stored(call, take):
    here = call.ok("POST", "/api/memory", {"text": FACT["text"].upper()})["id"]
    report = take(memories=[FACT, FACT | {"id": "fact0002", "text": "The attic is empty"}])
    assert (report["stored"], report["skipped"]) == ({"memory": 1}, {"already there": 1})
    assert listed(call).keys() == {here, "fact0002"}


def test_a_turn_is_stored_whatever_has_the_same_text(call, take):
    call.ok("POST", "/api/memory", {"text": "Yes, please"})
    turn = {"text": "Yes, please", "group": "talk", "actor": "user", "type": "episodic"}
    turns = [FACT | turn | {"id": f"turn000{at}", "position": at} for at in range(2)]
    assert take(memories=turns)["stored"] == {"memory": 2}
    assert take(memories=turns)["skipped"] == {"already there": 2}


@pytest.mark.parametrize("said", [{"group": "talk", "position": 0}, {"actor": "Tom"}])
def test_a_statement_is_stored_though_a_turn_or_somebody_else_has_its_text(call, take, said):
    call.ok("POST", "/api/memory", {"text": FACT["text"], **said})
    assert take(memories=[FACT])["stored"] == {"memory": 1}
    again = FACT | {"id": "fact0002"}
    assert take(memories=[again])["skipped"] == {"already there": 1}


def test_what_changed_at_its_source_is_changed_field_by_field(call, take, memory):
    take(memories=[FACT | {"tags": ["b", "a"], "subject": "server"}])
    changed = FACT | {"tags": ["c"], "subject": "server", "importance": 0.4, "updated_at": LATER}
    assert take(memories=[changed])["stored"] == {"memory": 1}
    first = memory("fact0001")
    assert (first["tags"], first["importance"], first["subject"]) == (["c"], 0.4, "server")
    assert first["updated_at"] == LATER
    assert first["created_at"] == THEN
    assert call.ok("GET", "/api/history?conflicts=true")["results"] == []
    # Without a later time of its own it is an older version.
    older = FACT | {"text": "The garage server has 32 GB", "updated_at": THEN}
    report = take(memories=[older])
    assert report["stored"] == {}
    assert memory("fact0001")["text"] == FACT["text"]


@pytest.mark.parametrize("text", ["The garage server has 32 GB", "The garage server has 96 GB"])
def test_what_changed_at_a_source_without_times_of_change_is_changed_here(call, take, text):
    fact = {name: value for name, value in FACT.items() if name != "updated_at"}
    changed = fact | {"text": text}
    take(memories=[fact])
    assert take(memories=[changed])["stored"] == {"memory": 1}
    assert take(memories=[changed])["stored"] == {}
    assert listed(call) == {"fact0001": text}
    assert call.ok("GET", "/api/history?conflicts=true")["results"] == []
    call.ok("POST", "/api/tree/rename", {"path": "technical/server", "to": "garage"})
    assert take(memories=[changed])["stored"] == {}
    call.ok("PUT", "/api/memory/fact0001", {"text": "The garage server is sold"})
    again = take(memories=[fact | {"text": "The garage server has 128 GB"}])
    assert (again["stored"], again["skipped"]) == ({}, {"changed here later": 1})
    assert listed(call) == {"fact0001": "The garage server is sold"}


def test_a_time_of_the_source_that_lies_ahead_changes_nothing_for_ever(call, take, memory):
    take(memories=[FACT | {"subject": "server", "writer": "somebody"}])
    assert memory("fact0001")["writer"].startswith("uid:")
    take(memories=[FACT | {"importance": 0.3, "updated_at": 4_000_000_000.0}])
    known = memory("fact0001")
    # A field that the source no longer has is taken back.
    assert (known["importance"], known["subject"]) == (0.3, "")
    assert known["updated_at"] < 3_900_000_000.0
    call.ok("PUT", "/api/memory/fact0001", {"importance": 0.9})
    assert memory("fact0001")["importance"] == 0.9


def test_uses_are_brought_once_and_only_the_missing_ones_are_added(call, take, memory):
    used = FACT | {"access_count": 3, "last_accessed_at": THEN + 10}
    take(memories=[used])
    assert take(memories=[used])["stored"] == {}
    known = memory("fact0001")
    assert (known["access_count"], known["last_accessed_at"]) == (3, THEN + 10)
    more = used | {"access_count": 5, "last_accessed_at": THEN + 20}
    assert take(memories=[more])["stored"] == {"memory": 1}
    known = memory("fact0001")
    assert (known["access_count"], known["last_accessed_at"]) == (5, THEN + 20)
    take(memories=[used | {"access_count": 1}])
    assert memory("fact0001")["access_count"] == 5
    assert call.ok("GET", "/api/history?conflicts=true")["results"] == []


def test_a_link_is_kept_only_to_a_memory_that_is_there(call, take, memory):
    names = {"fact0001": "The shed is red", "fact0002": "The shed is blue", "fact0003": "Bo sails"}
    older, newer, other = (FACT | {"id": key, "text": text} for key, text in names.items())
    take(memories=[newer])
    take(memories=[older | {"superseded_by": "fact0002"}, other | {"merged_into": "gone0001"}])
    assert memory("fact0001")["superseded_by"] == "fact0002"
    assert "fact0003" in listed(call)
    both = [
        FACT | {"id": "fact0004", "text": "Ute rows"},
        FACT | {"id": "fact0005", "text": "Ute rows at dawn", "merged_into": "fact0004"},
    ]
    take(memories=both)
    assert listed(call).keys() == {"fact0001", "fact0002", "fact0003", "fact0004"}
    take(memories=[FACT | {"id": "fact0006", "text": "Al", "merged_into": "fact0004"}])
    assert "fact0006" not in listed(call)


def test_what_its_source_has_merged_since_is_merged_unless_it_was_unmerged_here(call, take):
    other = FACT | {"id": "fact0002", "text": "The garage has a server of 64 GB"}
    merged = [FACT | {"merged_into": "fact0002"}, other]
    take(memories=[FACT, other])
    assert take(memories=merged)["stored"] == {"memory": 1}
    assert listed(call).keys() == {"fact0002"}
    call.ok("POST", "/api/memory/fact0001/unmerge")
    assert take(memories=merged)["stored"] == {}
    assert listed(call).keys() == {"fact0001", "fact0002"}


def test_what_was_forgotten_does_not_come_back(call, take):
    take(memories=[FACT])
    call.ok("DELETE", "/api/memory/fact0001")
    report = take(memories=[FACT | {"updated_at": LATER}])
    assert (report["stored"], report["skipped"]) == ({}, {"forgotten since": 1})


def test_the_category_that_the_tree_has_merged_is_no_difference(call, take, memory):
    for number in range(12):
        body = {"text": f"Fact of room {number}", "category": f"room{number:02d}"}
        call.ok("POST", "/api/memory", body)
    page = call.ok("GET", "/api/memory?limit=100")["results"]
    moved = next(
        one for one in map(memory, (one["id"] for one in page)) if one["original_category"]
    )
    names = ("id", "text", "importance", "created_at", "updated_at", "access_count")
    record = {name: moved[name] for name in names} | {"category": moved["original_category"]}
    record["metadata"] = moved.get("metadata", {})
    report = take(memories=[record | {"updated_at": moved["updated_at"] + 1}])
    assert report["skipped"] == {"already there": 1}
    assert memory(moved["id"])["category"] == moved["category"]


def test_a_file_that_is_older_than_the_change_here_changes_nothing(call, take, memory):
    file = {"name": "warm-memory.json", "written_at": LATER}
    assert take(text=[FACT], **file)["stored"] == {"memory": 1}
    call.ok("PUT", "/api/memory/fact0001", {"text": "The garage server has 96 GB"})
    edited = FACT | {"text": "The garage server has 128 GB of memory"}
    report = take(text=[edited], **file)
    assert (report["stored"], report["skipped"]) == ({}, {"changed here later": 1})
    assert memory("fact0001")["text"] == "The garage server has 96 GB"
    newer = {"name": "warm-memory.json", "written_at": memory("fact0001")["updated_at"] + 1}
    edited["text"] = "The garage server has 256 GB of memory"
    assert take(text=[edited], **newer)["stored"] == {"memory": 1}
    assert memory("fact0001")["text"] == edited["text"]
    assert take(text=[edited], **newer)["skipped"] == {"already there": 1}


def test_lessons_are_imported_once_and_follow_their_source(call, take):
    assert take(experiences=[LESSON])["stored"] == {"experience": 1}
    assert take(experiences=[LESSON])["skipped"] == {"already there": 1}
    first = call.ok("GET", "/api/experiences/lesson01")
    assert sorted(first["tags"]) == ["hall", "printer"]
    assert first["solution"] == LESSON["solution"]
    solution = {"fact": "a long press of the green key"}
    changed = LESSON | {"tags": ["printer"], "solution": solution, "success_score": 0.2}
    assert take(experiences=[changed])["stored"] == {"experience": 1}
    assert take(experiences=[changed])["stored"] == {}
    lesson = call.ok("GET", "/api/experiences/lesson01")
    assert (lesson["solution"], lesson["tags"]) == (solution, ["printer"])
    assert lesson["success_score"] == 1.0


def test_an_import_is_undone_whole_by_its_author(call, take):
    hot = {"critical_lessons": ["Ask before paying"], "identity": {"agent_name": "Nova"}}
    take(memories=[FACT], experiences=[LESSON])
    take(text=hot, name="hot-memory-state.json", written_at=THEN)
    tree = {"root": {"desc": ""}, "attic": {"desc": "Boxes"}, "attic/box": {"desc": "Hats"}}
    take(text=tree, name="memory-tree.json")
    entity = {"kind": "entity", "id": "otis", "data": {"name": "Otis", "mentions": 2}}
    entity["data"] |= {"first_seen": THEN, "last_seen": THEN}
    take(text=entity | {"clocks": {"at": [1, "import"]}}, format="rows")
    assert take(text=tree, name="memory-tree.json")["stored"] == {}
    assert call.ok("GET", "/api/graph?entity=otis")["found"]
    author = call.ok("GET", "/api/memory/fact0001")["writer"]
    call.ok("POST", "/api/undo", {"by": author, "since": "1h"})
    assert listed(call) == {}
    assert call.ok("GET", "/api/experiences")["experiences"] == []
    state = call.ok("GET", "/api/hot")["state"]
    assert (state["identity"], state["critical_lessons"]) == ({}, [])
    assert "attic" not in call.ok("GET", "/api/tree")["tree"]
    assert not call.ok("GET", "/api/graph?entity=otis")["found"]
    assert call.ok("POST", "/api/undo", {"by": author, "since": "1h"})["results"] == []


def test_a_description_replaces_only_a_title(call, take):
    call.ok("POST", "/api/memory", {"text": "The plane is sharp", "category": "craft/wood"})
    tree = {"root": {"desc": ""}, "craft": {"desc": "Handwork", "last_access": THEN}}
    tree["craft/wood"] = {"desc": "Planes and saws"}
    tree["attic"] = {"desc": "Boxes", "last_access": THEN + 5}
    report = take(text=tree, name="memory-tree.json", written_at=LATER)
    assert report["stored"] == {"category": 3}
    tree["craft"]["desc"] = "Other words"
    report = take(text=tree, name="memory-tree.json", written_at=THEN)
    assert report["stored"] == {}
    nodes = call.ok("GET", "/api/tree")["tree"]
    assert nodes["craft"]["desc"] == "Handwork"
    assert nodes["craft/wood"]["desc"] == "Planes and saws"
    assert nodes["attic"]["last_access"] == THEN + 5
    # Uses here are later than those of the file.
    assert nodes["craft"]["last_access"] > LATER
    call.ok("DELETE", "/api/tree?path=attic")
    report = take(text=tree, name="memory-tree.json", written_at=THEN)
    assert report["skipped"]["removed since"] == 1


def test_counters_of_a_day_are_not_taken_over(call, take):
    counters = {"retrieval_count": 7, "evictions_today": 4, "reinforcements_today": 2}
    report = take(text=counters, name="metrics.json")
    assert report["stored"] == {"metrics": 1}
    assert call.ok("GET", "/api/metrics")["retrieval_count"] == 7
    assert call.ok("GET", "/api/metrics")["evictions_today"] == 0
    assert take(text=counters, name="metrics.json")["skipped"] == {"already there": 1}


def test_a_long_report_ends_with_a_line_that_says_so_and_rows_are_counted_by_kind(take):
    records = [FACT | {"id": f"fact{at:04d}", "text": ""} for at in range(300)]
    left_out = take(text=records, name="warm-memory.json")["left_out"]
    assert len(left_out) == 201
    assert left_out[-1].startswith("and more")
    short = take(text=records[:200], name="warm-memory.json")["left_out"]
    assert len(short) == 200
    assert "[199]" in short[-1]
    row = {"kind": "memory", "id": "row00001", "clocks": {"at": [1, "d"]}}
    rows = [row | {"data": {"text": ""}}, row | {"id": "row00002", "data": {"text": "Al rows"}}]
    rows[1]["data"] |= {"created_at": THEN, "updated_at": THEN}
    report = take(text="".join(json.dumps(one) + "\n" for one in rows), name="rows.jsonl")
    assert report["stored"] == {"memory": 1}
    assert report["left_out"] == ["memory: 1 invalid rows"]
