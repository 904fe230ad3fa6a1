"""`thermocline doctor`: each thing is made wrong on purpose, and found with its fix."""

import fcntl
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from daemon_process import PROGRAM, Daemon
from static_model import write

from thermocline.daemon.client import Client
from thermocline.daemon.doctor import CHECKS, device, examine, remote
from thermocline.daemon.doctor.context import UNIT, CheckResult, DeviceContext, begin
from thermocline.daemon.llm import encoder
from thermocline.daemon.schemas.status import Problem


class Patient:
    """A device whose files are all below one folder.

    Attributes:
        root: in place of `/`.
        state: the state folder.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "root", folder / "d" / "state"
        self.socket = folder / "d" / "t.sock"
        self.env = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
        self.write("proc/sys/fs/inotify/max_user_watches", "100000")
        self.write("proc/sys/fs/inotify/max_user_instances", "128")
        self.state.mkdir(parents=True, mode=0o700)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def configure(self, **sections: Any) -> None:
        self.write("etc/thermocline/config.json", json.dumps(sections))

    def exam(self, **changes: Any) -> DeviceContext:
        with Client(str(self.socket), timeout=60.0) as client:
            found = begin(self.env, client, str(self.state), self.root)
        return msgspec.structs.replace(found, **changes)

    def says(self, check: str, **changes: Any) -> list[CheckResult]:
        """What the check finds."""
        assert check in CHECKS
        return [line for line in examine(self.exam(**changes)) if line.check == check]


def expect(lines: list[CheckResult], level: str, message: str, fix: str) -> None:
    """There is one finding, with these words."""
    (line,) = lines
    assert line.level == level
    assert message in line.message
    assert fix in line.fix


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the memories of two agents, at rest."""
    daemon = Daemon(tmp_path_factory.mktemp("stored")).start()
    for agent in ("default", "ana"):
        with daemon.client(agent) as client:
            client.store("the gate code is 4711")
    assert daemon.stop() == 0
    return daemon.state


@pytest.fixture
def full(patient: Patient, stored: Path) -> Patient:
    """A patient with memories."""
    shutil.copytree(stored, patient.state, dirs_exist_ok=True)
    return patient


def contents(folder: Path) -> dict[str, tuple[bytes, float]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_device_at_rest_has_no_fault_but_the_missing_daemon_and_nothing_is_changed(full):
    before = contents(full.state)
    lines = [*examine(full.exam())]
    assert {line.check for line in lines} == {*CHECKS} - {"daemon"}
    assert [line.check for line in lines if line.level == "failure"] == ["socket"]
    (sound,) = (line for line in lines if line.check == "integrity")
    assert sound.message == "2 sound"
    assert contents(full.state) == before


def test_beside_a_running_daemon_everything_is_looked_at_and_goes_on(full, make_daemon):
    daemon = make_daemon()
    assert daemon.state == full.state
    daemon.start()
    full.write("proc/locks", Path("/proc/locks").read_text())
    with daemon.client() as client:
        client.store("not yet in the database file, but in its log")
        lines = [*examine(full.exam())]
        assert [line for line in lines if line.level == "failure"] == []
        assert {line.check for line in lines} == {*CHECKS}
        told = {line.check: line.message for line in lines}
        assert "a daemon answers" in told["socket"]
        assert told["lock"] == f"held by the daemon, process {daemon.process.pid}"  # type: ignore[union-attr]
        assert told["integrity"] == "2 sound"
        client.store("still possible")


def test_errors_of_the_configuration_and_a_unit_whose_command_is_gone(patient):
    patient.write(UNIT, "[Service]\nExecStart=/opt/gone/bin/thermocline daemon\n")
    expect(patient.says("systemd"), "failure", "/opt/gone/bin/thermocline", "thermocline install")
    patient.configure(warm={"max_kb": "many"})
    expect(patient.says("configuration"), "failure", "warm.max_kb", "config --check")
    assert patient.says("replica") == [], "which one is not known"


def test_a_full_disk_and_a_file_system_that_is_of_no_use(patient, monkeypatch):
    for kind, level, message in (
        ("tmpfs", "warning", "lost at shutdown"), ("nfs4", "failure", "cannot lock safely"),
    ):  # fmt: skip
        mounts = f"/dev/sda / ext4 rw 0 0\nx {patient.state.resolve()} {kind} rw 0 0\n"
        patient.write("proc/mounts", mounts)
        expect(patient.says("disk"), level, message, "--state-dir")
    patient.write("proc/mounts", "/dev/sda / ext4 rw 0 0\n")
    real = os.statvfs(patient.state)

    def full(**changes: int) -> Callable[[object], object]:
        names = [name for name in dir(real) if name.startswith("f_")]
        values = {**{name: getattr(real, name) for name in names}, **changes}
        return lambda _: type("Found", (), values)

    size = real.f_frsize
    for free, level in ((100_000_000, "warning"), (1_000_000, "failure")):
        monkeypatch.setattr(os, "statvfs", full(f_bavail=free // size, f_favail=99_999))
        expect(patient.says("disk"), level, "GB are free", "make room")
    monkeypatch.setattr(os, "statvfs", full(f_bavail=10**9, f_files=5_000, f_favail=10))
    expect(patient.says("disk"), "failure", "only 10 more files", "make room")


def test_a_clock_that_is_wrong_or_was_set_back(full):
    expect(full.says("clock", now=86_400.0), "failure", "the year 1970", "set-ntp")
    behind = full.says("clock", now=time.time() - 7_200)
    expect(behind, "warning", "2 h behind the newest change", "it was ahead when that was stored")
    assert full.says("clock")[0].level == "ok"


def test_memories_that_others_can_enter_or_the_daemon_cannot_write_or_open(full, monkeypatch):
    full.state.chmod(0o755)
    expect(full.says("permissions"), "warning", "mode 755", "chmod 700")
    full.state.chmod(0o700)
    if os.getuid() == 0:
        database = full.state / "agents" / "ana" / "memory.db"
        os.chown(database, 12_345, -1)
        expect(full.says("permissions"), "failure", "ana/memory.db", "chown -R root:")
        os.chown(database, 0, -1)
    # Root may read everything. What cannot be opened is not called damaged.
    for name in ("memory.db", "memory.db-wal"):
        (full.state / "agents" / "ana" / name).touch()
        monkeypatch.setattr(os, "access", lambda path, _, name=name: Path(path).name != name)
        expect(full.says("permissions"), "failure", f"ana/{name}", "chmod -R u+rwX")
        expect(full.says("integrity"), "warning", f"ana/{name}: permission denied", "sudo")


def test_a_service_that_fails(patient, tmp_path, monkeypatch):
    patient.write(UNIT, "[Service]\nExecStart=/bin/thermocline daemon\n")
    patient.write("bin/thermocline", "").chmod(0o755)
    patient.write("run/systemd/system/x", "")
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    for told, level, message, fix in (
        ("ActiveState=failed\nResult=watchdog\nNRestarts=9", "failure", "watchdog", "reset-failed"),
        ("ActiveState=active\nResult=success\nNRestarts=2", "warning", "2 times", "journalctl"),
        ("ActiveState=active\nResult=success\nNRestarts=0", "ok", "active", ""),
    ):
        systemctl.write_text(f"#!/bin/sh\necho '{told}'\n")
        systemctl.chmod(0o755)
        expect(patient.says("systemd"), level, message, fix)


def test_a_state_folder_that_a_process_holds_without_answering(patient):
    patient.write("proc/locks", Path("/proc/locks").read_text())
    elsewhere = patient.state / "elsewhere.sock"
    with (patient.state / "lock").open("a+") as held:
        held.write(json.dumps({"pid": 1, "socket": str(elsewhere), "since": 1}))
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        patient.write("proc/locks", Path("/proc/locks").read_text())
        removed = patient.says("lock")
        elsewhere.touch()
        found = patient.says("lock")
    expect(removed, "failure", str(elsewhere), f"end it with `kill {os.getpid()}`, and start it")
    expect(found, "failure", f"process {os.getpid()} ", "use its socket")
    patient.write("proc/locks", Path("/proc/locks").read_text())
    assert patient.says("lock")[0].message == "free"


def test_a_process_that_listens_and_does_not_answer_and_a_socket_that_it_left(patient):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        bound.bind(str(patient.socket))
        bound.listen()
        with Client(str(patient.socket), timeout=0.1) as client:
            found = begin(patient.env, client, str(patient.state), patient.root)
        lines = [line for line in examine(found) if line.check == "socket"]
        expect(lines, "failure", "does not answer", "systemctl status")
    expect(patient.says("socket"), "failure", "a killed daemon left it behind", "start it")


def test_no_daemon_and_a_file_in_its_sockets_place(patient):
    expect(patient.says("socket"), "failure", "does not exist", "`thermocline daemon`")
    unit = patient.write(UNIT, "[Service]\n")
    expect(patient.says("socket"), "failure", "does not exist", "sudo systemctl start thermocline")
    unit.unlink()
    patient.socket.write_text("")
    expect(patient.says("socket"), "failure", "is not a socket", "move it away")
    patient.socket = patient.socket.with_name("s" * 120)
    expect(patient.says("socket"), "failure", "longer than", "--socket")


def test_what_the_daemon_itself_reports(patient, make_daemon):
    make_daemon().start()
    exam = patient.exam()
    assert exam.status is not None
    problem = Problem("full", "no room", "make room", since=0.0, lasting=True)
    status = msgspec.structs.replace(exam.status, problems=[problem], version="0.0.1")
    reported, older = patient.says("daemon", status=status)
    assert (reported.level, reported.message, reported.fix) == (
        "failure",
        "no room",
        "make room",
    )
    assert "0.0.1" in older.message
    assert "restart" in older.fix


def test_a_database_that_is_damaged_or_of_a_later_release(full):
    path = full.state / "agents" / "ana" / "memory.db"
    sound = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9999")
    expect(full.says("integrity"), "failure", "a later release wrote", "install that release")
    for start in (0, 4096):
        path.write_bytes(sound[:start] + b"\xa5" * 4096 + sound[start + 4096 :])
        expect(full.says("integrity"), "failure", "'ana' is damaged", "restore --agent-id ana")


def test_files_that_were_set_aside(full):
    folder = full.state / "agents" / "default"
    (folder / "memory.db.corrupt-20260211T081500").write_bytes(b"x" * 2_000_000)
    (full.state / "agents" / "ana.before-restore-20260211T081500").mkdir()
    found = full.says("set aside")
    expect(found, "warning", "2 set aside (2.0 MB)", "delete")
    assert "memory.db.corrupt-" in found[0].message


def test_more_folders_than_the_kernel_lets_watch(patient, tmp_path):
    many = tmp_path / "many"
    for number in range(20):
        (many / str(number)).mkdir(parents=True)
    patient.configure(agents={"default": {"paths": [str(many)]}})
    assert patient.says("inotify")[0].message == "21 folders to watch, 100,000 allowed"
    patient.write("proc/sys/fs/inotify/max_user_watches", "10")
    expect(patient.says("inotify"), "warning", "the kernel allows 10", "max_user_watches=65536")
    patient.write("proc/sys/fs/inotify/max_user_watches", "100000")
    patient.write("proc/sys/fs/inotify/max_user_instances", "1")
    expect(patient.says("inotify"), "warning", "only 1 watchers", "max_user_instances")


def test_watched_files_that_are_gone_or_hidden_by_the_sandbox(patient, tmp_path, monkeypatch):
    patient.configure(agents={"default": {"paths": [str(tmp_path / "gone")]}})
    expect(patient.says("watched files"), "warning", "is not there", "index remove")
    patient.write(UNIT, "[Service]\nExecStart=/bin/true daemon\n")
    monkeypatch.setattr(Path, "exists", lambda _: True)
    patient.configure(agents={"default": {"paths": ["/home/ada/notes"]}})
    expect(patient.says("watched files"), "warning", "hides /home/ada/notes", "watch-home.conf")
    patient.write(f"{UNIT}.d/home.conf", "[Service]\nBindReadOnlyPaths=/home/ada/notes\n")
    assert patient.says("watched files")[0].level == "ok"


def test_a_token_that_is_missing_open_or_unreadable(patient, tmp_path):
    token = tmp_path / "token"
    sync = {"url": "http://127.0.0.1:1", "token_file": str(token)}
    patient.configure(sync=sync)
    expect(patient.says("token"), "failure", "cannot read the token", "name another file")
    token.write_text("two words")
    expect(patient.says("token"), "failure", "expected a token", "put the token alone")
    token.write_text("a-token")
    token.chmod(0o600)
    assert patient.says("token")[0].level == "ok"
    assert "a-token" not in str([*examine(patient.exam())])
    patient.configure(sync={"url": "http://127.0.0.1:1"})
    expect(patient.says("token"), "warning", "no token for", "sync.token_file")


def test_a_token_is_needed_where_it_is_asked_for_and_looked_up_where_systemd_puts_it(
    patient, sqld, sqld_with_auth
):
    patient.configure(sync={"url": sqld.url})
    expect(patient.says("token"), "ok", f"{sqld.url} asks for none", "")
    patient.configure(sync={"url": sqld_with_auth.url})
    expect(patient.says("token"), "warning", "no token for", "sync.token_file")
    patient.state = patient.root / "var/lib/thermocline"
    patient.state.mkdir(parents=True, mode=0o700)
    token = patient.write("run/credentials/thermocline.service/turso-token", "a-token")
    token.chmod(0o600)
    expect(patient.says("token"), "ok", str(token), "")


def test_a_replica_that_cannot_be_reached(patient, tmp_path, monkeypatch):
    expect(patient.says("replica"), "warning", "only copy", "sync.url")
    patient.configure(cold={"backend": "none"}, sync={"url": "http://127.0.0.1:1"})
    expect(patient.says("replica"), "warning", "only copy", "cold.backend")
    patient.configure(sync={"url": "http://127.0.0.1:1"})
    (found,) = patient.says("replica")
    assert found.level in ("warning", "failure")
    assert found.fix
    patient.configure(sync={"url": f"file:{tmp_path}/unplugged/replica.db"})
    expect(patient.says("replica"), "failure", "unplugged is not there", "attach or mount")
    patient.configure(sync={"url": f"file:{tmp_path}/replica.db"})
    expect(patient.says("replica"), "warning", "the same disk as the memory", "the other disk")
    assert not (tmp_path / "replica.db").exists()
    real = os.stat

    def mounted(path: Any, **options: Any) -> os.stat_result:
        found = real(path, **options)
        is_folder = isinstance(path, Path) and path == tmp_path
        return os.stat_result((*found[:2], found.st_dev + is_folder, *found[3:10]))

    monkeypatch.setattr(os, "stat", mounted)
    assert patient.says("replica")[0].level == "ok"


def test_a_clock_that_differs_from_the_replicas(patient, sqld, monkeypatch):
    patient.configure(sync={"url": sqld.url})
    assert "its clock agrees" in patient.says("replica")[0].message
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 4_000)
    expect(patient.says("replica"), "warning", "behind the replica's", "set-ntp")


def test_a_model_that_cannot_be_called(patient, tmp_path, monkeypatch):
    assert "everything goes by rules" in patient.says("model")[0].message
    keys = tmp_path / "keys"
    llm = {"model": "openai/x", "api_base": "http://127.0.0.1:1/v1", "key_file": str(keys)}
    patient.configure(llm=llm)
    keys.write_text("sk-a-key")
    keys.chmod(0o600)
    monkeypatch.setattr(remote, "find_spec", lambda _: object())
    expect(patient.says("model"), "warning", "cannot be reached", "the rules are used")
    monkeypatch.setattr(remote, "find_spec", lambda _: None)
    assert "litellm is not installed" in patient.says("model")[0].message
    keys.unlink()
    assert "models' keys" in patient.says("model")[1].message


def test_a_static_encoder_that_is_not_there(patient, tmp_path, monkeypatch):
    assert patient.says("encoder")[0].level == "ok"
    patient.configure(llm={"models": {"embed": [f"static:{tmp_path}"]}})
    assert patient.says("model")[0].level == "ok"
    missing = patient.says("encoder")
    assert [line.level for line in missing] == ["failure", "failure"]
    assert f"{tmp_path}/tokenizer.json is not there" in missing[0].message
    write(tmp_path)
    assert patient.says("encoder")[0].level == "ok"
    monkeypatch.setattr(encoder, "find_spec", lambda _: None)
    expect(patient.says("encoder"), "failure", "not installed: numpy, tokenizers", "encoder")


def test_a_sqlite_without_full_text_search(patient, monkeypatch):
    monkeypatch.setattr(device, "_OLDEST_SQLITE", (99, 0, 0))
    expect(patient.says("sqlite"), "failure", "is too old", "3.37")

    def without(*_: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(sqlite3, "connect", without)
    assert "FTS5" in patient.says("sqlite")[-1].message


def test_a_check_that_cannot_be_made_hides_no_other(patient, monkeypatch):
    for error, message, fix in (
        (PermissionError(13, "Permission denied", "/x"), "look at /x: permission denied", "sudo"),
        (KeyError("x"), "the check itself failed: KeyError", "report it"),
    ):

        def fail(_: DeviceContext, error: Exception = error) -> Iterator[Any]:
            raise error

        monkeypatch.setitem(CHECKS, "disk", fail)
        expect(patient.says("disk"), "warning", message, fix)
        assert patient.says("clock")[0].level == "ok"


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *PROGRAM, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_shows_remedies_and_its_code_says_whether_something_failed(make_daemon):
    daemon = make_daemon().start()
    well = doctor("--socket", str(daemon.socket), "doctor")
    assert well.returncode == 0, well.stdout
    assert f"ok       socket: a daemon answers at {daemon.socket}" in well.stdout
    daemon.stop(signal.SIGKILL)
    words = ("--socket", str(daemon.socket), "doctor", "--state-dir", str(daemon.state))
    failed = doctor(*words)
    assert failed.returncode == 1
    assert "FAILURE  socket: no daemon answers" in failed.stdout
    told = json.loads(doctor(*words, "--json").stdout)
    assert told["ok"] is False
    (found,) = (each for each in told["findings"] if each["check"] == "socket")
    assert found["level"] == "failure"
    assert found["fix"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_the_code_says_that_something_failed_though_the_reader_has_left(tmp_path, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, *PROGRAM, "--socket", str(tmp_path / "none.sock"), "doctor"]
    command += ["--state-dir", str(tmp_path)]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with os.fdopen(writer, "w") as nobody:
        done = subprocess.run(command, stdout=nobody, stderr=subprocess.PIPE, env=env, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
