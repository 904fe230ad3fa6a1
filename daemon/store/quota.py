"""The quotas of an agent."""

from __future__ import annotations

import sqlite3

from ..config.settings import Quotas
from ..errors import QuotaReached


def require_room(db: sqlite3.Connection, agent: str, quotas: Quotas) -> None:
    """Check that the agent is below its quotas.

    Raises:
        QuotaReached: it has the maximum number of memories or size of the database.
    """
    if quotas.memories:
        (memories,) = db.execute("SELECT count(*) FROM memories").fetchone()
        if memories >= quotas.memories:
            raise _reached(agent, f"{memories} memories", "quotas.memories")
    if quotas.megabytes:
        # Without free pages: deleting makes room at once.
        pages, free, size = (
            db.execute(f"PRAGMA main.{name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        megabytes = (pages - free) * size / (1 << 20)
        if megabytes >= quotas.megabytes:
            raise _reached(agent, f"{megabytes:.1f} MB", "quotas.megabytes")


def _reached(agent: str, has: str, key: str) -> QuotaReached:
    return QuotaReached(
        f"cannot store more for '{agent}': it has {has}, and may have no more",
        hint=f"forget some, or raise {key}",
    )
