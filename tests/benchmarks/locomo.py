"""LoCoMo's file format: long conversations in dated sessions, with questions about them.

A file is a list of conversations. Each has `sample_id`; `conversation` with `session_N` (its turns)
and `session_N_date_time`; and `qa` with the question, its category and, as `evidence`, the ids of
the turns that answer it. Category 5 asks for what was never said and is left out.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collection import Collection, Question

_CATEGORIES = {1: "several turns", 2: "time", 3: "inference", 4: "one turn"}
_UNANSWERED = 5
_DAY = 86_400.0
# `D4:7` as it should be; `D:4:7` and blanks around numbers as some files have it.
_TURN = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")


def read(path: Path) -> list[Collection]:
    """The conversations of a file, in its order.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON.
        KeyError: it is not in LoCoMo's format.
    """
    return [_conversation(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def evidence(entries: list[str], known: set[str]) -> frozenset[str]:
    """The turns that `entries` name and that are known; an entry may name several."""
    numbers = (number for entry in entries for number in _TURN.findall(entry))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in numbers) & known


def _conversation(entry: dict[str, Any]) -> Collection:
    """A conversation; questions without any known evidence are left out."""
    memories = dict(_turns(entry["conversation"], entry["sample_id"]))
    questions: list[Question] = []
    for asked in entry["qa"]:
        right = evidence(asked["evidence"], set(memories))
        if right and asked["category"] != _UNANSWERED:
            kind = _CATEGORIES[asked["category"]]
            questions.append(Question(text=asked["question"], right=right, kind=kind))
    return Collection(
        name=entry["sample_id"],
        memories=memories,
        questions=tuple(questions),
        asked_at=max(memory["created_at"] for memory in memories.values()) + _DAY,
    )


def _turns(conversation: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    # Some files date sessions that they do not hold.
    sessions = (key for key in conversation if re.fullmatch(r"session_\d+", key))
    for session in sorted(sessions, key=lambda key: int(key[8:])):
        begun = _moment(conversation[f"{session}_date_time"])
        for position, turn in enumerate(conversation[session]):
            yield (
                turn["dia_id"],
                {
                    "text": _said(turn),
                    "actor": turn["speaker"],
                    "group": session,
                    "position": position,
                    "created_at": begun + position,
                    "type": "episodic",
                    "category": f"conversations/{name}",
                },
            )


def _said(turn: dict[str, Any]) -> str:
    """What was said; of a picture sent with it, what it shows and the words it was found by."""
    parts = (turn["text"], turn.get("blip_caption"), turn.get("query"))
    return "\n".join(filter(None, parts))


def _moment(text: str) -> float:
    """Seconds since 1970 of a date such as `9:05 am on 30 March, 2024`, taken as UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
