"""Loading a collection and asking its questions: a daemon over its socket, and plain FTS5."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import time
from collections.abc import Mapping
from itertools import islice

from collection import Collection, Question
from quality import Outcome
from running import Wire, request, with_query

_BATCH = 500
_WORD = re.compile(r"\w+")
# What search engines usually leave out of an English question.
STOP = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "against",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "but",
        "by",
        "can",
        "could",
        "d",
        "did",
        "do",
        "does",
        "doing",
        "don",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "herself",
        "him",
        "himself",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "ll",
        "m",
        "me",
        "more",
        "most",
        "my",
        "myself",
        "no",
        "nor",
        "not",
        "now",
        "o",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "ours",
        "ourselves",
        "out",
        "over",
        "own",
        "re",
        "s",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "themselves",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "ve",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "y",
        "you",
        "your",
        "yours",
        "yourself",
        "yourselves",
    ]
)


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
        # With a minimum, an answer that is not sure has more than five results as well.
        self._body: dict[str, object] = {"limit": limit, "reinforce": False, "min_relevance": 0.0}
        if dated and collection.asked_at is not None:
            self._body["now"] = collection.asked_at
        self._path = with_query("/api/recall", {"agent": collection.agent})
        self._keys = load(wire, collection)

    def ask(self, question: Question, weights: Mapping[str, float] | None = None) -> Outcome:
        """What the daemon answers, and how long it takes."""
        body = self._body | {"query": question.text} | ({"weights": weights} if weights else {})
        prepared = request("POST", self._path, body)
        begun = time.perf_counter()
        answer = self._wire.send(prepared)
        milliseconds = (time.perf_counter() - begun) * 1000
        answered = json.loads(answer)
        hits = [hit for hit in answered["results"] if hit["source"] == "memory"]
        return Outcome(
            question=question,
            found=tuple(self._keys[hit["id"]] for hit in hits),
            top=hits[0]["relevance"] if hits else 0.0,
            milliseconds=milliseconds,
            sure=answered["confidence"] == "sure",
        )


def load(wire: Wire, collection: Collection) -> dict[str, str]:
    """Store a collection; its keys by the ids that the daemon gave."""
    path = with_query("/api/memory/batch", {"agent": collection.agent})
    bodies = list(collection.memories.values())
    ids: list[str] = []
    for begin in range(0, len(bodies), _BATCH):
        batch = {"memories": bodies[begin : begin + _BATCH], "force": True}
        stored = wire.post(path, batch)
        ids += (memory["id"] for memory in stored["results"])
    return dict(zip(ids, collection.memories, strict=True))


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
        found = self._db.execute(
            "SELECT rowid, -rank FROM facts WHERE facts MATCH ? ORDER BY rank", (expression,)
        )
        before = math.inf if question.before is None else question.before
        hits = [*islice((hit for hit in found if self._at[hit[0] - 1] < before), self._limit)]
        return Outcome(
            question=question,
            found=tuple(self._keys[row - 1] for row, _ in hits),
            top=hits[0][1] if hits else 0.0,
            milliseconds=(time.perf_counter() - begun) * 1000,
        )
