"""Damage of every kind, to a copy of one memory each, all of them in one daemon.

After each, nothing that was acknowledged may be lost: what the memory itself no longer says must
stand in a file that was set aside or kept from before.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from functools import partial

import pytest

PAGE = 4096
STATE_FILES = (
    "hot-memory-state.json",
    "warm-memory.json",
    "memory-tree.json",
    "metrics.json",
    "key-values.json",
    "MEMORY.md",
)
CROWDED = ("--set", "store.max_open_agents=8", "--set", "warm.max_kb=8", "--set", "log.level=error")
SOME_AND_MANY = [4, pytest.param(60, marks=pytest.mark.crash)]


@pytest.fixture
def sweep(make_daemon, list_everything, list_broken_files):
    """`sweep(damages)` does each damage to a copy of a memory and looks for what is lost."""
    daemon = make_daemon(*CROWDED).start()
    with daemon.client("template") as client:
        client.batch(
            [
                {"text": f"fact {n}: the heron nests at pier {n}", "category": f"pier/{n % 4}"}
                for n in range(60)
            ]
        )
        for n in range(5):
            client.kv_set(f"key{n}", f"value of {n}")
        client.hot_update("identity", {"agent_name": "Otis", "owner_name": "Ada"})
        client.hot_update("lesson", {"text": "tie the boats"})
        texts = {memory["text"] for memory in list_everything(client)}
    daemon.stop()
    template = daemon.folder("template")
    assert [*template.glob("cold/*.jsonl")], "some of it is archived"
    pairs = {f"key{n}": f"value of {n}" for n in range(5)}

    def lost(agent):
        folder = daemon.folder(agent)
        with daemon.client(agent) as client:
            found = {memory["text"] for memory in list_everything(client)}
            known = {pair["key"]: pair["value"] for pair in client.kv_list()["results"]}
            identity = json.dumps(client.hot()["state"]["identity"])
            client.tree()
            client.recall("heron", reinforce=False)
            stored = client.store("a new fact")["id"]
            assert client.get(stored)["text"] == "a new fact"
        kept = "".join(
            path.read_text(errors="replace")
            for pattern in ("*.before-*", "*.corrupt-*", "before-*/*")
            for path in folder.glob(pattern)
            if ".db" not in path.name
        )
        faults = [text for text in texts - found if text not in kept]
        faults += [
            key for key, value in pairs.items() if known.get(key) != value and value not in kept
        ]
        faults += [name for name in ("Otis", "Ada") if name not in identity and name not in kept]
        return faults

    def run(damages):
        for name, damage in damages.items():
            shutil.copytree(template, daemon.folder(name))
            damage(daemon.folder(name))
            settle(daemon.folder(name))
        daemon.start()
        faults = {name: found for name in damages if (found := lost(name))}
        assert daemon.stop() == 0
        print(f"\n{len(damages)} damages, {len(faults)} of them lost something")
        assert faults == {}
        assert list_broken_files(daemon.state) == []
        assert "Traceback" not in daemon.log.read_text()
        return daemon

    run.template = template
    return run


def settle(folder):
    """Make the files an hour old: one that is being written at this moment is left alone."""
    for path in folder.glob("*.*"):
        os.utime(path, (time.time() - 3600,) * 2)


def flip(folder, *, name, at, bit):
    path = folder / name
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def cut(folder, *, name, length):
    with (folder / name).open("r+b") as file:
        file.truncate(length)


def overwrite(folder, *, name, at, content):
    with (folder / name).open("r+b") as file:
        file.seek(at)
        file.write(content)


def places(size, most):
    """At most so many offsets below `size`, evenly spread, the ends among them."""
    step = max(1, size // most)
    return sorted({*range(0, size, step), size - 1})


@pytest.mark.parametrize("most", SOME_AND_MANY)
def test_no_flipped_bit_in_a_state_file_loses_anything(sweep, most):
    chance = random.Random(22)
    damages = {}
    for number, name in enumerate(STATE_FILES):
        for at in places((sweep.template / name).stat().st_size, most):
            bit = chance.randrange(8)
            damages[f"flip-{number}-{at}"] = partial(flip, name=name, at=at, bit=bit)
    sweep(damages)


@pytest.mark.parametrize("most", SOME_AND_MANY)
def test_no_state_file_that_was_cut_short_loses_anything(sweep, most):
    damages = {}
    for number, name in enumerate(STATE_FILES):
        for length in places((sweep.template / name).stat().st_size, most):
            damages[f"cut-{number}-{length}"] = partial(cut, name=name, length=length)
    sweep(damages)


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.crash)])
def test_no_page_of_the_database_that_was_wiped_loses_anything(sweep, every):
    pages = (sweep.template / "memory.db").stat().st_size // PAGE
    noise = random.Random(23).randbytes(PAGE)
    damages = {}
    for page in range(0, pages, every):
        at = page * PAGE
        damages[f"zeros-{page}"] = partial(overwrite, name="memory.db", at=at, content=bytes(PAGE))
        damages[f"noise-{page}"] = partial(overwrite, name="memory.db", at=at, content=noise)
    daemon = sweep(damages)
    assert [*daemon.folder("zeros-0").glob("memory.db.corrupt-*")], "the old database is kept"


@pytest.mark.parametrize("most", SOME_AND_MANY)
def test_no_database_that_was_cut_short_loses_anything(sweep, most):
    size = (sweep.template / "memory.db").stat().st_size
    lengths = places(size, most)
    sweep({f"cut-{at}": partial(cut, name="memory.db", length=at) for at in lengths})


@pytest.mark.crash
def test_no_flipped_bit_in_the_structure_of_the_database_stops_the_daemon(sweep):
    """Bits in the head of each page: there the tables and indexes hang together."""
    chance = random.Random(24)
    pages = (sweep.template / "memory.db").stat().st_size // PAGE
    damages = {}
    for page in range(pages):
        for at in chance.sample(range(100 if page == 0 else 12), 4):
            flipped = partial(flip, name="memory.db", at=page * PAGE + at, bit=chance.randrange(8))
            damages[f"bit-{page}-{at}"] = flipped
    sweep(damages)
