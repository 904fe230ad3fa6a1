"""The context block over the socket: how long it takes, and how large it is."""

import random
import time
from collections.abc import Iterator

from corpus import Corpus
from measuring import Row, milliseconds, timed
from recall import round_trip
from running import Running, Wire, request, with_query

_ASKED = 200
_ENTRIES = 200
_BUDGET_MS = 6.0
_FILES = 500
_CHUNKS_EACH = 20
_FORMATS = ("thermocline", "tinyclaw", "tiny-claw", "scalyclaw", "evoclaw")


def context(daemon: Running) -> Iterator[Row]:
    """Each format for questions, with 200 reflections and episodes and 20 skills; then none.

    10,000 chunks of files are searched too; the last row is a question after each store.
    """
    corpus, rng = Corpus(), random.Random(9)
    wire = daemon.connect()
    _fill(wire, corpus, rng)
    _watch(daemon, wire, corpus)
    bare = ("bare round trip", round_trip(wire))
    for name in _FORMATS:
        questions = [corpus.question(rng) for _ in range(_ASKED)]
        times, size = _asked(wire, [{"query": one, "format": name} for one in questions])
        budget = _BUDGET_MS if name == "thermocline" else None
        title = f"context as {name}, {size / 1024:.1f} KB"
        yield timed(title, times, beside=bare, budget=budget)
    times, size = _asked(wire, [{}] * _ASKED)
    yield timed(f"context without a query, {size / 1024:.1f} KB", times, beside=bare)
    full = [{"query": corpus.question(rng), "max_tokens": 8_000} for _ in range(_ASKED)]
    times, size = _asked(wire, full)
    yield timed(f"context of 8,000 tokens, {size / 1024:.1f} KB", times, beside=bare)
    times = []
    texts = corpus.texts(12)
    for _ in range(_ASKED):
        wire.post("/api/memory", {"text": next(texts)})
        question = request("POST", "/api/context", {"query": corpus.question(rng)})
        times += milliseconds(lambda one=question: wire.send(one) for _ in range(1))
    yield timed("context after a store", sorted(times), beside=bare)
    wire.close()


def _fill(wire: Wire, corpus: Corpus, rng: random.Random) -> None:
    texts = corpus.texts(11)
    for number in range(_ENTRIES):
        lesson = {"type": "insight", "context": corpus.three(rng), "lesson": next(texts)}
        wire.post("/api/reflections", lesson)
        wire.post("/api/episodes", {"summary": next(texts), "tags": corpus.three(rng).split()})
        if number % 10 == 0:
            text = "\n".join(f"{step}. {next(texts)}" for step in range(1, 30))
            skill = {"id": f"skill-{number}", "description": corpus.three(rng), "text": text}
            wire.post("/api/skills", skill)
    wire.send(request("PUT", "/api/hot/identity", {"agent_name": "Nova"}))
    for _ in range(10):
        wire.send(request("PUT", "/api/hot/lesson", {"text": next(texts)}))


def _watch(daemon: Running, wire: Wire, corpus: Corpus) -> None:
    """Index files of 10,000 chunks, and wait until they are searched."""
    folder = daemon.folder / "docs"
    folder.mkdir()
    texts = corpus.texts(13)
    for number in range(_FILES):
        parts = (
            f"# Part {part} of {number}\n\n" + " ".join(next(texts) for _ in range(5))
            for part in range(_CHUNKS_EACH)
        )
        (folder / f"{number}.md").write_text("\n\n".join(parts))
    wire.post("/api/files/paths", {"path": str(folder)})
    while wire.get("/api/files/stats")["state"]["dirty"]:
        time.sleep(0.2)
    daemon.settle()


def _asked(wire: Wire, bodies: list[dict[str, object]]) -> tuple[list[float], float]:
    """The milliseconds, and the mean bytes of a block."""
    path = with_query("/api/context", {})
    blocks = [wire.post(path, body)["text"] for body in bodies[:50]]
    prepared = [request("POST", path, body) for body in bodies]
    times = milliseconds(lambda one=one: wire.send(one) for one in prepared)
    return times, sum(len(block.encode()) for block in blocks) / len(blocks)
