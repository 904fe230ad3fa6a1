"""Forgetting by category, by words, and a whole agent, over the socket."""

import contextlib
import threading
from typing import Any

import pytest

from thermocline.daemon.client import ApiError

TARGET = "/api/memory/forget"


def ids(call: Any) -> set[str]:
    found = call.ok("GET", "/api/memory?include=merged,expired&limit=500")["results"]
    return {memory["id"] for memory in found}


@pytest.fixture
def tea(call: Any) -> dict[str, str]:
    texts = {
        "ana": ("Ana prefers green TEA", "people/ana"),
        "bo": ("Bo prefers tea with milk", "people/bo"),
        "plan": ("Deploy on Friday", "projects/old"),
        "older": ("Deploy on Monday", "projects/old/first"),
        "elsewhere": ("The projects are old", "projects/older"),
    }
    return {
        name: call.store(text, category=category)["id"] for name, (text, category) in texts.items()
    }


def test_what_is_in_a_category_or_contains_all_the_words_is_forgotten(call, tea):
    shown = call.ok("POST", TARGET, {"query": "prefers tea", "dry_run": True})
    assert shown["total"] == 2
    assert not shown["forgotten"]
    assert [memory["id"] for memory in shown["results"]] == [tea["bo"], tea["ana"]]
    assert ids(call) == set(tea.values())
    assert call.ok("POST", TARGET, {"query": "tea GREEN"})["total"] == 1
    assert ids(call) == set(tea.values()) - {tea["ana"]}
    assert call.ok("POST", TARGET, {"query": "deploy", "category": "people"})["total"] == 0
    assert call.ok("POST", TARGET, {"query": "friday", "category": "projects"})["total"] == 1
    assert call("GET", f"/api/memory/{tea['plan']}").status == 404
    done = call.ok("POST", TARGET, {"category": "projects/old"})
    assert done == {"total": 1, "forgotten": True, "results": []}
    assert ids(call) == {tea["bo"], tea["elsewhere"]}


def test_words_of_a_memory_that_was_merged_into_another_are_forgotten_too(call):
    first, second = call.store("Ana lives in Oslo")["id"], call.store("The capital is far")["id"]
    call.ok("POST", f"/api/memory/{first}/merge", {"into": second})
    assert call.ok("POST", TARGET, {"query": "oslo"})["total"] >= 1
    assert first not in ids(call)


def test_hundreds_are_forgotten_together(call):
    batch = [{"text": f"number {number} of many"} for number in range(450)]
    call.ok("POST", "/api/memory/batch", {"memories": batch})
    kept = call.store("kept")["id"]
    shown = call.ok("POST", TARGET, {"query": "of many", "dry_run": True})
    assert (shown["total"], len(shown["results"])) == (450, 10)
    assert call.ok("POST", TARGET, {"query": "of many"})["total"] == 450
    assert ids(call) == {kept}


def test_to_forget_what_is_not_said_is_refused(call):
    kept = call.store("kept")["id"]
    for body, field in (
        ({}, "category"), ({"query": " "}, "query"), ({"category": None}, "category"),
        ({"category": "a//b"}, "category"), ({"query": 7}, "query"), ({"tag": "x"}, "tag"),
    ):  # fmt: skip
        assert call("POST", TARGET, body).refusal() == (400, "invalid", field)
    assert ids(call) == {kept}


# A whole agent


def test_an_agent_is_forgotten_with_its_folder(call, shared_daemon):
    call.store("x")
    call.ok("PUT", "/api/kv/k", {"value": "v"})
    call.ok("PUT", "/api/hot/lesson", {"text": "Ask first"})
    folder = shared_daemon.folder(call.agent)
    target = f"/api/agents/{call.agent}"
    shown = call.ok("DELETE", f"{target}?dry_run=true")
    assert (shown["memories"], shown["key_values"], shown["forgotten"]) == (1, 1, False)
    assert shown["size_bytes"] > 0
    assert call.total() == 1
    done = call.ok("DELETE", target)
    assert (done["memories"], done["forgotten"]) == (1, True)
    assert not folder.exists()
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(call.agent)] == []
    assert call.total() == 0
    listed = call.ok("GET", "/api/agents")["results"]
    assert call.agent not in {agent["id"] for agent in listed}
    # What is stored next is a new beginning.
    call.store("y")
    assert call.total() == 1
    assert "Ask first" not in str(call.ok("GET", "/api/hot"))


def test_an_agent_that_is_forgotten_while_it_is_read_does_not_come_back(shared_daemon):
    def read(agent: str, over: threading.Event) -> None:
        with shared_daemon.client(agent) as client:
            while not over.is_set():
                with contextlib.suppress(ApiError):
                    client.upkeep()

    names = {f"brief{number}" for number in range(20)}
    for name in names:
        over = threading.Event()
        reader = threading.Thread(target=read, args=(name, over))
        with shared_daemon.client(name) as client:
            client.store("soon forgotten")
            reader.start()
            client.forget_agent(name)
            over.set()
            reader.join()
            assert not names & {one.id for one in client.agents().results}


def test_what_a_crash_left_of_a_forgotten_agent_is_removed_at_the_start(make_daemon, eventually):
    daemon = make_daemon()
    left = daemon.state / "agents" / "gone.forgotten"
    left.mkdir(parents=True)
    (left / "memory.db").write_bytes(b"half of it")
    daemon.start()
    eventually(lambda: not left.exists(), "the rest is removed")
    with daemon.client() as client:
        assert {agent.id for agent in client.agents().results} == {"default"}


def test_the_replica_of_a_forgotten_agent_is_told(make_daemon, calls_of, tmp_path):
    replica = f"--set=sync.url=file:{tmp_path}/replica.db"
    one, other = (make_daemon(replica, name=name).start() for name in ("one", "other"))
    first, second = calls_of(one, "notes"), calls_of(other, "notes")
    first.store("Ana prefers tea")
    first.ok("POST", "/api/sync")
    second.store("Bo prefers milk")
    second.ok("POST", "/api/sync")
    assert second.total() == 2
    first.ok("POST", "/api/sync")
    done = first.ok("DELETE", "/api/agents/notes")
    assert (done["memories"], done["replica"]) == (2, "synced")
    second.ok("POST", "/api/sync")
    assert second.total() == 0


def test_a_category_that_another_device_described_outlives_the_memory_it_was_made_for(
    make_daemon, calls_of, tmp_path
):
    replica = f"--set=sync.url=file:{tmp_path}/replica.db"
    one, other = (make_daemon(replica, name=name).start() for name in ("one", "other"))
    first, second = calls_of(one), calls_of(other)
    key = first.store("the berths are let until May", category="harbour")["id"]
    for call in (first, second):
        call.ok("POST", "/api/sync")
    second.ok("PUT", "/api/tree", {"path": "harbour", "desc": "Berths and their tenants"})
    first.ok("DELETE", f"/api/memory/{key}")
    for call in (first, second, first, second):
        call.ok("POST", "/api/sync")
    for call in (first, second):
        tree = call.ok("GET", "/api/tree")["tree"]
        assert tree["harbour"]["desc"] == "Berths and their tenants"
        assert call.total() == 0


def test_a_name_is_used_again_after_its_agent_was_forgotten(make_daemon, calls_of, tmp_path):
    daemon = make_daemon(f"--set=sync.url=file:{tmp_path}/replica.db").start()
    call = calls_of(daemon, "notes")
    device = call.ok("GET", "/api/status")["device"]
    for text in ("Ana prefers tea", "Bo prefers milk"):
        call.store(text, category="taste/drinks")
        call.ok("POST", "/api/sync")
        call.ok("DELETE", "/api/agents/notes")
    call.store("Cy prefers water", category="taste/drinks")
    call.ok("POST", "/api/sync")
    status = call.ok("GET", "/api/status")
    assert (status["problems"], status["device"]) == ([], device)
    assert call.total() == 1


def test_an_agent_that_is_forgotten_while_its_replica_is_away_does_not_come_back(
    make_daemon, calls_of, sqld, eventually
):
    daemon = make_daemon(f"--set=sync.url={sqld.url}").start()
    call = calls_of(daemon, "notes")
    call.store("x")
    call.ok("POST", "/api/sync")
    sqld.stop()
    done = call.ok("DELETE", "/api/agents/notes")
    assert (done["forgotten"], done["replica"]) == (True, "behind")
    assert done["why"]
    problems = call.ok("GET", "/api/status")["problems"]
    assert not any("notes" in problem["message"] for problem in problems)
    sqld.start()
    assert daemon.stop() == 0
    daemon.start()
    left = "SELECT count(*) FROM rows WHERE agent_id = 'notes' AND data IS NOT NULL"
    eventually(lambda: sqld.query(left) == [[0]], "the deletions are sent")
    assert call.total() == 0
    assert call.ok("DELETE", "/api/agents/notes")["replica"] == "synced"
    assert not daemon.folder("notes").exists()
