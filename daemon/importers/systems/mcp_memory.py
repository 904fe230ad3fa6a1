"""The knowledge graph of the MCP reference server `server-memory`: JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...memory.records import Json
from ..found import Found, GivenPath, category, entity

NAME: Final = "mcp-memory"
_TYPES: Final = {
    "person": "person",
    "project": "project",
    "technology": "technology",
    "tool": "technology",
    "place": "place",
    "location": "place",
    "organization": "organization",
    "organisation": "organization",
    "company": "organization",
}


def detect(look: GivenPath) -> bool:
    """Whether the first lines are entities or relations."""
    lines = look.first_lines()
    return bool(lines) and all(_is_ours(one) for one in lines if one) and any(lines)


def read(look: GivenPath) -> Iterator[Found]:
    """Each observation and each relation as a memory that names its entities."""
    path, origin = look.path, look.origin(NAME, look.path)
    # The kinds of the entities so far, by their names.
    kinds: dict[str, str] = {}
    for number, fields in look.lines(path):
        if not _is_ours(fields):
            look.fault(path, f"line {number}: neither an entity nor a relation")
        elif fields["type"] == "entity":
            name, kind = str(fields["name"]), str(fields.get("entityType") or "")
            kinds[name] = _TYPES.get(kind.lower(), "concept")
            observations = fields.get("observations")
            if not isinstance(observations, list):
                look.fault(path, f"line {number}: 'observations' is not a list")
                continue
            for position, text in enumerate(observations):
                if not isinstance(text, str):
                    look.fault(path, f"line {number}: an observation is not text")
                    continue
                yield from origin.memory(
                    f"{name}\0{text}", text, subject=name,
                    category=category("entities", kind), tags=[kind] if kind else [],
                    entities=[entity(name, kinds[name])],
                    data={"entity": name, "place": position},
                )  # fmt: skip
        else:
            one, other = str(fields["from"]), str(fields["to"])
            relation = str(fields["relationType"])
            said = f"{one} {relation.replace('_', ' ')} {other}"
            told = entity(one, kinds.get(one, ""), relation=relation.lower(), target=other)
            yield from origin.memory(
                f"{one}\0{relation}\0{other}", said,
                category="entities/relations", tags=["relation"], subject=one,
                entities=[told, entity(other, kinds.get(other, ""))],
            )  # fmt: skip


def _is_ours(fields: dict[str, Json]) -> bool:
    if fields.get("type") == "entity":
        return isinstance(fields.get("name"), str)
    wanted = ("from", "to", "relationType")
    return fields.get("type") == "relation" and all(isinstance(fields.get(n), str) for n in wanted)
