"""All routes of the daemon."""

from __future__ import annotations

from ..operations import OPERATIONS, Operation
from . import events, openapi


def all_routes() -> tuple[Operation, ...]:
    """The operations, and the routes that only the edge has."""
    routes = (*OPERATIONS, events.OPERATION)
    return (*routes, openapi.operation_for(routes))
