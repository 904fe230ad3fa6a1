"""What the daemon holds of the machine's memory."""

import time
from collections.abc import Iterator
from pathlib import Path

from corpus import EVERYWHERE
from measuring import Row
from running import Running

_SMALL = 10_000
_SMALL_MB = 48.0
_LARGE_MB = 56.0


def resident(daemon: Running, size: int, when: str) -> Iterator[Row]:
    """Resident megabytes once the state files are written and nothing is under way."""
    daemon.settle()
    time.sleep(2.0)
    yield Row(
        what=f"resident memory, {when}",
        unit="MB",
        p50=daemon.resident_mb(),
        budget=_SMALL_MB if size <= _SMALL else _LARGE_MB,
    )


def after_restart(folder: Path, size: int) -> Iterator[Row]:
    """The same after a start and one recall."""
    with Running(folder) as daemon:
        wire = daemon.connect()
        wire.post("/api/recall", {"query": EVERYWHERE})
        bytes_ = wire.get("/api/status")["agents"]["default"]["size_bytes"]
        wire.close()
        yield Row(what="memory.db", unit="MB", p50=bytes_ / 1e6)
        yield from resident(daemon, size, "after a restart and a recall")
