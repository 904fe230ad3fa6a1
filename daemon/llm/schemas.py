"""The form that a reply must have, from the type that it is read into."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from .wire import Wanted

# Servers that hold a model to a schema understand a part of JSON Schema only.
_DROPPED: Final = frozenset({"default", "title", "$defs"})
WRAPPER: Final = "items"

Json = Any


def wanted(kind: Any) -> Wanted:
    """The schema of a kind: of an object in any case, without references or optional keys.

    That is the strictest form that servers ask for. A reply may leave keys out all the same,
    where the type has a default.
    """
    whole = msgspec.json.schema(kind)
    schema = _strict(whole, whole.get("$defs", {}))
    if schema.get("type") != "object":
        schema = _strict({"type": "object", "properties": {WRAPPER: schema}}, {})
    name = re.sub(r"[^A-Za-z0-9_]", "", getattr(kind, "__name__", "")).lower() or "reply"
    return Wanted(name[:64], schema, msgspec.json.encode(schema).decode())


def _strict(node: Json, named: dict[str, Json]) -> Json:
    if isinstance(node, list):
        return [_strict(item, named) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(named[node["$ref"].rpartition("/")[2]], named)
    kept = {key: value for key, value in node.items() if key not in _DROPPED}
    # The names in here are keys of the reply, none of them a word of the schema's own.
    properties = kept.pop("properties", None)
    made = {key: _strict(value, named) for key, value in kept.items()}
    if properties is not None:
        made["properties"] = {name: _strict(one, named) for name, one in properties.items()}
        made["required"] = list(properties)
        made["additionalProperties"] = False
    return made
