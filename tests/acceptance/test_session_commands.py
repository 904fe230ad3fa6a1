"""Sessions on the command line."""

from __future__ import annotations


def test_a_session_from_its_start_to_its_end(shell):
    shell.json("store", "the site runs on pond-2", "--category", "projects/site")
    shell.out("store", "Ana keeps the keys of the site", "--category", "people/ana")
    key = shell.out("sessions", "start", "release", "--category", "projects").strip()
    found = shell.out("retrieve", "the site", "--session", key)
    assert "pond-2" in found
    assert "Ana" not in found
    assert "Ana" not in shell.out("context", "the site", "--session", key)
    assert "release" in shell.out("sessions")
    assert shell.out("sessions", "archive", key) == f"archived {key}\n"
    refused = shell.run("retrieve", "the site", "--session", key, code=None)
    assert "is archived" in refused.stderr
    assert shell.out("sessions", "list", "--status", "active") == ""
    (archived,) = shell.json("sessions", "list", "--status", "archived")["sessions"]
    assert (archived["id"], archived["status"]) == (key, "archived")
    shell.out("undo", key, "--kind", "session")
    assert "pond-2" in shell.out("retrieve", "the site", "--session", key)
    assert shell.json("sessions", "show", key)["status"] == "active"


def test_a_session_is_named_by_its_name_where_only_one_has_it(shell):
    first = shell.out("sessions", "start", "release").strip()
    assert shell.out("sessions", "archive", "release") == f"archived {first}\n"
    second = shell.out("sessions", "start", "release").strip()
    assert [one["id"] for one in shell.json("sessions")["sessions"]] == [second, first]
    refused = shell.run("sessions", "archive", "release", code=1).stderr
    assert "2 sessions are called 'release'" in refused
    assert first in refused
    assert second in refused
    assert "id or name 'x'" in shell.run("sessions", "show", "x", code=1).stderr
