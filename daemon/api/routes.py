"""Everything that can be asked of the daemon, in one table."""

from __future__ import annotations

from . import (
    agents,
    backup,
    cold,
    cold_database,
    compact,
    devices,
    distill,
    events,
    forgetting,
    graph,
    history,
    hot,
    importing,
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
        *history.ROUTES,
        *forgetting.ROUTES,
        *stats.ROUTES,
        *memories.ROUTES,
        *hot.ROUTES,
        *tree.ROUTES,
        *cold.ROUTES,
        *cold_database.ROUTES,
        *key_values.ROUTES,
        *metadata.ROUTES,
        *compact.ROUTES,
        *distill.ROUTES,
        *graph.ROUTES,
        *observe.ROUTES,
        *agents.ROUTES,
        *sync.ROUTES,
        *importing.ROUTES,
        *devices.ROUTES,
        *upkeep.ROUTES,
        *backup.ROUTES,
        *restore.ROUTES,
        *validate.ROUTES,
        *status.ROUTES,
        *events.ROUTES,
    )
    return (*routes, openapi.route(routes))
