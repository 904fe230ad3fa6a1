"""Changing the user's layer: what is written, what is refused, and what stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_values import json_values

from thermocline.daemon.config import ConfigInvalid, Settings, load
from thermocline.daemon.config.editing import edit
from thermocline.daemon.schemas.status import ConfigChange

NOWHERE = Path("/nonexistent/config.json")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The user's layer, not there yet."""
    return tmp_path / ".config" / "thermocline" / "config.json"


def change(env: dict[str, str], *unset: str, config: Path | None = None, **values: Any) -> Path:
    wanted = {key.replace("__", "."): value for key, value in values.items()}
    return edit(ConfigChange(set=wanted, unset=unset), env, config, (), NOWHERE)[0]


def faults(env: dict[str, str], wish: ConfigChange, *sets: str) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        edit(wish, env, None, sets, NOWHERE)
    return str(caught.value).split("\n")


# What is written


def test_the_first_change_makes_the_file_for_its_user_alone(env, file):
    assert change(env, hot__max_bytes=4096) == file
    assert json.loads(file.read_text()) == {"hot": {"max_bytes": 4096}}
    assert file.stat().st_mode & 0o777 == 0o600
    assert load(env, None, (), NOWHERE).settings.hot.max_bytes == 4096
    # An entry of a map is unset by its name.
    change(env, "hot", access={"users": {"jane.doe": "read", "bob": "read"}})
    change(env, 'access.users."jane.doe"', "agents.nobody")
    assert json.loads(file.read_text()) == {"access": {"users": {"bob": "read"}}}


def test_comments_order_and_all_other_keys_stay(env, file):
    file.parent.mkdir(parents=True)
    text = """{
  "_comment": "mine",
  "warm": {
    "_why": {"a": [1, {"b": null}]},
    "max_kb": 20,
    "retention_days": 7.5
  },
  "_x": "\\ud800",
  "_x": "twice",
  "hot": {}
}
"""
    file.write_text(text)
    file.chmod(0o644)
    change(env, warm__max_kb=30, log__level="debug")
    written = file.read_text()
    assert (
        written
        == """{
  "_comment": "mine",
  "warm": {
    "_why": {
      "a": [1, {"b": null}]
    },
    "max_kb": 30,
    "retention_days": 7.5
  },
  "_x": "\\ud800",
  "_x": "twice",
  "hot": {},
  "log": {
    "level": "debug"
  }
}
"""
    )
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_key_that_is_unset_is_that_of_the_layers_below(env, file, tmp_path):
    system = tmp_path / "system.json"
    system.write_text('{"hot": {"max_bytes": 1000}}')
    wish = ConfigChange(set={"hot.max_bytes": 2000, "sync.url": None, "upkeep.daily": None})
    assert edit(wish, env, None, (), system)[1].settings.hot.max_bytes == 2000
    _, loaded = edit(ConfigChange(unset=("hot.max_bytes", "upkeep")), env, None, (), system)
    assert (loaded.settings.hot.max_bytes, loaded.origins["hot.max_bytes"]) == (1000, str(system))
    assert loaded.settings.upkeep == Settings().upkeep
    # null is a value.
    assert json.loads(file.read_text()) == {"sync": {"url": None}}
    assert edit(ConfigChange(unset=("hot.max_bytes",)), env, None, (), system)[1] == loaded
    # What a change sets, it does not remove.
    again = ConfigChange(set={"sync.budget": 1}, unset=("sync",))
    edit(again, env, None, (), system)
    assert json.loads(file.read_text()) == {"sync": {"budget": 1}}


def test_a_link_to_the_file_stays_a_link(env, file, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    change(env, hot__max_tasks=2)
    assert file.is_symlink()
    assert json.loads(real.read_text()) == {"hot": {"max_tasks": 2}}


# Which file


@pytest.mark.parametrize(
    ("variables", "config", "written"),
    [
        ({}, None, ".config/thermocline/config.json"),
        ({"XDG_CONFIG_HOME": "x"}, None, "x/thermocline/config.json"),
        ({"XDG_CONFIG_HOME": "x", "STATE_DIRECTORY": "s"}, None, "s/config.json"),
        ({"STATE_DIRECTORY": "s", "CONFIGURATION_DIRECTORY": "e"}, None, "s/config.json"),
        ({"STATE_DIRECTORY": "s"}, "given.json", "given.json"),
    ],
)
def test_the_highest_file_in_force_is_written(variables, config, written, env, tmp_path):
    env |= {name: str(tmp_path / value) for name, value in variables.items()}
    given_file = tmp_path / config if config else None
    if given_file is not None:
        given_file.write_text("{}")
    assert change(env, config=given_file, hot__max_tasks=2) == tmp_path / written
    _, loaded = edit(ConfigChange(), env, given_file, (), NOWHERE)
    assert loaded.origins["hot.max_tasks"] == str(tmp_path / written)


def test_without_a_home_there_is_no_file_to_write():
    [line] = faults({}, ConfigChange(set={"hot.max_tasks": 1}))
    assert line == "cannot find a file to write: set $HOME, or give --config FILE"


# What is refused


def test_all_faults_are_told_in_one_go_and_nothing_is_written(env, file):
    change(env, hot__max_tasks=3)
    before = file.read_bytes()
    wish = ConfigChange(
        set={"hot.max_bytes": 1, "hot.nope": 2, "": 3, "a=b": 4, "hot._note": "x", "tree": 5},
        unset=("scorign", "hot.max_byte", "log.level.deep"),
    )
    assert sorted(faults(env, wish)) == sorted(
        [
            f"{file}: hot.max_bytes: expected an integer 512 to 1048576, got 1",
            f"{file}: hot.nope: unknown key; hot has max_bytes, max_lessons, max_events, max_tasks",
            f"{file}: tree: expected an object, got 5",
            f'{file}: expected a key, got "" (text)',
            f'{file}: expected a key, got "a=b" (text)',
            f"{file}: hot._note: a name with a leading underscore is a comment",
            f"{file}: scorign: unknown key; did you mean scoring?",
            f"{file}: hot.max_byte: unknown key; did you mean hot.max_bytes?",
            f"{file}: log.level.deep: unknown key; log.level has no keys",
        ]
    )
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system():
    with pytest.raises(OSError, match="/proc/thermocline"):
        change({"XDG_CONFIG_HOME": "/proc"}, hot__max_tasks=4)


key_texts = st.sampled_from(
    ["hot", "hot.max_bytes", "socket.path", "recall.weights", "access.users", "access.users.bob",
     "agents.a", "agents.a.workspace", "agent_id", "llm.models", "nothing", "llm.endpoint_hosts"]
) | st.text(max_size=9)  # fmt: skip


@given(key=key_texts, value=json_values(), unset=key_texts)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_change_is_made_and_valid_or_refused_and_the_file_as_it_was(
    key, value, unset, tmp_path
):
    file = tmp_path / "thermocline" / "config.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"hot": {"max_tasks": 7}}')
    env = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": "/home"}
    before = file.read_bytes()
    try:
        _, loaded = edit(ConfigChange(set={key: value}, unset=(unset,)), env, None, (), NOWHERE)
    except ConfigInvalid:
        assert file.read_bytes() == before
    else:
        assert load(env, None, (), NOWHERE).settings == loaded.settings
