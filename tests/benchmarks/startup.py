"""From the start of the process to its first answer."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, bare_python
from running import Running

_EMPTY_SECONDS = 0.6
_FILLED_SECONDS = 1.0


def startup(folder: Path, *, filled: bool, times: int) -> Iterator[Row]:
    """The median of several starts over the same folder, or over a fresh one each."""
    answers, logs = [], []
    for number in range(times):
        with Running(folder if filled else folder / str(number)) as daemon:
            answers.append(daemon.ready_seconds)
        logs.append(daemon.logged_seconds)
    budget = _FILLED_SECONDS if filled else _EMPTY_SECONDS
    python = ("python -c pass", statistics.median(bare_python(10)) / 1000)
    yield Row(
        what="start to first answer",
        unit="s",
        p50=statistics.median(answers),
        beside=python,
        budget=budget,
    )
    yield Row(
        what="start to 'ready' in the log",
        unit="s",
        p50=statistics.median(logs),
        beside=python,
        budget=budget,
    )
