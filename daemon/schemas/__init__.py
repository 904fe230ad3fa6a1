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
        common, conversations, files, learning, memory, profclaw, recall, scalyclaw, sealing, stats,
        status, sync, tiers, tools, upkeep,
    )  # fmt: skip
    # isort: on


def __getattr__(name: str) -> ModuleType:
    try:
        return import_module(f".{name}", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(name) from None
