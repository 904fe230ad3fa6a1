"""Backups and exports: over the socket, while others write, and back into a daemon."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sqlite3
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.client import AnswerLost, ApiError, Client
from thermocline.daemon.restoring.from_file import restore_file
from thermocline.daemon.store.archive import Archive, verify

STATE_FILES = {
    "MEMORY.md", "hot-memory-state.json", "key-values.json", "memory-tree.json", "metrics.json",
    "warm-memory.json",
}  # fmt: skip


def saved(client: Client, file: Path) -> Archive:
    """The agent's archive in a file, checked."""
    file.write_bytes(b"".join(client.backup()))
    return verify(file)


def names(archive: Archive) -> set[str]:
    return {entry.path for entry in archive.files}


def unpacked(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


def told(client: Client) -> list[Any]:
    """Everything that is remembered, without the scores, which fade."""
    lines = [*client.export()]
    for line in lines:
        line.pop("score", None)
        line.pop("tier", None)
    return lines


def copies(state: Path) -> list[Path]:
    """The copies of databases that stand in the state folder."""
    return [*state.glob(".backup-*")]


def fill(client: Client) -> None:
    """Something of every kind."""
    for number in range(30):
        client.store(f"fact {number} about tea", category=f"drinks/kind{number % 3}")
    older = client.store("Ana likes black tea", category="people/ana")["id"]
    newer = client.store("Ana likes black tea very much", category="people/ana")["id"]
    client.merge(older, newer)
    client.store("gone soon", expires="2030-01-01T00:00:00Z", created_at=1_700_000_000)
    forgotten = client.store("forgotten")["id"]
    client.forget(forgotten)
    client.kv_set("theme", "dark")
    client.hot_update("lesson", {"text": "Ask before paying"})
    client.hot_update("identity", {"agent_name": "Ada"})


@pytest.fixture
def client(shared_daemon: Any, call: Any) -> Iterator[Client]:
    """A client of an agent of its own."""
    with shared_daemon.client(call.agent) as client:
        yield client


def test_an_archive_unpacks_into_an_agents_folder(
    client: Client, shared_daemon: Any, call: Any, tmp_path: Path
) -> None:
    fill(client)
    notes = shared_daemon.folder(call.agent) / "memory"
    (notes / "skills").mkdir(parents=True)
    (notes / "2026-03-01.md").write_text("a day\n")
    (notes / "skills" / "tëa.md").write_text("boil water\n")
    archive = saved(client, tmp_path / "a.tar.gz")
    assert names(archive) == {
        "manifest.json", "memory.db", *STATE_FILES, "cold/000000.jsonl", "memory/2026-03-01.md",
        "memory/skills/tëa.md",
    }  # fmt: skip
    assert archive.manifest.agent == call.agent
    assert archive.manifest.device == client.status()["device"]
    assert archive.manifest.counts["memories"] == 33
    assert archive.manifest.counts["merges"] == 1
    assert archive.manifest.counts["key_values"] == 1
    assert abs(archive.manifest.made_at - time.time()) < 60
    files = unpacked(tmp_path / "a.tar.gz")
    assert [*files] == [*(entry.path for entry in archive.files), "checksums.json"]
    for entry in archive.files:
        assert hashlib.sha256(files[entry.path]).hexdigest() == entry.sha256
    assert files["memory/skills/tëa.md"] == b"boil water\n"
    assert json.loads(files["key-values.json"])["theme"]["value"] == "dark"
    assert "Ask before paying" in files["MEMORY.md"].decode()


def test_the_archive_is_that_of_cold_memories_too(client: Client, tmp_path: Path) -> None:
    client.batch([{"text": f"fact {number} " + "about tea " * 30} for number in range(400)])
    archive = saved(client, tmp_path / "a.tar.gz")
    assert {"cold/000000.jsonl", "cold/000001.jsonl"} <= names(archive)
    files = unpacked(tmp_path / "a.tar.gz")
    lines = [
        line for name in files if name.startswith("cold/") for line in files[name].split(b"\n")
    ]
    assert sum(map(bool, lines)) == archive.manifest.counts["archived"] > 100


def test_a_restored_memory_opens_as_if_nothing_had_happened(
    make_daemon: Callable[..., Any], tmp_path: Path
) -> None:
    old = make_daemon(name="old").start()
    with old.client("ana") as client:
        fill(client)
        before = told(client)
        merged = next(line["id"] for line in before if line.get("merged_into"))
        archive = saved(client, tmp_path / "a.tar.gz")
    old.stop()
    new = make_daemon(name="new")
    for _ in range(2):
        file = tmp_path / "a.tar.gz"
        restore_file(file, new.state, None, replace=True, dry_run=False, tell=print)
    new.start()
    with new.client("ana") as client:
        # The first one stands beside it, and is no agent.
        assert [agent["id"] for agent in client.agents()["results"]] == ["ana", "default"]
        assert told(client) == before
        assert client.status()["problems"] == []
        assert client.status()["device"] != archive.manifest.device
        stored = client.store("life goes on")
        client.unmerge(merged)
        assert client.get(merged)["merged_into"] is None
        assert client.recall("black tea")["results"]
    new.stop()
    assert not [*new.folder("ana").glob("*.before-*"), *new.folder("ana").glob("*.edited-*")]
    with sqlite3.connect(new.folder("ana") / "memory.db") as db:
        devices = dict(db.execute("SELECT id, device FROM memories"))
    assert devices[stored["id"]] == json.loads((new.state / "device.json").read_text())["device"]
    assert archive.manifest.device in devices.values()


def test_a_backup_under_load_is_of_one_moment(
    client: Client, shared_daemon: Any, call: Any, tmp_path: Path, eventually: Any
) -> None:
    client.store("a beginning " + "x" * 60_000)
    enough, count = threading.Event(), 0

    def write() -> None:
        nonlocal count
        with shared_daemon.client(call.agent) as other:
            while not enough.is_set():
                other.batch([{"text": f"pair {count} {side}"} for side in ("left", "right")])
                count += 1

    writing = threading.Thread(target=write)
    writing.start()
    try:
        eventually(lambda: count >= 5, "it writes")
        archives = [saved(client, tmp_path / f"{number}.tar.gz") for number in range(3)]
    finally:
        enough.set()
        writing.join()
    for number, archive in enumerate(archives):
        restored = tmp_path / str(number)
        done = restore_file(
            tmp_path / f"{number}.tar.gz", restored, None, replace=False, dry_run=False, tell=print
        )
        with sqlite3.connect(Path(done.folder) / "memory.db") as db:
            texts = {text for (text,) in db.execute("SELECT text FROM memories")}
        pairs = (len(texts) - 1) // 2
        assert len(texts) == archive.manifest.counts["memories"] == 2 * pairs + 1
        assert {f"pair {n} {side}" for n in range(pairs) for side in ("left", "right")} < texts
        files = unpacked(tmp_path / f"{number}.tar.gz")
        shown = {one["id"] for one in json.loads(files["warm-memory.json"])}
        with sqlite3.connect(Path(done.folder) / "memory.db") as db:
            warm = {
                key for (key,) in db.execute("SELECT id FROM memories WHERE archived_at IS NULL")
            }
        assert shown == warm


def test_a_hand_edit_that_nobody_has_merged_yet_is_in_the_backup(
    make_daemon: Callable[..., Any], tmp_path: Path
) -> None:
    daemon = make_daemon("--set", "store.face_check_seconds=3600").start()
    with daemon.client() as client:
        client.kv_set("theme", "dark")
        client.hot_rebuild()
        file = daemon.folder() / "key-values.json"
        deadline = time.monotonic() + 60
        while not file.exists() or "dark" not in file.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        file.write_text(file.read_text().replace("dark", "light"))
        saved(client, tmp_path / "a.tar.gz")
    found = json.loads(unpacked(tmp_path / "a.tar.gz")["key-values.json"])
    assert found["theme"]["value"] == "light"


def test_what_is_no_file_is_named_and_not_followed(
    client: Client, shared_daemon: Any, call: Any, tmp_path: Path
) -> None:
    client.store("x")
    notes = shared_daemon.folder(call.agent) / "memory"
    notes.mkdir()
    (notes / "link.md").symlink_to("/etc/passwd")
    os.mkfifo(notes / "pipe")
    archive = saved(client, tmp_path / "a.tar.gz")
    assert {one.path: one.why for one in archive.skipped} == {
        "memory/link.md": "a link",
        "memory/pipe": "neither a file nor a folder",
    }
    assert not [name for name in names(archive) if name.startswith("memory/")]


def test_a_workspace_elsewhere_is_in_the_archive(
    make_daemon: Callable[..., Any], tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "2026-03-01.md").write_text("elsewhere")
    (workspace / "private.txt").write_text("not of the memory")
    daemon = make_daemon("--set", f'agents.default={{"workspace": "{workspace}"}}')
    own = daemon.folder() / "memory"
    own.mkdir(parents=True)
    (own / "2026-03-01.md").write_text("in the folder")
    daemon.start()
    with daemon.client() as client:
        client.hot_update("lesson", {"text": "Ask before paying"})
        archive = saved(client, tmp_path / "a.tar.gz")
    files = unpacked(tmp_path / "a.tar.gz")
    assert files["memory/2026-03-01.md"] == b"elsewhere"
    assert files["memory-unused/2026-03-01.md"] == b"in the folder"
    assert b"Ask before paying" in files["MEMORY.md"]
    assert "private.txt" not in "".join(files)
    assert archive.manifest.workspace == str(workspace)


def test_a_caller_that_leaves_ends_its_backup(
    make_daemon: Callable[..., Any], eventually: Any
) -> None:
    daemon = make_daemon().start()
    notes = daemon.folder() / "memory"
    notes.mkdir()
    (notes / "big").write_bytes(os.urandom(20_000_000))
    with daemon.client() as client:
        coming = client.backup()
        next(coming)
        assert copies(daemon.state)
        coming.close()  # type: ignore[attr-defined]
        eventually(lambda: not copies(daemon.state), "the copy of the database goes")
        client.store("life goes on")
        stopping = client.backup()
        next(stopping)
        assert daemon.stop() == 0
        with pytest.raises(AnswerLost):
            b"".join(stopping)
    assert not copies(daemon.state)
    assert "Traceback" not in daemon.log.read_text()


def test_a_copy_that_a_killed_daemon_left_goes_with_the_next_start(
    make_daemon: Callable[..., Any],
) -> None:
    daemon = make_daemon().start()
    notes = daemon.folder() / "memory"
    notes.mkdir()
    (notes / "big").write_bytes(os.urandom(20_000_000))
    with daemon.client() as client:
        coming = client.backup()
        next(coming)
        daemon.stop(signal.SIGKILL)
        with pytest.raises(AnswerLost):
            b"".join(coming)
    assert copies(daemon.state)
    daemon.start()
    assert not copies(daemon.state)


def test_only_an_admin_takes_a_backup_and_a_reader_an_export(shared_daemon: Any) -> None:
    with shared_daemon.client() as client:
        described = client.request("GET", "/api/openapi.json")["paths"]
    assert "`admin`" in described["/api/backup"]["get"]["description"]
    assert "`read`" in described["/api/export"]["get"]["description"]


@pytest.mark.parametrize("path", ["/api/backup", "/api/export"])
def test_an_agent_that_nobody_knows_has_no_backup(call: Any, path: str) -> None:
    for method in ("GET", "HEAD"):
        assert call(method, path).status == 404
    assert call("GET", path).refusal()[:2] == (404, "not_found")
    assert call("GET", f"{path}?depth=1").refusal()[:2] == (400, "invalid")
    call.store("x")
    answered = call("HEAD", path)
    assert (answered.status, answered.text) == (200, "")


def test_an_export_has_everything_in_lines(client: Client) -> None:
    fill(client)
    lines = [*client.export()]
    kinds = [line["kind"] for line in lines]
    assert kinds == sorted(kinds, key=["memory", "hot", "category", "key_value", "merge"].index)
    assert kinds.count("memory") == 33
    assert {"memory", "hot", "category", "key_value", "merge"} == set(kinds)
    one = next(line for line in lines if line.get("text") == "Ana likes black tea very much")
    shown = client.get(one["id"])
    assert {key: one[key] for key in shown if key != "score"} == {
        key: value for key, value in shown.items() if key != "score"
    }
    assert set(one) == {"kind", *shown}
    merge = next(line for line in lines if line["kind"] == "merge")
    assert merge["kept"] == one["id"]
    retired = next(line for line in lines if line.get("id") == merge["retired"])
    assert retired["merged_into"] == one["id"]
    assert next(line for line in lines if line["kind"] == "key_value")["value"] == "dark"
    hot = next(line for line in lines if line["kind"] == "hot")
    assert hot["state"] == client.hot()["state"]
    paths = {line["path"] for line in lines if line["kind"] == "category"}
    assert paths == set(client.tree()["tree"]) - {"root", "_schema_version"}


def test_an_expired_memory_is_in_the_export(client: Client) -> None:
    moment = time.time() + 1.5
    key = client.store("gone", expires=moment)["id"]
    exported = [line.get("id") for line in client.export()]
    while time.time() <= moment:
        pass
    with pytest.raises(ApiError):
        client.get(key)
    assert exported[0] == key


def test_an_export_of_many_pages_has_each_memory_once(client: Client) -> None:
    for start in range(0, 1_200, 400):
        client.batch([{"text": f"fact {start + number}"} for number in range(400)])
    for number in range(12):
        client.store(f"long {number} " + "x" * 60_000)
    for number in range(520):
        client.kv_set(f"key{number:04d}", "v")
    lines = [*client.export()]
    memories = [line["text"] for line in lines if line["kind"] == "memory"]
    assert len(memories) == len(set(memories)) == 1_212
    pairs = [line["key"] for line in lines if line["kind"] == "key_value"]
    assert pairs == [f"key{number:04d}" for number in range(520)]


def test_an_archive_of_another_tool_reads_ours(client: Client, tmp_path: Path) -> None:
    client.store("x")
    data = b"".join(client.backup())
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        tar.extractall(tmp_path / "out", filter="data")
    db = sqlite3.connect(tmp_path / "out" / "memory.db")
    assert db.execute("SELECT text FROM memories").fetchall() == [("x",)]
    db.close()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "manifest.json", "checksums.json", "memory.db", *STATE_FILES,
    }  # fmt: skip
