"""Everything that can be asked of the daemon, in one table."""

from __future__ import annotations

from . import (
    agents,
    cold,
    events,
    hot,
    key_values,
    memories,
    merging,
    metadata,
    openapi,
    recall,
    status,
    tree,
)
from .calls import Route


def all_routes() -> tuple[Route, ...]:
    """The routes of every noun. A fixed path goes before one with a part that varies."""
    routes = (
        *recall.ROUTES,
        *merging.ROUTES,
        *memories.ROUTES,
        *hot.ROUTES,
        *tree.ROUTES,
        *cold.ROUTES,
        *key_values.ROUTES,
        *metadata.ROUTES,
        *agents.ROUTES,
        *status.ROUTES,
        *events.ROUTES,
    )
    return (*routes, openapi.route(routes))
