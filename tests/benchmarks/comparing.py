"""Recall beside the baselines on any collection, in one table.

A collection is a file in LoCoMo's format, in that of `facts.json`, of a person of `everyday`, or a
list of

    {"name", "memories": [{"key", "text", "actor"?, "group"?, "position"?, "created_at"?, …}],
     "questions": [{"text", "right": [keys], "kind", "before"?}]}

where only memories from before `before` may answer.
"""

import datetime as dt
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import everyday
import facts
import locomo
from asking import Asked, load, rankers
from collection import Collection, Question
from quality import Outcome, figures
from running import Wire

from thermocline.daemon.memory.vectors import Nearness
from thermocline.daemon.recall.query import asked_in
from thermocline.daemon.recall.recall import Request
from thermocline.daemon.recall.sources import MEMORIES
from thermocline.daemon.store.database.memory_database import connect_reader
from thermocline.daemon.store.records import selecting
from thermocline.daemon.store.records.selecting import Filters
from thermocline.daemon.vectors.vector_index import VectorIndex

_DAY = 86_400.0
_STRUCTURE = {"actor", "group", "position", "created_at", "category", "tags"}
_BEFORE = (
    "Hi again, I hope your morning is going well. It has been quite a week here, to be honest, and"
    " I only just sat down with a coffee. Anyway, before I forget it, there is one thing."
)
_BEHIND = (
    "No hurry at all with that. I was just thinking about it on the way back and could not quite"
    " get it out of my head. Thanks a lot, you are always such a great help to me."
)


def read(path: Path) -> list[Collection]:
    """The collections of a file in any of the formats.

    Raises:
        OSError: it cannot be read.
        KeyError, ValueError: it is in no such format.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(document, dict) and "now" in document:
        return [everyday.read(path).facts]
    if isinstance(document, dict):
        return [facts.read(path, time.time())]
    if document and "conversation" in document[0]:
        return locomo.read(path)
    return [_collection(entry) for entry in document]


def _collection(entry: dict[str, Any]) -> Collection:
    memories = {
        memory["key"]: {name: value for name, value in memory.items() if name != "key"}
        for memory in entry["memories"]
    }
    questions = tuple(
        Question(
            text=asked["text"],
            right=frozenset(asked["right"]),
            kind=asked["kind"],
            before=asked.get("before"),
        )
        for asked in entry["questions"]
    )
    # The day after the last memory, so that ages do not depend on when the benchmark runs.
    times = [memory["created_at"] for memory in memories.values() if "created_at" in memory]
    return Collection(
        name=entry["name"],
        memories=memories,
        questions=questions,
        asked_at=max(times) + _DAY if times else None,
    )


def among(known: Collection, talks: Sequence[Collection]) -> Collection:
    """The same questions with the turns of conversations stored beside what answers them."""
    turns = {f"{one.name} {key}": turn for one in talks for key, turn in one.memories.items()}
    return replace(known, name=f"{known.name} among turns", memories=known.memories | turns)


def chatty(known: Collection, words: int) -> Collection:
    """The same questions with so many words of small talk around each."""
    before, behind = _BEFORE.split()[-(words // 2) :], _BEHIND.split()[: words - words // 2]

    def wrapped(question: Question) -> Question:
        return replace(question, text=" ".join([*before, question.text, *behind]))

    return replace(known, questions=tuple(map(wrapped, known.questions)))


def text_alone(known: Collection) -> Collection:
    """The same with nothing stored but the texts, and the time where it decides what may answer."""
    timed = any(question.before is not None for question in known.questions)
    left_out = _STRUCTURE - {"created_at"} if timed else _STRUCTURE
    bare = {
        key: {name: value for name, value in memory.items() if name not in left_out}
        for key, memory in known.memories.items()
    }
    return replace(known, memories=bare, asked_at=known.asked_at if timed else None)


class InProcess:
    """A collection that a daemon has stored, to be asked in this process over its database.

    Args:
        wire: a connection to the daemon.
        state: its state folder.
        collection: what is loaded.
        limit: how many hits to ask for.
        encoder: whether the daemon has one; the questions are encoded as memories are.

    Attributes:
        db: the daemon's database.
    """

    def __init__(
        self,
        wire: Wire,
        state: Path,
        collection: Collection,
        *,
        limit: int,
        encoder: str | None = None,
    ) -> None:
        self._limit = limit
        self._keys = load(wire, collection)
        self._now = time.time() if collection.asked_at is None else collection.asked_at
        found = [*state.glob(f"**/{collection.agent}/memory.db")]
        if len(found) != 1:
            raise SystemExit(f"cannot find the database of '{collection.agent}' in {state}")
        self.db = connect_reader(found[0])
        self._nearness: dict[str, Nearness | None] = {}
        if encoder is not None:
            index = VectorIndex(found[0].parent)
            index.load(encoder)
            vectors = _vectors_of_questions(wire, state, collection, encoder)
            self._nearness = {text: index.nearness(vector) for text, vector in vectors.items()}

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def keys_of(self, rows: Iterable[int]) -> list[str]:
        """The collection's keys of the memories in these rows."""
        wanted = list(rows)
        found = selecting.at_rows(self.db, wanted)
        return [self._keys[found[row].id] for row in wanted]

    def request(self, question: Question) -> Request:
        """The request for a question."""
        before = question.before
        until = None if before is None else math.nextafter(before, 0.0)
        return Request(
            text=question.text,
            limit=self._limit,
            filters=Filters(until=until),
            now=self._now if before is None else before,
            local=dt.UTC,
            nearness=self._nearness.get(asked_in(question.text)),
        )


def _vectors_of_questions(
    wire: Wire, state: Path, collection: Collection, encoder: str
) -> dict[str, bytes]:
    """The vectors of what the questions ask, which is stored as memories of another agent."""
    texts = dict.fromkeys(filter(None, (asked_in(one.text) for one in collection.questions)))
    asked = Collection(
        name=f"{collection.name[:50]} asked",
        memories={text: {"text": text} for text in texts},
        questions=(),
    )
    load(wire, asked)
    folder = next(state.glob(f"**/{asked.agent}/memory.db")).parent
    index = VectorIndex(folder)
    index.load(encoder)
    assert index.generation is not None
    with closing(connect_reader(folder / "memory.db")) as db:
        rows = dict(db.execute("SELECT row, text FROM memories"))
    vectors = index.read(index.generation, MEMORIES.keys(rows))
    return {rows[MEMORIES.rows([key])[0]]: vector for key, vector in vectors}


def measure(
    wire: Wire, collections: Sequence[Collection], *, limit: int
) -> dict[str, list[Outcome]]:
    """The answers of recall and of each baseline to all questions of some collections."""
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    for collection in collections:
        for ranker, ask in rankers(wire, collection, limit=limit).items():
            outcomes[ranker] += map(ask, collection.questions)
    return outcomes


def by_kind(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """The figures of each kind of question that has answers."""
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.question.right:
            kinds[outcome.question.kind].append(outcome)
    return {kind: figures(of_kind) for kind, of_kind in kinds.items()}


def certainty(
    wire: Wire, collection: Collection, unanswerable: Path
) -> dict[str, dict[str, float]]:
    """How often the first result is said to be sure, where nothing answers and elsewhere.

    The file has texts of questions that nothing stored answers, by the name of their set.
    """
    texts = json.loads(unanswerable.read_text(encoding="utf-8"))
    questions = [
        Question(text=text, right=frozenset(), kind=kind)
        for kind, of_kind in texts.items()
        for text in of_kind
    ]
    answerable = [replace(question, kind="answerable") for question in collection.questions]
    apart = replace(collection, name=f"{collection.name} unanswerable")
    daemon = Asked(wire, apart, limit=5)
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for question in (*questions, *(question for question in answerable if question.right)):
        kinds[question.kind].append(daemon.ask(question))
    return {
        kind: {
            "questions": len(outcomes),
            "first sure": fmean(outcome.sure for outcome in outcomes),
            "empty": fmean(not outcome.keys for outcome in outcomes),
        }
        for kind, outcomes in kinds.items()
    }
