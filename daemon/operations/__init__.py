"""The use cases, without HTTP; `OPERATIONS` lists all of them."""

from importlib import import_module
from typing import Final

from .operation import Operation

__all__ = ["OPERATIONS", "Operation"]

_MODULES: Final = (
    "recall", "context", "tools", "merging", "history", "forgetting", "metrics", "memories", "hot",
    "tree", "cold", "pairs", "compact", "distill", "files", "graph", "conversations", "own_files",
    "experiences", "sessions", "agents", "sync", "imports", "upkeep", "backup", "status", "config",
)  # fmt: skip

OPERATIONS: Final[tuple[Operation, ...]] = tuple(
    one for name in _MODULES for one in import_module(f".{name}", __name__).OPERATIONS
)
