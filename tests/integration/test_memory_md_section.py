"""The daemon's section in MEMORY.md: with the first thing to show, never empty, and taken out."""

from pathlib import Path
from typing import Any

from daemon_process import Daemon, wait_until
from shells import Shell, run

from thermocline.daemon.store.records.memory_md import BEGIN, END

MINE = "# Mine\n\nA line of my own.\n"


def page(daemon: Daemon, call: Any) -> Path:
    return daemon.state / "agents" / call.agent / "MEMORY.md"


def begun(daemon: Daemon, call: Any) -> Path:
    """An agent with a page of its own and nothing in the hot state."""
    call.ok("PUT", "/api/kv/here", {"value": "now"})
    path = page(daemon, call)
    path.write_text(MINE)
    call.ok("POST", "/api/hot/rebuild")
    return path


def test_the_section_comes_with_the_first_thing_to_show_and_goes_with_the_last(call, shared_daemon):
    path = begun(shared_daemon, call)
    assert path.read_text() == MINE
    call.ok("PUT", "/api/hot/lesson", {"text": "measure twice"})
    wait_until(lambda: "measure twice" in path.read_text(), "the section is there")
    assert path.read_text().startswith(MINE)
    call.ok("DELETE", "/api/hot/lesson?name=measure%20twice")
    wait_until(lambda: path.read_text() == MINE, "the section is gone")


def test_a_new_agent_has_no_empty_page(call, shared_daemon):
    call.ok("PUT", "/api/kv/here", {"value": "now"})
    call.ok("POST", "/api/hot/rebuild")
    assert not page(shared_daemon, call).exists()


def test_the_section_is_taken_out_for_good_until_it_is_wanted_again(call, shared_daemon):
    path = begun(shared_daemon, call)
    shell = Shell(call.path, call.agent)
    call.ok("PUT", "/api/hot/lesson", {"text": "measure twice"})
    wait_until(lambda: BEGIN in path.read_text(), "the section is there")
    path.write_text(path.read_text() + "\nBehind it.\n")
    assert "taken out" in shell.out("workspace", "--remove-section")
    assert "--add-section" in shell.out("hot", "--rebuild")
    assert path.read_text() == f"{MINE}\n\nBehind it.\n"
    call.ok("PUT", "/api/hot/lesson", {"text": "cut once"})
    call.ok("POST", "/api/hot/rebuild")
    assert BEGIN not in path.read_text()
    assert "none" in shell.out("workspace")
    shell.run("workspace", "--add-section")
    wait_until(lambda: "cut once" in path.read_text(), "it is written again")
    assert "written by the daemon" in shell.out("workspace")


def test_an_edit_within_a_section_that_goes_is_kept_as_a_copy(call, shared_daemon):
    path = begun(shared_daemon, call)
    call.ok("PUT", "/api/hot/lesson", {"text": "measure twice"})
    wait_until(lambda: END in path.read_text(), "the section is there")
    path.write_text(path.read_text().replace("measure twice", "measure thrice"))
    Shell(call.path, call.agent).run("workspace", "--remove-section")
    [copy] = path.parent.glob("MEMORY.md.changed-*")
    assert "measure thrice" in copy.read_text()


def test_of_an_edited_section_only_what_is_new_is_imported(call, shared_daemon):
    path = begun(shared_daemon, call)
    shell = Shell(call.path, call.agent)
    call.store("The gate code is 4711", category="home/gate", pinned=True)
    for key, value in (
        ("lesson", {"text": "measure twice", "category": "craft"}),
        ("task", {"text": "paint the fence"}),
        ("event", {"text": "moved in"}),
        ("identity", {"agent_name": "Nova"}),
        ("project", {"name": "Harbour", "description": "a marina", "status": "active"}),
    ):
        call.ok("PUT", f"/api/hot/{key}", value)
    marks = ("4711", "**[craft]** measure twice", "fence", "moved in", "Nova", "marina")
    wait_until(lambda: all(mark in path.read_text() for mark in marks), "the section is there")
    edited = "**[craft]** measure twice\n- **[craft/wood]** measure thrice\n- cut"
    path.write_text(path.read_text().replace(marks[1], edited))
    call.ok("PUT", "/api/hot/identity", {"colour": "red"})
    wait_until(lambda: [*path.parent.glob("MEMORY.md.changed-*")], "it is set aside")
    [copy] = path.parent.glob("MEMORY.md.changed-*")
    assert "measure thrice" in copy.read_text()
    # What is forgotten since is not imported from it.
    assert not any(mark in copy.read_text() for mark in marks)
    # A memory that has left the page since is known too.
    key = shell.json("list")["results"][0]["id"]
    shell.run("update", key, "--no-pin")
    taken = shell.json("import", str(copy))
    assert (taken["stored"]["memory"], taken["skipped"]) == (2, {})
    listed = {(row["category"], row["text"]) for row in shell.json("list")["results"]}
    assert listed == {
        ("home/gate", "The gate code is 4711"),
        ("craft/wood", "measure thrice"),
        ("critical_lessons", "cut"),
    }
    assert shell.json("import", str(copy))["stored"] == {}


def test_uninstalling_takes_the_section_out(make_daemon, calls_of, tmp_path, monkeypatch):
    # No systemd stops this daemon, which would write it again.
    daemon = make_daemon("--set=store.state_file_check_seconds=3600").start()
    call = calls_of(daemon)
    path = begun(daemon, call)
    call.ok("PUT", "/api/hot/lesson", {"text": "measure twice"})
    wait_until(lambda: BEGIN in path.read_text(), "the section is there")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "kept"))
    (tmp_path / "kept/thermocline").mkdir(parents=True)
    shown = run(f"--socket={daemon.socket}", "uninstall", "--user", "--dry-run").stdout
    assert f"edit    {path}" in shown
    assert f"what stays: {tmp_path}/kept/thermocline\n" in shown
    assert BEGIN in path.read_text()
    run(f"--socket={daemon.socket}", "uninstall", "--user", "--yes")
    assert path.read_text() == MINE


def test_user_md_beside_it_is_found_like_it(call, shared_daemon):
    path = begun(shared_daemon, call)
    path.with_name("USER.md").write_text("# User\n\nPrefers ferries with a saloon.\n")
    found = call.ok("POST", "/api/recall", {"query": "which ferries does the user prefer?"})
    assert "USER.md" in [result.get("path") for result in found["results"]]
