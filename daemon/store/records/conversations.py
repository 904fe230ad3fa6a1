"""Buffered turns of conversations, which become memories.

A turn is on the disk before it is acknowledged, and is removed in the commit that stores what was
extracted from it. So nothing is lost or stored twice, wherever the daemon is killed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec

from ...language.speech import Turn
from ...memory.messages import Spoken
from ...memory.records import Memory
from ..database.connection import scalar, to_json
from ..database.memory_database import first_value
from ..database.transaction import Transaction
from .memory_rows import KIND

# An entry about a whole conversation is made from its beginning, its end, and this many characters
# of each turn that was already read.
_FIRST_TURNS: Final = 20
_LAST_TURNS: Final = 100
_EXCERPT: Final = 1000
# The prefix of a conversation's name among paths.
PATH: Final = "chat://"


class IncomingTurn(Turn, frozen=True, kw_only=True):
    """One reported turn; `position` is its place in the conversation, if the caller counts."""

    at: float
    tools: tuple[str, ...] = ()

    @property
    def speaker(self) -> str:
        """Who said it: a name, else a role."""
        return self.actor or self.role


class BufferedTurn(Turn, frozen=True, kw_only=True):
    """One buffered turn; `position` is its place among the buffered ones."""

    position: int
    at: float
    tools: tuple[str, ...]


class Conversation(msgspec.Struct, frozen=True):
    """The state of a conversation with buffered turns."""

    id: str
    next_position: int  # the position of the next turn
    read_to: int  # the position of the first turn that is not yet read for facts
    turns: int  # their number since the last entry about the whole
    # When the first and the last of these came.
    began_at: float
    last_at: float
    ended_at: float | None  # when its end was reported
    tries: int  # how often making the entry has failed
    writer: str  # the sender of the last turn
    entry: str | None  # the line that is still to be written to the file

    @property
    def unread(self) -> int:
        """The number of unread turns."""
        return self.next_position - self.read_to


SELECT: Final = f"SELECT {', '.join(Conversation.__struct_fields__)} FROM conversations"
COLUMN_TYPES: Final = tuple(get_type_hints(Conversation).values())


def find(db: sqlite3.Connection, key: str) -> Conversation | None:
    """The conversation, if it has buffered turns."""
    row = db.execute(f"{SELECT} WHERE id = ?", (key,)).fetchone()
    return None if row is None else Conversation(*row)


def waiting(db: sqlite3.Connection) -> list[Conversation]:
    """Every conversation with buffered turns."""
    return [Conversation(*row) for row in db.execute(SELECT)]


def are_waiting(folder: Path) -> bool:
    """Whether a memory has a conversation with buffered turns, or cannot be read. Blocking."""
    return bool(first_value(folder, "SELECT EXISTS (SELECT 1 FROM conversations)", 1))


def buffer_turns(
    tx: Transaction, key: str, turns: Sequence[IncomingTurn], *, ended: bool, writer: str
) -> Conversation | None:
    """Buffer turns in their order and return the conversation; `ended` marks the end of it.

    Positions are those among the buffered turns. None: it ended and no turn is buffered.
    """
    known = find(tx.db, key)
    if known is None and not turns:
        return None
    position = 0 if known is None else known.next_position
    for number, turn in enumerate(turns, position):
        tx.db.execute(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, number, turn.role, turn.actor, turn.text, turn.at, to_json(turn.tools)),
        )
    tx.db.execute(
        "INSERT INTO conversations VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, 0, ?7, NULL)"
        " ON CONFLICT DO UPDATE SET next_position = ?2, turns = turns + ?4,"
        " last_at = CASE WHEN ?4 THEN ?5 ELSE last_at END, tries = 0,"
        " ended_at = CASE WHEN ?6 IS NOT NULL THEN ?6 WHEN ?4 THEN NULL ELSE ended_at END,"
        " writer = CASE WHEN ?4 THEN ?7 ELSE writer END",
        (
            *(key, position + len(turns), position, len(turns), tx.now),
            *(tx.now if ended else None, writer),
        ),
    )
    return find(tx.db, key)


def last_turns(tx: Transaction, key: str, most: int) -> tuple[list[Spoken | None], int]:
    """The last stored turns of a conversation, in their order, and the position of the next.

    None takes the place of a turn that is missing, such as a forgotten one.
    """
    rows = tx.db.execute(
        "SELECT position, actor, text FROM memories WHERE grp <> '' AND grp = ?"
        " AND position IS NOT NULL ORDER BY position DESC LIMIT ?",
        (key, most),
    ).fetchall()
    end = rows[0][0] + 1 if rows else 0
    while _was_stored(tx, key, end):
        end += 1
    turns = {position: (actor, text) for position, actor, text in rows}
    return [turns.get(position) for position in range(max(0, end - most), end)], end


def last_buffered(db: sqlite3.Connection, key: str) -> str:
    """The text of the last buffered turn, or ""."""
    sql = "SELECT text FROM turns WHERE conversation = ? ORDER BY position DESC LIMIT 1"
    return scalar(db, sql, key) or ""


def stored_at(db: sqlite3.Connection, key: str, position: int) -> str:
    """The text of the turn at a position, or ""."""
    sql = "SELECT text FROM memories WHERE grp <> '' AND grp = ? AND position = ?"
    return scalar(db, sql, key, position) or ""


def is_stored(tx: Transaction, key: str, position: int) -> bool:
    """Whether a turn was stored at this position, even if it is forgotten by now."""
    return bool(stored_at(tx.db, key, position)) or _was_stored(tx, key, position)


def turn_id(tx: Transaction, key: str, position: int) -> str:
    """The id of the memory of a turn that this device stores."""
    return blake2b(f"{tx.device}\0{key}\0{position}".encode(), digest_size=8).hexdigest()


def _was_stored(tx: Transaction, key: str, position: int) -> bool:
    """Whether this device stored a turn there, which may have been forgotten or moved since."""
    return KIND.load(tx.db, turn_id(tx, key, position)) is not None


def unread(db: sqlite3.Connection, key: str, most_chars: int) -> list[BufferedTurn]:
    """The unread turns from the first on: as many as fit, at least one."""
    rows = db.execute(
        f"{_TURNS} JOIN conversations ON id = conversation"
        " WHERE conversation = ? AND position >= read_to ORDER BY position",
        (key,),
    )
    turns: list[BufferedTurn] = []
    for turn in map(_turn, rows):
        most_chars -= len(turn.text)
        if most_chars < 0 and turns:
            break
        turns.append(turn)
    return turns


def buffered(db: sqlite3.Connection, key: str) -> list[BufferedTurn]:
    """All buffered turns, in their order; of a long conversation the first and last ones."""
    return [
        _turn(row)
        for row in db.execute(f"{_TURNS} WHERE conversation = ? ORDER BY position", (key,))
    ]


def transcript(db: sqlite3.Connection, key: str) -> list[str]:
    """The text of a conversation, a line each: its turns, else the memories made from it."""
    rows = db.execute(
        "SELECT position, actor, text FROM memories WHERE grp = ? AND grp <> ''"
        " AND merged_into IS NULL ORDER BY position, created_at, row",
        (key,),
    ).fetchall()
    turns = [(actor, text) for position, actor, text in rows if position is not None]
    turns = turns or [(turn.actor or turn.role, turn.text) for turn in buffered(db, key)]
    lines = turns or [("", text) for _, _, text in rows]
    return [" ".join(f"{who}: {text}".split() if who else text.split()) for who, text in lines]


def line_of(db: sqlite3.Connection, turn: Memory) -> int:
    """The line of a turn in `transcript`."""
    before = "grp = ? AND grp <> '' AND merged_into IS NULL AND position <= ?"
    sql = f"SELECT count(*) FROM memories WHERE {before}"
    return max(1, int(scalar(db, sql, turn.group, turn.position)))


def mark_processed(tx: Transaction, key: str, turns: Sequence[BufferedTurn]) -> bool:
    """Mark turns as read; what was extracted from them must be stored in the same commit.

    False: another call has read them, and nothing may be stored from them again.
    """
    start, end = turns[0].position, turns[-1].position + 1
    moved = tx.db.execute(
        "UPDATE conversations SET read_to = ?3 WHERE id = ?1 AND read_to = ?2", (key, start, end)
    ).rowcount
    if not moved:
        return False
    # The end of the last turn may name the secret that the next one gives.
    tx.db.execute(
        "UPDATE turns SET text = substr(text, 1, ?) WHERE conversation = ?"
        " AND position < ? AND length(text) > ?",
        (_EXCERPT, key, end - 1, _EXCERPT),
    )
    tx.db.execute(
        "DELETE FROM turns WHERE conversation = ?1 AND position < ?2 AND position >="
        " (SELECT position FROM turns WHERE conversation = ?1 ORDER BY position LIMIT 1 OFFSET ?3)",
        (key, end - _LAST_TURNS, _FIRST_TURNS),
    )
    return True


def keep_entry(tx: Transaction, key: str, line: str, *, seen_to: int) -> bool:
    """Keep the line about the whole until it is in the file, and remove the turns.

    `seen_to` is the value of `next_position` when the turns were read. False: turns came since
    then, the conversation continues, and the line is not kept.
    """
    updated = tx.db.execute(
        "UPDATE conversations SET entry = ? WHERE id = ? AND next_position = ? AND read_to = ?"
        " AND entry IS NULL",
        (line, key, seen_to, seen_to),
    ).rowcount
    if updated:
        tx.db.execute("DELETE FROM turns WHERE conversation = ?", (key,))
    return bool(updated)


def entry_written(tx: Transaction, key: str) -> None:
    """Remove the line about the whole once it is in the file, with all before it."""
    tx.db.execute(
        "DELETE FROM conversations WHERE id = ? AND next_position = read_to"
        " AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation = id)",
        (key,),
    )
    # Turns that came meanwhile start the next conversation.
    tx.db.execute(
        "UPDATE conversations SET entry = NULL, tries = 0, began_at = last_at,"
        " turns = (SELECT count(*) FROM turns WHERE conversation = ?1) WHERE id = ?1",
        (key,),
    )


def failed(tx: Transaction, key: str) -> None:
    """Count a failure to make the entry."""
    tx.db.execute("UPDATE conversations SET tries = tries + 1 WHERE id = ?", (key,))


def forget(tx: Transaction, key: str) -> None:
    """Remove a conversation without storing anything from it."""
    tx.db.execute("DELETE FROM turns WHERE conversation = ?", (key,))
    tx.db.execute("DELETE FROM conversations WHERE id = ?", (key,))


def import_rows(
    tx: Transaction, conversations: Sequence[tuple[Any, ...]], turns: Sequence[tuple[Any, ...]]
) -> None:
    """Store rows recovered from a damaged database: of `SELECT`, and of `turns`.

    A turn without its conversation is skipped: it is unknown whether it was read.
    """
    tx.db.executemany(
        "INSERT OR IGNORE INTO conversations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", conversations
    )
    tx.db.executemany(
        "INSERT OR IGNORE INTO turns SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7"
        " WHERE EXISTS (SELECT 1 FROM conversations WHERE id = ?1)",
        turns,
    )


_TURNS: Final = "SELECT position, role, actor, text, at, tools FROM turns"


def _turn(row: tuple[int, str, str, str, float, str]) -> BufferedTurn:
    position, role, actor, text, at, tools = row
    used = msgspec.json.decode(tools, type=tuple[str, ...])
    return BufferedTurn(role, text, actor, position=position, at=at, tools=used)
