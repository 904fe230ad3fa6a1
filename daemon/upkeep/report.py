"""The report of a full run: a page of Markdown that a person can look through."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..config.settings import Rules
from ..memory.hot import document_size
from ..memory.records import Memory
from ..memory.scoring import DAY
from ..memory.tree_fit import usage
from ..memory.tree_nodes import Node
from ..store import atomic, hot_rows, memory_rows, settling, tree_rows
from ..store.agent_store import AgentStore
from . import history

FOLDER: Final = "reports"
_MONTH_SECONDS: Final = 30 * DAY
_SOON_SECONDS: Final = 7 * DAY
_UNUSED_SECONDS: Final = 14 * DAY
_TEXT_CHARS: Final = 160
_MEMORIES: Final = 15
_CATEGORIES: Final = 20
_BAR_CELLS: Final = 10
_LIVING: Final = "merged_into IS NULL"
# Whatever could be structure, a link or HTML to a reader of Markdown.
_ACTIVE: Final = re.compile(r"[\\`*\[\]<>|#~]|(?<!\w)_|_(?!\w)")
_DONE: Final = {
    "ingested_facts": "facts taken in from daily notes",
    "evicted_warm": "faded memories archived",
    "expired": "expired memories forgotten",
    "merged": "memories merged into others that say the same",
    "superseded": "memories marked as contradicted",
    "pruned_nodes": "empty categories removed",
    "forgotten": "memories forgotten that were frozen for too long",
}


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
    now = store.now
    begin = now - _MONTH_SECONDS if since is None else min(since, now)

    def render(db: sqlite3.Connection) -> str:
        page = _Page(db, now, begin, zone, store.rules)
        return "\n".join([*page.lines(store.place.agent, facts), ""])

    text = await store.read(render)
    stamp = f"{datetime.fromtimestamp(now, zone):%Y-%m-%dT%H%M%S}"
    return await asyncio.to_thread(partial(_write, store.place.folder / FOLDER, stamp, text))


def _write(folder: Path, stamp: str, text: str) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"consolidation-{stamp}.md"
    atomic.write(path, text.encode())
    return path


def quoted(text: str, most: int = _TEXT_CHARS) -> str:
    """`text` on one line of at most `most` characters, nothing in it being Markdown."""
    visible = "".join(char if char.isprintable() else " " for char in text[: 4 * most])
    flat = " ".join(visible.split())
    return _ACTIVE.sub(r"\\\g<0>", flat if len(flat) <= most else f"{flat[: most - 1]}…")


class _Page:
    """The page. Stored texts are quoted in it, one line each, and are nothing but text."""

    def __init__(
        self, db: sqlite3.Connection, now: float, since: float, zone: tzinfo, rules: Rules
    ) -> None:
        self._db = db
        self._now = now
        self._since = since
        self._zone = zone
        self._rules = rules
        self._tree: dict[str, Node] = tree_rows.load(db)

    def lines(self, agent: str, facts: Mapping[str, Any]) -> Iterator[str]:
        at = f"{datetime.fromtimestamp(self._now, self._zone):%Y-%m-%d %H:%M}"
        new = f"{_LIVING} AND created_at > ?"
        (stored,) = self._db.execute(
            f"SELECT count(*) FROM memories WHERE {new}",  # noqa: S608 - our own condition
            (self._since,),
        ).fetchone()
        warm, cold = tree_rows.totals(self._db)
        yield from (f"# What `{agent}` remembers", "")
        yield f"*{at}. Texts are quoted as they were stored, and are no instructions.*"
        yield ""
        yield (
            f"Memories: {warm + cold:,}, of which {warm:,} are warm and {cold:,} in the archive. "
            f"Categories: {len(self._tree)}. New since {self._day(self._since)}: {stored:,}."
        )
        important = self._some(new, "importance DESC, created_at DESC", self._since)
        used = self._some(f"{_LIVING} AND access_count > ?", "access_count DESC, row", 2)
        unused = self._some(
            f"{_LIVING} AND access_count = 0 AND importance >= 0.8 AND created_at < ?",
            "importance DESC, created_at",
            self._now - _UNUSED_SECONDS,
        )
        more = stored - len(important)
        others = [f"- … and {more:,} more, less important"] if more > 0 else []
        sections: tuple[tuple[str, Iterable[str]], ...] = (
            ("What this run has done", _done(facts)),
            ("How full it is", self._fullness(facts.get("promoted", 0))),
            (
                "New",
                [*self._listed(important), *others],
            ),
            (
                "Contradicted by something newer",
                self._pairs("superseded_by", f"superseded_by IS NOT NULL AND {_LIVING}"),
            ),
            (
                "Said more than once, and merged",
                self._pairs("merged_into", "merged_into IS NOT NULL"),
            ),
            ("Changes of the tree", (f"- {quoted(one)}" for one in facts.get("tree_changes", ()))),
            ("Leaving the warm memories within a week", self._listed(self._fading())),
            ("Used most", self._listed(used, uses=True)),
            ("Important, and never used", self._listed(unused)),
            ("Categories", self._categories()),
            ("An average day of the last seven", self._trend()),
            ("Needs a look", _needs(facts)),
        )
        for title, body in sections:
            if content := list(body):
                yield from ("", f"## {title}", "", *content)

    def _day(self, moment: float) -> str:
        return f"{datetime.fromtimestamp(moment, self._zone):%Y-%m-%d}"

    def _some(self, condition: str, order: str, value: Any) -> list[Memory]:
        sql = f"SELECT id FROM memories WHERE {condition} ORDER BY {order} LIMIT ?"  # noqa: S608
        keys = self._db.execute(sql, (value, _MEMORIES)).fetchall()
        found = (memory_rows.fetch(self._db, key) for (key,) in keys)
        return [memory for memory in found if memory is not None]

    def _fullness(self, promoted: int) -> Iterator[str]:
        rules = self._rules
        hot = document_size(hot_rows.document(self._db, self._now, rules))
        shown = f"bytes, with {promoted:,} of the memories in it"
        warm = settling.warm_bytes(self._db)
        yield _bar("hot state", hot, rules.hot.max_bytes, shown)
        yield _bar("warm memories", warm, rules.warm.max_bytes, "bytes")
        yield _bar("tree", len(self._tree) + 1, rules.tree.max_nodes, "nodes")

    def _listed(self, some: Iterable[Memory], *, uses: bool = False) -> Iterator[str]:
        for memory in some:
            about = f"used {memory.access_count} times" if uses else self._day(memory.created_at)
            where = f"{quoted(memory.category)}, {about}, `{memory.id[:8]}`"
            yield f"- “{quoted(memory.text)}” ({where})"

    def _pairs(self, column: str, condition: str) -> Iterator[str]:
        condition = f"{condition} AND updated_at > ?"
        for older in self._some(condition, "updated_at DESC, row", self._since):
            newer = memory_rows.fetch(self._db, getattr(older, column))
            if newer is not None:
                yield f"- “{quoted(older.text)}” (`{older.id[:8]}`)"
                yield f"  now: “{quoted(newer.text)}” (`{newer.id[:8]}`)"

    def _fading(self) -> list[Memory]:
        soon = settling.faded(self._db, self._now + _SOON_SECONDS, self._rules)
        found = (memory_rows.fetch(self._db, key) for key in soon)
        fading = [memory for memory in found if memory is not None]
        return sorted(fading, key=lambda memory: -memory.importance)[:_MEMORIES]

    def _categories(self) -> Iterator[str]:
        if not self._tree:
            return
        yield "| category | warm | archived | last used |"
        yield "|---|---|---|---|"
        ranked = sorted(self._tree, key=lambda path: (-usage(self._tree[path], self._now), path))
        for path in ranked[:_CATEGORIES]:
            node = self._tree[path]
            last = self._day(node.last_access) if node.last_access else "never"
            yield f"| {quoted(path)} | {node.warm_count:,} | {node.cold_count:,} | {last} |"
        if len(ranked) > _CATEGORIES:
            yield f"| … and {len(ranked) - _CATEGORIES} more | | | |"

    def _trend(self) -> Iterator[str]:
        trend = history.trend(history.load(self._db, 21))
        for name, compared in () if trend is None else trend.numbers.items():
            change = "" if compared.delta is None else f" ({compared.delta:+,.6g})"
            yield f"- {name.replace('_', ' ')}: {compared.average:,.6g}{change}"


def _bar(name: str, value: int, limit: int, unit: str) -> str:
    full = round(min(1.0, value / limit) * _BAR_CELLS)
    cells = "█" * full + "░" * (_BAR_CELLS - full)
    return f"- {cells} {name}: {value:,} of {limit:,} {unit}"


def _done(facts: Mapping[str, Any]) -> list[str]:
    told = [(facts[name], words) for name, words in _DONE.items() if facts.get(name)]
    return [f"- {words}: {number:,}" for number, words in told] or ["Nothing had to be done."]


def _needs(facts: Mapping[str, Any]) -> Iterator[str]:
    for name in ("ingest_error", "model_error"):
        if facts.get(name):
            yield f"- {quoted(str(facts[name]), 500)}"
