"""Power loss: what was acknowledged had been forced to the disk, and files are replaced whole.

No test can cut the power. What can be seen is what the daemon asks of the kernel, and in which
order: the answer to a store must come after the log was written and synced, and a state file may
take its name only after its content was synced, and the note in the log of what it says.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

CALLS = (
    "openat,write,pwrite64,fsync,fdatasync,syncfs,rename,renameat,renameat2,sendto,sendmsg,close"
)
LINE = re.compile(r"^(?P<pid>\d+) +(?P<call>\w+)\((?P<args>.*)\) += (?P<result>-?\d+)")
ACKNOWLEDGED = "HTTP/1.1 201"


@pytest.fixture
def traced(daemon, tmp_path):
    """`traced(work)` runs `work` while every call of the daemon to the kernel is written down."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"

    def run(work):
        command = ["strace", "-f", "-y", "-s", "5000", "-e", f"trace={CALLS}", "-o", str(trace)]
        tracer = subprocess.Popen(
            [*command, "-p", str(daemon.process.pid)], stderr=subprocess.PIPE, text=True
        )
        said = tracer.stderr.readline()
        if "attached" not in said:
            tracer.wait(60)
            pytest.skip(f"strace may not attach here: {said.strip()}")
        work()
        daemon.stop()
        tracer.communicate(timeout=60)
        return whole_calls(trace.read_text(errors="replace").splitlines())

    return run


def whole_calls(lines):
    """The calls by the time of their end; those that carry an answer by that of their beginning."""
    begun: dict[str, str] = {}
    calls = []
    for line in lines:
        pid = line.partition(" ")[0]
        if line.endswith("<unfinished ...>"):
            begun[pid] = line.removesuffix("<unfinished ...>").rstrip()
            if ACKNOWLEDGED in line:
                calls.append(("answer", begun.pop(pid)))
            continue
        resumed = re.match(r"^\d+ +<\.\.\. \w+ resumed>(.*)$", line)
        found = LINE.match(begun.pop(pid, "") + resumed.group(1) if resumed else line)
        if found:
            calls.append((found["call"], found["args"]))
    return calls


def is_sync_of(call, args, name):
    return call in {"fsync", "fdatasync"} and args.endswith(f"{name}>")


def test_each_acknowledged_store_was_synced_between_its_writing_and_its_answer(daemon, traced):
    facts = [f"<heron {n}>" for n in range(50)]

    def store():
        with daemon.client() as client:
            for fact in facts:
                client.store(fact)

    written: set[str] = set()
    synced: set[str] = set()
    unanswered = iter(facts)
    for call, args in traced(store):
        if call in {"write", "pwrite64"} and "memory.db-wal>" in args:
            written |= {fact for fact in facts if fact in args}
        elif is_sync_of(call, args, "memory.db-wal"):
            synced |= written
        elif ACKNOWLEDGED in args:
            fact = next(unanswered)
            assert fact in synced, f"the answer about {fact} came before the log was synced"
    assert [*unanswered] == []


def test_a_state_file_takes_its_name_after_its_content_and_the_note_of_it_were_synced(
    daemon, traced, eventually
):
    def change():
        with daemon.client() as client:
            for n in range(3):
                client.store(f"fact {n}", importance=0.9)
                eventually(lambda: not client.status().agents["default"].faces_pending, "written")

    unsynced: set[str] = set()
    renamed = []
    for call, args in traced(change):
        path = args.partition("<")[2].rpartition(">")[0]
        if call == "syncfs":
            unsynced.clear()
        elif call in {"fsync", "fdatasync"}:
            unsynced.discard(path)
        elif call in {"write", "pwrite64"} and path.endswith((".tmp", "memory.db-wal")):
            unsynced.add(path)
        elif call.startswith("rename"):
            old, new = re.findall(r'"([^"]+)"', args)
            if old.endswith(".tmp"):
                assert unsynced == set(), f"{new} took its name before all of it was synced"
                renamed.append(new)
    assert len(renamed) >= 10
    assert {"warm-memory.json", "MEMORY.md"} <= {name.rpartition("/")[2] for name in renamed}
