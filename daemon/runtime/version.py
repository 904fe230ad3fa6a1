"""The release that runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """The version of the installed package; `0+source` when run without one."""
    try:
        return installed("thermocline")
    except PackageNotFoundError:
        return "0+source"
