"""Experiences and preferences over the socket, and on two devices."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from daemon_process import wait_until
from desks import Desk, Replica
from device import Device
from shells import Shell

from thermocline.daemon.store.records import experiences

DAY = 86_400.0
NUMBERS = json.loads((Path(__file__).parents[1] / "data/vectors/profclaw_numbers.json").read_text())
HANGS = {
    "type": "error_recovery",
    "intent": "the deploy hangs on the queue",
    "solution": {"command": "make restart"},
    "tags": ["deploy", "queue"],
}


def add(call: Any, **fields: Any) -> Any:
    return call.ok("POST", "/api/experiences", HANGS | fields)


def similar(call: Any, words: str, more: str = "") -> list[str]:
    found = call.ok("GET", f"/api/experiences/search?q={words.replace(' ', '+')}{more}")
    return [one["intent"] for one in found["experiences"]]


def test_an_experience_is_stored_with_any_solution_read_and_deleted(call):
    made = add(call, successScore=0.8, userId="ana", conversationId="c1")
    assert call.ok("GET", f"/api/experiences/{made['id']}")["solution"] == HANGS["solution"]
    assert (made["success_score"], made["user"], made["conversation"]) == (0.8, "ana", "c1")
    listed = call.ok("GET", "/api/experiences?type=error_recovery&userId=ana")
    assert (listed["total"], listed["experiences"][0]["id"]) == (1, made["id"])
    assert call.ok("GET", "/api/experiences?user=ben")["total"] == 0
    assert call.ok("DELETE", f"/api/experiences/{made['id']}") == {"deleted": made["id"]}
    assert call("GET", f"/api/experiences/{made['id']}").status == 404
    for solution in (None, "restart", 7, ["a", {"b": None}], ""):
        made = add(call, solution=solution)
        assert call.ok("GET", f"/api/experiences/{made['id']}")["solution"] == solution
    assert call.ok("GET", "/api/context?query=why+does+the+deploy+hang")["text"]


def test_what_is_no_experience_is_refused(call):
    for body, field in (
        ({"intent": " "}, "intent"), ({"type": "joy"}, "type"), ({"weight": 0}, "weight"),
        ({"success_score": 2}, "success_score"), ({"user": "a", "userId": "b"}, "userId"),
        ({"mood": "good"}, "mood"),
    ):  # fmt: skip
        assert call("POST", "/api/experiences", HANGS | body).refusal() == (400, "invalid", field)
    assert call("POST", "/api/experiences", HANGS | {"solution": ["x" * 200_000]}).status >= 400


def test_a_secret_in_an_experience_is_told_and_replaced(call):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    made = add(call, solution={"command": f"git push https://{secret}@host"})
    assert "forget --secrets" in made["warning"]
    call.ok("POST", f"/api/experiences/{made['id']}/use")
    found = call.ok("POST", "/api/memory/forget", {"secrets": True, "dry_run": False})
    assert f"experience {made['id']}" in found["elsewhere"]
    kept = call.ok("GET", f"/api/experiences/{made['id']}")
    assert (kept["use_count"], secret in str(kept)) == (2, False)
    assert call.ok("GET", f"/api/history?kind=experience&id={made['id']}")["results"] == []
    assert similar(call, "deploy hangs") == [HANGS["intent"]]


def test_the_intent_is_matched_and_tags_order_the_similar(call):
    add(call)
    add(call, intent="the deploy hangs at the very end", tags=["release"])
    add(call, intent="bread does not rise", tags=["queue"])
    assert set(similar(call, "deploy hangs")) == {
        "the deploy hangs on the queue",
        "the deploy hangs at the very end",
    }
    for tag, first in (("release", "the deploy hangs at the very end"), ("QUEUE", HANGS["intent"])):
        assert similar(call, "deploy hangs", f"&tags={tag}")[0] == first
    assert len(similar(call, "deploy hangs", "&limit=1")) == 1
    assert similar(call, "purple elephants") == []


def test_recall_and_the_context_block_know_them(call):
    made = add(call)
    found = call.ok("GET", "/api/recall?query=why+does+the+deploy+hang")
    assert [(one["id"], one["source"]) for one in found["results"]] == [(made["id"], "experience")]
    assert found["searched"]["experience"] == 1
    assert found["results"][0]["text"] == f'{HANGS["intent"]} → {{"command":"make restart"}}'
    text = call.ok("GET", "/api/context?query=why+does+the+deploy+hang")["text"]
    assert '[error_recovery] the deploy hangs on the queue → {"command":"make restart"}' in text
    assert "make restart" not in call.ok("GET", "/api/context?query=elephants").get("text", "")
    # A filter is about memories.
    filtered = call.ok("GET", "/api/recall?query=why+does+the+deploy+hang&category=work")
    assert filtered["results"] == []


def test_what_has_faded_is_not_found_and_pruned_into_the_history(call):
    add(call, intent="the kettle hangs", weight=1.0)
    faded = add(call, weight=0.04)
    assert similar(call, "hangs") == ["the kettle hangs"]
    assert call.ok("GET", "/api/experiences?minWeight=0.05")["total"] == 1
    assert call.ok("GET", "/api/experiences/stats") == {
        "total": 2,
        "byType": {"error_recovery": 2},
        "avgAge": pytest.approx(0, abs=0.1),
        "faded": 1,
    }
    rehearsed = call.ok("POST", "/api/experiences/prune", {"dry_run": True})
    assert (rehearsed["kept"], rehearsed["done"]) == (1, False)
    report = call.ok("POST", "/api/experiences/prune", {})
    assert [one["id"] for one in report["pruned"]] == [faded["id"]]
    assert (report["kept"], report["done"]) == (1, True)
    assert call.ok("GET", "/api/experiences")["total"] == 1
    kept = call.ok("GET", f"/api/history?kind=experience&id={faded['id']}")["results"]
    assert [one["why"] for one in kept] == ["pruned"]
    call.ok("POST", "/api/undo", {"kind": "experience", "id": faded["id"]})
    assert call.ok("GET", "/api/experiences")["total"] == 2
    assert call.ok("POST", "/api/experiences/prune", {"minWeight": 1})["kept"] == 0
    # A use brings it back, too.
    used = call.ok("POST", f"/api/experiences/{faded['id']}/use")
    assert (used["use_count"], used["pruned_at"]) == (2, None)
    assert call.ok("GET", "/api/experiences")["total"] == 1
    assert call("POST", "/api/experiences/nosuch/use").status == 404


def test_preferences_grow_surer(call):
    body = {"userId": "ana", "category": "editor", "value": "vim"}
    told = {}
    for repeats in range(1, 12):
        told[repeats] = call.ok("POST", "/api/preferences", body)["confidence"]
    for one in NUMBERS["preference_confidence"]:
        assert told[one["repeats"]] == pytest.approx(one["confidence"])
    call.ok("POST", "/api/preferences", body | {"value": "emacs"})
    found = call.ok("GET", "/api/preferences?userId=ana")
    assert [(one["value"], one["repeats"]) for one in found["preferences"]] == [
        ("vim", 11),
        ("emacs", 1),
    ]
    assert call.ok("GET", "/api/preferences?user=ben")["total"] == 0
    listed = call.ok("GET", "/api/experiences?type=user_preference")["experiences"]
    assert {one["intent"]: one["initial_weight"] for one in listed} == {
        "editor:vim": 1.0,
        "editor:emacs": 0.5,
    }


def test_a_second_decision_is_not_known_because_it_begins_as_the_first(call):
    said = [
        {"role": "user", "content": "Decision: we use Postgres for the billing data."},
        {"role": "user", "content": "Decision: we deploy only after all tests have passed."},
        {"role": "user", "content": "I prefer short answers without lists."},
        {"role": "assistant", "content": None},
    ]
    body = {"conversationId": "c1", "messages": said}
    told = call.ok("POST", "/api/experiences/observe", body)
    assert told["known"] == []
    assert [(one["type"], one["success_score"]) for one in told["stored"]] == [
        ("task_solution", 0.7),
        ("task_solution", 0.7),
        ("user_preference", 0.6),
    ]
    again = call.ok("POST", "/api/experiences/observe", body)
    assert again["stored"] == []
    assert [one["use_count"] for one in again["known"]] == [2, 2, 2]
    assert similar(call, "which database has billing") != []


def test_a_month_without_a_use_halves_the_weight(tmp_path):
    device = Device(tmp_path / "d", clock=True)
    try:
        device.start()
        with device.client() as client:
            made = client.add_experience(**HANGS)
            for case in NUMBERS["cases"]:
                if case["w0"] == 1:
                    device.set_clock(case["days"] * DAY)
                    now = client.experience(made.id)
                    assert now.weight == pytest.approx(case["weight"], rel=1e-3)
            assert client.experience_stats().faded == 1
            device.set_clock(10 * DAY)
            client.use_experience(made.id)
            device.set_clock(40 * DAY)
            assert client.experience(made.id).weight == pytest.approx(0.5, rel=1e-3)
    finally:
        device.stop()


def test_uses_of_two_devices_count_both():
    replica = Replica()
    here, there = Desk("here", replica), Desk("there", replica, ahead=5)
    made = here.write(lambda tx: experiences.prefer(tx, "ana", "editor", "vim"))
    here.sync()
    there.sync()
    for _ in range(3):
        here.write(lambda tx: experiences.prefer(tx, "ana", "editor", "vim"))
    there.write(lambda tx: experiences.prefer(tx, "ana", "editor", "vim"))
    for desk in (here, there, here, there):
        desk.sync()
    counts = [experiences.EXPERIENCES.get(desk.db, made.id).use_count for desk in (here, there)]
    assert counts == [5, 5]
    found, total = experiences.page(here.db, now=here.now, limit=5)
    assert (total, found[0].use_count) == (1, 5)


def aged(call: Any, days: float, key: str = "old") -> str:
    """An experience that was last used some days ago; the id."""
    at = time.time() - days * DAY
    experience = HANGS | {"id": key, "created_at": at, "last_used_at": at}
    call.ok("POST", "/api/import", {"experiences": [experience]})
    return key


def test_the_half_life_is_an_argument_of_lists_searches_and_prunes(call):
    key, shell = aged(call, 60), Shell(call.path, call.agent)
    [one] = call.ok("GET", "/api/experiences?half_life_days=20")["experiences"]
    assert one["weight"] == pytest.approx(0.125, rel=0.01)
    assert call.ok("GET", "/api/experiences?minWeight=0.2&halfLifeDays=20")["total"] == 0
    [one] = call.ok("GET", "/api/experiences/search?q=deploy+hangs&half_life_days=60")[
        "experiences"
    ]
    assert one["weight"] == pytest.approx(0.5, rel=0.01)
    assert similar(call, "deploy hangs", "&half_life_days=13") == []
    assert call.ok("GET", "/api/experiences/stats?half_life_days=13")["faded"] == 1
    body = {"halfLifeDays": 13, "dry_run": True}
    for operation in ("prune", "decay"):
        would = call.ok("POST", f"/api/experiences/{operation}", body)
        assert ([one["id"] for one in would["pruned"]], would["done"]) == ([key], False)
        for days in (0, 366):
            refused = call("POST", f"/api/experiences/{operation}", {"half_life_days": days})
            assert refused.refusal() == (400, "invalid", "half_life_days")
    assert shell.out("experiences", "search", "deploy hangs", "--half-life-days", "13") == ""
    assert call.ok("POST", "/api/experiences/decay", {})["pruned"] == []
    assert "pruned 1 experience" in shell.out("experiences", "prune", "--half-life-days", "13")


def test_the_half_life_of_the_settings_decides_what_is_found(make_daemon, calls_of):
    daemon = make_daemon("--set=experiences.half_life_days=365").start()
    call = calls_of(daemon)
    aged(call, 200)
    [one] = call.ok("GET", "/api/experiences")["experiences"]
    assert one["weight"] == pytest.approx(0.5 ** (200 / 365), rel=0.01)
    query = {"query": "the deploy hangs on the queue"}

    def sources() -> list[str]:
        return [hit["source"] for hit in call.ok("POST", "/api/recall", query)["results"]]

    wait_until(lambda: "experience" in sources(), "it is found after 200 days")
    assert call.ok("GET", "/api/experiences/stats")["faded"] == 0
