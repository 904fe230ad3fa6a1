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
from ..operations.operation import JSON, Operation, Scope
from ..schemas.common import SETTING
from .streams import EVENTS

_ABOUT: Final = """A memory for AI agents, over a Unix socket.

Text is Unicode without NUL characters. Whole numbers are written without a fraction. Bodies, texts
and lists have the limits of the configuration; what is beyond them is refused with 413 or 400."""
_REFERENCE: Final = "#/components/schemas/{name}"
# The name of a type's maximum size.
_LARGEST: Final = {"integer": "maximum", "string": "maxLength", "array": "maxItems"}
_AGENT: Final = {
    "name": "agent",
    "in": "query",
    "description": (
        "whose memory; the header X-Agent says the same. X-Program names the program that asks,"
        " beside its user, as the author of what it writes"
    ),
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
}


def describe(operations: Sequence[Operation], settings: Settings, version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document for `operations`, with the limits of `settings`."""
    requests = [operation.body for operation in operations if operation.body is not None]
    answers = [
        kind for operation in operations if operation.type == JSON for kind in operation.answers
    ]
    kinds = list(dict.fromkeys([*requests, *answers]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    by_kind = dict(zip(kinds, schemas, strict=True))
    _require(components, answers, requests)
    components["Error"] = _ERROR
    paths: dict[str, Any] = {}
    for operation in operations:
        for method in operation.methods:
            described = _operation(operation, method, by_kind)
            paths.setdefault(operation.path, {})[method.lower()] = described
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Thermocline", "version": version, "description": _ABOUT},
        "paths": paths,
        "components": {"schemas": components},
    }
    _limit(document, settings)
    return document


def _operation(operation: Operation, method: str, by_kind: dict[Any, Any]) -> dict[str, Any]:
    query, body = operation.query, operation.body
    if method != operation.method:
        query, body = body, None
    schemas = [by_kind[kind] for kind in operation.answers if kind in by_kind]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    content = {
        operation.type: {"schema": schema if operation.type == JSON else {"type": "string"}},
        **{kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in operation.others},
    }
    done = {"description": "Done", "content": content}
    error = {"application/json": {"schema": {"$ref": _REFERENCE.format(name="Error")}}}
    parameters = getdoc(query) if query is not None else None
    about = (f"Needs the role `{operation.role}`.", operation.details, parameters)
    described: dict[str, Any] = {
        "summary": operation.summary,
        "description": " ".join(filter(None, about)),
        "operationId": f"{method.lower()}_{_NO_WORD.sub('_', operation.path[5:]).strip('_')}",
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": msgspec.json.schema(kind)}
                for name, kind in operation.parts.items()
            ),
            *([] if query is None else _parameters(query)),
            *([_AGENT] if operation.agent else []),
        ],
        "responses": {
            **{str(status): done for status in operation.statuses},
            "default": {"description": "Refused; nothing was changed", "content": error},
        },
    }
    if body is not None:
        described["requestBody"] = {
            "required": operation.needs_body,
            "content": {"application/json": {"schema": by_kind[body]}},
        }
    return described


def _parameters(query: type[Any]) -> Iterable[dict[str, Any]]:
    _, components = msgspec.json.schema_components([query], ref_template=_REFERENCE)
    schema = components[query.__name__]
    for name, field in schema["properties"].items():
        # An object has no form in a URL.
        if "$ref" in str(field):
            continue
        required = name in schema.get("required", [])
        yield {"name": name, "in": "query", "required": required, "schema": _without_null(field)}


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A schema for a URL's parameter, which can be left out but not be null."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind != _NULL]
    if _NULL not in field.get("anyOf", ()):
        return field
    schema: dict[str, Any] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return schema


def _require(components: dict[str, Any], answers: list[Any], requests: list[Any]) -> None:
    """Name the fields that answers always have: those with a default too."""
    of_requests = {struct.cls for struct in _structs(requests)}
    for struct in _structs(answers):
        if struct.cls in of_requests:
            continue
        omits = struct.cls.__struct_config__.omit_defaults
        components[struct.cls.__name__]["required"] = [
            field.encode_name
            for field in msgspec.structs.fields(struct.cls)
            if field.default is not msgspec.UNSET and (field.required or not omits)
        ]


def _structs(kinds: Iterable[Any]) -> Iterable[inspect.StructType]:
    waiting = list(inspect.multi_type_info(kinds))
    seen: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, inspect.StructType) and kind.cls not in seen:
            seen.add(kind.cls)
            yield kind
            waiting += [field.type for field in kind.fields]
        elif isinstance(kind, inspect.UnionType):
            waiting += kind.types
        elif isinstance(kind, inspect.TupleType):
            waiting += kind.item_types
        elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
            waiting.append(kind.item_type)
        elif isinstance(kind, inspect.DictType):
            waiting.append(kind.value_type)
        elif isinstance(kind, inspect.Metadata):
            waiting.append(kind.type)


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
        for part in list(inner):
            _limit(part, settings)


def all_routes() -> tuple[Operation, ...]:
    """The operations, and the routes that only the edge has: events, and this description."""

    async def show(scope: Scope) -> dict[str, Any]:
        """Show this description."""
        return describe(routes, scope.settings, scope.daemon.identity.version)

    routes = (*OPERATIONS, EVENTS, Operation("GET", "/api/openapi.json", agent=False).done_by(show))
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
