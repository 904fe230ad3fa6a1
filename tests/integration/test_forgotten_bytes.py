"""Forgetting leaves no byte of a text on the disk: searched for in every file there is."""

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from agent_files import content

# Neither a word of it nor its stem is anywhere else.
WORD = "zqxvokj"
TEXT = f"We decided that the {WORD} vault in Basel opens at four"
# How long forgetting may take.
SECONDS = 60.0


def holding(*folders: Path, word: str = WORD) -> list[str]:
    """The files with the word, in any case."""
    return [
        str(path.relative_to(folder.parent))
        for folder in folders
        for path in folder.rglob("*")
        if word.encode() in content(path).lower()
    ]


def observe(call: Any, *texts: str) -> list[str]:
    turns = [{"role": "user", "text": text} for text in texts]
    body = {"conversation": "talk", "turns": turns, "wait": True, "end": True}
    call.ok("POST", "/api/observe", body)
    return [memory["id"] for memory in call.ok("GET", "/api/memory")["results"]]


def test_no_byte_of_a_forgotten_text_is_left_while_the_agent_is_in_use(
    make_daemon, calls_of, eventually
):
    daemon = make_daemon().start()
    call = calls_of(daemon)
    observe(call, TEXT, "We chose Postgres for the ledger because it is boring")
    episodes = daemon.folder() / "memory" / "episodes.jsonl"
    eventually(lambda: episodes.is_file() and WORD in episodes.read_text(), "it was summed up")
    plain = call.store(f"{TEXT} and closes at nine", subject=f"{WORD} vault", category=WORD)["id"]
    call.ok("PUT", f"/api/memory/{plain}", {"text": f"{TEXT} and closes at ten"})
    call.ok("PUT", f"/api/memory/{plain}", {"text": "nothing of it", "subject": ""})
    call.ok("PUT", f"/api/memory/{plain}", {"text": f"{TEXT} and closes at eleven"})
    call.ok("GET", f"/api/context?query={WORD}")
    stop = threading.Event()

    def use() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            call.store(f"number {number} of what goes on meanwhile")
            call.ok("POST", "/api/recall", {"query": "what goes on"})

    user = threading.Thread(target=use)
    user.start()
    try:
        for memory in call.ok("GET", "/api/memory?limit=500")["results"]:
            if WORD in memory["text"]:
                call.ok("DELETE", f"/api/memory/{memory['id']}")
        eventually(lambda: not holding(daemon.state), "no file has it", seconds=SECONDS)
    finally:
        stop.set()
        user.join()
    assert "Postgres" in episodes.read_text()


def test_nor_on_another_device_on_the_replica_or_in_the_history_of_a_file(
    make_daemon, calls_of, eventually, tmp_path
):
    replica = tmp_path / "replica"
    replica.mkdir()
    shared = f"--set=sync.url=file:{replica}/replica.db"
    one, other = (make_daemon(shared, name=name).start() for name in ("one", "other"))
    first, second = calls_of(one), calls_of(other)
    observe(first, TEXT, "We chose Postgres for the ledger because it is boring")
    files = [daemon.folder() / "memory" / "episodes.jsonl" for daemon in (one, other)]

    def meet() -> None:
        for call in (first, second) * 2:
            call.ok("POST", "/api/sync")

    def shown() -> bool:
        meet()
        return all(path.is_file() and WORD in path.read_text() for path in files)

    eventually(shown, "both devices have the episode")
    # A version of the file in the history.
    first.ok("POST", "/api/episodes", {"summary": "another day"})
    eventually(lambda: bool(versions(first)), "a version is kept")
    second.store("another thing")
    done = first.ok("POST", "/api/memory/forget", {"query": WORD})
    assert done["total"] >= 1

    def gone() -> bool:
        meet()
        return not holding(one.state, other.state, replica)

    eventually(gone, "no device and no replica has it", seconds=SECONDS)
    assert all("Postgres" in path.read_text() for path in files)
    # Nor does it come back.
    first("POST", "/api/undo", {"id": "memory/episodes.jsonl", "kind": "note"})
    meet()
    assert not holding(one.state, other.state, replica)


def versions(call: Any) -> list[Any]:
    found = call("GET", "/api/history?kind=note&id=memory/episodes.jsonl")
    return list(found.body["results"]) if found.status == 200 else []


def test_copies_that_the_daemon_keeps_of_its_own_files_lose_it_too(
    make_daemon, calls_of, eventually
):
    daemon = make_daemon().start()
    call = calls_of(daemon)
    earlier = f"The {WORD} vault in Basel is still closed"
    key = call.store(earlier, importance=1.0, pinned=True)["id"]
    call.ok("PUT", f"/api/memory/{key}", {"text": TEXT})
    folder = daemon.folder()
    daemon.stop()
    with closing(sqlite3.connect(folder / "memory.db")) as db:
        db.execute("VACUUM INTO ?", (str(folder / "memory.db.v10-20260101T000000Z"),))
    before = folder / "before-rebuild-20260101T000000Z"
    before.mkdir()
    (before / "warm-memory.json").write_text(f'[{{"text": "{TEXT}", "kept": "other things"}}]')
    copy = f"- {TEXT}\n- {earlier}\n- my own line\n"
    (folder / "MEMORY.md.changed-20260101T000000Z").write_text(copy)
    mine = folder / "memory" / "2026-01-01.md"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("a note of mine\n")
    daemon.start()
    call.ok("DELETE", f"/api/memory/{key}")
    eventually(lambda: not holding(daemon.state), "no file has it", seconds=SECONDS)
    assert "other things" in (before / "warm-memory.json").read_text()
    assert "my own line" in (folder / "MEMORY.md.changed-20260101T000000Z").read_text()
    assert mine.read_text() == "a note of mine\n"


def test_a_short_text_is_not_searched_for_elsewhere(daemon, calls_of):
    call = calls_of(daemon)
    call.ok("POST", "/api/episodes", {"summary": "Ok, we sail at noon."})
    copy = daemon.folder() / "MEMORY.md.changed-20260101T000000Z"
    copy.write_text("ok, a token of mine\n")
    turns = {"conversation": "c", "turns": [{"role": "user", "text": "ok"}]}
    call.ok("POST", "/api/turns", turns)
    (turn,) = call.ok("GET", "/api/memory")["results"]
    call.ok("DELETE", f"/api/memory/{turn['id']}")
    assert copy.read_text() == "ok, a token of mine\n"
    (episode,) = call.ok("GET", "/api/episodes")["results"]
    assert episode["summary"] == "Ok, we sail at noon."


def test_what_was_forgotten_is_gone_although_somebody_reads_for_long(daemon, calls_of, eventually):
    call = calls_of(daemon)
    key = call.store(TEXT)["id"]
    with closing(sqlite3.connect(daemon.folder() / "memory.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        call.ok("DELETE", f"/api/memory/{key}")
        began = time.monotonic()
        call.store("writes go on meanwhile")
        assert time.monotonic() - began < 30
    eventually(lambda: not holding(daemon.state), "no file has it", seconds=SECONDS)


def test_a_wish_that_is_forgotten_leaves_the_hot_state_and_its_versions(
    daemon, calls_of, eventually
):
    call = calls_of(daemon)
    observe(call, f"Please always answer me with a {WORD} joke.")
    wish = next(one for one in call.ok("GET", "/api/memory")["results"] if WORD in one["text"])
    profile = call.ok("GET", "/api/hot")["state"]["owner_profile"]
    assert WORD in str(profile["preferences"])
    more = [*profile["preferences"], "Short answers"]
    call.ok("PUT", "/api/hot/owner_profile", {"preferences": more})
    lesson = {"text": wish["text"], "category": "tea"}
    call.ok("PUT", "/api/hot/lesson", lesson)
    call.ok("DELETE", f"/api/memory/{wish['id']}")
    state = call.ok("GET", "/api/hot")["state"]
    assert state["owner_profile"]["preferences"] == ["Short answers"]
    assert not state.get("critical_lessons")
    eventually(lambda: not holding(daemon.state), "no file has it", seconds=SECONDS)


def test_only_the_text_itself_leaves_the_episodes(daemon, calls_of):
    call = calls_of(daemon)
    call.ok("POST", "/api/episodes", {"summary": f"{TEXT}. And tea."})
    kept = call.store(TEXT)["id"]
    call.ok("DELETE", f"/api/memory/{call.store('And tea at five')['id']}")
    episodes = daemon.folder() / "memory" / "episodes.jsonl"
    assert WORD in episodes.read_text()
    call.ok("DELETE", f"/api/memory/{kept}")
    assert WORD not in episodes.read_text()
    assert "And tea." in episodes.read_text()


def test_a_file_that_cannot_be_written_is_erased_later_and_forgetting_says_it_is_done(
    daemon, calls_of
):
    call = calls_of(daemon)
    call.ok("POST", "/api/episodes", {"summary": TEXT})
    key = call.store(TEXT)["id"]
    lock = daemon.folder() / "memory" / ".lock"
    lock.unlink()
    lock.mkdir()
    call.ok("DELETE", f"/api/memory/{key}")
    assert call("GET", f"/api/memory/{key}").status == 404
    assert WORD in (daemon.folder() / "memory" / "episodes.jsonl").read_text()
    lock.rmdir()
    assert daemon.stop() == 0
    assert not holding(daemon.state)
