"""Restoring a whole memory from a server that is 50 ms away, beside one that is not."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from cloud import network, server
from corpus import Corpus
from measuring import Row
from running import environment

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import fingerprints, outgoing
from thermocline.sync import Replica

_ROUND_TRIP_MS = 50.0
_BUDGET_SECONDS = 60.0
_AT_ONCE = 500


def restore(folder: Path, size: int) -> Iterator[Row]:
    """Seconds by the clock of the wall, from the command to its end; and its memory.

    Raises:
        SystemExit: what was restored is not what was sent.
    """
    with server(folder / "server") as remote:
        sent = asyncio.run(_fill(remote.url, size))
        near = _restored(folder / "near", remote.url, size, sent)
        with network(remote.port, _ROUND_TRIP_MS) as url:
            far = _restored(folder / "far", url, size, sent)
    yield Row(
        what=f"restore, {_ROUND_TRIP_MS:.0f} ms round trip",
        unit="s",
        p50=far,
        beside=("without the delay", near),
        budget=_BUDGET_SECONDS,
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Row(what="restore: most memory of a process", unit="MB", p50=peak)


async def _fill(url: str, size: int) -> str:
    """Send memories as a device would; return the fingerprint of all of them."""
    from thermocline.sync import turso  # noqa: PLC0415 - slow to load

    remote = await turso.connect(url)
    replica = Replica(remote, "default")
    await replica.prepare(time.time())
    made = _memories(size)
    found: list[bytes] = []
    while rows := [outgoing.memory_row(memory, 0) for memory in islice(made, _AT_ONCE)]:
        await replica.push(rows)
        found += map(fingerprints.of_received, rows)
    await remote.close()
    return fingerprints.total(found)


def _memories(size: int) -> Iterator[Memory]:
    for number, body in enumerate(Corpus().memories(size, time.time()), start=1):
        fields: dict[str, Any] = body | {"tags": tuple(body.get("tags", ()))}
        yield Memory(
            **fields,
            id=f"{number:016x}",
            updated_at=body["created_at"],
            archived_at=body["created_at"] if number < size - 100 else None,
            clock=number,
            device="bench",
            filed_clock=number,
            filed_device="bench",
        )


def _restored(folder: Path, url: str, size: int, sent: str) -> float:
    command = [sys.executable, "-m", "thermocline.daemon.cli.main", "restore", "--json"]
    command += ["--url", url, "--to", str(folder)]
    began = time.monotonic()
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    )
    seconds = time.monotonic() - began
    [restored] = json.loads(done.stdout)["restored"]
    if (restored["memories"], restored["fingerprint"]) != (size, sent):
        raise SystemExit(f"restored {restored}, not {size} memories with the fingerprint {sent}")
    return seconds
