"""The report of a full run: a page of Markdown that a person can look through."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..memory.records import Memory
from ..memory.scoring import DAY
from ..memory.tree_fit import usage
from ..store import atomic
from ..store.agent_store import AgentStore
from .findings import Findings, Twice, gather

FOLDER: Final = "reports"
_MONTH_SECONDS: Final = 30 * DAY
_TEXT_CHARS: Final = 160
_CATEGORIES: Final = 20
_BAR_CELLS: Final = 10
# Whatever could be structure, a link or HTML to a reader of Markdown.
_ACTIVE: Final = re.compile(r"[\\`*\[\]<>|#~]|(?<!\w)_|_(?!\w)")


async def write_report(
    store: AgentStore, facts: Mapping[str, Any], since: float | None, zone: tzinfo
) -> Path:
    """Write a report into the agent's folder, and return its path.

    Args:
        store: the agent's memory.
        facts: what the run has done before.
        since: when the last report was written; None: never.
        zone: the time zone of its dates.

    Raises:
        OSError: the disk refuses.
    """
    now, rules = store.now, store.rules
    begin = now - _MONTH_SECONDS if since is None else min(since, now)
    found = await store.read(
        partial(gather, agent=store.place.agent, now=now, since=begin, rules=rules)
    )
    text = render(found, facts, zone)
    stamp = f"{datetime.fromtimestamp(now, zone):%Y-%m-%dT%H%M%S}"
    return await asyncio.to_thread(_write, store.place.folder / FOLDER, stamp, text)


def _write(folder: Path, stamp: str, text: str) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"consolidation-{stamp}.md"
    atomic.write(path, text.encode())
    return path


def render(found: Findings, facts: Mapping[str, Any], zone: tzinfo) -> str:
    """The page. Stored texts stand in it as quotations, one line each, that mean nothing else."""
    page = _Page(found, zone)
    lines = [
        f"# What `{found.agent}` remembers",
        "",
        f"*{page.time(found.now)}. Texts are quoted as they were stored, and are no instructions.*",
        "",
        *page.summary(),
    ]
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("What this run has done", _done(facts)),
        ("How full it is", page.fullness(facts.get("promoted", 0))),
        ("New", page.new()),
        ("Contradicted by something newer", page.pairs(found.contradicted)),
        ("Said more than once, and merged", page.pairs(found.merged)),
        ("Changes of the tree", (f"- {quoted(one)}" for one in facts.get("tree_changes", ()))),
        ("Leaving the warm memories within a week", page.memories(found.fading)),
        ("Used most", page.memories(found.used, uses=True)),
        ("Important, and never used", page.memories(found.unused)),
        ("Categories", page.categories()),
        ("An average day of the last seven", page.trend()),
        ("Needs a look", _needs(facts)),
    )
    for title, body in sections:
        if content := list(body):
            lines += ["", f"## {title}", "", *content]
    return "\n".join([*lines, ""])


def quoted(text: str, most: int = _TEXT_CHARS) -> str:
    """`text` on one line of at most `most` characters, nothing in it being Markdown."""
    visible = "".join(char if char.isprintable() else " " for char in text[: 4 * most])
    flat = " ".join(visible.split())
    return _ACTIVE.sub(r"\\\g<0>", flat if len(flat) <= most else f"{flat[: most - 1]}…")


class _Page:
    def __init__(self, found: Findings, zone: tzinfo) -> None:
        self.found = found
        self.zone = zone

    def time(self, moment: float) -> str:
        return f"{datetime.fromtimestamp(moment, self.zone):%Y-%m-%d %H:%M}"

    def day(self, moment: float) -> str:
        return f"{datetime.fromtimestamp(moment, self.zone):%Y-%m-%d}"

    def summary(self) -> Iterator[str]:
        found = self.found
        yield (
            f"Memories: {found.warm + found.cold:,}, of which {found.warm:,} are warm and "
            f"{found.cold:,} in the archive. Categories: {len(found.tree)}. "
            f"New since {self.day(found.since)}: {found.stored:,}."
        )

    def fullness(self, promoted: int) -> Iterator[str]:
        found, rules = self.found, self.found.rules
        hot = f"bytes, with {promoted:,} of the memories in it"
        yield _bar("hot state", found.hot_bytes, rules.hot.max_bytes, hot)
        yield _bar("warm memories", found.warm_bytes, rules.warm_max_bytes, "bytes")
        yield _bar("tree", len(found.tree) + 1, rules.tree.max_nodes, "nodes")

    def memories(self, some: Sequence[Memory], *, uses: bool = False) -> Iterator[str]:
        for memory in some:
            about = f"used {memory.access_count} times" if uses else self.day(memory.created_at)
            where = f"{quoted(memory.category)}, {about}, `{memory.id[:8]}`"
            yield f"- “{quoted(memory.text)}” ({where})"

    def new(self) -> Iterator[str]:
        yield from self.memories(self.found.new)
        more = self.found.stored - len(self.found.new)
        if more > 0:
            yield f"- … and {more:,} more, less important"

    def pairs(self, pairs: Sequence[Twice]) -> Iterator[str]:
        for pair in pairs:
            yield f"- “{quoted(pair.older.text)}” (`{pair.older.id[:8]}`)"
            yield f"  now: “{quoted(pair.newer.text)}” (`{pair.newer.id[:8]}`)"

    def categories(self) -> Iterator[str]:
        tree, now = self.found.tree, self.found.now
        if not tree:
            return
        yield "| category | warm | archived | last used |"
        yield "|---|---|---|---|"
        ranked = sorted(tree, key=lambda path: (-usage(tree[path], now), path))
        for path in ranked[:_CATEGORIES]:
            node = tree[path]
            last = self.day(node.last_access) if node.last_access else "never"
            yield f"| {quoted(path)} | {node.warm_count:,} | {node.cold_count:,} | {last} |"
        if len(ranked) > _CATEGORIES:
            yield f"| … and {len(ranked) - _CATEGORIES} more | | | |"

    def trend(self) -> Iterator[str]:
        if self.found.trend is None:
            return
        for name, compared in self.found.trend.numbers.items():
            change = "" if compared.delta is None else f" ({compared.delta:+,.6g})"
            yield f"- {name.replace('_', ' ')}: {compared.average:,.6g}{change}"


def _bar(name: str, value: int, limit: int, unit: str) -> str:
    share = min(1.0, value / limit)
    full = round(share * _BAR_CELLS)
    cells = "█" * full + "░" * (_BAR_CELLS - full)
    return f"- {cells} {name}: {value:,} of {limit:,} {unit}"


_DONE: Final = {
    "ingested_facts": "facts taken in from daily notes",
    "evicted_warm": "faded memories archived",
    "expired": "expired memories forgotten",
    "merged": "memories merged into others that say the same",
    "superseded": "memories marked as contradicted",
    "faded": "memories archived that were never used",
    "pruned_nodes": "empty categories removed",
    "forgotten": "memories forgotten that were frozen for too long",
    "tombstones": "traces of forgotten memories dropped",
}


def _done(facts: Mapping[str, Any]) -> Iterator[str]:
    told = [(facts[name], words) for name, words in _DONE.items() if facts.get(name)]
    yield from (f"- {words}: {number:,}" for number, words in told)
    if not told:
        yield "Nothing had to be done."


def _needs(facts: Mapping[str, Any]) -> Iterator[str]:
    for name in ("ingest_error", "model_error"):
        if facts.get(name):
            yield f"- {quoted(str(facts[name]), 500)}"
