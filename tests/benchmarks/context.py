"""The context block over the socket: how long it takes, and how large it is."""

from __future__ import annotations

import random
from collections.abc import Iterator

from corpus import Corpus
from measuring import Row, milliseconds, timed
from recall import round_trip
from running import Running, Wire, request, with_query

_ASKED = 200
_ENTRIES = 200
_BUDGET_MS = 6.0
_FORMATS = ("thermocline", "tinyclaw", "tiny-claw", "scalyclaw", "evoclaw")


def context(daemon: Running) -> Iterator[Row]:
    """Each format for questions, with 200 reflections and episodes and 20 skills; then none."""
    corpus, rng = Corpus(), random.Random(9)
    wire = daemon.connect()
    _fill(wire, corpus, rng)
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


def _asked(wire: Wire, bodies: list[dict[str, object]]) -> tuple[list[float], float]:
    """The milliseconds, and the mean bytes of a block."""
    path = with_query("/api/context", {})
    blocks = [wire.post(path, body)["text"] for body in bodies[:50]]
    prepared = [request("POST", path, body) for body in bodies]
    times = milliseconds(lambda one=one: wire.send(one) for one in prepared)
    return times, sum(len(block.encode()) for block in blocks) / len(blocks)
