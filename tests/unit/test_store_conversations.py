"""The buffer of what is heard in conversations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import pytest

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import conversations
from thermocline.daemon.store.conversations import Conversation, IncomingTurn
from thermocline.daemon.store.transaction import Transaction
from thermocline.sync import HybridClock

Remembered = Callable[[Iterable[Memory]], sqlite3.Connection]


class Buffer:
    """An open buffer, and the time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.now = 1_000.0

    @property
    def tx(self) -> Transaction:
        clock = HybridClock(lambda: self.now)
        return Transaction(self.db, now=self.now, device="d", rules=Rules(), clock=clock)

    def hear(self, *texts: str, ended: bool = False) -> Conversation:
        said = [IncomingTurn("user", text, "Ada", at=self.now, tools=("shell",)) for text in texts]
        heard = conversations.buffer_turns(self.tx, "c", said, ended=ended, writer="uid:1")
        assert heard is not None
        return heard

    def unread(self, most: int = 10_000) -> list[str]:
        return [turn.text for turn in conversations.unread(self.db, "c", most)]

    def read(self, most: int = 10_000) -> bool:
        return conversations.mark_processed(self.tx, "c", conversations.unread(self.db, "c", most))

    def kept(self) -> list[str]:
        return [turn.text for turn in conversations.buffered(self.db, "c")]

    def state(self) -> Conversation | None:
        return conversations.find(self.db, "c")


@pytest.fixture
def buffer(remembered: Remembered) -> Buffer:
    return Buffer(remembered([]))


def test_turns_keep_their_order_their_speaker_and_their_place(buffer: Buffer) -> None:
    buffer.hear("one", "two")
    heard = buffer.hear("three")
    assert (heard.next_position, heard.read_to, heard.turns, heard.unread) == (3, 0, 3, 3)
    turns = conversations.unread(buffer.db, "c", 10_000)
    assert [(turn.position, turn.text) for turn in turns] == [(0, "one"), (1, "two"), (2, "three")]
    assert (turns[0].role, turns[0].actor, turns[0].at, turns[0].tools) == (
        *("user", "Ada", 1_000.0),
        ("shell",),
    )


def test_what_was_read_is_read_once_and_stays_for_the_entry(buffer: Buffer) -> None:
    buffer.hear("one", "two")
    turns = conversations.unread(buffer.db, "c", 10_000)
    buffer.hear("three")
    assert conversations.mark_processed(buffer.tx, "c", turns)
    assert not conversations.mark_processed(buffer.tx, "c", turns)
    assert (buffer.unread(), buffer.kept()) == (["three"], ["one", "two", "three"])


def test_as_many_turns_are_read_as_fit_but_one_at_least(buffer: Buffer) -> None:
    buffer.hear("a" * 50, "b" * 50, "c" * 50)
    assert [text[0] for text in buffer.unread(100)] == ["a", "b"]
    assert [text[0] for text in buffer.unread(10)] == ["a"]


def test_of_a_long_conversation_its_ends_are_kept_and_of_a_long_turn_its_beginning(
    buffer: Buffer,
) -> None:
    for number in range(30):
        buffer.hear(*(f"{number}.{n} {'x' * 3_000}" for n in range(10)))
        buffer.read(1_000_000)
    kept = buffer.kept()
    assert len(kept) == 120
    assert kept[0].startswith("0.0 ")
    assert kept[-1].startswith("29.9 ")
    assert max(map(len, kept)) == 1_000


def test_turns_are_stored_behind_those_that_are_there(remembered: Remembered) -> None:
    turn = Memory(id="m", text="x", created_at=1, updated_at=1, group="c", position=2, actor="Ada")
    tx = Buffer(remembered([turn])).tx
    assert conversations.last_turns(tx, "c", 9) == ([None, None, ("Ada", "x")], 3)
    assert conversations.last_turns(tx, "c", 1) == ([("Ada", "x")], 3)
    assert conversations.last_turns(tx, "d", 9) == ([], 0)


def test_an_end_without_anything_new_leaves_no_trace(buffer: Buffer) -> None:
    assert conversations.buffer_turns(buffer.tx, "c", (), ended=True, writer="") is None
    assert buffer.state() is None
    buffer.hear("one")
    ended = buffer.hear(ended=True)
    assert (ended.ended_at, ended.turns) == (1_000.0, 1)
    assert buffer.hear("again").ended_at is None


def test_an_entry_is_kept_until_it_is_written_and_what_came_meanwhile_begins_another(
    buffer: Buffer,
) -> None:
    heard = buffer.hear("one", ended=True)
    seen_to = heard.next_position
    assert not conversations.keep_entry(buffer.tx, "c", "{}", seen_to=seen_to), "it is not read"
    buffer.read()
    buffer.hear("two")
    assert not conversations.keep_entry(buffer.tx, "c", "{}", seen_to=seen_to), "it goes on"
    buffer.read()
    assert conversations.keep_entry(buffer.tx, "c", "{}", seen_to=seen_to + 1)
    assert buffer.kept() == []
    buffer.hear("three")
    conversations.entry_written(buffer.tx, "c")
    state = buffer.state()
    assert state is not None
    assert (state.entry, state.turns, state.unread) == (None, 1, 1)
    buffer.read()
    assert conversations.keep_entry(buffer.tx, "c", "{}", seen_to=state.next_position)
    conversations.entry_written(buffer.tx, "c")
    assert buffer.state() is None


def test_failures_are_counted_until_something_new_comes(buffer: Buffer) -> None:
    buffer.hear("one")
    assert conversations.failed(buffer.tx, "c") == 1
    assert conversations.failed(buffer.tx, "c") == 2
    assert buffer.hear("two").tries == 0
    assert [one.id for one in conversations.waiting(buffer.db)] == ["c"]
    conversations.forget(buffer.tx, "c")
    assert (buffer.state(), buffer.kept()) == (None, [])
