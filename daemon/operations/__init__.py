"""The use cases, without HTTP; `OPERATIONS` lists all of them."""

from importlib import import_module
from typing import Final

from .operation import OPERATIONS, Operation

__all__ = ["OPERATIONS", "Operation"]

_MODULES: Final = (
    "recall", "context", "tools", "merging", "history", "forgetting", "metrics", "memories", "hot",
    "tree", "cold", "pairs", "compact", "distill", "files", "graph", "conversations", "own_files",
    "experiences", "sessions", "agents", "sync", "imports", "upkeep", "backup", "status", "config",
)  # fmt: skip

for _name in _MODULES:
    import_module(f".{_name}", __name__)
