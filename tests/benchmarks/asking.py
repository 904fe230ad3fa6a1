"""Asking a collection's questions: a daemon over its socket, and the baselines beside it."""

import json
import math
import re
import sqlite3
import time
from collections.abc import Callable
from itertools import islice

from collection import Collection, Question
from quality import Outcome
from running import Wire, request, with_query
from simple_ranker import STOP, SimpleRanker

_BATCH = 500
_WORD = re.compile(r"\w+")

Ask = Callable[[Question], Outcome]


class Asked:
    """A collection inside a daemon.

    Args:
        wire: a connection to the daemon.
        collection: what is loaded.
        limit: how many results to ask for.
        apart: whether each memory is stored by a request of its own.
    """

    def __init__(
        self, wire: Wire, collection: Collection, *, limit: int, apart: bool = False
    ) -> None:
        self._wire = wire
        self._body: dict[str, object] = {"limit": limit, "reinforce": False}
        if collection.asked_at is not None:
            self._body["now"] = collection.asked_at
        self._path = with_query("/api/recall", {"agent": collection.agent})
        self._keys = load(wire, collection, apart=apart)

    def ask(self, question: Question) -> Outcome:
        """What the daemon answers, and how long it takes."""
        body = self._body | {"query": question.text}
        if question.before is not None:
            body |= {"until": math.nextafter(question.before, 0.0), "now": question.before}
        prepared = request("POST", self._path, body)
        begun = time.perf_counter()
        reply = self._wire.send(prepared)
        milliseconds = (time.perf_counter() - begun) * 1000
        answer = json.loads(reply)
        results = answer["results"]
        keys = tuple(self._keys.get(result["id"], result["id"]) for result in results)
        outdated = (
            key
            for key, result in zip(keys, results, strict=True)
            if result.get("outdated") or result.get("superseded_by")
        )
        return Outcome(
            question=question,
            keys=keys,
            milliseconds=milliseconds,
            sure=bool(results and results[0].get("sure")),
            confidence=answer.get("confidence", ""),
            outdated=frozenset(outdated),
        )


def load(wire: Wire, collection: Collection, *, apart: bool = False) -> dict[str, str]:
    """Store a collection; its keys by the ids that the daemon gave."""
    query: dict[str, object] = {"agent": collection.agent}
    bodies = list(collection.memories.values())
    ids: list[str] = []
    if apart:
        path = with_query("/api/memory", query)
        ids += (wire.post(path, body | {"force": True})["id"] for body in bodies)
    else:
        path = with_query("/api/memory/batch", query)
        for begin in range(0, len(bodies), _BATCH):
            batch = {"memories": bodies[begin : begin + _BATCH], "force": True}
            stored = wire.post(path, batch)
            ids += (memory["id"] for memory in stored["results"])
    _wait_for_vectors(wire, collection.agent, len(ids))
    return dict(zip(ids, collection.memories, strict=True))


def _wait_for_vectors(wire: Wire, agent: str, texts: int) -> None:
    """Wait until so many texts are encoded, if there is an encoder."""
    while texts and (status := wire.get("/api/status"))["encoder"] is not None:
        if status["encoder"]["state"] == "failing":
            raise SystemExit(f"cannot encode the memories: {status['encoder']['why']}")
        # Opens the agent, should others have taken its place.
        wire.get(with_query("/api/hot", {"agent": agent}))
        vectors = status["agents"].get(agent, {}).get("vectors")
        if vectors is not None and vectors["encoded"] >= texts and not vectors["left"]:
            break
        time.sleep(0.05)


def rankers(
    wire: Wire, collection: Collection, *, limit: int, apart: bool = False
) -> dict[str, Ask]:
    """The daemon, with the collection loaded into an agent of its own, and the baselines."""
    return {
        "thermocline": Asked(wire, collection, limit=limit, apart=apart).ask,
        "fts5": PlainFts5(collection, limit=limit).ask,
        "porter + stop": PlainFts5(collection, limit=limit, porter=True).ask,
        "simple ranker": SimpleRanker(collection, limit=limit).ask,
    }


class PlainFts5:
    """The same collection in a bare FTS5 table with its own BM25, words joined by OR.

    What SQLite gives to whoever builds nothing upon it: with the default tokenizer, or with Porter
    stemming and a usual list of stop words left out of the questions.
    """

    def __init__(self, collection: Collection, *, limit: int, porter: bool = False) -> None:
        self._limit = limit
        self._stop = STOP if porter else frozenset()
        self._keys = list(collection.memories)
        self._at = [memory.get("created_at", 0.0) for memory in collection.memories.values()]
        self._db = sqlite3.connect(":memory:")
        tokenize = ", tokenize = 'porter unicode61'" if porter else ""
        self._db.execute(f"CREATE VIRTUAL TABLE facts USING fts5(text, subject, tags{tokenize})")
        rows = (
            (memory["text"], memory.get("subject", ""), " ".join(memory.get("tags", ())))
            for memory in collection.memories.values()
        )
        self._db.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)

    def ask(self, question: Question) -> Outcome:
        """What FTS5 answers, and how long it takes in process."""
        words = _WORD.findall(question.text)
        words = [word for word in words if word.lower() not in self._stop] or words
        expression = " OR ".join(f'"{word}"' for word in words)
        begun = time.perf_counter()
        rows = self._db.execute(
            "SELECT rowid FROM facts WHERE facts MATCH ? ORDER BY rank", (expression,)
        )
        before = math.inf if question.before is None else question.before
        keys = (self._keys[row - 1] for (row,) in rows if self._at[row - 1] < before)
        return Outcome(
            question=question,
            keys=tuple(islice(keys, self._limit)),
            milliseconds=(time.perf_counter() - begun) * 1000,
        )
