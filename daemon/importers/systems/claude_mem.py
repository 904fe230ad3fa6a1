"""claude-mem: the SQLite database of its worker."""

from __future__ import annotations

from typing import Any, Final

from ..found import GivenPath, Origin, ReadFault, Reading, category, json_list, tags_of
from .tables import seconds, table_rows

NAME: Final = "claude-mem"
_IMPORTANCE: Final = {"decision": 0.8, "bugfix": 0.6, "discovery": 0.6}
_SUMMARY: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def detect(look: GivenPath) -> bool:
    """Whether a database has its tables."""
    return bool(look.with_tables("observations", "session_summaries"))


def read(look: GivenPath) -> Reading:
    """Each fact of an observation, else its narrative, and each summary of a session."""
    for copy in look.with_tables("observations", "session_summaries"):
        origin = Origin(NAME, copy.path.stat().st_mtime)
        for row in table_rows(copy, "observations", "id"):
            if isinstance(row, dict):
                yield from _observation(origin, str(copy.path), row)
            else:
                yield row
        for row in table_rows(copy, "session_summaries", "id"):
            if isinstance(row, dict):
                yield from _summary(origin, str(copy.path), row)
            else:
                yield row
        if prompts := sum(isinstance(row, dict) for row in table_rows(copy, "user_prompts")):
            why = f"{prompts} prompts are not read: Claude Code's transcripts have them"
            yield ReadFault(f"{copy.path}: user_prompts", f"{why}, with the answers")


def _observation(origin: Origin, path: str, row: dict[str, Any]) -> Reading:
    session = str(row.get("memory_session_id") or row.get("sdk_session_id") or "")
    kind, title = str(row.get("type") or "observation"), str(row.get("title") or "")
    told = [one for one in json_list(row.get("facts")) if isinstance(one, str) and one.strip()]
    texts = told or [row.get("narrative") or row.get("text") or title]
    for number, text in enumerate(texts):
        yield from origin.memory(
            f"{path}: observations", f"{session}/{row.get('id')}/{number}", text,
            subject=title[:500], category=category("projects", row.get("project")),
            tags=tags_of([kind], row.get("concepts")), group=session[:200],
            importance=_IMPORTANCE.get(kind, 0.5), type=_type(kind),
            paths=json_list(row.get("files_modified")),
            data={"prompt": row.get("prompt_number")} if row.get("prompt_number") else None,
            created_at=seconds(row.get("created_at_epoch"), row.get("created_at")),
        )  # fmt: skip


def _summary(origin: Origin, path: str, row: dict[str, Any]) -> Reading:
    session = str(row.get("memory_session_id") or row.get("sdk_session_id") or "")
    parts = [
        f"{name.replace('_', ' ')}: {row[name].strip()}"
        for name in _SUMMARY
        if isinstance(row.get(name), str) and row[name].strip()
    ]
    yield from origin.memory(
        f"{path}: session_summaries", f"{session}/summary/{row.get('id')}", "\n".join(parts),
        subject=str(row.get("request") or "")[:500], type="episodic", event="task_completed",
        category=category("projects", row.get("project")), tags=["session"], group=session[:200],
        created_at=seconds(row.get("created_at_epoch"), row.get("created_at")),
    )  # fmt: skip


def _type(kind: str) -> str:
    return "procedural" if kind == "how-it-works" else "semantic"
