"""`/api/openapi.json`: the API describing itself, generated from the operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from inspect import getdoc
from typing import Any, Final

import msgspec
from msgspec import inspect

from ..config.settings import Settings
from ..operations import OPERATIONS
from ..operations.operation import JSON, Operation
from ..operations.scope import Scope
from ..shapes.common import SETTING
from . import events

_ABOUT: Final = """A memory for AI agents, over a Unix socket.

Text is Unicode without NUL characters. Whole numbers are written without a fraction. Bodies, texts
and lists have the limits of the configuration; what is beyond them is refused with 413 or 400."""
_REFERENCE: Final = "#/components/schemas/{name}"
# The name of a type's maximum size.
_LARGEST: Final = {"integer": "maximum", "string": "maxLength", "array": "maxItems"}
_AGENT: Final = {
    "name": "agent",
    "in": "query",
    "description": "whose memory; the header X-Agent says the same",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
}


def describe(operations: Sequence[Operation], settings: Settings, version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document for `operations`, with the limits of `settings`."""
    taken = [one.body for one in operations if one.body is not None]
    answered = [kind for one in operations if one.type == JSON for kind in one.answers]
    kinds = list(dict.fromkeys([*taken, *answered]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    by_kind = dict(zip(kinds, schemas, strict=True))
    _require(components, answered, taken)
    components["Error"] = _ERROR
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, by_kind)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Thermocline",
            "version": version,
            "description": _ABOUT,
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    _limit(document, settings)
    return document


def _operation(one: Operation, by_kind: dict[Any, Any]) -> dict[str, Any]:
    schemas = [by_kind[kind] for kind in one.answers if kind in by_kind]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    content = {
        one.type: {"schema": schema if one.type == JSON else {"type": "string"}},
        **{kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in one.others},
    }
    error = {"application/json": {"schema": {"$ref": _REFERENCE.format(name="Error")}}}
    given = getdoc(one.query) if one.query is not None else None
    about = (f"Needs the role `{one.role}`.", one.details, given)
    described: dict[str, Any] = {
        "summary": one.summary,
        "description": " ".join(filter(None, about)),
        "operationId": f"{one.method.lower()}_{_NO_WORD.sub('_', one.path[5:]).strip('_')}",
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": msgspec.json.schema(kind)}
                for name, kind in one.parts.items()
            ),
            *([] if one.query is None else _parameters(one.query)),
            *([_AGENT] if one.agent else []),
        ],
        "responses": {
            **{str(status): {"description": "Done", "content": content} for status in one.statuses},
            "default": {"description": "Refused; nothing was changed", "content": error},
        },
    }
    if one.body is not None:
        taken = {"application/json": {"schema": by_kind[one.body]}}
        described["requestBody"] = {"required": one.needs_body, "content": taken}
    return described


def _parameters(query: type[Any]) -> Iterable[dict[str, Any]]:
    _, components = msgspec.json.schema_components([query], ref_template=_REFERENCE)
    schema = components[query.__name__]
    for name, field in schema["properties"].items():
        required = name in schema.get("required", [])
        yield {"name": name, "in": "query", "required": required, "schema": _without_null(field)}


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A schema for a URL's parameter, which can be left out but not be null."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind != _NULL]
    if _NULL not in field.get("anyOf", ()):
        return field
    found: dict[str, Any] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return found


def _require(components: dict[str, Any], answered: list[Any], taken: list[Any]) -> None:
    """Name the fields that answers always have: those with a default too."""
    requests = {found.cls for found in _structs(taken)}
    for found in _structs(answered):
        if found.cls in requests:
            continue
        omits = found.cls.__struct_config__.omit_defaults
        components[found.cls.__name__]["required"] = [
            field.encode_name
            for field in msgspec.structs.fields(found.cls)
            if field.default is not msgspec.UNSET and (field.required or not omits)
        ]


def _structs(kinds: Iterable[Any]) -> Iterable[inspect.StructType]:
    waiting = list(inspect.multi_type_info(kinds))
    seen: set[type] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, inspect.StructType) and found.cls not in seen:
            seen.add(found.cls)
            yield found
            waiting += [field.type for field in found.fields]
        elif isinstance(found, inspect.UnionType):
            waiting += found.types
        elif isinstance(found, inspect.TupleType):
            waiting += found.item_types
        elif isinstance(found, (inspect.ListType, inspect.VarTupleType)):
            waiting.append(found.item_type)
        elif isinstance(found, inspect.DictType):
            waiting.append(found.value_type)
        elif isinstance(found, inspect.Metadata):
            waiting.append(found.type)


def _limit(schema: Any, settings: Settings) -> None:
    """Insert the value of a setting where a schema names one."""
    inner = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(setting := schema.pop(SETTING, None), str):
        value: Any = settings
        for name in setting.split("."):
            value = getattr(value, name)
        schema[_LARGEST[schema["type"]]] = value
        schema["description"] = f"the maximum is the setting `{setting}`"
    if isinstance(schema, (dict, list)):
        for one in list(inner):
            _limit(one, settings)


def all_routes() -> tuple[Operation, ...]:
    """The operations, and the routes that only the edge has: events, and this description."""

    async def show(scope: Scope) -> dict[str, Any]:
        """Show this description."""
        return describe(routes, scope.settings, scope.daemon.identity.version)

    routes = (
        *OPERATIONS,
        events.OPERATION,
        Operation("GET", "/api/openapi.json", agent=False).done_by(show),
    )
    return routes


_NULL: Final = {"type": "null"}
_NO_WORD: Final = re.compile(r"[^a-z]+")
_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": "string"},
                "hint": {"type": "string"},
            },
        }
    },
}
