"""`/api/config`, and the command line that uses it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.cli.main import main


class Layered:
    """A daemon with a file of its own as the layer that changes go to."""

    def __init__(self, daemon: Any, call: Any, file: Path) -> None:
        self.daemon = daemon
        self.call = call
        self.file = file

    def keys(self) -> dict[str, Any]:
        return {key["key"]: key for key in self.call.ok("GET", "/api/config")["results"]}

    def change(self, **body: Any) -> Any:
        return self.call.ok("PUT", "/api/config", body)

    def written(self) -> Any:
        return json.loads(self.file.read_text())


@pytest.fixture
def layered(make_daemon: Any, calls_of: Any) -> Callable[..., Layered]:
    def make(content: str = "{}", *options: str) -> Layered:
        daemon = make_daemon(*options, "--set=config.check_seconds=3600")
        file = daemon.socket.with_name("config.json")
        file.write_text(content)
        daemon.options = (*daemon.options, f"--config={file}")
        return Layered(daemon.start(), calls_of(daemon), file)

    return make


def test_every_key_is_shown_with_where_it_is_from_and_what_it_may_be(layered):
    one = layered('{"recall": {"limit": 7}}')
    answer = one.call.ok("GET", "/api/config")
    assert answer["writes"] == str(one.file)
    assert answer["files"][-1] == str(one.file)
    limit = one.keys()["recall.limit"]
    assert (limit["value"], limit["default"], limit["origin"]) == (7, 5, str(one.file))
    assert limit["help"]
    assert limit["expected"] == "an integer 1 to 100"
    assert not limit["needs_restart"]
    assert one.keys()["socket.mode"]["needs_restart"]
    assert one.keys()["config.check_seconds"]["origin"] == "--set"


def test_a_change_is_in_the_file_in_force_at_once_and_survives_a_restart(layered):
    one = layered('{"_comment": "mine", "hot": {"_why": "small", "max_tasks": 3}}')
    for number in range(3):
        one.call.store(f"lantern {number}")
    answer = one.change(
        set={"recall.limit": 2, "socket": {"mode": "0600"}}, unset=["hot.max_tasks"]
    )
    assert answer == {
        "file": str(one.file),
        "applied": ["hot.max_tasks", "recall.limit"],
        "needs_restart": ["socket.mode"],
    }
    assert len(one.call.ok("GET", "/api/recall?query=lantern")["results"]) == 2
    assert one.written() == {
        "_comment": "mine",
        "hot": {"_why": "small"},
        "recall": {"limit": 2},
        "socket": {"mode": "0600"},
    }
    codes = {problem["code"] for problem in one.call.ok("GET", "/api/status")["problems"]}
    assert codes == {"restart_needed"}
    one.change(unset=["socket.mode", "recall"])
    assert one.call.ok("GET", "/api/status")["problems"] == []
    assert len(one.call.ok("GET", "/api/recall?query=lantern")["results"]) == 3
    one.change(set={"recall.limit": 9})
    one.daemon.stop()
    one.daemon.start()
    assert one.keys()["recall.limit"]["value"] == 9


def test_a_wrong_change_is_refused_as_a_whole(layered):
    one = layered('{"hot": {"max_tasks": 3}}')
    several = {"set": {"hot.max_bytes": 1, "recall.limit": 0}}
    for body, said in (
        (several, "hot.max_bytes: expected an integer 512"),
        (several, "recall.limit: expected an integer 1 to 100"),
        ({"set": {"hot.max_byte": 1000}}, "did you mean hot.max_bytes?"),
        ({"set": {"agents": {}}}, "agents: an empty object changes nothing; unset the key"),
        ({"set": {"recall": {"limit": 3, "synonyms": {}}}}, "recall.synonyms: an empty object"),
        ({"unset": ["nothing"]}, "nothing: unknown key"),
        ({"set": {"config.check_seconds": 1}}, "is given by --set of the daemon's command line"),
        ({"sets": {}}, "sets"),
        ({"set": 5}, "set"),
    ):
        answer = one.call("PUT", "/api/config", {"unset": ["hot.max_tasks"]} | body)
        status, _, field = answer.refusal()
        assert status == 400
        assert said in (field or answer.body["error"]["message"])
        assert one.written() == {"hot": {"max_tasks": 3}}
        assert one.keys()["hot.max_tasks"]["value"] == 3


def test_a_key_without_effect_is_a_problem_and_a_file_broken_by_hand_is_not_written(layered):
    one = layered('{"memory": {"topK": 4, "colour": "red"}}')
    problems = one.call.ok("GET", "/api/status")["problems"]
    [told] = [each["message"] for each in problems if each["code"] == "config_without_effect"]
    assert "memory.colour" in told
    one.file.write_text("{")
    assert one.keys()["recall.limit"]["value"] == 4
    answer = one.call("PUT", "/api/config", {"set": {"recall.limit": 8}})
    assert answer.refusal() == (400, "invalid", None)
    assert one.file.read_text() == "{"


def test_the_command_line_changes_the_daemons_layer(layered, capsys):
    one = layered()
    socket = f"--socket={one.daemon.socket}"
    assert main([socket, "config", "--set", "recall.limit=3", "--set", "socket.mode=0600"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"wrote {one.file}",
        "in force: recall.limit",
        "in force after a restart: socket.mode",
    ]
    assert one.keys()["recall.limit"]["value"] == 3
    assert main([socket, "config", "--unset", "recall.limit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["applied"] == ["recall.limit"]
    assert one.written() == {"socket": {"mode": "0600"}}
    assert main([socket, "config", "--set", "recall.limit=0"]) == 2
    assert "expected an integer 1 to 100" in capsys.readouterr().err


def test_the_command_line_shows_the_configuration_of_the_daemon(
    layered, capsys, tmp_path, monkeypatch
):
    one = layered('{"recall": {"limit": 7, "synonyms": {"the shop": ["store.front"]}}}')
    # The caller has another configuration.
    mine = tmp_path / "mine" / "thermocline" / "config.json"
    mine.parent.mkdir(parents=True)
    mine.write_text('{"recall": {"limit": 3}}')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    socket = f"--socket={one.daemon.socket}"
    assert main([socket, "config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = {line.split()[0]: line.split()[1:] for line in lines}
    assert words["recall.limit"] == ["=", "7", f"({one.file})"]
    assert main([socket, "config", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["values"]["recall"]["limit"] == 7
    assert shown["values"]["recall"]["synonyms"] == {"the shop": ["store.front"]}
    assert shown["values"]["agents"] == {}
    assert shown["origins"]["recall.limit"] == str(one.file)
    assert main([socket, "config", "--config", str(mine)]) == 0
    assert "= 3 " in capsys.readouterr().out


def test_synonyms_are_in_force_at_once_and_an_agents_own_are_those_of_no_other(layered, calls_of):
    own = {"the shop": ["storefront-v2"]}
    one = layered(json.dumps({"agents": {"ana": {"synonyms": own}}}))
    text = "storefront-v2 is deployed from main"

    def found(agent: str) -> bool:
        call = calls_of(one.daemon, agent)
        answer = call.ok("POST", "/api/recall", {"query": "how's the shop?"})
        return text in [result["text"] for result in answer["results"]]

    for agent in ("ana", "bo"):
        call = calls_of(one.daemon, agent)
        call.store(text)
        call.store("Our dog is called Rex")
        assert found(agent) == (agent == "ana")
    one.change(set={"recall.synonyms": own})
    assert [own["the shop"]] == [
        key["value"] for name, key in one.keys().items() if name.startswith("recall.synonyms")
    ]
    assert found("bo")
