"""The index of watched files: a real documentation tree, beside grep and plain FTS5."""

import hashlib
import random
import re
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, milliseconds, timed
from recall import round_trip
from running import Running, Wire, request, with_query

# Packages that are documentation, with the digests of their files.
_PACKAGES = {
    "@mastra/mcp-docs-server@1.2.27": (
        "0ca2de9f3524ddb6bbfd4795d0aab0477018fab9aa4dac526b41c8589afa86a4"
    ),
    "@mastra/mcp-docs-server@0.13.31": (
        "db0d12f02e67564755a86708ed7187ba89e4f2a222322478c423dacd5f0c60ed"
    ),
    "@workos/mcp-docs-server@0.2.0": (
        "f2ead718ecee4323f6f711b82a45d2b3ff46fc05eb66860ffc459c169f933e69"
    ),
    "@voltagent/docs-mcp@2.0.3": (
        "546098682fa5d7dbd5da647a2cf53fc5ded94dc5e04afa739e4d501a3eac3fa2"
    ),
    "npm@11.0.0": "f69aa67502f6fc1fe330e4b454110d625205e95df557aef9779e1e813e0e1289",
}
_ENDINGS = (".md", ".mdx", ".txt")
_ASKED = 300
_GREPPED = 20
_SAVED = 40
_LIMIT = 6


def index(folder: Path) -> Iterator[Row]:
    """Read the tree, ask it, change it."""
    folder.mkdir(parents=True)
    tree = folder / "docs"
    files, chars = fetch(tree, folder / "packages")
    queries = _queries(tree)
    with Running(folder / "daemon") as daemon:
        wire = daemon.connect()
        wire.post("/api/memory", {"text": "the otter sleeps"})
        daemon.settle()
        before = daemon.resident_mb()
        bare = ("bare round trip", round_trip(wire))
        asked = [request("POST", with_query("/api/recall", {}), {"query": "otter"})]
        calm = milliseconds(lambda: wire.send(asked[0]) for _ in range(_ASKED))
        yield timed("recall before there are files", calm, beside=bare)
        begun, used = time.monotonic(), daemon.cpu_seconds()
        wire.post("/api/files/paths", {"path": str(tree)})
        busy: list[float] = []
        while wire.get("/api/files/stats")["state"]["dirty"]:
            busy += milliseconds(lambda: wire.send(asked[0]) for _ in range(5))
            time.sleep(0.05)
        took = time.monotonic() - begun
        stats = wire.get("/api/files/stats")
        of = f"{files:,} files, {chars / 1e6:.1f} MB"
        yield Row(what=f"index of {of}", unit="s", p50=took)
        yield Row(what="… processor", unit="s", p50=daemon.cpu_seconds() - used)
        yield Row(what=f"… {stats['chunks']:,} chunks", unit="chunks/s", p50=stats["chunks"] / took)
        yield timed(
            "recall while files are read", sorted(busy), beside=("before", calm[len(calm) // 2])
        )
        daemon.settle()
        time.sleep(2.0)
        yield Row(
            what="resident memory more than before", unit="MB", p50=daemon.resident_mb() - before
        )
        yield Row(what="index.db", unit="MB", p50=stats["index_bytes"] / 1e6)
        yield from _compared(wire, tree, queries)
        yield from _saved(wire, tree)
        begun = time.monotonic()
        wire.post("/api/files/sync", {})
        yield Row(what="look at all files, none changed", unit="s", p50=time.monotonic() - begun)
        wire.close()


def fetch(tree: Path, packages: Path) -> tuple[int, int]:
    """Put the texts of the packages below a folder; return how many files and bytes they are."""
    packages.mkdir(parents=True)
    files = size = 0
    for name, digest in _PACKAGES.items():
        made = subprocess.run(
            ["npm", "pack", name], cwd=packages, check=True, capture_output=True, text=True
        )
        archive = packages / made.stdout.split()[-1]
        if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
            raise SystemExit(f"{name} is not what it was")
        with tarfile.open(archive) as packed:
            for one in packed:
                if one.isfile() and one.name.endswith(_ENDINGS) and ".." not in one.name:
                    content = packed.extractfile(one)
                    assert content is not None
                    path = tree / archive.stem / one.name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    text = content.read()
                    path.write_bytes(text)
                    files, size = files + 1, size + len(text)
    return files, size


def _queries(tree: Path) -> list[str]:
    """Headings of the files, as people ask for them."""
    rng = random.Random(5)
    found = set()
    for path in sorted(tree.rglob("*.md*")):
        for line in path.read_text(errors="replace").splitlines():
            words = re.findall(r"[A-Za-z]{3,}", line) if line.startswith("## ") else []
            if 2 <= len(words) <= 6:
                found.add(" ".join(words))
    return rng.sample(sorted(found), _ASKED)


def _compared(wire: Wire, tree: Path, queries: list[str]) -> Iterator[Row]:
    path = with_query("/api/files/search", {})
    prepared = [request("POST", path, {"query": one, "max_results": _LIMIT}) for one in queries]
    ours = milliseconds(lambda one=one: wire.send(one) for one in prepared)
    plain = _plain_fts(tree, queries)
    grep = milliseconds(
        lambda one=one: subprocess.run(
            ["grep", "-rilE", "|".join(one.split()), str(tree)], capture_output=True, check=False
        )
        for one in queries[:_GREPPED]
    )
    yield timed("index search", ours, beside=("plain FTS5 of the files", plain[len(plain) // 2]))
    yield timed("… plain FTS5 of the files, in process", plain)
    yield timed("… grep for any of the words", grep)


def _plain_fts(tree: Path, queries: list[str]) -> list[float]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(path, text, tokenize = 'porter unicode61')")
    for path in tree.rglob("*"):
        if path.is_file():
            db.execute("INSERT INTO t VALUES (?, ?)", (str(path), path.read_text(errors="replace")))
    sql = "SELECT path, snippet(t, 1, '', '', '…', 30) FROM t WHERE t MATCH ? ORDER BY rank LIMIT 6"

    def ask(query: str) -> object:
        return db.execute(sql, (" OR ".join(query.split()),)).fetchall()

    times = milliseconds(lambda one=one: ask(one) for one in queries)
    db.close()
    return times


def _saved(wire: Wire, tree: Path) -> Iterator[Row]:
    """From saving a file to finding its text: by asking again and again, and by asking once."""
    folder = next(path.parent for path in sorted(tree.rglob("*.md")))
    noticed: list[float] = []
    waited: list[float] = []
    for number in range(_SAVED):
        word = f"quokka{'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10]}"
        begun = time.perf_counter()
        (folder / f"saved-{number}.md").write_text(f"# Saved\n\nThe {word} was here.\n")
        body = {"query": word, "wait_ms": 0 if number % 2 else 10_000}
        while not wire.post("/api/files/search", body)["chunks"]:
            time.sleep(0.002)
        (noticed if number % 2 else waited).append((time.perf_counter() - begun) * 1000)
    yield timed("from saving to finding, asking without waiting", sorted(noticed))
    yield timed("from saving to finding, by one search that waits", sorted(waited))
