"""`backup` and `export` on the command line, as a person and as a program use them."""

import io
import json
import os
import pty
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from shells import Shell

from thermocline.daemon.cloud.archive import read


@pytest.fixture
def shell(shared_daemon: Any, call: Any) -> Shell:
    """A shell of an agent of its own, who remembers two things."""
    call.store("Ana prefers tea", category="people/ana")
    call.ok("PUT", "/api/kv/theme", {"value": "dark"})
    return Shell(shared_daemon.socket, call.agent)


def test_a_backup_says_what_is_in_it_and_is_for_its_owner_alone(shell, call, tmp_path):
    file = tmp_path / "a.tar.gz"
    out, err = shell.run("backup", str(file))
    first, second, third = out.splitlines()
    assert first.startswith(f"{file}: ")
    assert first.endswith(f" B, agent {call.agent}")
    assert second.startswith("  memories: 1, categories: 2, pairs: 1")
    assert third.startswith("  2 files, ")
    assert err == ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]
    done = read(file)
    assert done.manifest.agent == call.agent
    told = shell.json("backup", str(tmp_path / "b.tar.gz"))
    assert told["file"] == str(tmp_path / "b.tar.gz")
    assert told["size_bytes"] == (tmp_path / "b.tar.gz").stat().st_size
    assert told["agent"] == call.agent
    assert told["counts"]["memory"] == 1
    assert told["skipped"] == []
    assert {"made_at", "files", "unpacked_bytes"} < set(told)


def test_a_file_that_is_there_is_replaced_only_by_force(shell, tmp_path):
    file = tmp_path / "a.tar.gz"
    file.write_text("precious")
    _, err = shell.run("backup", str(file), code=1)
    assert "it is there already\n  --force replaces it" in err
    assert file.read_text() == "precious"
    shell.run("backup", str(file), "--force")
    assert tarfile.is_tarfile(file)
    for other in (tmp_path / "folder", tmp_path / "link"):
        other.mkdir() if other.name == "folder" else other.symlink_to(file)
        _, err = shell.run("backup", str(other), "--force", code=1)
        assert "not a regular file" in err


def test_a_backup_goes_into_a_pipe(shell):
    done = subprocess.run(shell.words("backup", "-"), capture_output=True, timeout=120, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout), mode="r:gz") as tar:
        assert tar.getnames()[0] == "manifest.json"
        assert tar.getnames()[-1] == "checksums.json"
    assert done.stderr.endswith(b" B written\n")


def test_a_pipe_that_nobody_reads_is_no_success(shell, shared_daemon, call):
    notes = shared_daemon.folder(call.agent) / "memory"
    notes.mkdir()
    (notes / "big").write_bytes(os.urandom(2_000_000))
    with subprocess.Popen(
        shell.words("backup", "-"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == (
            b"thermocline: cannot write the result: its reader has left\n"
        )


def test_a_terminal_gets_no_archive(shell):
    terminal, other = pty.openpty()
    try:
        done = subprocess.run(
            shell.words("backup", "-"),
            stdout=other,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(other)
        os.close(terminal)
    assert done.returncode == 2
    assert b"cannot print an archive on a terminal" in done.stderr


def test_what_is_left_out_is_named(shell, shared_daemon, call, tmp_path):
    notes = shared_daemon.folder(call.agent) / "memory"
    notes.mkdir()
    for number in range(12):
        (notes / f"link{number:02d}\n").symlink_to("/etc/passwd")
    _, err = shell.run("backup", str(tmp_path / "a.tar.gz"))
    assert "left out: workspace/link00\\n (a link)" in err
    assert err.endswith("left out: 2 more\n")


def test_without_a_daemon_there_is_one_line_and_no_file(tmp_path):
    shell = Shell(tmp_path / "none.sock", "ana")
    for words in (("backup", str(tmp_path / "a")), ("backup", "-"), ("export",)):
        out, err = shell.run(*words, code=3)
        assert out == ""
        assert err.count("\n") == 1
        assert "thermocline daemon" in err
    assert not [*tmp_path.iterdir()]


def test_an_agent_that_nobody_knows_is_refused(shell, tmp_path):
    for words in (("backup", str(tmp_path / "a")), ("export", str(tmp_path / "a"))):
        _, err = shell.run(*words, "--agent-id", "nobody", code=1)
        assert "no agent is called 'nobody'" in err
    assert not [*tmp_path.iterdir()]


def test_a_place_that_cannot_be_written_is_named(shell, tmp_path):
    _, err = shell.run("backup", str(tmp_path / "none" / "a"), code=1)
    assert f"cannot write {tmp_path}/none/a: no such file or directory" in err
    _, err = shell.run("export", "/dev/full", "--force", code=1)
    assert "not a regular file" in err


def test_a_full_disk_is_a_matter_of_the_moment(shell):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            shell.words("export"), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 4
    assert b"cannot write the result: no space left on device\n  make room" in done.stderr


@pytest.mark.parametrize(("ended", "code"), [("daemon", 3), ("SIGINT", 130), ("SIGTERM", 130)])
def test_an_end_in_the_middle_leaves_no_half_backup(
    make_daemon, tmp_path, eventually, *, ended, code
):
    daemon = make_daemon().start()
    notes = daemon.folder() / "memory"
    notes.mkdir()
    for name in ("big", "bigger", "biggest"):
        (notes / name).write_bytes(os.urandom(20_000_000))
    words = Shell(daemon.socket, "default").words("backup", str(tmp_path / "a"))
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        part = tmp_path / f"a.{process.pid}.part"
        eventually(lambda: part.exists() and part.stat().st_size > 0, "the backup is on its way")
        process.send_signal(signal.SIGSTOP)
        if ended == "daemon":
            daemon.stop(signal.SIGKILL)
        else:
            process.send_signal(signal.Signals[ended])
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == code
        assert process.stderr is not None
        assert (b"did not answer" in process.stderr.read()) is (ended == "daemon")
    assert not part.exists()
    assert not (tmp_path / "a").exists()


def test_an_export_is_a_json_object_a_line(shell, tmp_path):
    out, err = shell.run("export")
    lines = [json.loads(line) for line in out.splitlines()]
    assert {line["kind"] for line in lines} == {"memory", "category", "pair"}
    [memory] = [line for line in lines if line["kind"] == "memory"]
    assert memory["data"]["text"] == "Ana prefers tea"
    assert all(line["clocks"]["at"] for line in lines)
    assert err == ""
    file = tmp_path / "all.jsonl"
    nothing, told = shell.run("export", str(file))
    assert nothing == ""
    assert told.endswith(f" B written to {file}\n")
    assert len(file.read_bytes().splitlines()) == len(lines)
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_export_on_a_terminal_obeys_no_stored_text(shell, call):
    call.store("red \x9b31m alert \u202e reversed")
    terminal, other = pty.openpty()
    try:
        subprocess.run(shell.words("export"), stdout=other, timeout=120, check=True)
        shown = b""
        while b"reversed" not in shown:
            shown += os.read(terminal, 65_536)
    finally:
        os.close(other)
        os.close(terminal)
    assert b"\\u009b31m alert \\u202e" in shown
    assert "\x9b".encode() not in shown
