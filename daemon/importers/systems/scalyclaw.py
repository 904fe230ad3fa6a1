"""ScalyClaw: its SQLite database of memories, entities and relations."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from ...errors import InvalidInput
from ...memory.expiry import parse_expiry
from ..found import GivenPath, Origin, ReadFault, Reading, category, tags_of
from ..sqlite_copy import Copy
from .tables import seconds, table_rows

NAME: Final = "scalyclaw"
_COLUMNS: Final = frozenset({"subject", "content", "consolidated_into"})


def detect(look: GivenPath) -> bool:
    """Whether a database has its table."""
    return bool(_copies(look))


def read(look: GivenPath) -> Reading:
    """Each memory with its entities; what was consolidated is merged into what replaced it."""
    for copy in _copies(look):
        origin, place = Origin(NAME, copy.path.stat().st_mtime), f"{copy.path}: memories"
        try:
            named = _entities(copy)
        except sqlite3.DatabaseError as error:
            named = {}
            yield ReadFault(str(copy.path), f"the entities cannot be read ({error})")
        for row in table_rows(copy, "memories", "created_at"):
            if isinstance(row, ReadFault):
                yield row
                continue
            created = seconds(row.get("created_at"))
            expires = _expires(row.get("ttl"), created)
            if isinstance(expires, str):
                yield ReadFault(place, f"{row.get('id')}: ttl {expires}")
            into = row.get("consolidated_into")
            yield from origin.memory(
                place, str(row.get("id")), row.get("content"),
                subject=str(row.get("subject") or "")[:500], type=row.get("type"),
                category=category(NAME, row.get("type")), tags=tags_of(row.get("tags")),
                source=str(row.get("source") or NAME)[:200], importance=_importance(row),
                access_count=row.get("access_count"), entities=named.get(str(row.get("id"))),
                merged_into=origin.id(str(into)) if into else None,
                expires_at=expires if isinstance(expires, float) else None,
                created_at=created, updated_at=seconds(row.get("updated_at")),
                last_accessed_at=seconds(row.get("last_accessed_at")),
            )  # fmt: skip


def _copies(look: GivenPath) -> list[Copy]:
    return [one for one in look.databases() if one.tables.get("memories", set()) >= _COLUMNS]


def _importance(row: dict[str, Any]) -> float:
    """From 1 to 10 there, from 0 to 1 here."""
    given = row.get("importance")
    return min(10.0, max(1.0, given)) / 10 if isinstance(given, int | float) else 0.5


def _expires(ttl: Any, created: float | None) -> float | str | None:
    """The end of a duration since the creation, or a moment; text says why there is none."""
    if not isinstance(ttl, str) or not ttl.strip():
        return None
    try:
        return parse_expiry(ttl, created or 0.0)
    except InvalidInput:
        return "cannot be read; it is kept without"


def _entities(copy: Copy) -> dict[str, list[dict[str, Any]]]:
    """What each memory names, with the relations that came from it."""
    entities = {str(row["id"]): row for row in copy.rows("memory_entities")}
    found: dict[str, dict[str, dict[str, Any]]] = {}

    def named(memory: str, entity: str) -> dict[str, Any]:
        row = entities[entity]
        one = {"name": str(row.get("name"))[:120], "type": row.get("entity_type") or "concept"}
        return found.setdefault(memory, {}).setdefault(entity, one)

    for row in copy.rows("memory_entity_mentions"):
        if str(row.get("entity_id")) in entities:
            named(str(row.get("memory_id")), str(row["entity_id"]))
    for row in copy.rows("memory_relations"):
        one, other = str(row.get("source_id")), str(row.get("target_id"))
        if row.get("memory_id") and one in entities and other in entities:
            link = {
                "relation": str(row.get("relation"))[:120],
                "target": entities[other].get("name"),
            }
            named(str(row["memory_id"]), one).setdefault("relations", []).append(link)
    return {memory: [*named.values()] for memory, named in found.items()}
