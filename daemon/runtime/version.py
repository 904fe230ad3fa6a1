"""The release that runs, without a search among the installed packages."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

VERSION: Final = "0.1.0"
