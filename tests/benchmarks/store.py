"""Storing: one caller, many callers together, and batches."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from corpus import Corpus
from measuring import Row, bare_commits, timed
from running import Running, Wire, environment, request

_SINGLE = 1500
_SECONDS = 5.0
_PROCESSES = 2
_CLIENTS_EACH = 16
_BATCH = 500
# The budget is 1.2 ms where the disk commits a bare row in 0.15.
_BARE_COMMITS = 8.0


def single(daemon: Running) -> Iterator[Row]:
    """Durable stores, one after the other, each beside a commit of SQLite alone."""
    texts = Corpus().texts(seed=2)
    prepared = [request("POST", "/api/memory", {"text": next(texts)}) for _ in range(_SINGLE)]
    wire = daemon.connect()
    bare: list[float] = []
    times: list[float] = []
    # In turns, so that a disk that is busy for a while is so for both.
    for begin in range(0, _SINGLE, 250):
        daemon.settle()
        bare += bare_commits(daemon.folder, 400, 250)
        times += _stores(wire, prepared[begin : begin + 250])
    wire.close()
    commit = statistics.median(bare)
    yield timed(
        "store one memory, durably",
        sorted(times),
        beside=("bare SQLite commit", commit),
        budget=_BARE_COMMITS * commit,
    )


def together(daemon: Running) -> Iterator[Row]:
    """Stores a second of 32 clients in two processes."""
    command = [sys.executable, str(Path(__file__).with_name("load.py")), str(daemon.socket)]
    started = [
        subprocess.Popen(
            [*command, str(_CLIENTS_EACH), str(_SECONDS), str(10 + number)],
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        for number in range(_PROCESSES)
    ]
    stored = sum(int(process.communicate()[0]) for process in started)
    clients = _PROCESSES * _CLIENTS_EACH
    yield Row(
        what=f"store, {clients} clients together",
        unit="/s",
        p50=stored / _SECONDS,
        budget=2000,
        at_least=True,
    )


def in_batches(daemon: Running, number: int) -> Iterator[Row]:
    """Fill the memory in batches, and say how fast that went."""
    wire = daemon.connect()
    batch: list[object] = []
    seconds = 0.0
    for place, memory in enumerate(Corpus().memories(number, time.time()), 1):
        batch.append(memory)
        if len(batch) == _BATCH or place == number:
            prepared = request("POST", "/api/memory/batch", {"memories": batch})
            begun = time.perf_counter()
            wire.send(prepared)
            seconds += time.perf_counter() - begun
            batch.clear()
    wire.close()
    yield Row(what=f"store in batches of {_BATCH}", unit="/s", p50=number / seconds)


def _stores(wire: Wire, prepared: list[bytes]) -> list[float]:
    times = []
    for one in prepared:
        begun = time.perf_counter()
        wire.send(one)
        times.append((time.perf_counter() - begun) * 1000)
    return times
