"""Recall while long texts are distilled by rules, beside recall while nothing else goes on."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

from corpus import Corpus
from measuring import Row, milliseconds, percentile, timed
from running import Running, Wire, request

_TEXTS = 4
_TEXT_CHARS = 100_000
_QUERIES = 300
_MOST_TIMES = 2.0


def beside_distilling(daemon: Running) -> Iterator[Row]:
    """The same queries twice; the second time, four callers have long texts distilled."""
    corpus, chance = Corpus(), random.Random(11)
    queries = [corpus.three(chance) for _ in range(_QUERIES)]
    wire = daemon.connect()
    _ask(wire, queries[:50])
    quiet = percentile(_ask(wire, queries), 0.5)
    texts = corpus.texts(5)
    prepared = [request("POST", "/api/distill", {"text": _long(texts)}) for _ in range(_TEXTS)]
    stop = threading.Event()
    callers = [
        threading.Thread(target=_distil, args=(daemon.connect(), one, stop)) for one in prepared
    ]
    for caller in callers:
        caller.start()
    times = _ask(wire, queries)
    held = _child_megabytes(daemon.pid)
    stop.set()
    for caller in callers:
        caller.join()
    wire.close()
    yield timed(
        "recall while 4 long texts are distilled",
        times,
        beside=("the same, quiet", quiet),
        budget=_MOST_TIMES * quiet,
    )
    yield Row(what="resident memory of the rules' process", unit="MB", p50=held)


def _long(texts: Iterator[str]) -> str:
    kept: list[str] = []
    while sum(map(len, kept)) < _TEXT_CHARS:
        kept.append(f"User: {next(texts)}.")
    return "\n".join(kept)


def _distil(wire: Wire, prepared: bytes, stop: threading.Event) -> None:
    while not stop.is_set():
        wire.send(prepared)
    wire.close()


def _ask(wire: Wire, queries: list[str]) -> list[float]:
    prepared = [request("POST", "/api/recall", {"query": query}) for query in queries]
    return milliseconds(lambda one=one: wire.send(one) for one in prepared)


def _child_megabytes(pid: int) -> float:
    """What the processes that a process has started hold."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    held = 0.0
    for child in children:
        for line in Path(f"/proc/{child}/status").read_text(encoding="ascii").splitlines():
            held += int(line.split()[1]) / 1024 if line.startswith("VmRSS:") else 0.0
    return held
