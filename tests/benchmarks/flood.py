"""Recall of one agent while another asks without pause, beside recall while nobody else asks."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from corpus import Corpus
from measuring import Row, milliseconds, percentile, timed
from running import Running, Wire, environment, request

_MEMORIES = 5_000
_QUERIES = 300
_CONNECTIONS = 32
_P99_MS = 100.0
# In a process of its own: it must not slow down whoever measures.
_FLOOD = """
import sys, threading
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from running import Wire, request
prepared = request("POST", "/api/recall?agent=flooder", {"query": sys.argv[2], "limit": 20})
def ask():
    wire = Wire(Path(sys.argv[1]))
    while True:
        wire.send(prepared)
for _ in range(32):
    threading.Thread(target=ask).start()
"""


def flood(folder: Path) -> Iterator[Row]:
    """The same queries twice; the second time another process asks over many connections."""
    with Running(folder) as daemon:
        wire, corpus = daemon.connect(), Corpus()
        texts = itertools.islice(corpus.texts(3), _MEMORIES)
        while batch := [{"text": text} for text in itertools.islice(texts, 500)]:
            for agent in ("default", "flooder"):
                wire.post(f"/api/memory/batch?agent={agent}", {"memories": batch})
        queries = list(itertools.islice(corpus.texts(4), _QUERIES))
        _ask(wire, queries[:50])
        quiet = percentile(_ask(wire, queries), 0.99)
        command = [sys.executable, "-c", _FLOOD, str(daemon.socket), queries[0], *sys.path]
        with subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL) as flooder:
            _ask(wire, queries[:50])
            times = _ask(wire, queries)
            flooder.kill()
        wire.close()
    yield timed(
        f"recall beside an agent that asks over {_CONNECTIONS} connections",
        times,
        beside=("99th, quiet", quiet),
        budget_p99=_P99_MS,
    )


def _ask(wire: Wire, queries: list[str]) -> list[float]:
    prepared = [request("POST", "/api/recall", {"query": query}) for query in queries]
    return milliseconds(lambda one=one: wire.send(one) for one in prepared)
