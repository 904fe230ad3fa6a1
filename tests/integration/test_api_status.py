"""Watching the daemon: status, health, metrics, agents, and the API's own description."""

import contextlib
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.api.openapi import all_routes


def test_the_status_tells_of_the_daemon_and_of_open_agents(call, shared_daemon, eventually):
    call.store("x", category="a/b")
    call.ok("PUT", "/api/kv/k", {"value": "v"})
    status = call.ok("GET", "/api/status")
    assert status["pid"] == shared_daemon.process.pid
    assert status["state_dir"] == str(shared_daemon.state)
    assert status["socket"] == str(shared_daemon.socket)
    assert status["ready"] is True
    assert status["problems"] == []
    assert status["uptime_seconds"] > 0
    assert status["connections"] >= 1
    assert status["device"]
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", status["version"])
    agent = status["agents"][call.agent]
    assert (agent["memories"], agent["warm"], agent["cold"]) == (1, 1, 0)
    assert (agent["kv"], agent["tree_nodes"]) == (1, 3)
    assert 0 < agent["warm_bytes"] <= agent["warm_max_bytes"]
    assert 0 < agent["hot_bytes"] <= agent["hot_max_bytes"]
    assert agent["outbox"] > 0
    # Much of it may still stand in the log beside the file.
    assert agent["size_bytes"] > 50_000

    def sizes() -> list[int]:
        listed = {one["id"]: one for one in call.ok("GET", "/api/agents")["results"]}
        shown = call.ok("GET", "/api/status")["agents"]
        assert (listed[call.agent]["open"], listed[call.agent]["memories"]) == (True, 1)
        return [agents[call.agent]["size_bytes"] for agents in (listed, shown)]

    # Files are still being written between two answers.
    eventually(lambda: len(set(sizes())) == 1, "both say the same size")


def test_the_live_history_has_what_happened_this_minute(call):
    before = call.ok("GET", "/api/metrics/live")
    assert sum(before["stores"]) + sum(before["recalls"]) == 0
    call.store("Ana prefers tea")
    call.store("Ben prefers coffee")
    for _ in range(3):
        call.ok("POST", "/api/recall", {"query": "tea"})
    call.ok("GET", "/api/context?query=tea")
    live = call.ok("GET", "/api/metrics/live")
    assert {len(column) for column in live.values() if isinstance(column, list)} == {120}
    assert 119 * 60 <= time.time() - live["since"] < 122 * 60
    assert (sum(live["stores"]), sum(live["recalls"])) == (2, 4)
    slowest = max(ms for ms in live["recall_p99_ms"] if ms is not None)
    assert 0 < min(ms for ms in live["recall_p50_ms"] if ms is not None) <= slowest
    assert live["outbox"][-1] == call.ok("GET", "/api/sync")["queued"] > 0
    assert live["memory_bytes"][-1] > 1_000_000
    assert set(live["sync_ms"]) == {None}


def test_openmetrics_is_well_formed(call):
    call.store("x")
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answered = call("GET", "/api/metrics", headers=accept)
    assert answered.headers["content-type"] == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    )
    lines = answered.text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    families: dict[str, str] = {}
    sample = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{agent=\"[\w-]+\"\})? (-?[0-9.e+-]+)")
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families, f"{name} is described twice"
            families[name] = kind
            continue
        match = sample.fullmatch(line)
        assert match, line
        float(match[3])
        name = match[1]
        family = name.removesuffix("_total")
        if name in families:
            assert families[name] == "gauge"
        else:
            assert families[family] == "counter", line
    assert f'thermocline_memories_stored_total{{agent="{call.agent}"}} 1' in lines
    assert len(families) > 15


def test_an_idle_agent_is_closed_and_opened_again_when_needed(calls_of, make_daemon, eventually):
    daemon = make_daemon(
        "--set=store.idle_close_seconds=1", "--set=store.state_file_check_seconds=0.1"
    )
    call = calls_of(daemon.start(), "sleeper")
    stored = call.store("x")

    def closed() -> bool:
        (agent,) = [
            one for one in call.ok("GET", "/api/agents")["results"] if one["id"] == "sleeper"
        ]
        return not agent["open"] and agent["memories"] is None

    eventually(closed, "the agent is closed")
    assert call.ok("GET", f"/api/memory/{stored['id']}")["text"] == "x"


# The description


@pytest.fixture
def description(call: Any) -> Any:
    return call.ok("GET", "/api/openapi.json")


def test_the_description_has_every_route_with_its_type_and_every_reference_resolves(description):
    paths, schemas = description["paths"], description["components"]["schemas"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(m, route.path) for route in all_routes() for m in route.methods}
    found = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(description)))
    assert found
    assert found <= schemas.keys()
    assert [name for name in schemas if not name.isalnum()] == [], "two types of one name"
    for path, kinds in (
        ("hot/markdown", {"text/markdown"}), ("tree/text", {"text/plain"}),
        ("events", {"text/event-stream"}), ("memory", {"application/json"}),
        ("metrics", {"application/json", "application/openmetrics-text"}),
    ):  # fmt: skip
        assert paths[f"/api/{path}"]["get"]["responses"]["200"]["content"].keys() == kinds
    for name in ("turns", "messages", "text"):
        assert "1 to 500 turns" in schemas["ObserveBody"]["properties"][name]["description"]


def test_every_operation_is_complete(description):
    assert description["openapi"].startswith("3.1")
    assert set(description["info"]) >= {"title", "version"}
    names = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            names.append(operation["operationId"])
            assert operation["summary"]
            parameters = operation["parameters"]
            places = [(parameter["in"], parameter["name"]) for parameter in parameters]
            assert len(places) == len(set(places))
            in_path = {name for place, name in places if place == "path"}
            assert in_path == set(re.findall(r"\{(\w+)\}", path))
            assert all(one["required"] for one in parameters if one["in"] == "path")
            assert all("schema" in parameter for parameter in parameters)
            assert ("requestBody" in operation) <= (method in {"post", "put"})
            assert "default" in operation["responses"]
            success = [code for code in operation["responses"] if code.startswith("2")]
            assert len(success) == 1
            for response in operation["responses"].values():
                assert response["description"]
                assert all("/" in kind for kind in response["content"])
    assert len(names) == len(set(names))


# Files


def test_the_socket_and_the_state_are_for_their_owner(shared_daemon, call):
    call.store("x")
    assert stat.S_IMODE(shared_daemon.socket.stat().st_mode) == 0o660
    for folder, _, files in os.walk(shared_daemon.state):
        assert stat.S_IMODE(Path(folder).stat().st_mode) & 0o077 == 0, folder
        for file in files:
            # A file that was being written has its final name by now.
            with contextlib.suppress(FileNotFoundError):
                assert stat.S_IMODE((Path(folder) / file).stat().st_mode) & 0o077 == 0, file
