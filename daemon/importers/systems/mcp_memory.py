"""The knowledge graph of the MCP reference server `server-memory`: JSON lines."""

from __future__ import annotations

from typing import Any, Final

from ...memory.records import Json
from ..found import GivenPath, Origin, ReadFault, Reading, category, lines_of

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


def read(look: GivenPath) -> Reading:
    """Each observation and each relation as a memory that names its entities."""
    path = look.path
    origin = Origin(NAME, look.stat.st_mtime)
    kinds: dict[str, str] = {}
    for line in lines_of(path, path.parent):
        if isinstance(line, ReadFault):
            yield line
            continue
        number, fields = line
        if not _is_ours(fields):
            yield ReadFault(str(path), f"line {number}: neither an entity nor a relation")
        elif fields["type"] == "entity":
            name, kind = str(fields["name"]), str(fields.get("entityType") or "")
            kinds[name] = kind
            observations = fields.get("observations")
            if not isinstance(observations, list):
                yield ReadFault(str(path), f"line {number}: 'observations' is not a list")
                continue
            for position, text in enumerate(observations):
                if not isinstance(text, str):
                    yield ReadFault(str(path), f"line {number}: an observation is not text")
                    continue
                yield from origin.memory(
                    str(path), f"{name}\0{text}", text, subject=name[:500],
                    category=category("entities", kind), tags=[kind] if kind else [],
                    entities=[_entity(name, kind)],
                    data={"entity": name, "place": position},
                )  # fmt: skip
        else:
            one, other = str(fields["from"]), str(fields["to"])
            relation = str(fields["relationType"])
            said = f"{one} {relation.replace('_', ' ')} {other}"
            told = _entity(one, kinds.get(one, "")) | {
                "relations": [{"relation": relation.lower()[:120], "target": other[:120]}]
            }
            yield from origin.memory(
                str(path), f"{one}\0{relation}\0{other}", said,
                category="entities/relations", tags=["relation"], subject=one[:500],
                entities=[told, _entity(other, kinds.get(other, ""))],
            )  # fmt: skip


def _is_ours(fields: dict[str, Json]) -> bool:
    if fields.get("type") == "entity":
        return isinstance(fields.get("name"), str)
    wanted = ("from", "to", "relationType")
    return fields.get("type") == "relation" and all(isinstance(fields.get(n), str) for n in wanted)


def _entity(name: str, kind: str) -> dict[str, Any]:
    return {"name": name[:120], "type": _TYPES.get(kind.lower(), "concept")}
