"""ScalyClaw: its SQLite database of memories, entities and relations."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from thermocline.sync import Clocks, Row, stamp_at

from ...errors import InvalidInput
from ...memory.expiry import parse_expiry
from ...memory.names import name_key
from ...store.row_lines import line_of
from ..found import Document, Found, GivenPath, category, entity, tags_of
from ..sqlite_copy import Copy
from ..values import seconds

NAME: Final = "scalyclaw"
_COLUMNS: Final = frozenset({"subject", "content", "consolidated_into"})


def detect(look: GivenPath) -> bool:
    """Whether a database has its table."""
    return bool(_copies(look))


def read(look: GivenPath) -> Iterator[Found | Document]:
    """Each memory with its entities; a consolidated one is merged into its replacement.

    Entities were also named by deleted memories: rows have the number and the times of those
    mentions.
    """
    for copy in _copies(look):
        origin = look.origin(NAME, copy.path, "memories")
        try:
            named, alone = _entities(copy)
            counted = _counted(copy)
        except sqlite3.DatabaseError as error:
            named, alone, counted = {}, 0, b""
            look.fault(copy.path, f"the entities cannot be read ({error})")
        if alone:
            why = f"{alone} relations are not read: no memory states them"
            look.fault(f"{copy.path}: memory_relations", why)
        for row in look.rows(copy, "memories", "created_at"):
            created = seconds(row.get("created_at"))
            expires = _expires(row.get("ttl"), created)
            if isinstance(expires, str):
                look.fault(origin.place, f"{row.get('id')}: ttl {expires}")
            into = row.get("consolidated_into")
            yield from origin.memory(
                str(row.get("id")), row.get("content"),
                subject=row.get("subject"), type=row.get("type"),
                category=category(NAME, row.get("type")), tags=tags_of(row.get("tags")),
                source=row.get("source") or NAME, importance=_importance(row),
                access_count=row.get("access_count"), entities=named.get(str(row.get("id"))),
                merged_into=origin.id(str(into)) if into else None,
                expires_at=expires if isinstance(expires, float) else None,
                created_at=created, updated_at=seconds(row.get("updated_at")),
                last_accessed_at=seconds(row.get("last_accessed_at")),
            )  # fmt: skip
        if counted:
            yield Document(copy.path, counted, origin.written_at, "rows")


def _copies(look: GivenPath) -> list[Copy]:
    return [one for one in look.databases() if one.tables.get("memories", set()) >= _COLUMNS]


def _importance(row: dict[str, Any]) -> float:
    """From 1 to 10 there, from 0 to 1 here."""
    given = row.get("importance")
    return min(10.0, max(1.0, given)) / 10 if isinstance(given, int | float) else 0.5


def _expires(ttl: Any, created: float | None) -> float | str | None:
    """The end of a duration since the creation, or a time; a text is the reason for having none."""
    if not isinstance(ttl, str) or not ttl.strip():
        return None
    try:
        return parse_expiry(ttl, created or 0.0)
    except InvalidInput:
        return "cannot be read; it is kept without"


def _entities(copy: Copy) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """The entities of each memory, with their relations; and the number of relations left out."""
    entities = {str(row["id"]): row for row in copy.rows("memory_entities")}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    alone = 0

    def named(memory: str, key: str) -> dict[str, Any]:
        row = entities[key]
        one = entity(row.get("name"), row.get("entity_type"))
        return found.setdefault(memory, {}).setdefault(key, one)

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
        else:
            alone += 1
    return {memory: [*named.values()] for memory, named in found.items()}, alone


def _counted(copy: Copy) -> bytes:
    """Rows for the entities with more mentions than there are memories that name them."""
    mentions = Counter(str(row.get("entity_id")) for row in copy.rows("memory_entity_mentions"))
    lines = b""
    for row in copy.rows("memory_entities"):
        count, name = row.get("mention_count"), str(row.get("name") or "").strip()[:120]
        last = seconds(row.get("last_seen"))
        more = count - mentions[str(row["id"])] if isinstance(count, int) else 0
        if more <= 0 or last is None or not name_key(name):
            continue
        said = {"name": name, "mentions": more, "last_seen": last}
        said["first_seen"] = seconds(row.get("first_seen")) or last
        clocks = Clocks(at=(stamp_at(last), NAME))
        data = dict(sorted(said.items()))
        lines += line_of(Row(kind="entity", id=name_key(name), data=data, clocks=clocks))
    return lines
