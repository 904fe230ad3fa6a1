"""The command line against a daemon that runs."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, bare_python, milliseconds, run, timed
from running import Running

_TIMES = 20


def commands(daemon: Running) -> Iterator[Row]:
    """Whole commands, from the start of the process to its end."""
    thermocline = [
        str(Path(sys.executable).with_name("thermocline")),
        "--socket",
        str(daemon.socket),
    ]
    for name, words in {
        "status": ["status"],
        "store": ["store", "the user prefers tea in the morning"],
        "retrieve": ["retrieve", "tea"],
    }.items():
        command = [*thermocline, *words]
        run(command)
        bare: list[float] = []
        times: list[float] = []
        # In turns, so that a machine that is busy for a while is so for both.
        for _ in range(_TIMES):
            bare += bare_python(1)
            times += milliseconds([lambda command=command: run(command)])
        python = statistics.median(bare)
        yield timed(
            f"command {name}",
            sorted(times),
            beside=("python -c pass", python),
            budget=1.5 * python + 30,
        )
