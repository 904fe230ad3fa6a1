"""What is said about a wrong configuration: all of it, in one go, with the way out."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from thermocline.daemon.config import ConfigInvalid, Fault, load

NOWHERE = Path("/nonexistent/config.json")


def faults(
    content: Any, tmp_path: Path, *sets: str, env: dict[str, str] | None = None
) -> list[str]:
    """The lines said about a file of this content, the file's name left out."""
    file = tmp_path / "c.json"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ConfigInvalid) as caught:
        load(env or {}, file, sets, NOWHERE)
    return [line.removeprefix(f"{file}: ") for line in str(caught.value).split("\n")]


COUNT = "an integer 0 to 10000"
AGENT = "an agent id: 1 to 64 letters, digits, _ or -"
PLACE = "an absolute path, or a path that begins with ~/"
CATEGORY = "a category such as projects/boat"
CRON = "a cron expression of five fields: minute hour day month weekday"
MODE = 'an octal file mode such as "0660"'
MODEL = 'a model as litellm names it, such as "openai/gpt-4o-mini"'
MODELS = 'a list of models as litellm names them, such as ["openai/gpt-4o-mini"]'
BASE = "http://… or https://… without a key in it"
AGENTS = 'a list of agent ids, or ["*"]'
GRANT = '"read", "write", "admin" or {"role": …, "agents": […]}'


@pytest.mark.parametrize(
    ("key", "value", "expected", "got"),
    [
        ("hot.max_bytes", '"abc"', "an integer 512 to 1048576", '"abc" (text)'),
        ("hot.max_bytes", "511", "an integer 512 to 1048576", "511"),
        ("hot.max_tasks", "true", COUNT, "true"),
        ("hot.max_tasks", "1.5", COUNT, "1.5"),
        ("hot.max_tasks", "null", COUNT, "null"),
        ("hot.max_tasks", "-1", COUNT, "-1"),
        ("hot.max_tasks", "[1]", COUNT, "[1]"),
        ("hot.max_tasks", "[[1]]", COUNT, "a list"),
        ("hot.max_tasks", "{}", COUNT, "an object"),
        ("hot.max_tasks", "1e999", COUNT, "Infinity"),
        ("hot.max_tasks", "9" * 9999, COUNT, "Infinity"),
        ("warm.retention_days", "NaN", "a number 0 to 36500", "NaN"),
        ("warm.retention_days", "false", "a number 0 to 36500", "false"),
        ("distillation.aggression", "1.01", "a number 0 to 1", "1.01"),
        ("log.level", '"loud"', '"debug", "error", "info" or "warning"', '"loud" (text)'),
        ("agent_id", '"../x"', AGENT, '"../x" (text)'),
        ("agent_id", '"a\\n"', AGENT, '"a\\n" (text)'),
        ("socket.mode", "660", MODE, "660"),
        ("socket.mode", '"0888"', MODE, '"0888" (text)'),
        ("socket.path", '"/a\\u0000"', f"{PLACE} or null", '"/a\\u0000" (text)'),
        ("llm.model", '"two words"', f"{MODEL} or null", '"two words" (text)'),
        ("llm.models.tree", '"a/b"', MODELS, '"a/b" (text)'),
        ("llm.api_base", '"http://u:p@h"', f"{BASE} or null", '"http://…@h" (text)'),
        ("llm.endpoint_hosts", '["a b"]', "a list of hosts", '["a b"]'),
        ("agents.a.workspace", '"notes"', f"{PLACE} or null", '"notes" (text)'),
        ("access.users.bob", '"wirte"', GRANT, '"wirte" (text)'),
        ("access.users.bob", "null", GRANT, "null"),
        ("upkeep.quick", "5", f"{CRON} or null", "5"),
        ("upkeep.quick", '"* * * * * *"', f"{CRON} or null", '"* * * * * *" (text)'),
        ("ingest.categories.boat", '"a//b"', CATEGORY, '"a//b" (text)'),
        ("hot", "5", "an object", "5"),
        ("agents", "[]", "an object", "[]"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(key, value, expected, got, tmp_path):
    text = value
    for name in reversed(key.split(".")):
        text = f'{{"{name}": {text}}}'
    assert faults(text, tmp_path) == [f"{key}: expected {expected}, got {got}"]


EMBED = "llm.models.embed"
ROLE = {"role": "read"}
CRON_FAULT = "is not a cron expression"
CANNOT = "bytes cannot arrive in a body of"
RAISE = "raise socket.max_body_bytes or lower limits.max_text_bytes"
BODY = "expected an integer 1024 to 67108864"


@pytest.mark.parametrize(("content", "line"), [
    # An entry of a map.
    ({"agents": {"a": {"workspace": 1}}}, f"agents.a.workspace: expected {PLACE} or null, got 1"),
    ({"agents": {"a.b": {"workspace": "/w"}}}, f'agents."a.b": the key is not {AGENT}'),
    ({"access": {"users": {"bob": ROLE}}}, f"access.users.bob.agents: missing; expected {AGENTS}"),
    (
        {"access": {"groups": {"g": {**ROLE, "agents": []}}}},
        f"access.groups.g.agents: expected {AGENTS}, got []",
    ),
    (
        {"access": {"users": {"a b": "read"}}},
        'access.users."a b": the key is not a name or a numeric id',
    ),
    ('{"hot": {"max_tasks": 1, "max_tasks": 2}}', "hot.max_tasks: the key is there more than once"),
    # An unknown key: the nearest is named.
    ({"hot": {"max_byte": 1}}, "hot.max_byte: unknown key; did you mean hot.max_bytes?"),
    ({"hot": {"maxBytes": 1}}, "hot.maxBytes: unknown key; did you mean hot.max_bytes?"),
    ({"scorign": {}}, "scorign: unknown key; did you mean scoring?"),
    ({"max_nodes": 1}, "max_nodes: unknown key; did you mean tree.max_nodes?"),
    ({"log": {"zzz": 1}}, "log.zzz: unknown key; log has format, level"),
    # No JSON: the place is named.
    ("", "is empty; expected an object, at least {}"),
    ("[]", "expected an object, got []"),
    ("null", "expected an object, got null"),
    ('{\n  "hot": }', "line 2, column 10: expecting value"),
    ('{"a": 1,\n "b" 2}', "line 2, column 6: expecting ':' delimiter"),
    (b'{\n"a": "\xff"}', "line 2, byte 7: is not UTF-8 text"),
    ("[" * 100_000, "is nested too deeply"),
    (b" " * 1_048_577, "is larger than 1048576 bytes"),
    # A schedule that names no time.
    *(
        ({"upkeep": {"daily": text, "quick": None}}, f'upkeep.daily: {fault}, got "{text}" (text)')
        for text, fault in (
            ("61 * * * *", f"{CRON_FAULT} (bad minute)"),
            ("0 0 31 2 *", f"{CRON_FAULT} (bad day-of-month)"),
            ("0 0 * * FUN", f"{CRON_FAULT} (bad day-of-week)"),
            ("0 0 * 2 1#5,8", f"{CRON_FAULT} (bad day-of-week)"),
            ("0 0 */30 2 7#5", "names a time that never comes"),
        )
    ),
    # What is wrong only together, at the key that was given.
    (
        {"socket": {"path": "~/s"}},
        "socket.path: begins with ~ but $HOME is not set; give an absolute path",
    ),
    (
        {"recall": {"weights": {"match": 0, "recency": 0, "importance": 0}}},
        "recall.weights.match: all weights are 0; raise one",
    ),
    (
        {"llm": {"models": {"embed": ["a/b", "c/d"]}}},
        f"{EMBED}: names several models, but vectors of two models cannot be compared; name one",
    ),
    *(
        (
            {"llm": {"models": {"embed": [text]}}},
            f'{EMBED}: expected static: and the absolute path of a folder, got "{text}" (text)',
        )
        for text in ("static:model", "static:")
    ),
    (
        {"limits": {"max_text_bytes": 2_000_000}},
        f"limits.max_text_bytes: a text of 2000000 {CANNOT} 1048576; {RAISE}",
    ),
    (
        {"socket": {"max_body_bytes": 2_000}},
        f"socket.max_body_bytes: a text of 65536 {CANNOT} 2000; {RAISE}",
    ),
    # Nothing of a value that is itself at fault.
    (
        {"limits": {"max_text_bytes": 2_000_000}, "socket": {"max_body_bytes": "3 MB"}},
        f'socket.max_body_bytes: {BODY}, got "3 MB" (text)',
    ),
])  # fmt: skip
def test_a_fault_is_one_line_with_its_key_and_the_way_out(content, line, tmp_path):
    assert faults(content, tmp_path) == [line]


def test_all_faults_of_all_layers_are_told_in_one_go(tmp_path):
    system = tmp_path / "system.json"
    system.write_text('{"hot": {"max_bytes": 1, "x": 2}}')
    home = tmp_path / "thermocline" / "config.json"
    home.parent.mkdir()
    home.write_text("{")
    given_file = tmp_path / "given.json"
    with pytest.raises(ConfigInvalid) as caught:
        load({"XDG_CONFIG_HOME": str(tmp_path)}, given_file, ["tree=1", "nonsense"], system)
    lines = str(caught.value).split("\n")
    assert sorted(lines) == sorted(
        [
            f"{system}: hot.max_bytes: expected an integer 512 to 1048576, got 1",
            f"{system}: hot.x: unknown key; hot has max_bytes, max_lessons, max_events, max_tasks",
            f"{home}: line 1, column 2: expecting property name enclosed in double quotes",
            f"{given_file}: does not exist",
            "--set: tree: expected an object, got 1",
            '--set: expected key.path=value, got "nonsense" (text)',
        ]
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", '--set: expected key.path=value, got "" (text)'),
        ("=5", '--set: expected key.path=value, got "=5" (text)'),
        ("hot..max_bytes=5", '--set: expected key.path=value, got "hot..max_bytes=5" (text)'),
        ('"\\x"=5', r'--set: expected key.path=value, got "\"\\x\"=5" (text)'),
        ("hot._note=5", "--set: hot._note: a name with a leading underscore is a comment"),
        ("hot.max_tasks=", f'--set: hot.max_tasks: expected {COUNT}, got "" (text)'),
        ("hot.max_tasks.x=1", f"--set: hot.max_tasks: expected {COUNT}, got an object"),
    ],
)
def test_a_wrong_assignment_is_told_like_a_wrong_file(text, line, tmp_path):
    assert faults({}, tmp_path, text) == [line]


# Files that are no files


@pytest.mark.parametrize(("make", "why"), [
    (Path.mkdir, "cannot be read: is a directory"),
    (os.mkfifo, "is not a regular file"),
    (lambda path: path.symlink_to(path), "cannot be read: too many levels"),
], ids=["folder", "pipe", "loop"])  # fmt: skip
def test_what_is_no_file_is_named_with_the_reason_and_not_waited_for(make, why, tmp_path):
    make(tmp_path / "system.json")
    with pytest.raises(ConfigInvalid, match=rf"system\.json: {why}"):
        load({}, system_file=tmp_path / "system.json")


# What is wrong only together


def test_agents_may_share_a_workspace_as_those_of_evoclaw_do(tmp_path):
    file = tmp_path / "c.json"
    file.write_text('{"agents": {"a": {"workspace": "/w"}, "b": {"workspace": "/w"}}}')
    assert set(load({}, file, (), NOWHERE).settings.agents) == {"a", "b"}


def test_a_path_longer_than_a_socket_can_have_is_refused(tmp_path):
    longest = "/run/" + "ü" * 51
    assert load({}, None, [f"socket.path={longest}"], NOWHERE).settings.socket.path == longest
    assert faults({"socket": {"path": f"~/{'ü' * 51}"}}, tmp_path, env={"HOME": "/home"}) == [
        "socket.path: is 108 bytes long; a socket's path has at most 107"
    ]


# How it is said


def test_nothing_in_a_fault_can_steer_a_terminal_or_break_the_line():
    line = str(Fault("/a\x1b[2J", "hot\n", "got \u202e\ud800\x9b"))
    assert line.isprintable()
    assert line.encode("utf-8")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("libsql://memory.turso.io?authToken=s3cret", "libsql://memory.turso.io?…"),
        ("libsql://maya:s3cret@memory.turso.io/x", "libsql://…@memory.turso.io/x"),
        ("https://memory.turso.io/#s3cret\ns3cret", "https://memory.turso.io/#…"),
    ],
)
def test_a_secret_in_a_url_is_not_shown(url, shown, tmp_path):
    [line] = faults({"sync": {"url": url}}, tmp_path)
    assert line.endswith(f'got "{shown}" (text)')
    assert "s3cret" not in faults({"llm": {"endpoint_hosts": [url]}}, tmp_path)[0]


def test_a_long_value_is_cut(tmp_path):
    (line,) = faults({"log": {"level": "x" * 5000}}, tmp_path)
    assert len(line) < 200


places = st.sampled_from(
    ["hot", "hot.max_bytes", "warm.retention_days", "cold.backend", "socket.path", "socket.mode",
     "socket.group", "recall.weights", "access", "access.users", "access.users.bob",
     "access.users.bob.agents", "agents", "agents.a", "agents.a.workspace", "agent_id", "nothing"]
)  # fmt: skip


@given(place=places, value=json_values())
def test_any_value_anywhere_is_taken_or_told_on_lines_of_its_own(place, value):
    try:
        loaded = load({"HOME": "/home"}, None, [f"{place}={json.dumps(value)}"], NOWHERE)
        told = [f"--set: {loaded.settings.log.level}"]
    except ConfigInvalid as error:
        told = str(error).split("\n")
    assert all(line.startswith("--set: ") and line.isprintable() for line in told)


@given(text=st.text().filter(lambda text: "=" not in text))
def test_any_text_without_a_key_is_told(text):
    with pytest.raises(ConfigInvalid) as caught:
        load({}, None, [text], NOWHERE)
    assert str(caught.value).startswith("--set: ")
    assert str(caught.value).isprintable()
