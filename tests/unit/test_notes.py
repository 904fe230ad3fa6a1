"""Notes of two devices joined over what a replica carries between them, and their files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from desks import Desk, Replica, meet

from thermocline.daemon.memory.agent_files import LARGEST
from thermocline.daemon.store import apply, outbox
from thermocline.daemon.store.database import rows
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import history, notes
from thermocline.sync import Clocks, Cursor, Received, Row

NOTE = "memory/note.md"


def pair(folder: Path | None) -> Iterator[tuple[Desk, Desk]]:
    replica = Replica()
    here, there = (Desk(name, replica, folder and folder / name) for name in ("here", "there"))
    write = here.type if folder else here.edit
    write("one\ntwo\nthree\n")
    meet(here, there)
    yield here, there
    here.db.close()
    there.db.close()


@pytest.fixture
def two() -> Iterator[tuple[Desk, Desk]]:
    """Two desks that have the same note."""
    yield from pair(None)


def test_the_base_survives_several_edits_between_two_syncs(two):
    here, there = two
    for text in ("one\nthree\n", "one\nthree\nfour\n", "one\nthree\nfour\nfive\n"):
        here.edit(text)
    there.edit("one\ntwo\nTHREE\n")
    there.sync()
    here.write(lambda tx: history.prune(tx, 0))
    assert meet(here, there) == {NOTE: "one\nTHREE\nfour\nfive\n"}


def test_the_base_of_a_join_that_was_not_sent_is_what_came(two):
    here, there = two
    here.edit("one\ntwo\nthree\nfour\n")
    there.edit("zero\none\ntwo\nthree\n")
    there.sync()
    here.receive()
    # The replica moves on before the joined version reaches it.
    there.edit("zero\none\ntwo\n")
    there.sync()
    here.edit("zero\none\n2\nthree\nfour\n")
    assert meet(here, there) == {NOTE: "zero\none\n2\nfour\n"}


def test_the_base_of_an_edit_during_a_push_is_what_was_pushed(two):
    here, there = two
    here.edit("one\n2\nthree\n")
    sent = here.pending()
    here.edit("one\n2\nthree\nfour\n")
    done = here.replica.push(sent)
    here.write(lambda tx: outbox.taken(tx, done, Cursor()))
    there.sync()
    there.edit("one\nthree\n")
    there.sync()
    assert meet(here, there) == {NOTE: "one\nthree\nfour\n"}
    assert here.conflicts == 0


def test_what_changes_in_the_commit_that_notes_a_push_stays_pending(two):
    here, _ = two
    here.edit("sent\n")
    sent = here.pending()

    def change_and_note(tx: Transaction) -> None:
        rows.write(tx, notes.KIND, NOTE, {"text": "changed\n", "modified_at": tx.now})
        outbox.taken(tx, sent, Cursor())

    here.write(change_and_note)
    [left] = here.pending()
    assert (left.row.data["text"], left.seen) == ("changed\n", sent[0].version)


def test_a_push_whose_answer_was_lost_contradicts_nothing(two):
    here, there = two
    here.edit("one\nsoup\nthree\n")
    here.replica.push(here.pending())
    here.edit("one\nmuch soup\nthree\n")
    assert meet(here, there) == {NOTE: "one\nmuch soup\nthree\n"}
    assert here.conflicts == 0


def test_a_join_that_is_too_large_is_a_conflict(two):
    here, there = two
    here.edit("".join(f"h{n}\n" for n in range(LARGEST // 8)))
    there.edit("".join(f"t{n}\n" for n in range(LARGEST // 8)))
    assert len(meet(here, there)) == 2


def test_a_row_of_the_year_3000_is_applied(two):
    here, there = two
    here.write(
        lambda tx: rows.write(tx, notes.KIND, NOTE, {"text": "late\n", "modified_at": 3.25e10})
    )
    assert meet(here, there) == {NOTE: "late\n"}


@pytest.mark.parametrize("path", ["memory/../up.md", "elsewhere.md", "memory/x.sh", "memory/.x.md"])
def test_a_row_that_leads_elsewhere_is_refused(two, path):
    here, _ = two
    row = Row(kind="note", id=path, data={"text": "x"}, clocks=Clocks((5, "evil")))
    applied = here.write(lambda tx: apply.apply(tx, [Received(row, "")]))
    assert (applied.changed, applied.refused) == (0, 1)


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[tuple[Desk, Desk]]:
    """Two devices with a disk that have the same note."""
    yield from pair(tmp_path)


def test_a_file_that_was_only_touched_after_its_deletion_elsewhere_is_removed(disks):
    here, there = disks
    here.type(None)
    here.sync()
    there.receive()
    there.type("one\ntwo\nthree\n")
    assert meet(here, there) == {}
