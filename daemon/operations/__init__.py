"""The use cases, without HTTP; `OPERATIONS` lists all of them."""

from importlib import import_module
from typing import Final

from .operation import OPERATIONS, Operation

__all__ = ["OPERATIONS", "Operation"]

_MODULES: Final = (
    "recall", "context", "tools", "history", "metrics", "memories", "tiers", "distill",
    "files", "conversations", "agent_files", "experiences", "sessions", "sync", "sealing",
    "exchange", "upkeep", "status",
)  # fmt: skip

for _name in _MODULES:
    import_module(f".{_name}", __name__)
