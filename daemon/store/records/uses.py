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
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec

from thermocline.sync import Row

from ...errors import ThermoclineError
from ...memory.checks import check_time
from ..database import rows
from ..database.connection import column, scalar, to_json
from ..database.rows import Kind
from ..database.transaction import Transaction

_OF_MEMORY: Final = "kind = 'uses' AND live AND id > ?1 || '/' AND id < ?1 || '0'"
_RECOUNT: Final = f"""
    UPDATE memories SET
        access_count = CAST(ifnull(extra ->> 'access_count', 0)
            + (SELECT total(data ->> '$.uses[0]') FROM rows WHERE {_OF_MEMORY})
            + (SELECT total(access_count) FROM memories WHERE merged_into = ?1) AS INTEGER),
        last_accessed_at = nullif(max(ifnull(extra ->> 'last_accessed_at', 0),
            (SELECT ifnull(max(data ->> '$.uses[1]'), 0) FROM rows WHERE {_OF_MEMORY}),
            (SELECT ifnull(max(last_accessed_at), 0) FROM memories WHERE merged_into = ?1)), 0)
    WHERE id = ?1 RETURNING merged_into
"""
# A memory in several answers within this time was used once.
_USE_SECONDS: Final = 3_600.0
_NO_USES: Final[tuple[int, float]] = (0, 0.0)


def reinforce(tx: Transaction, ids: Iterable[str]) -> None:
    """Count one use of a memory for each time that its id is given. Unknown ids are ignored.

    A use is not an edit: each device counts its own, so that uses never conflict.
    """
    counts = Counter(ids)
    memories = tx.db.execute(
        "SELECT id, category FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (to_json([*counts]),),
    ).fetchall()
    tx.db.executemany(
        "UPDATE tree SET last_access = ? WHERE path = ?",
        [(tx.now, category) for category in {category for _, category in memories}],
    )
    for memory, _ in memories:
        before, _ = _uses(rows.load(tx.db, KIND, name := f"{memory}/{tx.device}"))
        rows.write(tx, KIND, name, {"uses": [before + counts[memory], tx.now]})
    tx.count("reinforcements_today", counts.total())


def count_answers(tx: Transaction, answers: Sequence[Sequence[str]], saved: int = 0) -> None:
    """Count answers, a use of each memory in them not used in the last hour, and saved tokens."""
    if answers:
        used = dict.fromkeys(chain.from_iterable(answers))
        recent = column(
            tx.db,
            "SELECT id FROM memories WHERE last_accessed_at > ?"
            " AND id IN (SELECT value FROM json_each(?))",
            tx.now - _USE_SECONDS,
            to_json([*used]),
        )
        reinforce(tx, used.keys() - {*recent})
        tx.count("retrieval_count", len(answers))
        tx.count("total_retrieved", sum(map(len, answers)))
    if saved:
        tx.count("context_tokens_saved", saved)


def counted(db: sqlite3.Connection, memory: str) -> int:
    """The uses of a memory on all devices, and of the memories merged into it."""
    counted = f"SELECT total(data ->> '$.uses[0]') FROM rows WHERE {_OF_MEMORY}"
    merged = "SELECT total(access_count) FROM memories WHERE merged_into = ?1"
    return int(scalar(db, f"SELECT ({counted}) + ({merged})", memory))


def are_any(tx: Transaction) -> bool:
    """Whether a new memory may have uses: some are counted, or memories are merged."""
    if tx.cache.has_uses is None:
        counted = "SELECT 1 FROM rows WHERE kind = 'uses' AND live"
        merged = "SELECT 1 FROM memories WHERE merged_into IS NOT NULL"
        tx.cache.has_uses = bool(scalar(tx.db, f"SELECT EXISTS ({counted}) OR EXISTS ({merged})"))
    return tx.cache.has_uses


def recount(tx: Transaction, memory: str | None) -> None:
    """Compute a memory's uses again, those of the memory that it is merged into, and so on."""
    # The caller has counted uses, or merged memories.
    tx.cache.has_uses = True
    passed: set[str] = set()
    while memory is not None and memory not in passed:
        passed.add(memory)
        row = tx.db.execute(_RECOUNT, (memory,)).fetchone()
        memory = row[0] if row else None


def _applied(tx: Transaction, _before: Row | None, after: Row) -> None:
    tx.state_files.update({"warm", "tree", "hot"})
    recount(tx, after.id.rpartition("/")[0])


def _uses(row: Row | None) -> tuple[int, float]:
    """The number of uses in a row, and the time of the last one."""
    return msgspec.convert(row.data.get("uses", _NO_USES) if row else _NO_USES, tuple[int, float])


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


class AnswerUse(msgspec.Struct, frozen=True):
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
        self._answers: list[AnswerUse] = []
        self._counting: asyncio.Task[None] | None = None
        self._at_once = asyncio.Event()
        self._there = 0
        self._measured = float("-inf")

    def note(self, used: Sequence[str] | None, chars: int) -> None:
        """Count an answer, uses of the memories in it, and the saved context, within a second."""
        self._answers.append(AnswerUse(None if used is None else tuple(used), chars))
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
            recalled = [answer.used for answer in answers if answer.used is not None]
            await self._write(partial(count_answers, answers=recalled, saved=saved))
        except ThermoclineError as error:
            # Uses are a hint for ranking: on a full disk some may be lost.
            _log.info("did not count uses: %s", error, extra={"action": "uses_lost"})


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_IN_TOKEN)


def _chars_there(db: sqlite3.Connection) -> int:
    texts = "SELECT total(length(text)) FROM memories WHERE merged_into IS NULL"
    hot = "SELECT total(length(data ->> 'value')) FROM rows WHERE kind = 'hot' AND live"
    return int(scalar(db, f"SELECT ({texts}) + ({hot})"))
