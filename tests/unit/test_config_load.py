"""The layers of the configuration, on real files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.config import (
    Grant,
    Loaded,
    Settings,
    describe,
    layer_files,
    load,
)
from thermocline.daemon.config.settings import AccountName
from thermocline.daemon.memory.tree_nodes import TreeLimits

ROOT = Path(__file__).parents[2]

# The file that EvoClaw's skill 2.2 ships, but for its comment's words.
EVOCLAW_TEXT = """{
  "_comment": "Tiered Memory System Configuration",
  "agent_id": "default",
  "hot": {
    "max_bytes": 5120,
    "max_lessons": 20,
    "max_events": 10,
    "max_tasks": 10
  },
  "warm": {
    "max_kb": 50,
    "retention_days": 30,
    "eviction_threshold": 0.3
  },
  "cold": {
    "backend": "turso",
    "retention_years": 10
  },
  "scoring": {
    "half_life_days": 30,
    "reinforcement_boost": 0.1
  },
  "tree": {
    "max_nodes": 50,
    "max_depth": 4,
    "max_size_bytes": 4096
  },
  "distillation": {
    "aggression": 0.7,
    "max_distilled_bytes": 100,
    "mode": "rule"
  },
  "consolidation": {
    "warm_eviction": "hourly",
    "tree_prune": "daily",
    "tree_rebuild": "monthly"
  }
}
"""
EVOCLAW = json.loads(EVOCLAW_TEXT)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "CONFIGURATION_DIRECTORY": str(tmp_path / "etc")}


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[[Any], Path]:
    def write(content: Any) -> Path:
        file = tmp_path / "given.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    return write


def write(file: Path, content: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def keys(struct: type[msgspec.Struct], prefix: str = "") -> set[str]:
    """Every key of the typed tree; maps with free keys count as one."""
    found = set()
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            found |= keys(field.type, f"{prefix}{field.name}.")
        else:
            found.add(prefix + field.name)
    return found


def written(node: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every key of a file and its value, comments left out; an empty object is a value."""
    found: dict[str, Any] = {}
    for name, value in node.items():
        if name.startswith("_"):
            continue
        inner = written(value, f"{prefix}{name}.") if isinstance(value, dict) else {}
        found |= inner or {prefix + name: value}
    return found


# The shipped file


def test_the_shipped_file_has_every_key_of_the_typed_tree_with_its_default_and_its_help(tmp_path):
    nowhere, file = tmp_path / "none.json", ROOT / "config.json"
    without, shipped = load({}, system_file=nowhere), load({}, file, (), nowhere)
    assert without.settings == shipped.settings == Settings()
    assert (without.files, set(without.origins.values())) == ((), {"default"})
    assert set(shipped.origins.values()) == {str(file)}
    packaged = ROOT / "daemon" / "config" / "config.json"
    assert packaged.is_symlink()
    assert packaged.resolve() == file
    document = json.loads(file.read_text())
    assert set(written(document)) == keys(Settings)
    assert bare(document) == []


def bare(node: dict[str, Any], prefix: str = "") -> list[str]:
    """The keys of a file that have no help."""
    missing = []
    for name, value in node.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict) and value:
            missing += bare(value, f"{prefix}{name}.")
        elif f"_{name}" not in node:
            missing.append(prefix + name)
    return missing


def effective() -> dict[str, Any]:
    """The keys of EvoClaw's file that its programs read; the rhythm of its steps is not among."""
    return {k: v for k, v in written(EVOCLAW).items() if not k.startswith("consolidation.")}


def test_the_built_in_defaults_are_those_of_evoclaw():
    shipped = written(json.loads((ROOT / "config.json").read_text()))
    expected = effective() | {"tree.max_size_bytes": 2048}
    assert {key: shipped[key] for key in expected} == expected


def test_evoclaws_file_is_a_layer_to_the_letter(env, config_file):
    file = config_file(EVOCLAW_TEXT)
    loaded = load(env, file)
    given_values = effective()
    assert {k: v for k, v, origin in describe(loaded) if origin == str(file)} == given_values
    assert loaded.settings.tree == TreeLimits(max_size_bytes=4096)
    # Everything else is ours.
    assert {origin for k, _, origin in describe(loaded) if k not in given_values} == {"default"}


# Layers


def test_each_layer_wins_over_those_below_it_key_by_key(env, tmp_path):
    system = write(tmp_path / "etc/config.json", {"hot": {"max_bytes": 1001, "max_tasks": 1}})
    user = write(
        tmp_path / "home/.config/thermocline/config.json",
        {"hot": {"max_bytes": 1002, "max_events": 2}},
    )
    given_file = write(tmp_path / "own.json", {"hot": {"max_bytes": 1003, "max_lessons": 3}})
    loaded = load(env, given_file, ["hot.max_bytes=1004", "hot.max_bytes=1005"])
    hot = loaded.settings.hot
    assert (hot.max_bytes, hot.max_lessons, hot.max_events, hot.max_tasks) == (1005, 3, 2, 1)
    assert loaded.files == (system, user, given_file)
    assert loaded.origins["hot.max_bytes"] == "--set"
    assert loaded.origins["hot.max_lessons"] == str(given_file)
    assert loaded.origins["hot.max_events"] == str(user)
    assert loaded.origins["hot.max_tasks"] == str(system)
    assert loaded.origins["warm.max_kb"] == "default"


def test_the_environment_says_where_the_layers_are():
    for env, expected in [
        ({}, ["/etc/sys.json"]),
        ({"HOME": "/h"}, ["/etc/sys.json", "/h/.config/thermocline/config.json"]),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, ["/etc/sys.json", "/x/thermocline/config.json"]),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "relative"},
            ["/etc/sys.json", "/h/.config/thermocline/config.json"],
        ),
        ({"CONFIGURATION_DIRECTORY": "/a:/b"}, ["/a/config.json"]),
        ({"CONFIGURATION_DIRECTORY": ""}, ["/etc/sys.json"]),
    ]:
        assert [str(file) for file in layer_files(env, None, Path("/etc/sys.json"))] == expected
    assert layer_files({}, Path("mine.json"))[-1] == Path.cwd() / "mine.json"


def test_a_file_may_have_a_byte_order_mark_comments_and_whole_numbers_with_a_fraction(
    env, config_file
):
    for text in (
        '\ufeff{"hot": {"max_bytes": 999}}',
        '{"_a": [1], "_a": 2, "hot": {"_b": {"c": null}, "max_bytes": 999}, "agents": {"_c": 1}}',
        '{"hot": {"max_bytes": 999.0}}',
    ):
        settings = load(env, config_file(text)).settings
        assert repr(settings.hot.max_bytes) == "999"
        assert settings.agents == {}


# Values


def test_set_takes_json_or_else_text(env):
    for text, key, value in [
        ("log.level=debug", "log.level", "debug"),
        ('log.level="debug"', "log.level", "debug"),
        ("socket.mode=0600", "socket.mode", "0600"),
        ("socket.path=/run/a=b.sock", "socket.path", "/run/a=b.sock"),
        ("socket.path=null", "socket.path", None),
        ("hot.max_bytes=1e3", "hot.max_bytes", 1000),
        ("warm.retention_days=7", "warm.retention_days", 7.0),
        ('hot={"max_bytes": 1000}', "hot.max_bytes", 1000),
        (
            'access.users."jane.doe"=read',
            'access.users."jane.doe"',
            {"role": "read", "agents": ("*",)},
        ),
    ]:
        loaded = load(env, None, [text])
        entries = {name: (found, origin) for name, found, origin in describe(loaded)}
        assert entries[key] == (value, "--set")


def test_a_role_alone_is_for_every_agent_and_a_later_grant_replaces_an_earlier_as_a_whole(
    env, config_file
):
    users = {"bob": {"role": "read", "agents": ["a", "b"]}, "eve": "read"}
    file = config_file({"access": {"users": users}})
    sets = [
        'access.users.bob={"role": "admin", "agents": ["a"]}',
        'access.groups.7={"role": "read", "agents": ["a"]}',
    ]
    access = load(env, file, sets).settings.access
    assert access.users == {"bob": Grant("admin", ("a",)), "eve": Grant("read", ("*",))}
    assert access.users["eve"].covers("anything")
    assert access.groups["7"].covers("a")
    assert not access.groups["7"].covers("b")


def test_a_home_folder_is_filled_in(env):
    sets = ["agents.a.workspace=~/notes", "agents.b.workspace=~", "socket.path=~/x.sock"]
    settings = load(env, None, sets).settings
    assert settings.agents["a"].workspace == f"{env['HOME']}/notes"
    assert settings.agents["b"].workspace == env["HOME"]
    assert settings.socket.path == f"{env['HOME']}/x.sock"


# What comes out again

names = st.from_regex(get_args(AccountName)[1].pattern, fullmatch=True).filter(
    lambda name: not name.startswith("_")
)


@given(
    users=st.dictionaries(names, st.sampled_from(["read", "write", "admin"]), max_size=3),
    size=st.integers(512, 9999),
    boost=st.floats(0, 10),
)
def test_what_is_described_can_be_set_again(users, size, boost):
    values = {
        "access": {"users": users},
        "hot": {"max_bytes": size},
        "scoring": {"reinforcement_boost": boost},
    }
    nowhere = Path("/nonexistent/config.json")
    sets = [f"{key}={json.dumps(value)}" for key, value in values.items()]
    first = load({}, None, sets, nowhere)
    assert load({}, None, again(first, "--set"), nowhere).settings == first.settings


def test_every_default_that_is_described_can_be_set():
    nowhere = Path("/nonexistent/config.json")
    sets = again(load({}, None, (), nowhere), "default")
    assert len(sets) > 100
    assert load({}, None, sets, nowhere).settings == Settings()


def again(loaded: Loaded, origin: str) -> list[str]:
    """What `--set` takes for the described values of an origin."""
    return [f"{key}={json.dumps(value)}" for key, value, of in describe(loaded) if of == origin]
