"""Loading a collection and asking its questions: a daemon over its socket, and plain FTS5."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Mapping

from collection import Collection, Question
from quality import Outcome
from running import Wire, request, with_query

_BATCH = 500
_WORD = re.compile(r"\w+")


class Asked:
    """A collection inside a daemon.

    Args:
        wire: a connection to the daemon.
        collection: what is loaded.
        limit: how many hits to ask for.
        dated: whether the daemon is told when each question is asked.
    """

    def __init__(self, wire: Wire, collection: Collection, *, limit: int, dated: bool) -> None:
        self._wire = wire
        self._body: dict[str, object] = {"limit": limit, "reinforce": False}
        if dated and collection.asked_at is not None:
            self._body["now"] = collection.asked_at
        self._path = with_query("/api/recall", {"agent": collection.agent})
        self._keys = self._load(collection)

    def ask(self, question: Question, weights: Mapping[str, float] | None = None) -> Outcome:
        """What the daemon answers, and how long it takes."""
        body = self._body | {"query": question.text} | ({"weights": weights} if weights else {})
        prepared = request("POST", self._path, body)
        begun = time.perf_counter()
        answer = self._wire.send(prepared)
        milliseconds = (time.perf_counter() - begun) * 1000
        hits = json.loads(answer)["results"]
        return Outcome(
            question=question,
            found=tuple(self._keys[hit["id"]] for hit in hits),
            top=hits[0]["relevance"] if hits else 0.0,
            milliseconds=milliseconds,
        )

    def _load(self, collection: Collection) -> dict[str, str]:
        """The keys of the collection by the ids that the daemon gave."""
        path = with_query("/api/memory/batch", {"agent": collection.agent})
        bodies = list(collection.memories.values())
        ids: list[str] = []
        for begin in range(0, len(bodies), _BATCH):
            stored = self._wire.post(path, {"memories": bodies[begin : begin + _BATCH]})
            ids += (memory["id"] for memory in stored["results"])
        return dict(zip(ids, collection.memories, strict=True))


class PlainFts5:
    """The same collection in a bare FTS5 table: default tokenizer and BM25, words joined by OR.

    What SQLite gives to whoever builds nothing upon it.
    """

    def __init__(self, collection: Collection, *, limit: int) -> None:
        self._limit = limit
        self._keys = list(collection.memories)
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE facts USING fts5(text, subject, tags)")
        rows = (
            (memory["text"], memory.get("subject", ""), " ".join(memory.get("tags", ())))
            for memory in collection.memories.values()
        )
        self._db.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)

    def ask(self, question: Question) -> Outcome:
        """What FTS5 answers, and how long it takes in process."""
        expression = " OR ".join(f'"{word}"' for word in _WORD.findall(question.text))
        begun = time.perf_counter()
        hits = self._db.execute(
            "SELECT rowid, -rank FROM facts WHERE facts MATCH ? ORDER BY rank LIMIT ?",
            (expression, self._limit),
        ).fetchall()
        return Outcome(
            question=question,
            found=tuple(self._keys[row - 1] for row, _ in hits),
            top=hits[0][1] if hits else 0.0,
            milliseconds=(time.perf_counter() - begun) * 1000,
        )
