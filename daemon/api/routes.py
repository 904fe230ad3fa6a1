"""Everything that can be asked of the daemon, in one table."""

from __future__ import annotations

from . import (
    agents,
    backup,
    cold,
    cold_replica,
    compact,
    devices,
    distill,
    events,
    export,
    graph,
    hot,
    key_values,
    memories,
    merging,
    metadata,
    observe,
    openapi,
    recall,
    restore,
    stats,
    status,
    sync,
    tree,
    upkeep,
    validate,
)
from .calls import Route


def all_routes() -> tuple[Route, ...]:
    """The routes of every noun. A fixed path goes before one with a part that varies."""
    routes = (
        *recall.ROUTES,
        *merging.ROUTES,
        *stats.ROUTES,
        *memories.ROUTES,
        *hot.ROUTES,
        *tree.ROUTES,
        *cold.ROUTES,
        *cold_replica.ROUTES,
        *key_values.ROUTES,
        *metadata.ROUTES,
        *compact.ROUTES,
        *distill.ROUTES,
        *graph.ROUTES,
        *observe.ROUTES,
        *agents.ROUTES,
        *backup.ROUTES,
        *export.ROUTES,
        *restore.ROUTES,
        *sync.ROUTES,
        *devices.ROUTES,
        *upkeep.ROUTES,
        *validate.ROUTES,
        *status.ROUTES,
        *events.ROUTES,
    )
    return (*routes, openapi.route(routes))
