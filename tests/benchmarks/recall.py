"""Reading over the socket: recall in its kinds, listing, and one memory by its id."""

import random
import statistics
import time
from collections.abc import Callable, Iterator

from corpus import EVERYWHERE, Corpus, name
from measuring import Row, milliseconds, timed
from running import Running, Wire, request, with_query

_QUERIES = 300
_WARM_UP = 20
_SMALL = 10_000
_PAIRS = 2_000
_ACTORS = 1_000
_BATCH = 500


def recall(daemon: Running, size: int) -> Iterator[Row]:
    """Each kind of query by itself, then all in turns, which is what the budget is for."""
    budget = (3.0, 10.0) if size <= _SMALL else (10.0, 40.0)
    yield from _kinds(daemon, "recall", "default", budget)


def recall_crowded(daemon: Running) -> Iterator[Row]:
    """The same in another agent: 10,000 memories of 1,000 people, and 2,000 key-value pairs."""
    agent, rng = "crowded", random.Random(5)
    path = with_query("/api/memory/batch", {"agent": agent})
    wire = daemon.connect()
    memories = [
        memory | {"actor": name(rng, _ACTORS)}
        for memory in Corpus().memories(_SMALL, time.time(), seed=4)
    ]
    for begin in range(0, _SMALL, _BATCH):
        wire.post(path, {"memories": memories[begin : begin + _BATCH]})
    for (number, text), _ in zip(enumerate(Corpus().texts(6)), range(_PAIRS), strict=False):
        pair = with_query(f"/api/kv/{name(rng).lower()}.{number}", {"agent": agent})
        wire.send(request("PUT", pair, {"value": text}))
    wire.close()
    daemon.settle()
    title = f"recall among {_PAIRS:,} pairs and {_ACTORS:,} people"
    yield from _kinds(daemon, title, agent, (2.5, 10.0))


def pairs(daemon: Running, other: Running, size: int) -> Iterator[Row]:
    """Loading and each kind of query in turns with another release, as ratios to it."""
    now, loads = time.time(), {daemon: 0.0, other: 0.0}
    memories = list(Corpus().memories(size, now))
    for begin in range(0, size, _BATCH):
        batch = {"memories": memories[begin : begin + _BATCH]}
        prepared = request("POST", "/api/memory/batch", batch)
        for one in loads:
            wire = one.connect()
            loads[one] += _taken(wire, prepared)
            wire.close()
    yield ratio("loading", [loads[daemon]], [loads[other]], 1.5)
    for one in loads:
        one.settle()
    megabytes = [one.resident_mb() for one in loads]
    yield Row(
        what="resident memory after loading",
        unit="MB",
        p50=megabytes[0],
        beside=("other release", megabytes[1]),
    )
    times: dict[Running, list[float]] = {daemon: [], other: []}
    for kind, asked in queries(_QUERIES // 2).items():
        own: dict[Running, list[float]] = {daemon: [], other: []}
        wires = {one: one.connect() for one in loads}
        for place, query in enumerate(asked):
            prepared = request("POST", "/api/recall", {"query": query})
            # Whoever is first has colder caches of the processor.
            for one in (daemon, other) if place % 2 else (other, daemon):
                taken = _taken(wires[one], prepared)
                own[one] += [taken] if place >= _WARM_UP else []
        for one, wire in wires.items():
            times[one] += own[one]
            wire.close()
        budget = 0.25 if kind == "a word in every memory" and size > _SMALL else None
        yield ratio(f"recall, {kind}", own[daemon], own[other], budget)
    yield ratio("recall, all of these", times[daemon], times[other], 0.9)


def _taken(wire: Wire, prepared: bytes) -> float:
    """The milliseconds of one request."""
    (taken,) = milliseconds([lambda: wire.send(prepared)])
    return taken


def ratio(what: str, own: list[float], other: list[float], budget: float | None) -> Row:
    """The median of times to that of others, which were measured in turns with them."""
    medians = statistics.median(own), statistics.median(other)
    return Row(
        what=f"{what}, {medians[0]:.2f} ms in turns with {medians[1]:.2f}",
        unit="×",
        p50=medians[0] / medians[1],
        budget=budget,
    )


def queries(number: int) -> dict[str, list[str]]:
    """So many queries of each kind, the same in every run."""
    corpus, rng = Corpus(), random.Random(7)
    kinds: dict[str, Callable[[], str]] = {
        "a rare word": lambda: corpus.rare(rng),
        "three words": lambda: corpus.three(rng),
        "a word in every memory": lambda: EVERYWHERE,
        "a question": lambda: corpus.question(rng),
    }
    return {kind: [make() for _ in range(number)] for kind, make in kinds.items()}


def _kinds(daemon: Running, title: str, agent: str, budget: tuple[float, float]) -> Iterator[Row]:
    p50, p99 = budget
    wire = daemon.connect()
    bare = ("bare round trip", round_trip(wire))
    everything: list[float] = []
    for kind, asked in queries(_WARM_UP + _QUERIES).items():
        _ask(wire, agent, asked[:_WARM_UP])
        times = _ask(wire, agent, asked[_WARM_UP:])
        everything += times
        yield timed(f"{title}, {kind}", times, beside=bare, budget=p50, budget_p99=p99)
    everything.sort()
    yield timed(f"{title}, all of these", everything, beside=bare, budget=p50, budget_p99=p99)
    wire.close()


def read(daemon: Running) -> Iterator[Row]:
    """Pages and single memories."""
    wire = daemon.connect()
    bare = ("bare round trip", round_trip(wire))
    newest = wire.get("/api/memory", limit=100)["results"]
    yield timed("list, the newest 50", _gets(wire, ["/api/memory"] * 200), beside=bare)
    category = with_query("/api/memory", {"category": "people", "limit": 20})
    yield timed("list, 20 of a category", _gets(wire, [category] * 100), beside=bare)
    paths = [f"/api/memory/{memory['id']}" for memory in newest]
    yield timed("get by id", _gets(wire, paths * 3), beside=bare)
    wire.close()


def round_trip(wire: Wire) -> float:
    """The median milliseconds of the least that can be asked."""
    return statistics.median(_gets(wire, ["/api/health"] * 200))


def _ask(wire: Wire, agent: str, queries: list[str]) -> list[float]:
    path = with_query("/api/recall", {"agent": agent})
    prepared = [request("POST", path, {"query": query}) for query in queries]
    return milliseconds(lambda one=one: wire.send(one) for one in prepared)


def _gets(wire: Wire, paths: list[str]) -> list[float]:
    prepared = [request("GET", path) for path in paths]
    return milliseconds(lambda one=one: wire.send(one) for one in prepared)
