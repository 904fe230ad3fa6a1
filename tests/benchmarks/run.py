"""Measures a real daemon over its real socket and prints one table. Nothing asserts a time.

`python tests/benchmarks/run.py --only recall,memory --sizes 10000`

With `--against PYTHON`, the interpreter of another release's checkout (`OTHER/.venv/bin/python`),
both load the same memories and answer the same queries in turns, and the ratios are printed.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import cli
import context
import distilling
import flood
import idle
import index
import memory
import nearness
import recall
import replicating
import restoring
import startup
import store
import table
import wear
from measuring import Row
from running import Running

NOUNS = (
    *("store", "cli", "startup", "recall", "distil", "memory", "idle", "wear", "restore"),
    *("replicate", "context", "index", "flood", "vectors"),
)

# What is measured beside so many memories.
_SIZED = {"startup", "recall", "distil", "memory", "idle", "wear", "context", "vectors"}


def main() -> None:
    """Measure what was asked for; each row is shown as soon as it is known."""
    options = _options()
    only = set(options.only.split(","))
    if unknown := only - set(NOUNS):
        raise SystemExit(f"cannot measure {', '.join(sorted(unknown))}; there are {NOUNS}")
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="thermocline-bench-", dir=options.folder) as folder:
        rows = (
            _pairs(Path(folder), options.against, sizes)
            if options.against
            else _measured(Path(folder), only, sizes, options.idle_seconds)
        )
        if options.json:
            print(json.dumps([asdict(row) | {"verdict": row.verdict} for row in rows], indent=2))
        else:
            table.show(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(NOUNS), help="some of: %(default)s")
    parser.add_argument("--sizes", default="10000,100000", help="numbers of memories")
    parser.add_argument("--against", metavar="PYTHON", help="another release's interpreter")
    parser.add_argument("--json", action="store_true", help="print JSON, at the end")
    parser.add_argument("--idle-seconds", type=float, default=30.0, help="how long to watch")
    # /tmp is in RAM on many machines; what is durable has to be measured on a disk.
    parser.add_argument("--folder", default="/var/tmp", help="where to make the state folder")
    return parser.parse_args()


def _pairs(folder: Path, python: str, sizes: list[int]) -> Iterator[Row]:
    for size in sizes:
        with (
            Running(folder / f"own {size}") as daemon,
            Running(folder / f"other {size}", python=python) as other,
        ):
            for row in recall.pairs(daemon, other, size):
                yield row.of(size)


def _measured(folder: Path, only: set[str], sizes: list[int], idle_seconds: float) -> Iterator[Row]:
    yield from _small(folder, only)
    if "replicate" in only:
        yield from replicating.replicate(folder / "replicate")
    if "flood" in only:
        yield from flood.flood(folder / "flood")
    if "index" in only:
        yield from index.index(folder / "index")
    for size in sizes if "restore" in only else ():
        for row in restoring.restore(folder / f"restore {size}", size):
            yield row.of(size)
    for size in sizes if "vectors" in only else ():
        for row in nearness.nearness(folder / f"vectors {size}", size):
            yield row.of(size)
    for size in sizes if only & _SIZED else ():
        for row in _sized(folder / str(size), only, size, idle_seconds):
            yield row.of(size)


def _small(folder: Path, only: set[str]) -> Iterator[Row]:
    """What does not depend on how much is stored."""
    if "startup" in only:
        yield from startup.startup(folder / "empty", filled=False, times=7)
    if only & {"store", "cli"}:
        with Running(folder / "small") as daemon:
            if "store" in only:
                yield from store.single(daemon)
                yield from store.together(daemon)
            if "cli" in only:
                yield from cli.commands(daemon)
    if "recall" in only:
        with Running(folder / "crowded") as daemon:
            yield from recall.recall_crowded(daemon)


def _sized(folder: Path, only: set[str], size: int, idle_seconds: float) -> Iterator[Row]:
    """What does, over one folder that is filled once."""
    with Running(folder) as daemon:
        yield from store.in_batches(daemon, size)
        if "memory" in only:
            yield from memory.resident(daemon, size, "after loading")
    if "vectors" in only:
        yield from nearness.beside_words(folder, folder / "state" / "agents" / "default")
    yield from _reopened(folder, only, size, idle_seconds)


def _reopened(folder: Path, only: set[str], size: int, idle_seconds: float) -> Iterator[Row]:
    """What is measured once the daemon has been started again."""
    if "startup" in only:
        yield from startup.startup(folder, filled=True, times=5)
    if "memory" in only:
        yield from memory.after_restart(folder, size)
    with Running(folder) as daemon:
        daemon.settle()
        if "recall" in only:
            yield from recall.recall(daemon, size)
            yield from recall.read(daemon)
        if "context" in only:
            yield from context.context(daemon)
        if "distil" in only:
            yield from distilling.beside_distilling(daemon)
        if "memory" in only:
            yield from memory.resident(daemon, size, "after many recalls")
        if "idle" in only:
            yield from idle.processor(daemon, idle_seconds)
        if "wear" in only:
            yield from wear.wear(daemon)


if __name__ == "__main__":
    main()
