"""What the daemon costs while nobody asks anything."""

import time
from collections.abc import Iterator

from measuring import Row
from running import Running


def processor(daemon: Running, seconds: float) -> Iterator[Row]:
    """Per cent of one processor over so many seconds."""
    daemon.settle()
    time.sleep(2.0)
    before = daemon.cpu_seconds()
    time.sleep(seconds)
    used = daemon.cpu_seconds() - before
    yield Row(
        what=f"idle processor, over {seconds:g} s",
        unit="%",
        p50=100 * used / seconds,
        budget=0.1,
    )
