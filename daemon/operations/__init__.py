"""The use cases, without HTTP; `OPERATIONS` lists all of them."""

from typing import Final

from . import (
    agents,
    backup,
    cold,
    compact,
    config,
    context,
    conversations,
    distill,
    experiences,
    files,
    forgetting,
    graph,
    history,
    hot,
    imports,
    memories,
    merging,
    metrics,
    own_files,
    pairs,
    recall,
    sessions,
    status,
    sync,
    tools,
    tree,
    upkeep,
)
from .operation import Operation

__all__ = ["OPERATIONS", "Operation"]

_MODULES: Final = (
    recall, context, tools, merging, history, forgetting, metrics, memories, hot, tree,
    cold, pairs, compact, distill, files, graph, conversations, own_files, experiences,
    sessions, agents, sync, imports, upkeep, backup, status, config,
)  # fmt: skip

OPERATIONS: Final[tuple[Operation, ...]] = tuple(
    one for module in _MODULES for one in module.OPERATIONS
)
