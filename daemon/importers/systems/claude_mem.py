"""claude-mem: the SQLite database of its worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..found import Found, GivenPath, Origin, category, json_list, tags_of
from ..values import seconds

NAME: Final = "claude-mem"
_IMPORTANCE: Final = {"decision": 0.8, "bugfix": 0.6, "discovery": 0.6}
_SUMMARY: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def detect(look: GivenPath) -> bool:
    """Whether a database has its tables."""
    return bool(look.with_tables("observations", "session_summaries"))


def read(look: GivenPath) -> Iterator[Found]:
    """Each fact of an observation, else its narrative, and each summary of a session."""
    for copy in look.with_tables("observations", "session_summaries"):
        for table, entry in (("observations", _observation), ("session_summaries", _summary)):
            origin = look.origin(NAME, copy.path, table)
            for row in look.rows(copy, table, "id"):
                yield from entry(origin, row)
        if prompts := sum(1 for _ in look.rows(copy, "user_prompts")):
            why = f"{prompts} prompts are not read: Claude Code's transcripts have them"
            look.fault(f"{copy.path}: user_prompts", f"{why}, with the answers")


def _observation(origin: Origin, row: dict[str, Any]) -> Iterator[Found]:
    session = str(row.get("memory_session_id") or row.get("sdk_session_id") or "")
    kind, title = str(row.get("type") or "observation"), str(row.get("title") or "")
    told = [one for one in json_list(row.get("facts")) if isinstance(one, str) and one.strip()]
    texts = told or [row.get("narrative") or row.get("text") or title]
    for number, text in enumerate(texts):
        yield from origin.memory(
            f"{session}/{row.get('id')}/{number}", text,
            subject=title, category=category("projects", row.get("project")),
            tags=tags_of([kind], row.get("concepts")), group=session,
            importance=_IMPORTANCE.get(kind, 0.5), type=_type(kind),
            paths=json_list(row.get("files_modified")),
            data={"prompt": row.get("prompt_number")} if row.get("prompt_number") else None,
            created_at=seconds(row.get("created_at_epoch"), row.get("created_at")),
        )  # fmt: skip


def _summary(origin: Origin, row: dict[str, Any]) -> Iterator[Found]:
    session = str(row.get("memory_session_id") or row.get("sdk_session_id") or "")
    parts = [
        f"{name.replace('_', ' ')}: {row[name].strip()}"
        for name in _SUMMARY
        if isinstance(row.get(name), str) and row[name].strip()
    ]
    yield from origin.memory(
        f"{session}/summary/{row.get('id')}", "\n".join(parts),
        subject=row.get("request"), type="episodic", event="task_completed",
        category=category("projects", row.get("project")), tags=["session"], group=session,
        created_at=seconds(row.get("created_at_epoch"), row.get("created_at")),
    )  # fmt: skip


def _type(kind: str) -> str:
    return "procedural" if kind == "how-it-works" else "semantic"
