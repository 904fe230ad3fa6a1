"""The uses of memories: a row for each memory and device, which only that device writes.

So counts never conflict, and a use sends one short row. `memories.access_count` is derived: the
count that the memory brought from elsewhere, the counts of all devices, and the same of the
memories merged into it.

Answers are counted soon after they were given, in one commit with others, and with them the saved
context: the size of everything there is, the texts of all memories and the hot state on this
device, less the size of the texts in the answer, in tokens; an empty answer saves nothing. A token
is four characters, and the total is measured at most every ten minutes.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec

from thermocline.sync import Row

from ..errors import ThermoclineError
from ..memory.checks import check_time
from . import rows
from .rows import Kind
from .transaction import Transaction

_ADD: Final = (
    "UPDATE memories SET access_count = max(0, access_count + ?), last_accessed_at ="
    " nullif(max(coalesce(last_accessed_at, 0), ?), 0) WHERE id = ? RETURNING merged_into"
)
# A memory in several answers within this time was used once.
_USE_SECONDS: Final = 3_600.0
_NO_USES: Final[tuple[int, float]] = (0, 0.0)


class Uses(msgspec.Struct, frozen=True):
    """The content of a row: the number of uses, and the time of the last one."""

    uses: tuple[int, float] = _NO_USES


def count(tx: Transaction, used: Mapping[str, int]) -> None:
    """Count uses of memories on this device."""
    for memory, number in used.items():
        before = _uses(rows.load(tx.db, KIND, name := f"{memory}/{tx.device}"))
        rows.write(tx, KIND, name, {"uses": [before[0] + number, tx.now]})


def reinforce(tx: Transaction, ids: Iterable[str]) -> None:
    """Count one use of a memory for each time that its id is given. Unknown ids are ignored.

    A use is not an edit: each device counts its own, so that uses never conflict.
    """
    counts = Counter(ids)
    rows = tx.db.execute(
        "SELECT id, category FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(counts)).decode(),),
    ).fetchall()
    tx.db.executemany(
        "UPDATE tree SET last_access = ? WHERE path = ?",
        [(tx.now, category) for category in {category for _, category in rows}],
    )
    count(tx, {key: counts[key] for key, _ in rows})
    tx.count("reinforcements_today", counts.total())


def count_answers(tx: Transaction, answers: Sequence[Sequence[str]]) -> None:
    """Count answers, and a use of each memory in them that was not used in the last hour."""
    used = dict.fromkeys(chain.from_iterable(answers))
    recent = tx.db.execute(
        "SELECT id FROM memories WHERE last_accessed_at > ?"
        " AND id IN (SELECT value FROM json_each(?))",
        (tx.now - _USE_SECONDS, msgspec.json.encode(list(used)).decode()),
    ).fetchall()
    reinforce(tx, used.keys() - {key for (key,) in recent})
    tx.count("retrieval_count", len(answers))
    tx.count("total_retrieved", sum(map(len, answers)))


def counted(db: sqlite3.Connection, memory: str) -> tuple[int, float | None]:
    """The uses of a memory on all devices, and the time of the last."""
    number, at = db.execute(
        "SELECT total(data ->> '$.uses[0]'), max(data ->> '$.uses[1]') FROM rows"
        " WHERE kind = 'uses' AND live AND id > ?1 || '/' AND id < ?1 || '0'",
        (memory,),
    ).fetchone()
    return int(number), at


def any_counted(tx: Transaction) -> bool:
    """Whether any device has counted uses."""
    if tx.cache.are_uses is None:
        result = tx.db.execute("SELECT 1 FROM rows WHERE kind = 'uses' AND live LIMIT 1")
        tx.cache.are_uses = result.fetchone() is not None
    return tx.cache.are_uses


def any_merged(tx: Transaction) -> bool:
    """Whether any memory is merged into another."""
    if tx.cache.are_merged is None:
        result = tx.db.execute("SELECT 1 FROM memories WHERE merged_into IS NOT NULL LIMIT 1")
        tx.cache.are_merged = result.fetchone() is not None
    return tx.cache.are_merged


def forget(tx: Transaction, memories: frozenset[str]) -> None:
    """Delete this device's counts of memories that cannot be restored."""
    if any_counted(tx):
        for memory in memories:
            rows.write(tx, KIND, f"{memory}/{tx.device}", None)


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    """Add what was counted since to the memory, to its merge target, and so on."""
    tx.cache.are_uses = None
    tx.state_files.update({"warm", "tree", "hot"})
    old, (number, at) = _uses(before), _uses(after)
    memory: str | None = after.id.rpartition("/")[0]
    passed: set[str] = set()
    while memory is not None and memory not in passed:
        passed.add(memory)
        row = tx.db.execute(_ADD, (number - old[0], at, memory)).fetchone()
        memory = row[0] if row else None


def _uses(row: Row | None) -> tuple[int, float]:
    return _NO_USES if row is None else msgspec.convert(row.data, Uses).uses


def _check(row: Row) -> None:
    number, at = _uses(row)
    check_time(at, field="last_at")
    if number < 0 or "/" not in row.id:
        msg = "uses are counted from 0, of a memory on a device"
        raise msgspec.ValidationError(msg)


KIND: Final = Kind(
    name="uses", fields=frozenset({"uses"}), history=False, check=_check, applied=_applied
)


_log = logging.getLogger(__name__)
_COUNT_SECONDS: Final = 1.0
_MEASURED_SECONDS: Final = 600.0
_CHARS_IN_TOKEN: Final = 4


class GivenAnswer(msgspec.Struct, frozen=True):
    """An answer that was given."""

    # The memories that count as used; None: the hot state, which is no answer.
    used: tuple[str, ...] | None
    chars: int  # of the texts in it


class UseCounter:
    """Collects the answers of a second, then counts them together."""

    def __init__(
        self,
        agent: str,
        write: Callable[[Callable[[Transaction], None]], Awaitable[Any]],
        read: Callable[[Callable[[sqlite3.Connection], int]], Awaitable[int]],
    ) -> None:
        self._agent = agent
        self._write = write
        self._read = read
        self._answers: list[GivenAnswer] = []
        self._counting: asyncio.Task[None] | None = None
        self._at_once = asyncio.Event()
        self._there = 0
        self._measured = float("-inf")

    def note(self, used: Sequence[str] | None, chars: int) -> None:
        """Count an answer, uses of the memories in it, and the saved context, within a second."""
        self._answers.append(GivenAnswer(None if used is None else tuple(used), chars))
        if self._counting is None or self._counting.done():
            self._counting = asyncio.get_running_loop().create_task(
                self._count(_COUNT_SECONDS), name=f"uses of {self._agent}"
            )

    async def finish(self) -> None:
        """Count what is not counted yet, now."""
        if self._counting is not None:
            # Not cancelled: it may have taken the answers, and not counted them yet.
            self._at_once.set()
            await asyncio.gather(self._counting, return_exceptions=True)
            self._at_once.clear()
        await self._count()

    async def _count(self, delay_seconds: float = 0.0) -> None:
        if delay_seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), delay_seconds)
        answers, self._answers = self._answers, []
        if not answers:
            return
        try:
            if time.monotonic() - self._measured > _MEASURED_SECONDS:
                self._there = _tokens(await self._read(_chars_there))
                self._measured = time.monotonic()
            there = self._there
            saved = sum(max(0, there - _tokens(answer.chars)) for answer in answers if answer.chars)
            await self._write(partial(_count, answers=answers, saved=saved))
        except ThermoclineError as error:
            # Uses are a hint for ranking: on a full disk some may be lost.
            _log.info("did not count uses: %s", error, extra={"action": "uses_lost"})


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_IN_TOKEN)


def _chars_there(db: sqlite3.Connection) -> int:
    result = db.execute(
        "SELECT (SELECT total(length(text)) FROM memories WHERE merged_into IS NULL)"
        " + (SELECT total(length(data ->> 'value')) FROM rows WHERE kind = 'hot' AND live)"
    )
    return int(result.fetchone()[0])


def _count(tx: Transaction, answers: Sequence[GivenAnswer], saved: int) -> None:
    recalled = [answer.used for answer in answers if answer.used is not None]
    if recalled:
        count_answers(tx, recalled)
    if saved:
        tx.count("context_tokens_saved", saved)
