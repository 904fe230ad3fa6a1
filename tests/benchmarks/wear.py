"""What storing costs the disk: syncs, and bytes written, for one memory."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from corpus import Corpus
from measuring import Row
from running import Running, request

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))

from tracing import Tracing

_STEADY = 60
_KB = 1024


def wear(daemon: Running) -> Iterator[Row]:
    """One store alone, and one a second; nothing where strace cannot be used."""
    texts = Corpus().texts(seed=4)
    for what, stores, syncs in (("alone", 1, 4.0), ("one a second", _STEADY, 1.5)):
        _quiet(daemon)
        wire = daemon.connect()
        with Tracing(daemon.pid, daemon.folder) as tracing:
            if tracing.why_not:
                print(f"wear is not measured: {tracing.why_not}", file=sys.stderr)
                return
            for _ in range(stores):
                begun = time.monotonic()
                wire.send(request("POST", "/api/memory", {"text": next(texts)}))
                time.sleep(max(0.0, 1.0 - (time.monotonic() - begun)))
            daemon.settle()
        wire.close()
        yield Row(
            what=f"syncs of a store, {what}",
            unit="",
            p50=tracing.syncs.total() / stores,
            budget=syncs,
        )
        yield Row(
            what=f"written for a store, {what}",
            unit="KB",
            p50=tracing.written.total() / stores / _KB,
            budget=64.0 if stores > 1 else None,
        )


def _quiet(daemon: Running) -> None:
    """Wait until the daemon may show a few changes at once again."""
    daemon.settle()
    time.sleep(30.0)
