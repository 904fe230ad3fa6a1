"""Requests and answers, each described once: for the edge and for clients.

The modules load on first use, so that a command loads only those that it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    # isort: off
    from . import (
        agents, cold, common, compact, config, context, distill, experiences, files, graph, history,
        hot, imports, memory, observe, own_files, pairs, profclaw, recall, scalyclaw, sessions,
        stats, status, sync, tools, tree, upkeep,
    )  # fmt: skip
    # isort: on

__all__ = [
    "agents", "cold", "common", "compact", "config", "context", "distill", "experiences",
    "files", "graph", "history", "hot", "imports", "memory", "observe", "own_files",
    "pairs", "profclaw", "recall", "scalyclaw", "sessions", "stats", "status", "sync",
    "tools", "tree", "upkeep",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(name)
    return import_module(f".{name}", __name__)
