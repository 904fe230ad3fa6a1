"""A changed configuration reaches the running daemon; a bad one does not."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon

from thermocline.daemon.config import load
from thermocline.daemon.config.live import LiveSettings
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.runtime.service_manager import ServiceManager

BAD: tuple[tuple[Any, str], ...] = (
    ("{", "config.json"),
    ({"warm": {"max_kb": "many"}}, "warm.max_kb"),
    ({"warm": {"max_kb": 30}, "warn": {}}, "warn"),
    ({"warm": {"max_kb": 30}, "tree": {"max_depth": 99}}, "tree.max_depth"),
)


class Configured:
    """A daemon with a configuration file that the test rewrites."""

    def __init__(self, daemon: Any, call: Any) -> None:
        self.daemon = daemon
        self.call = call
        self.file = daemon.socket.with_name("config.json")

    def write(self, document: Any) -> None:
        """Put a new file in the old one's place."""
        new = self.file.with_suffix(".new")
        new.write_text(document if isinstance(document, str) else json.dumps(document))
        new.replace(self.file)

    def warm_kb(self) -> float:
        return float(self.status()["agents"]["default"]["warm_max_bytes"] / 1024)

    def status(self) -> Any:
        return self.call.ok("GET", "/api/status")

    def problems(self) -> dict[str, Any]:
        return {problem["code"]: problem for problem in self.status()["problems"]}


def started(folder: Path, seconds: float, calls_of: Any) -> Configured:
    daemon = Daemon(folder, f"--set=config.check_seconds={seconds}")
    made = Configured(daemon, calls_of(daemon))
    made.write({"warm": {"max_kb": 20}})
    daemon.options = (*daemon.options, f"--config={made.file}")
    daemon.start()
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, calls_of: Any) -> Iterator[Configured]:
    configured = started(tmp_path_factory.mktemp("configured"), 0.1, calls_of)
    yield configured
    assert configured.daemon.stop() == 0


@pytest.fixture
def configured(shared: Configured, eventually: Any) -> Configured:
    """A daemon that looks at its configuration often, with the one that each test begins with."""
    shared.write({"warm": {"max_kb": 20}})
    eventually(lambda: shared.warm_kb() == 20 and not shared.problems(), "it is in force")
    return shared


def test_a_changed_file_is_taken_over_by_itself(configured, eventually):
    assert configured.warm_kb() == 20
    configured.write({"warm": {"max_kb": 1}, "log": {"level": "debug"}})
    eventually(lambda: configured.warm_kb() == 1, "the new value is in force")
    before = configured.call.total()
    for number in range(20):
        configured.call.store(f"m{number} " + "x" * 100)
    agent = configured.status()["agents"]["default"]
    assert agent["warm_bytes"] <= 1024
    assert agent["cold"] > 0
    assert agent["memories"] == before + 20
    log = configured.daemon.log.read_text()
    assert "took over: warm.max_kb, log.level" in log
    assert configured.problems() == {}


def test_sighup_asks_for_it_at_once(tmp_path, calls_of, eventually):
    configured = started(tmp_path, 3600, calls_of)
    configured.write({"warm": {"max_kb": 30}})
    assert configured.warm_kb() == 20
    configured.daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: configured.warm_kb() == 30, "the new value is in force")
    assert configured.daemon.stop() == 0


def test_a_bad_file_keeps_the_old_values_and_shows(configured, eventually):
    for kb, (bad, named) in enumerate(BAD, 21):
        configured.write(bad)
        eventually(lambda: "config_invalid" in configured.problems(), "the fault shows")
        problem = configured.problems()["config_invalid"]
        assert named in problem["message"]
        assert str(configured.file) in problem["message"]
        assert problem["hint"]
        assert configured.warm_kb() == kb - 1
        health = configured.call("GET", "/api/health")
        assert (health.status, health.body["status"]) == (503, "degraded")
        assert configured.call.store("works on")["text"] == "works on"
        configured.write({"warm": {"max_kb": kb}})
        eventually(lambda kb=kb: configured.warm_kb() == kb, "the mended file is in force")
        assert configured.problems() == {}
        assert configured.call("GET", "/api/health").status == 200


def test_what_needs_a_restart_is_named_and_the_rest_taken_over(configured, eventually):
    configured.write(
        {
            "warm": {"max_kb": 21},
            "agent_id": "other",
            "socket": {"mode": "0600"},
            "sync": {"device_name": "boat"},
        }
    )
    eventually(lambda: "restart_needed" in configured.problems(), "the keys are named")
    message = configured.problems()["restart_needed"]["message"]
    for key in ("agent_id", "socket.mode", "sync.device_name"):
        assert key in message
    assert "warm.max_kb" not in message
    assert configured.warm_kb() == 21
    assert configured.call("GET", "/api/health").status == 200
    configured.write({"warm": {"max_kb": 21}})
    eventually(lambda: configured.problems() == {}, "nothing waits for a restart any more")


def test_a_grant_is_taken_over_and_a_file_that_goes_away_shows_until_it_is_back(
    configured, eventually
):
    configured.write({"warm": {"max_kb": 20}, "access": {"users": {"54001": "read"}}})
    log = configured.daemon.log
    eventually(lambda: "access.users.54001" in log.read_text(), "it is in force")
    configured.file.unlink()
    eventually(lambda: "config_invalid" in configured.problems(), "the fault shows")
    assert configured.warm_kb() == 20
    configured.write({"warm": {"max_kb": 22}, "access": {"users": {}}})
    eventually(lambda: configured.warm_kb() == 22, "the file is in force again")
    assert log.read_text().count("access.users.54001") == 2
    assert configured.problems() == {}


@pytest.mark.parametrize("ticks", range(3))
async def test_it_ends_though_a_reload_was_requested_just_before(tmp_path, ticks):
    env = {"HOME": str(tmp_path)}
    live = LiveSettings(load(env), env, None, ())
    requested = asyncio.Event()
    running = asyncio.create_task(live.run(requested, Problems(), ServiceManager({})))
    await asyncio.sleep(0.01)
    requested.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=5)
    running.cancel()
    assert done
