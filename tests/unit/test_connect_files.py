"""Edits of other programs' files: what is entered, and that the rest keeps every byte."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, SHORT_TEXTS, json_values

from thermocline.daemon.connect import edits, jsonc, toml
from thermocline.daemon.errors import InvalidInput

ENTRY = {"command": "/a b/c", "args": ["mcp"]}


def test_what_was_set_is_found_and_what_is_removed_again_is_gone():
    for text, path in [
        ("", ("a", "b")),
        ("{}", ("a",)),
        ("{ }\n", ("a", "b")),
        ('{"a": 1}', ("b",)),
        ('{\n\t"a": {\n\t\t"x": 1\n\t}\n}\n', ("a", "b")),
        ('{"a": {"x": "}, // no comment"}} // end', ("a", "b")),
        # Programs read the last of two.
        ('{"a": {}, "a": {"x": 1}}', ("a", "b")),
    ]:
        changed = jsonc.put(text, path, ENTRY)
        found = jsonc.load(changed)
        for key in path:
            found = found[key]
        assert found == ENTRY
        assert jsonc.put(changed, path, ENTRY) == changed
        assert jsonc.load(jsonc.remove(changed, path)) == jsonc.load(text)


def test_a_file_keeps_its_indentation():
    text = '{\n\t"a": {\n\t\t"x": 1\n\t}\n}\n'
    assert '\n\t\t"b": {\n\t\t\t"command"' in jsonc.put(text, ("a", "b"), ENTRY)
    assert jsonc.remove(jsonc.put(text, ("a", "b"), ENTRY), ("a", "b")) == text


any_json = json_values(CONSTANTS | st.integers(-9, 9) | SHORT_TEXTS, leaves=10)


@given(
    document=st.dictionaries(st.text(max_size=4), any_json, max_size=4),
    key=st.text(max_size=4),
    value=any_json,
    step=st.sampled_from([None, 2, "\t"]),
)
def test_any_document_takes_a_member_and_gives_it_back(document, key, value, step):
    text = json.dumps(document, indent=step)
    changed = jsonc.put(text, (key,), value)
    assert json.loads(changed) == document | {key: value}
    assert json.loads(jsonc.remove(changed, (key,))) == {
        name: one for name, one in document.items() if name != key
    }


OURS = {"hooks": [{"type": "command", "command": "/b/thermocline hook"}]}
COMMENTED_HOOKS = """{
  "hooks": {
    "Stop": [
      // important
      { "hooks": [ { "command": "mine" } ] } // end
    ]
  }
}
"""


@pytest.mark.parametrize("text", [
    COMMENTED_HOOKS,
    '{"hooks": {"Stop": [{ "hooks": [{"command": "mine"}] }], "End": []}}',
    '{"hooks": {"End": [{ "command": "mine" }]}}',
    '{"hooks": {"Start": {"a": 1}, "End": "x"}}',
])  # fmt: skip
def test_hooks_of_others_keep_every_byte_and_removing_ours_leads_back(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    edit = edits.hooks(path, {"Stop": OURS})
    entered = edit.enter(text)
    assert jsonc.load(entered)["hooks"]["Stop"][-1] == OURS
    assert edit.enter(entered) == entered
    moved = entered.replace("/b/thermocline", "/c/thermocline")
    assert edit.enter(moved) == entered
    assert edit.leave(entered) == edit.leave(moved) == text
    [change] = edits.changes_of([edit])
    assert change.is_first


def test_a_hook_that_somebody_added_to_a_group_of_ours_stays(tmp_path):
    mine = {"type": "command", "command": "mine"}
    edit = edits.hooks(tmp_path / "settings.json", {"Stop": OURS})
    text = json.dumps({"hooks": {"Stop": [{"hooks": [*OURS["hooks"], mine]}]}})
    assert edit.enter(text) == text
    assert jsonc.load(edit.leave(text)) == {"hooks": {"Stop": [{"hooks": [mine]}]}}
    moved = jsonc.load(edit.enter(text.replace("/b/", "/old/")))
    assert moved == {"hooks": {"Stop": [{"hooks": [mine]}, OURS]}}


def test_hooks_in_another_form_are_refused(tmp_path):
    edit = edits.hooks(tmp_path / "settings.json", {"Stop": OURS})
    with pytest.raises(jsonc.Malformed, match=r"'Stop' is not a list \(line 1\)"):
        edit.enter('{"hooks": {"Stop": "x"}}')


def test_what_is_not_json_or_no_object_is_refused_with_its_line():
    for text in ["{", "[1", '{"a" 1}', '{"a": }', "{'a: 1}", "{a-b: 1}", "{} {}", '{"a": 1 2}']:
        with pytest.raises(jsonc.Malformed, match="line 1 is not valid JSON"):
            jsonc.load(text)
    with pytest.raises(jsonc.Malformed, match="line 2"):
        jsonc.load('{\n"\\x": 1}')
    with pytest.raises(jsonc.Malformed, match=r"'mcpServers' is not an object \(line 2\)"):
        jsonc.put('{\n "mcpServers": []}', ("mcpServers", "ours"), ENTRY)


@pytest.mark.parametrize("text", ['{"mcpServers": null}', "null", '{"a": 1, "mcpServers": null}'])
def test_null_where_servers_belong_is_an_empty_list_of_servers(text):
    changed = jsonc.put(text, ("mcpServers", "ours"), ENTRY)
    assert jsonc.load(changed) == {**(jsonc.load(text) or {}), "mcpServers": {"ours": ENTRY}}


def test_a_removal_beside_a_comment_does_not_leave_a_broken_file():
    for text in ['{ // see {\n  "a": 1\n}\n', '{ // c\n "a": 1}', '{\n  "b": [1], // {\n  "a": 1}']:
        kept = {key: value for key, value in jsonc.load(text).items() if key != "a"}
        assert jsonc.load(jsonc.remove(text, ("a",))) == kept


TOML = '''# mine
model = "o"

[mcp_servers.other]
command = "x" # keep

[profiles.a]
b = """
[mcp_servers.thermocline]
"""
'''


def test_a_table_is_set_and_removed_and_the_rest_keeps_every_byte():
    ours = "mcp_servers.thermocline"
    changed = toml.put(TOML, ours, ENTRY)
    assert changed.startswith(TOML)
    assert tomllib.loads(changed)["mcp_servers"]["thermocline"] == ENTRY
    again = tomllib.loads(toml.put(changed + "\n[other]\nc = 1\n", ours, ENTRY | {"x": "y"}))
    assert again["mcp_servers"]["thermocline"]["x"] == "y"
    assert again["other"] == {"c": 1}
    assert toml.remove(changed, ours) == TOML
    assert toml.put("", "a", {"b": "c"}) == '[a]\nb = "c"\n'
    assert toml.remove('[a]\nb = "c"\n\n[a.d]\ne = 1\n', "a") == ""
    # A comment belongs to the table below it.
    assert toml.remove("[a]\nb = 1 # c\n\n# of d\n[d]\n", "a") == "# of d\n[d]\n"
    # A name that is quoted is the same.
    text = '[mcp_servers."thermocline"]\ncommand = "old"\n\n[ "mcp_servers" . other ]\na = 1\n'
    changed = toml.put(text, ours, ENTRY)
    assert tomllib.loads(changed)["mcp_servers"] == {"thermocline": ENTRY, "other": {"a": 1}}
    removed = toml.remove(changed, ours)
    assert tomllib.loads(removed) == {"mcp_servers": {"other": {"a": 1}}}
    for text in [
        'mcp_servers = { other = { command = "x" } }\n',
        "mcp_servers = []\n",
        '[[mcp_servers]]\ncommand = "x"\n',
    ]:
        with pytest.raises(toml.CannotEdit, match="by hand"):
            toml.put(text, ours, ENTRY)


@given(st.text(max_size=20))
def test_what_is_written_into_a_toml_file_is_what_is_read_there(value):
    changed = toml.put("a = 1\n", "b", {"command": value})
    assert tomllib.loads(changed) == {"a": 1, "b": {"command": value}}


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


SPECIAL = [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")]


@pytest.mark.parametrize("make", [*SPECIAL, deep], ids=["pipe", "folder", "device", "deep"])
def test_what_is_no_file_or_nested_without_end_is_refused_and_not_waited_for(tmp_path, make):
    path = tmp_path / "settings.json"
    make(path)
    reason = "cannot change" if make is deep else r"settings.json.*not a (regular )?file"
    with pytest.raises(InvalidInput, match=reason):
        edits.changes_of([edits.member(path, ("servers", "ours"), ENTRY)])


@pytest.mark.parametrize(
    "make",
    [*SPECIAL, lambda path: path.write_text('{"planted": 1}\n')],
    ids=["pipe", "folder", "link", "planted"],
)
def test_what_is_in_the_place_of_the_copy_holds_up_nothing_and_is_not_taken_for_it(tmp_path, make):
    path = tmp_path / "settings.json"
    path.write_text('{"mine": 1}\n')
    make(tmp_path / "settings.json.before-thermocline")
    edit = edits.member(path, ("servers", "ours"), ENTRY)
    [change] = edits.changes_of([edit])
    copy = change.make()
    assert copy is not None
    assert copy.name == "settings.json.before-thermocline-2"
    assert copy.read_text() == '{"mine": 1}\n'
    [change] = edits.changes_of([edit], undo=True)
    assert change.make(undo=True) is None
    assert path.read_text() == '{"mine": 1}\n'
    assert not copy.exists()
