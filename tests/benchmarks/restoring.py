"""Restoring a whole memory from a server that is 50 ms away, beside one that is not; sealed too."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloud
from measuring import Row
from running import environment

_ROUND_TRIP_MS = 50.0
_BUDGET_SECONDS = {False: 5.0, True: 8.0}


def restore(folder: Path, size: int) -> Iterator[Row]:
    """Seconds by the clock of the wall, from the command to its end; and its memory.

    Raises:
        SystemExit: what was restored is not what was sent.
    """
    for sealed, budget in _BUDGET_SECONDS.items():
        place = folder / ("sealed" if sealed else "plain")
        with cloud.server(place / "server") as remote:
            with cloud.replicating(place / "device", remote.url, sealed=sealed) as daemon:
                cloud.store(daemon, size)
                wire = daemon.connect()
                wire.post("/api/sync", {})
                wire.close()
            key = place / "device/recovery-key" if sealed else None
            near = _restored(place / "near", remote.url, size, key)
            with cloud.network(remote.port, _ROUND_TRIP_MS) as url:
                far = _restored(place / "far", url, size, key)
        yield Row(
            what=f"restore {place.name}, {_ROUND_TRIP_MS:.0f} ms round trip",
            unit="s",
            p50=far,
            beside=("without the delay", near),
            budget=budget,
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Row(what="restore: most memory of a process", unit="MB", p50=peak)


def _restored(folder: Path, url: str, size: int, key: Path | None) -> float:
    command = [sys.executable, "-m", "thermocline.daemon.cli.main", "restore", "--json"]
    command += ["--url", url, "--to", str(folder)]
    command += ["--recovery-key-file", str(key)] if key is not None else []
    began = time.monotonic()
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    )
    seconds = time.monotonic() - began
    [restored] = json.loads(done.stdout)["restored"]
    if dict(restored["counts"])["memory"] != size:
        raise SystemExit(f"restored {restored}, not {size} memories")
    return seconds
