"""The files of an existing memory, wherever an older tool or an earlier run has left them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from thermocline.sync import TOO_HIGH

from ..errors import InvalidInput
from ..memory.hot import HotState
from ..memory.merging import MergeRecord
from ..memory.records import Memory, joined
from ..memory.tree import Node
from ..memory.variants import hot_file, metrics_file, tree_file, warm_file
from .edits import parse_pairs
from .faces import COLD_FOLDER, HOT_FILE, KV_FILE, METRICS_FILE, TREE_FILE, WARM_FILE, read_segment

STATE_FILES: Final = (HOT_FILE, WARM_FILE, TREE_FILE, METRICS_FILE, KV_FILE)


class Found(msgspec.Struct):
    """What the files hold, and a line about each. The first file to name a thing wins."""

    memories: dict[str, Memory] = {}
    merges: list[MergeRecord] = []
    hot: list[HotState] = []
    tree: dict[str, Node] = {}
    metrics: dict[str, float] = {}
    kv: dict[str, tuple[str, float | None]] = {}
    read: list[dict[str, Any]] = []
    faults: list[str] = []
    damaged: list[Path] = []

    def take(self, memory: Memory) -> None:
        """Keep what is newer in two versions of one memory.

        The ids of older tools are unique within one file only: two texts under one id are two
        memories.
        """
        if memory.clock >= TOO_HIGH:
            memory = msgspec.structs.replace(memory, clock=0)
        known = self.memories.get(memory.id)
        if known and not known.clock and not memory.clock and known.text != memory.text:
            digest = hashlib.sha256(f"{memory.id}\0{memory.text}".encode()).hexdigest()
            memory = msgspec.structs.replace(memory, id=digest[:16])
            known = None
        self.memories[memory.id] = memory if known is None else joined(known, memory)


def roots(folder: Path, agent: str, workspace: Path | None) -> list[Path]:
    """Where state files of `agent` may stand, the most binding place first.

    A workspace keeps those of the agent `default` in `memory/` itself, those of others in a
    folder of their own there; a workspace dropped in as the agent's folder belongs to it alone.
    """
    places = [folder, folder / "memory", folder / "memory" / agent]
    if workspace is not None:
        places += workspace_roots(workspace, agent)
    return [place for place in places if place.is_dir()]


def workspace_roots(workspace: Path, agent: str) -> list[Path]:
    """The places of `roots` that are in the workspace."""
    memory = workspace / "memory"
    places = [memory, memory / agent] if agent == "default" else [memory / agent]
    return [place for place in places if place.is_dir()]


def present(places: list[Path]) -> bool:
    """Whether there is any state file to read."""
    return any((place / name).is_file() for place in places for name in STATE_FILES) or any(
        True for place in places for _ in place.glob(f"{COLD_FOLDER}/*.jsonl")
    )


def gather(places: list[Path], now: float) -> Found:
    """Read every state file in `places`. What cannot be read is named, not raised."""
    found = Found()
    for place in places:
        for segment in sorted(place.glob(f"{COLD_FOLDER}/*.jsonl")):
            _read_segment(segment, found)
        for name in STATE_FILES:
            path = place / name
            if path.is_file():
                _read_file(path, found, now)
    return found


def _read_segment(path: Path, found: Found) -> None:
    try:
        segment = read_segment(path.read_bytes())
    except OSError as error:
        found.faults.append(f"{path}: {error}")
        return
    for memory in segment.memories:
        found.take(memory)
    found.merges.extend(segment.merges)
    found.read.append({"file": str(path), "memories": len(segment.memories)})
    if segment.bad:
        found.faults.append(f"{path}: {segment.bad} lines cannot be read")
        found.damaged.append(path)


def _read_file(path: Path, found: Found, now: float) -> None:
    try:
        document = json.loads(path.read_bytes().decode())
        known = len(found.faults)
        # What has no time of its own is as old as its file.
        count = _READERS[path.name](document, found, min(now, path.stat().st_mtime))
    except OSError as error:
        found.faults.append(f"{path}: {error}")
        return
    except (ValueError, RecursionError, InvalidInput) as error:
        found.faults.append(f"{path}: {error}")
        found.damaged.append(path)
        return
    found.faults[known:] = [f"{path}: {fault}" for fault in found.faults[known:]]
    found.read.append({"file": str(path), "entries": count})


def _read_warm(document: Any, found: Found, now: float) -> int:
    parsed = warm_file.parse(document, now)
    found.faults.extend(parsed.faults)
    for memory in parsed.memories:
        found.take(memory)
    return len(parsed.memories)


def _read_hot(document: Any, found: Found, now: float) -> int:
    parsed = hot_file.parse(document, now)
    found.faults.extend(parsed.faults)
    found.hot.append(parsed.state)
    return 1


def _read_tree(document: Any, found: Found, now: float) -> int:
    parsed = tree_file.parse(document, now)
    found.faults.extend(parsed.faults)
    for path, node in parsed.tree.items():
        found.tree.setdefault(path, node)
    return len(parsed.tree)


def _read_metrics(document: Any, found: Found, now: float) -> int:
    parsed = metrics_file.parse(document, now)
    found.faults.extend(parsed.faults)
    for name, value in parsed.values.items():
        found.metrics.setdefault(name, value)
    return len(parsed.values)


def _read_kv(document: Any, found: Found, _now: float) -> int:
    pairs, faults = parse_pairs(document)
    found.faults.extend(faults)
    for key, pair in pairs.items():
        found.kv.setdefault(key, pair)
    return len(pairs)


_READERS: Final[dict[str, Callable[[Any, Found, float], int]]] = {
    WARM_FILE: _read_warm,
    HOT_FILE: _read_hot,
    TREE_FILE: _read_tree,
    METRICS_FILE: _read_metrics,
    KV_FILE: _read_kv,
}
