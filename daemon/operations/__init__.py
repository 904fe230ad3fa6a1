"""The use cases, without HTTP; `OPERATIONS` lists all of them."""

from typing import Final

from . import (
    agents,
    backup,
    cold,
    compact,
    config,
    context,
    devices,
    distill,
    experiences,
    forgetting,
    graph,
    history,
    hot,
    imports,
    memories,
    merging,
    metadata,
    observe,
    own_files,
    pairs,
    recall,
    stats,
    status,
    sync,
    tree,
    upkeep,
)
from .operation import Operation

__all__ = ["OPERATIONS", "Operation"]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *recall.OPERATIONS,
    *context.OPERATIONS,
    *merging.OPERATIONS,
    *history.OPERATIONS,
    *forgetting.OPERATIONS,
    *stats.OPERATIONS,
    *memories.OPERATIONS,
    *hot.OPERATIONS,
    *tree.OPERATIONS,
    *cold.OPERATIONS,
    *pairs.OPERATIONS,
    *metadata.OPERATIONS,
    *compact.OPERATIONS,
    *distill.OPERATIONS,
    *graph.OPERATIONS,
    *observe.OPERATIONS,
    *own_files.OPERATIONS,
    *experiences.OPERATIONS,
    *agents.OPERATIONS,
    *sync.OPERATIONS,
    *imports.OPERATIONS,
    *devices.OPERATIONS,
    *upkeep.OPERATIONS,
    *backup.OPERATIONS,
    *status.OPERATIONS,
    *config.OPERATIONS,
)
