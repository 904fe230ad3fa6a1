"""Tasks, log, problems, signals and places: what the process needs to run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# The release that runs, without a search among the installed packages.
VERSION: Final = "0.1.0"


def how_to_install(extra: str) -> str:
    """How a person adds an extra to an installation from a checkout."""
    return f"in a checkout: make {extra}, or pipx install --force '.[{extra}]'"
