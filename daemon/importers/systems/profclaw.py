"""profClaw: its SQLite database of chunks of notes, chats and experiences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ...memory.records import Json
from ..found import Found, GivenPath, Origin, category, tags_of
from ..sqlite_copy import Copy
from ..values import seconds

NAME: Final = "profclaw"
_TYPES: Final = frozenset({"tool_chain", "user_preference", "task_solution", "error_recovery"})
_EXPERIENCE: Final = {"intent", "solution", "success_score"}


def detect(look: GivenPath) -> bool:
    """Whether a database has its tables."""
    return bool(_copies(look))


def read(look: GivenPath) -> Iterator[Found]:
    """Each chunk as a memory of its file, and each experience as an experience."""
    for copy in _copies(look):
        origin = look.origin(NAME, copy.path, "memory_chunks")
        for row in look.rows(copy, "memory_chunks"):
            path = str(row.get("path") or "")
            chat = path.startswith("chat://")
            yield from origin.memory(
                f"chunk/{path}/{row.get('id')}", row.get("text"),
                category="conversations/profclaw" if chat else category("notes", Path(path).name),
                type="episodic" if chat else None, group=path.removeprefix("chat://"),
                position=row.get("start_line"), created_at=seconds(row.get("created_at")),
                updated_at=seconds(row.get("updated_at")),
                data={"lines": [row.get("start_line"), row.get("end_line")]},
            )  # fmt: skip
        if copy.tables.get("experiences", set()) >= _EXPERIENCE:
            origin = look.origin(NAME, copy.path, "experiences")
            for row in look.rows(copy, "experiences", "created_at"):
                if str(row.get("type")) in _TYPES and str(row.get("intent") or "").strip():
                    yield _experience(origin, row)
                else:
                    look.fault(origin.place, f"{row.get('id')}: it has no known type, or no intent")


def _copies(look: GivenPath) -> list[Copy]:
    return [
        one
        for one in look.databases()
        if "memory_chunks" in one.tables or one.tables.get("experiences", set()) >= _EXPERIENCE
    ]


def _experience(origin: Origin, row: dict[str, Any]) -> Found:
    created = seconds(row.get("created_at")) or origin.written_at
    used = seconds(row.get("last_used_at")) or created
    fields = {
        "id": origin.id(f"experience/{row.get('id')}"),
        "type": str(row["type"]),
        "intent": str(row["intent"]).strip()[:4000],
        "solution": _json(row.get("solution")),
        "success_score": _share(row.get("success_score")),
        "tags": tags_of(row.get("tags")),
        "conversation": str(row.get("source_conversation_id") or "")[:200],
        "user": str(row.get("user_id") or "")[:200],
        "created_at": created,
        "last_used_at": max(created, used),
        "use_count": row["use_count"] if isinstance(row.get("use_count"), int) else 1,
        "weight": _share(row.get("weight")),
    }
    return Found(origin.place, fields, is_experience=True)


def _share(value: Json) -> float:
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 1.0


def _json(value: Json) -> Json:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
