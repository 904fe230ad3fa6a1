"""Short, unconnected facts of an agent's life, and questions about them.

A file is an object with `facts` and `questions`. A fact has `id`, `days_ago` and the fields of the
API's memories. A question has `question`, `language`, `kind`, the ids of the `right` facts (any of
them answers; none where nothing stored does) and, where a fact was overtaken, those of the `stale`.
"""

import json
from pathlib import Path
from typing import Any

from collection import Collection, Question

NAME = "facts"
UNANSWERED = "unanswered"
_DAY = 86_400.0


def read(path: Path, now: float) -> Collection:
    """The facts of a file as they stand at `now`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON, or a question names a fact that is not there.
        KeyError: it is not in the format.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    memories = {fact["id"]: _memory(fact, now) for fact in document["facts"]}
    if len(memories) != len(document["facts"]):
        raise ValueError("two facts have the same id")
    questions = tuple(_question(entry, set(memories)) for entry in document["questions"])
    return Collection(name=NAME, memories=memories, questions=questions)


def _memory(fact: dict[str, Any], now: float) -> dict[str, Any]:
    fields = {name: value for name, value in fact.items() if name not in {"id", "days_ago"}}
    return fields | {"created_at": now - fact["days_ago"] * _DAY}


def _question(entry: dict[str, Any], known: set[str]) -> Question:
    right, stale = frozenset(entry["right"]), frozenset(entry.get("stale", ()))
    if missing := (right | stale) - known:
        raise ValueError(f"{entry['question']!r} names {sorted(missing)}, which are not there")
    if (not right) != (entry["kind"] == UNANSWERED):
        raise ValueError(f"{entry['question']!r} must be {UNANSWERED} or have right answers")
    return Question(
        text=entry["question"],
        right=right,
        stale=stale,
        kind=entry["kind"],
    )
