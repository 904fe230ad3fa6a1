"""The log: a line for each thing that happened, on standard error. Never a memory's content."""

from __future__ import annotations

import logging
import sys
from typing import Final

_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def configure(level: str) -> None:
    """Log from `level` on. Under systemd the journal gives each line its time and level."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def set_level(level: str) -> None:
    """Change the level of a log that is configured."""
    logging.getLogger().setLevel(level.upper())
