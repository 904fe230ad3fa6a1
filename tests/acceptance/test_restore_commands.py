"""`restore` on the command line: on a bare machine, as a person and as a program use it."""

import asyncio
import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import device
import msgspec
import pytest
from daemon_process import wait_until
from machine import free_port
from shells import COMMAND, run

from thermocline.daemon.cli.main import main
from thermocline.sync import (
    Clocks,
    Device,
    FileRemote,
    Pending,
    Remote,
    Replica,
    Row,
    stamp_at,
    version_of,
)
from thermocline.sync.rows import digest


def pending(number: int) -> list[Pending]:
    """Memories as another device sends them."""
    made = []
    for place in range(number):
        data = {"text": f"Ana likes number {place}", "created_at": 1e9, "updated_at": 1e9}
        clocks = Clocks((stamp_at(1e9 + place), "d"))
        row = Row(kind="memory", id=f"m{place:03d}", data=data, clocks=clocks)
        made.append(Pending(row, version_of(row) or "", None))
    return made


async def push(remote: Remote, *agents: str, rows: Sequence[Pending] = ()) -> None:
    for agent in agents:
        replica = Replica(remote, agent)
        await replica.prepare(time.time())
        batch = await replica.batch(rows or pending(3))
        await replica.push(batch, Device("d", "d"), 0, time.time())
    await remote.close()


@pytest.fixture
def replica(tmp_path: Path) -> str:
    """The URL of a file that holds the memories of two agents."""
    asyncio.run(push(FileRemote(tmp_path / "replica.db"), "default", "other"))
    return f"file:{tmp_path / 'replica.db'}"


@pytest.fixture
def guarded(sqld_with_auth: Any) -> Any:
    """A server that asks for a token, and holds a memory."""

    async def fill() -> None:
        from thermocline.sync import turso  # noqa: PLC0415 - slow to load

        await push(await turso.connect(sqld_with_auth.url, sqld_with_auth.token()), "default")

    asyncio.run(fill())
    return sqld_with_auth


def test_a_bare_machine_gets_its_memories_back(replica, make_daemon):
    daemon = make_daemon("--set", f"sync.url={replica}")
    out, err = run("restore", "--url", replica, "--to", daemon.state)
    assert "restored  default\n" in out
    assert "compared  3 rows with the replica: no difference\n" in out
    assert out.endswith(f'add this to its config.json:\n{{"sync": {{"url": "{replica}"}}}}\n')
    assert "default: comparing the restored rows with the replica\n" in err
    with daemon.start().client() as client:
        assert client.recall("what does Ana like?").results
        assert client.sync().refused == 0
        assert sorted(agent.id for agent in client.agents().results) == ["default", "other"]
    refused = run("restore", "--url", replica, "--to", daemon.state, code=1)
    assert "stop it, restore, and start it again" in refused[1]


def test_of_many_memories_the_newest_are_found_at_once_and_the_others_soon(tmp_path, make_daemon):
    url = f"file:{tmp_path / 'replica.db'}"
    asyncio.run(push(FileRemote(tmp_path / "replica.db"), "default", rows=pending(3000)))
    daemon = make_daemon()
    out, _ = run("restore", "--url", url, "--to", daemon.state)
    assert "the daemon indexes 2,000 older memories in the background, the newest first" in out

    def texts_of(number: int) -> list[str]:
        return [each.text for each in client.recall(f"number {number}").results]

    with daemon.start().client() as client:
        assert texts_of(2999)[0] == "Ana likes number 2999"
        # The oldest are the last to be indexed: these are not yet, or while they change.
        client.forget("m000")
        client.update("m001", text="Ana likes tangerines")
    daemon.kill()
    with daemon.start().client() as client:
        wait_until(lambda: client.status().agents["default"].unindexed == 0, "all are indexed")
        assert texts_of(7)[0] == "Ana likes number 7"
        assert client.recall("tangerines").results[0].id == "m001"
        assert not {"Ana likes number 0", "Ana likes number 1"} & {*texts_of(0), *texts_of(1)}
        client.forget("m001")
        assert not client.recall("tangerines").results
        assert client.health().status == "ok"


def test_a_restored_memory_counts_its_categories_and_has_its_best_memories_warm(
    tmp_path, make_daemon
):
    made = []
    for place, each in enumerate(pending(400)):
        data = {"category": f"likes/{place % 2}", "importance": 0.9 if place % 100 == 7 else 0.2}
        data |= {"text": each.row.data["text"], "created_at": time.time(), "updated_at": 1e9}
        row = msgspec.structs.replace(each.row, data=dict(sorted(data.items())))
        made.append(Pending(row, version_of(row) or "", None))
    asyncio.run(push(FileRemote(tmp_path / "replica.db"), "default", rows=made))
    daemon = make_daemon()
    run("restore", "--url", f"file:{tmp_path / 'replica.db'}", "--to", daemon.state)
    with daemon.start().client() as client:
        tree = client.request("GET", "/api/tree", {})["tree"]
        client.store("Ben likes tea", category="likes/0")
    counts = [tree[f"likes/{place}"] for place in range(2)]
    assert [node["warm_count"] + node["cold_count"] for node in counts] == [200, 200]
    file = daemon.state / "agents/default/warm-memory.json"
    wait_until(file.exists, "the warm memories are written")
    warm = json.loads(file.read_bytes())
    best = {"m007", "m107", "m207", "m307"}
    assert best < {memory["id"] for memory in warm}
    assert len(best) < sum(node["warm_count"] for node in counts) < 400


def test_a_program_gets_one_object_of_json(replica, tmp_path):
    words = ("restore", "--url", replica, "--to", tmp_path / "state", "--agent-id", "other")
    restored = json.loads(run(*words, "--json")[0])
    [other] = restored.pop("restored")
    assert restored == {"failed": {}}
    assert (other["agent"], other["counts"]["memory"], other["rows"]) == ("other", 3, 3)
    out, err = run(*words, "--json", code=1)
    assert "--replace renames" in json.loads(out)["error"]["hint"]
    assert "error" not in err
    replaced = json.loads(run(*words, "--json", "--replace")[0])["restored"][0]
    assert Path(replaced["set_aside"]).is_dir()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.tar.gz", "--url", "file:/x"], "a FILE needs no database"),
        (["-", "--to", "/x"], "save the archive to a file first"),
        (["--verify", "--url", "file:/x"], "--verify uses the daemon's own database"),
        (["--wait", "-1"], "--wait: expected a number of seconds"),
        (["--token-file", "/x", "--auth-token", "y"], "give the token once"),
    ],
)
def test_options_that_contradict_one_another_are_refused(words, said, capsys):
    assert main(["restore", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_token_opens_the_database_and_is_not_shown(guarded, tmp_path):
    (tmp_path / "token").write_text(guarded.token(read_only=True))
    words = ("restore", "--url", guarded.url, "--to", tmp_path / "state")
    _, err = run(*words, "--auth-token", "no.such.token", code=1)
    assert "every user of this machine can see --auth-token" in err
    assert "cannot log in" in err
    assert "no.such.token" not in err.replace("--auth-token", "")
    _, err = run(*words, code=1)
    assert "make a token, and give it with --token-file\n" in err
    out, err = run(*words, "--token-file", tmp_path / "token")
    assert "memories  3" in out
    assert f'"token_file": "{tmp_path / "token"}"' in out
    assert guarded.token(read_only=True) not in out + err


def test_a_person_is_asked_for_the_token(guarded, tmp_path):
    words = [*COMMAND, "restore", "--url", guarded.url, "--to", str(tmp_path / "state")]
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        words, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        preexec_fn=lambda: take_terminal(terminal),  # noqa: PLW1509 - one call, no lock
    ) as process:  # fmt: skip
        os.close(terminal)
        said = read_until(ours, b"token of")
        os.write(ours, guarded.token().encode() + b"\n")
        said += read_until(ours, b"folder")
        assert process.wait(60) == 0, said
    assert guarded.token() not in said.decode()
    assert b"\r\x1b" not in said[:20]
    assert b"3 rows, 100 %" in said
    os.close(ours)


def take_terminal(terminal: int) -> None:
    """Make it the one that the process is run from."""
    import fcntl  # noqa: PLC0415
    import termios  # noqa: PLC0415

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def read_until(handle: int, what: bytes, seconds: float = 60.0) -> bytes:
    found, deadline = b"", time.monotonic() + seconds
    while what not in found:
        left = deadline - time.monotonic()
        assert left > 0, f"waited in vain for {what!r}: {found!r}"
        if select.select([handle], [], [], left)[0]:
            try:
                found += os.read(handle, 65_536)
            except OSError:
                raise AssertionError(f"ended before {what!r}: {found!r}") from None
    return found


def test_ctrl_c_leaves_a_restore_to_go_on_with(guarded, tmp_path):
    (tmp_path / "token").write_text(guarded.token())
    words = ["restore", "--url", guarded.url, "--to", str(tmp_path / "state")]
    words += ["--token-file", str(tmp_path / "token")]
    guarded.stop()
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline().decode() == f"asking {guarded.url}\n"
        first = process.stderr.readline().decode()
        assert first.startswith("cannot reach the remote: ")
        assert "; waiting for the replica (Ctrl-C ends it): next try in " in first
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().decode()
        assert process.wait(60) == 130
    assert rest.endswith("what was fetched is kept: repeat the command to resume\n")
    guarded.start()
    assert "memories  3" in run(*words)[0]


def test_a_person_waits_five_minutes_unless_told_otherwise(tmp_path):
    words = ["restore", "--url", f"http://127.0.0.1:{free_port()}", "--to", str(tmp_path)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words, "--auth-token", "x"], stdin=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        told = read_until(ours, b"next try").decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    os.close(ours)
    assert re.search(r"waiting for the replica, for up to (2\d\d|300) s \(Ctrl-C", told)
    told = run(*words, "--wait", "0", code=4)[1]
    assert "the replica: cannot reach the remote" in told
    assert "repeat the command when it answers" in told


def test_a_daemon_removes_the_unfinished_restore_of_a_memory_that_is_in_use(daemon):
    with daemon.client("busy") as client:
        client.store("Ana lives in Kiel")
    daemon.stop()
    agents = daemon.state / "agents"
    for agent in ("busy", "lost"):
        shutil.copytree(agents / "busy", agents / f".{agent}.restoring")
    daemon.start()
    assert sorted(path.name for path in agents.glob(".*.restoring")) == [".lost.restoring"]


def test_an_archive_is_restored_by_the_same_verb(daemon, tmp_path):
    with daemon.client() as client:
        client.store("Ana prefers tea")
    run("--socket", daemon.socket, "backup", tmp_path / "a.tar.gz")
    words = ("restore", tmp_path / "a.tar.gz", "--to", tmp_path / "state")
    out, _ = run(*words)
    assert re.search(r"^memories +1$", out, re.MULTILINE)
    assert out.endswith(f"\nnext: thermocline daemon --state-dir {tmp_path / 'state'}\n")
    assert "is not empty" in run(*words, code=1)[1]


def test_a_daemon_proves_on_demand_that_a_restore_works(make_daemon, tmp_path):
    file = tmp_path / "replica.db"
    daemon = make_daemon("--set", f"sync.url=file:{file}").start()
    verify = ("--socket", daemon.socket, "restore", "--verify")
    with daemon.client() as client:
        client.store("Ana prefers tea")
        client.store("Ben prefers coffee")
        client.sync()
        out, _ = run(*verify)
        assert out.startswith("verified ")
        with closing(sqlite3.connect(file, isolation_level=None)) as db:
            db.execute("DELETE FROM rows WHERE data LIKE '%coffee%'")
            db.execute("UPDATE rows SET data = replace(data, 'tea', 'ink') WHERE data LIKE '%tea%'")
            [(lost,), (changed,)] = [
                (one.id,)
                for text in ("coffee", "tea")
                for one in client.list().results
                if text in one.text
            ]
        out, err = run(*verify, code=1)
        assert out.startswith("NOT verified: 1 rows missing, 0 different, 0 too many")
        assert f"1 row is not on the replica: memory {lost}" in err
        assert "1 row is damaged on the replica, or unreadable" in err
        assert f"memory {changed}" in err
        [problem] = client.health().problems
        assert problem.code == "verification_failed"
        [note] = client.sync_status().notes
        assert note == f"memory {changed}: it is damaged: its digest differs; sent again from here"
        out, _ = run(*verify)
        assert out.startswith("verified ")
        assert client.health().problems == []
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM rows WHERE data LIKE '%ink%'").fetchone() == (0,)


def add(replica: str, rows: dict[str, tuple[str, str]]) -> None:
    """Put memories behind the three of the default agent: data and clocks, as JSON."""
    with closing(sqlite3.connect(replica.removeprefix("file:"), isolation_level=None)) as db:
        for place, (key, (data, clocks)) in enumerate(rows.items(), 4):
            db.execute(
                "INSERT INTO rows VALUES ('default', 'memory', ?, ?, ?, 'd', ?, ?)",
                (key, place, digest(data, clocks), data, clocks),
            )
        sql = "UPDATE replica_clock SET seq = ? WHERE agent_id = 'default'"
        db.execute(sql, (3 + len(rows),))


CLOCKS = '{"at":[1,"d"]}'


def test_rows_of_no_sense_are_left_out_alone(replica, tmp_path):
    memory = '{"text":"x","created_at":1,"updated_at":1%s}'
    add(replica, {
        "broken": ("{", CLOCKS),
        "typed": ('{"text":5}', CLOCKS),
        "deep": ("[" * 5000 + "]" * 5000, CLOCKS),
        "far": (memory % "", '{"at":[4611686018427387904,"d"]}'),
        # Only the database refuses it, when the rows beside it are there already.
        "large": (memory % f',"position":{2**63}', CLOCKS),
    })  # fmt: skip
    words = ("restore", "--url", replica, "--to", tmp_path / "state", "--agent-id", "default")
    _, err = run(*words, code=1)
    assert "cannot restore all of 'default': 5 rows are damaged on the replica" in err
    assert "memory broken, memory deep, memory far, memory large, memory typed" in err
    assert "--keep-going restores all the others" in err
    assert not (tmp_path / "state/agents/default").exists()
    out, err = run(*words, "--keep-going")
    assert "resuming after 3 rows" in err
    assert "memories      3\n" in out
    assert "NOT RESTORED  5 rows are damaged" in out


def test_what_another_release_writes_otherwise_is_the_same(replica, tmp_path):
    data = '{"created_at":1,"importance":1,"tags":["b","a"],"text":"x","updated_at":1,"new":[1]}'
    add(replica, {"m": (data, CLOCKS)})
    words = ("restore", "--url", replica, "--to", tmp_path / "state", "--agent-id", "default")
    assert "memories  4\n" in run(*words)[0]


def test_a_restored_device_is_another_device(tmp_path):
    replica = f"file:{tmp_path / 'replica.db'}"
    one = device.Device(tmp_path / "one", url=replica)
    two = device.Device(tmp_path / "two", url=replica)
    with device.ending(one, two):
        one.start()
        one.store("Ana prefers tea", tags=["drinks"])
        one.put_pair("theme", "dark")
        one.put_hot("lesson", {"text": "tie the boats"})
        one.write_note("n.md", "first\n")
        one.sync()
        archive = one.backup(tmp_path / "a.tar.gz")
        later = one.store("Ben prefers coffee")
        one.sync()
        before = one.list_all()
        name = json.loads((one.state / "device.json").read_text())["device"]
        one.stop()
        # It is set back by a file: what the replica has that is newer comes in.
        one.restore_file(archive, "--replace")
        assert json.loads((one.state / "device.json").read_text())["device"] != name
        one.start("--set", "sync.url=null")
        assert later not in one.list_all().memories
        one.stop()
        one.start()
        one.sync()
        assert one.list_all().differences(before) == []
        two.restore()
        two.start()
        two.sync()
        assert two.list_all().differences(before) == []


@pytest.mark.parametrize("is_changed", [False, True])
def test_after_a_restore_no_device_receives_everything_again(sqld, tmp_path, *, is_changed):
    one, two = (device.Device(tmp_path / name, url=sqld.url) for name in ("one", "two"))
    texts = [f"Berth {number} is kept for the ferry to Norderney" for number in range(300)]
    with device.ending(one, two):
        one.start().memory.batch([{"text": text} for text in texts])
        one.sync()
        two.restore()
        if is_changed:
            one.store("The pilot boards at six")
            one.sync()
        two.start("--set", "sync.url=null").store("The pilot has boarded")
        assert two.stop() == 0
        before, _ = sqld.cost()
        for each in (two.start(), one, two):
            each.sync()
        assert two.list_all().differences(one.list_all()) == []
        assert sqld.cost()[0] - before < len(texts)


def test_the_proof_opens_a_guarded_database(sqld_with_auth, make_daemon, tmp_path):
    token = tmp_path / "token"
    token.write_text(sqld_with_auth.token())
    token.chmod(0o600)
    sets = (f"sync.url={sqld_with_auth.url}", f"sync.token_file={token}")
    daemon = make_daemon(*(word for one in sets for word in ("--set", one))).start()
    verify = ("--socket", daemon.socket, "restore", "--verify")
    with daemon.client() as client:
        client.store("Ana prefers tea")
        client.sync()
    assert run(*verify)[0].startswith("verified ")
    assert not [*daemon.state.glob(".verify-*")]
    sqld_with_auth.stop()
    assert "cannot reach the remote" in run(*verify, code=4)[1]
    sqld_with_auth.start()
