"""Recall beside plain full-text search on any collection, in one table.

A collection is a file in LoCoMo's format, in that of `facts.json`, or a list of

    {"name", "memories": [{"key", "text", "actor"?, "group"?, "position"?, "created_at"?, …}],
     "questions": [{"text", "right": [keys], "kind", "before"?}]}

where only memories from before `before` may answer. The memories go through a daemon; the questions
go to `recall` in this process, over the daemon's database.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import facts
import locomo
from asking import PlainFts5, load
from collection import Collection, Question
from quality import Outcome, fact_figures, times
from running import Wire

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.recall.recall import Request, recall
from thermocline.daemon.store import selecting
from thermocline.daemon.store.database import connect_reader
from thermocline.daemon.store.selecting import Filters

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
    """The collections of a file in any of the three formats.

    Raises:
        OSError: it cannot be read.
        KeyError, ValueError: it is in no such format.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
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
            origin=entry["name"],
            before=asked.get("before"),
        )
        for asked in entry["questions"]
    )
    return Collection(name=entry["name"], memories=memories, questions=questions)


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
    return replace(known, memories=bare)


class InProcess:
    """A collection that a daemon has stored, asked without it.

    Args:
        wire: a connection to the daemon.
        state: its state folder.
        collection: what is loaded.
        limit: how many hits to ask for.

    Attributes:
        db: the daemon's database.
    """

    def __init__(self, wire: Wire, state: Path, collection: Collection, *, limit: int) -> None:
        self._limit = limit
        self._keys = load(wire, collection)
        self._now = time.time() if collection.asked_at is None else collection.asked_at
        found = [*state.glob(f"**/{collection.agent}/memory.db")]
        if len(found) != 1:
            raise SystemExit(f"cannot find the database of '{collection.agent}' in {state}")
        self.db = connect_reader(found[0], 8_000)

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def ask(self, question: Question) -> Outcome:
        """What recall answers, and how long it takes."""
        request = self.request(question)
        begun = time.perf_counter()
        answer = recall(self.db, request, Tuning())
        milliseconds = (time.perf_counter() - begun) * 1000
        return Outcome(
            question=question,
            found=tuple(self._keys[hit.id] for hit in answer.of("memory")),
            top=answer.hits[0].relevance if answer.hits else 0.0,
            milliseconds=milliseconds,
            sure=answer.confidence == "sure",
        )

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
            min_relevance=0.0,
            filters=Filters(until=until),
            now=self._now if before is None else before,
            local=dt.UTC,
        )


def refusals(
    wire: Wire, state: Path, collections: Sequence[Collection], unanswerable: Path
) -> dict[str, dict[str, float]]:
    """Of which share of questions the first result is said to be sure, and how often rightly.

    The file has sets of questions without an answer by name; the others are the collections' own.
    """
    texts = json.loads(unanswerable.read_text(encoding="utf-8"))
    sure: dict[str, list[bool]] = {name: [] for name in texts}
    answerable: list[Outcome] = []
    for one in collections:
        apart = replace(one, name=f"{one.name} unanswerable")
        with closing(InProcess(wire, state, apart, limit=5)) as ours:
            for name, of_name in texts.items():
                for text in of_name:
                    asked = Question(text=text, right=frozenset(), kind="", origin=one.name)
                    sure[name].append(ours.ask(asked).sure)
            answerable += (ours.ask(question) for question in one.questions if question.right)
    made = {name: {"questions": len(of), "sure": fmean(of)} for name, of in sure.items()}
    said = [one for one in answerable if one.sure]
    made["answerable"] = {
        "questions": len(answerable),
        "sure": len(said) / len(answerable),
        "sure and right": fmean(one.any(1) for one in said) if said else 0.0,
    }
    return made


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """R@5, R@10, nDCG@10 and MRR; for facts P@1 and how often a stale one comes first, too."""
    answered = [one for one in outcomes if one.question.right]
    made = {
        "questions": len(answered),
        "P@1": fmean(one.any(1) for one in answered),
        "R@5": fmean(one.share(5) for one in answered),
        "R@10": fmean(one.share(10) for one in answered),
        "nDCG@10": fmean(_ndcg(one, 10) for one in answered),
        "MRR": fmean(one.reciprocal for one in answered),
    }
    stale = fact_figures(answered).get("stale first")
    made |= {} if stale is None else {"stale first": stale}
    return made | {"p50 ms": times(answered)["p50"]}


def measure(
    wire: Wire, state: Path, collections: Sequence[Collection], *, limit: int
) -> dict[str, dict[str, float]]:
    """The figures of recall and of both baselines over all questions of some collections."""
    outcomes: dict[str, list[Outcome]] = {"thermocline": [], "fts5": [], "porter + stop": []}
    for one in collections:
        with closing(InProcess(wire, state, one, limit=limit)) as ours:
            asked: dict[str, Callable[[Question], Outcome]] = {
                "thermocline": ours.ask,
                "fts5": PlainFts5(one, limit=limit).ask,
                "porter + stop": PlainFts5(one, limit=limit, porter=True).ask,
            }
            for name, ask in asked.items():
                outcomes[name] += map(ask, one.questions)
    return {name: figures(found) for name, found in outcomes.items()}


def _ndcg(outcome: Outcome, depth: int) -> float:
    gained = sum(
        1 / math.log2(rank + 1) for rank in outcome.ranks(outcome.question.right) if rank <= depth
    )
    best = sum(
        1 / math.log2(rank + 1) for rank in range(1, 1 + min(depth, len(outcome.question.right)))
    )
    return gained / best
