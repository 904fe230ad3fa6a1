"""The turns of conversations on their way to becoming memories.

A turn is on the disk before whoever sent it hears of it, and leaves in the same commit that stores
what was kept of it. So nothing is lost and nothing comes twice, wherever the daemon is killed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from .transaction import Transaction

# What an entry about a whole conversation is made of: its beginning, its end, and of each turn
# that was read already so many characters.
_FIRST_TURNS: Final = 20
_LAST_TURNS: Final = 100
_EXCERPT: Final = 1000
# Conversations are named so among paths.
PATH: Final = "chat://"


class Said(msgspec.Struct, frozen=True):
    """One turn as it comes in; `at` is in seconds since the epoch."""

    role: str
    text: str
    actor: str
    at: float
    tools: tuple[str, ...] = ()


class Heard(msgspec.Struct, frozen=True):
    """One turn that is kept; `position` is its place in the conversation."""

    position: int
    role: str
    actor: str
    text: str
    at: float
    tools: tuple[str, ...]


class Conversation(msgspec.Struct, frozen=True):
    """What is known of a conversation of which turns are kept.

    Attributes:
        next_position: the place that the next turn gets.
        read_to: the place of the first turn that is still to be read for what is worth keeping.
        turns: how many there have been since the last entry about the whole.
        began_at, last_at: when the first and the last of these came.
        ended_at: when somebody said that it is over.
        tries: how often making the entry has failed.
        writer: who sent the last turn.
        entry: the line that still has to be written into the file.
    """

    id: str
    next_position: int
    read_to: int
    turns: int
    began_at: float
    last_at: float
    ended_at: float | None
    tries: int
    writer: str
    entry: str | None

    @property
    def unread(self) -> int:
        """How many turns are still to be read."""
        return self.next_position - self.read_to


_SELECT: Final = f"SELECT {', '.join(Conversation.__struct_fields__)} FROM conversations"


def find(db: sqlite3.Connection, key: str) -> Conversation | None:
    """The conversation, while turns of it are kept."""
    row = db.execute(f"{_SELECT} WHERE id = ?", (key,)).fetchone()
    return None if row is None else Conversation(*row)


def waiting(db: sqlite3.Connection) -> list[Conversation]:
    """Every conversation of which turns are kept."""
    return [Conversation(*row) for row in db.execute(_SELECT)]


def hear(
    tx: Transaction, key: str, turns: Sequence[Said], *, ended: bool, writer: str
) -> Conversation | None:
    """Keep some turns, in their order, and note whether that was the last of them.

    The places are those among the buffered turns.

    Returns:
        The conversation; None if nothing is kept of it: it is over, and there was nothing new.
    """
    known = find(tx.db, key)
    if known is None and not turns:
        return None
    position = 0 if known is None else known.next_position
    for number, turn in enumerate(turns, position):
        tx.db.execute(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, number, turn.role, turn.actor, turn.text, turn.at, _json(turn.tools)),
        )
    tx.db.execute(
        "INSERT INTO conversations VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, 0, ?7, NULL)"
        " ON CONFLICT DO UPDATE SET next_position = ?2, turns = turns + ?4,"
        " last_at = CASE WHEN ?4 THEN ?5 ELSE last_at END, tries = 0,"
        " ended_at = CASE WHEN ?6 IS NOT NULL THEN ?6 WHEN ?4 THEN NULL ELSE ended_at END,"
        " writer = ?7",
        (
            *(key, position + len(turns), position, len(turns), tx.now),
            *(tx.now if ended else None, writer),
        ),
    )
    return find(tx.db, key)


def next_place(db: sqlite3.Connection, key: str) -> int:
    """The place behind the last turn that is stored of a conversation."""
    found = db.execute(
        "SELECT max(position) FROM memories WHERE grp <> '' AND grp = ?", (key,)
    ).fetchone()[0]
    return 0 if found is None else int(found) + 1


def unread(db: sqlite3.Connection, key: str, most_chars: int) -> list[Heard]:
    """The turns that are still to be read, from the first on; as many as fit, but one at least."""
    rows = db.execute(
        f"{_TURNS} JOIN conversations ON id = conversation"
        " WHERE conversation = ? AND position >= read_to ORDER BY position",
        (key,),
    )
    found: list[Heard] = []
    for turn in map(_turn, rows):
        most_chars -= len(turn.text)
        if most_chars < 0 and found:
            break
        found.append(turn)
    return found


def kept(db: sqlite3.Connection, key: str) -> list[Heard]:
    """All the turns that are kept, in their order; of a long conversation its two ends."""
    return [
        _turn(row)
        for row in db.execute(f"{_TURNS} WHERE conversation = ? ORDER BY position", (key,))
    ]


def transcript(db: sqlite3.Connection, key: str) -> list[str]:
    """What is there of a conversation, a line each: its turns, else what was kept of it."""
    rows = db.execute(
        "SELECT position, actor, text FROM memories WHERE grp = ? AND grp <> ''"
        " AND merged_into IS NULL ORDER BY position, created_at, row",
        (key,),
    ).fetchall()
    turns = [(actor, text) for position, actor, text in rows if position is not None]
    turns = turns or [(turn.actor or turn.role, turn.text) for turn in kept(db, key)]
    said = turns or [("", text) for _, _, text in rows]
    return [" ".join(f"{who}: {text}".split() if who else text.split()) for who, text in said]


def were_read(tx: Transaction, key: str, turns: Sequence[Heard]) -> bool:
    """Note that some turns were read; what was made of them belongs into the same commit.

    Returns:
        Whether they were still to be read. If not, somebody else has done it meanwhile, and
        nothing may be made of them again.
    """
    start, end = turns[0].position, turns[-1].position + 1
    moved = tx.db.execute(
        "UPDATE conversations SET read_to = ?3 WHERE id = ?1 AND read_to = ?2", (key, start, end)
    ).rowcount
    if not moved:
        return False
    tx.db.execute(
        "UPDATE turns SET text = substr(text, 1, ?) WHERE conversation = ?"
        " AND position BETWEEN ? AND ? AND length(text) > ?",
        (_EXCERPT, key, start, end - 1, _EXCERPT),
    )
    tx.db.execute(
        "DELETE FROM turns WHERE conversation = ?1 AND position < ?2 AND position >="
        " (SELECT position FROM turns WHERE conversation = ?1 ORDER BY position LIMIT 1 OFFSET ?3)",
        (key, end - _LAST_TURNS, _FIRST_TURNS),
    )
    return True


def keep_entry(tx: Transaction, key: str, line: str, *, seen_to: int) -> bool:
    """Keep the line about the whole until it stands in the file, and forget the turns.

    Args:
        tx: the transaction, which also stores what else is made of the conversation.
        key: the conversation.
        line: about it.
        seen_to: what `next_position` was when the turns were looked at.

    Returns:
        Whether it is still so; if not, it goes on, and the line is none about the whole.
    """
    made = tx.db.execute(
        "UPDATE conversations SET entry = ? WHERE id = ? AND next_position = ? AND read_to = ?"
        " AND entry IS NULL",
        (line, key, seen_to, seen_to),
    ).rowcount
    if made:
        tx.db.execute("DELETE FROM turns WHERE conversation = ?", (key,))
    return bool(made)


def entry_written(tx: Transaction, key: str) -> None:
    """The line about the whole stands in the file: what came before it is done with."""
    tx.db.execute(
        "DELETE FROM conversations WHERE id = ? AND next_position = read_to"
        " AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation = id)",
        (key,),
    )
    # What was said meanwhile begins the next one.
    tx.db.execute(
        "UPDATE conversations SET entry = NULL, tries = 0, began_at = last_at,"
        " turns = (SELECT count(*) FROM turns WHERE conversation = ?1) WHERE id = ?1",
        (key,),
    )


def failed(tx: Transaction, key: str) -> int:
    """Count a failure to make the entry; return how many there were."""
    tx.db.execute("UPDATE conversations SET tries = tries + 1 WHERE id = ?", (key,))
    found = find(tx.db, key)
    return found.tries if found else 0


def forget(tx: Transaction, key: str) -> None:
    """Forget a conversation of which nothing is to be kept."""
    tx.db.execute("DELETE FROM turns WHERE conversation = ?", (key,))
    tx.db.execute("DELETE FROM conversations WHERE id = ?", (key,))


# What a damaged database is asked for, and the types of a row; -1 and "" stand for none.
SALVAGE: Final = (
    "SELECT id, next_position, read_to, turns, began_at, last_at, coalesce(ended_at, -1.0), tries,"
    " writer, coalesce(entry, '') FROM conversations"
)
SALVAGED: Final = (str, int, int, int, float, float, float, int, str, str)


def adopt(
    tx: Transaction, found: Sequence[tuple[Any, ...]], turns: Sequence[tuple[Any, ...]]
) -> None:
    """Keep what a damaged database still held: rows of `SALVAGE`, and of `turns`.

    A turn without its conversation says nothing of whether it was read, and is left.
    """
    tx.db.executemany(
        "INSERT OR IGNORE INTO conversations"
        " VALUES (?, ?, ?, ?, ?, ?, nullif(?, -1.0), ?, ?, nullif(?, ''))",
        found,
    )
    tx.db.executemany(
        "INSERT OR IGNORE INTO turns SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7"
        " WHERE EXISTS (SELECT 1 FROM conversations WHERE id = ?1)",
        turns,
    )


_TURNS: Final = "SELECT position, role, actor, text, at, tools FROM turns"


def _turn(row: tuple[int, str, str, str, float, str]) -> Heard:
    position, role, actor, text, at, tools = row
    used = msgspec.json.decode(tools, type=tuple[str, ...])
    return Heard(position, role, actor, text, at, used)


def _json(tools: tuple[str, ...]) -> str:
    return msgspec.json.encode(tools).decode()
