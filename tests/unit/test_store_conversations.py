"""The buffer of what is heard in conversations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import pytest
from store_parts import transaction

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import conversations
from thermocline.daemon.store.conversations import Conversation, IncomingTurn
from thermocline.daemon.store.transaction import Transaction

Remembered = Callable[[Iterable[Memory]], sqlite3.Connection]


class Buffer:
    """An open buffer, and the time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.now = 1_000.0

    @property
    def tx(self) -> Transaction:
        return transaction(self.db, self.now)

    def hear(self, *texts: str, ended: bool = False) -> Conversation:
        said = [IncomingTurn("user", text, "Ada", at=self.now, tools=("shell",)) for text in texts]
        heard = conversations.buffer_turns(self.tx, "c", said, ended=ended, writer="uid:1")
        assert heard is not None
        return heard

    def unread(self, most: int = 10_000) -> list[str]:
        return [turn.text for turn in conversations.unread(self.db, "c", most)]

    def read(self, most: int = 10_000) -> bool:
        return conversations.mark_processed(self.tx, "c", conversations.unread(self.db, "c", most))

    def buffered(self) -> list[str]:
        return [turn.text for turn in conversations.buffered(self.db, "c")]

    def state(self) -> Conversation | None:
        return conversations.find(self.db, "c")


@pytest.fixture
def buffer(remembered: Remembered) -> Buffer:
    return Buffer(remembered([]))


def test_as_many_turns_are_read_as_fit_but_one_at_least(buffer):
    buffer.hear("a" * 50, "b" * 50, "c" * 50)
    assert [text[0] for text in buffer.unread(100)] == ["a", "b"]
    assert [text[0] for text in buffer.unread(10)] == ["a"]


def test_of_a_long_conversation_its_ends_are_kept_and_of_a_long_turn_its_beginning(buffer):
    for number in range(30):
        buffer.hear(*(f"{number}.{n} {'x' * 3_000}" for n in range(10)))
        buffer.read(1_000_000)
    kept = buffer.buffered()
    assert len(kept) == 120
    assert kept[0].startswith("0.0 ")
    assert kept[-1].startswith("29.9 ")
    assert max(map(len, kept)) == 1_000


def test_an_entry_is_kept_until_it_is_written_and_what_came_meanwhile_begins_another(buffer):
    heard = buffer.hear("one", ended=True)
    seen_to = heard.next_position
    assert not conversations.keep_entry(buffer.tx, "c", "{}", seen_to=seen_to), "it is not read"
    buffer.read()
    buffer.hear("two")
    assert not conversations.keep_entry(buffer.tx, "c", "{}", seen_to=seen_to), "it goes on"
    buffer.read()
    assert conversations.keep_entry(buffer.tx, "c", "{}", seen_to=seen_to + 1)
    assert buffer.buffered() == []
    buffer.hear("three")
    conversations.entry_written(buffer.tx, "c")
    state = buffer.state()
    assert state is not None
    assert (state.entry, state.turns, state.unread) == (None, 1, 1)
    buffer.read()
    assert conversations.keep_entry(buffer.tx, "c", "{}", seen_to=state.next_position)
    conversations.entry_written(buffer.tx, "c")
    assert buffer.state() is None


def test_failures_are_counted_until_something_new_comes(buffer):
    buffer.hear("one")
    assert conversations.failed(buffer.tx, "c") == 1
    assert conversations.failed(buffer.tx, "c") == 2
    assert buffer.hear("two").tries == 0
