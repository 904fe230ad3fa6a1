"""`/api/openapi.json`: the API describing itself, generated from the routes and their structs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from .calls import Call, Reply, Route

_REFERENCE: Final = "#/components/schemas/{name}"


def describe(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document for `routes`."""
    kinds = [kind for route in routes for kind in (route.body, route.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    by_kind = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    components["Error"] = _ERROR
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Thermocline",
            "version": version,
            "description": "A memory for AI agents, over a Unix socket.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: Route, by_kind: dict[int, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "description": f"Needs the role `{route.role}`.",
        "operationId": f"{route.method.lower()}_{re.sub(r'[^a-z]+', '_', route.path[5:])}",
        "parameters": _parameters(route),
        "responses": {
            str(route.status): {
                "description": "Done",
                "content": {kind: _shape(kind, route, by_kind) for kind in route.types},
            },
            "default": {
                "description": "Refused; nothing was changed",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if route.body is not None:
        content = {"application/json": {"schema": by_kind[id(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _shape(kind: str, route: Route, by_kind: dict[int, Any]) -> dict[str, Any]:
    is_json = kind == "application/json"
    return {"schema": by_kind.get(id(route.answer), {}) if is_json else {"type": "string"}}


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    if route.query is not None:
        _, components = msgspec.json.schema_components([route.query], ref_template=_REFERENCE)
        schema = components[route.query.__name__]
        required = schema.get("required", [])
        for name, field in schema["properties"].items():
            found.append(
                {"name": name, "in": "query", "required": name in required, "schema": field}
            )
    if route.agent:
        found.append(
            {
                "name": "agent",
                "in": "query",
                "description": "whose memory; the header X-Agent says the same",
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
            }
        )
    return found


def route(routes: Sequence[Route]) -> Route:
    """The route that serves the description of `routes` and itself."""

    async def show(call: Call) -> Reply:
        return Reply(describe([*routes, own], call.services.identity.version))

    own = Route(
        method="GET",
        path="/api/openapi.json",
        handler=show,
        summary="This description",
        answer=dict[str, Any],
        agent=False,
    )
    return own


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
