"""The keys of a sealed replica among devices: new epochs, retired devices and invented ones."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from faulty_remote import FaultyRemote, failing_from
from memory_sides import AGENT, START, Member, MemoryRemote
from sealing import DeviceKeys

from thermocline.daemon.cloud.keychain import Keychain
from thermocline.daemon.cloud.pairing import Pairing
from thermocline.daemon.errors import NotFound
from thermocline.sync import (
    Device,
    KeyMissing,
    Refused,
    SyncError,
    TryLater,
)
from thermocline.sync.sealing import keyring, pairing
from thermocline.sync.sealing.keyring import Keyring, entry, new_keyring


class Sealed(Member):
    """A device with one agent, sealed unless it has no keys."""

    def __init__(self, name: str, remote: Any, ring: Keyring | None = None) -> None:
        super().__init__(name, remote, None if ring is None else DeviceKeys(name, ring))

    def store(self, text: str) -> None:
        self.local.write("memory", text, {"text": text})

    async def sync(self) -> None:
        await self.exchange.run(heartbeat=True)

    @property
    def texts(self) -> set[str]:
        return {key for _, key in self.local.rows}

    @property
    def ring(self) -> Keyring:
        assert self.keys is not None
        return self.keys.ring  # type: ignore[no-any-return]


async def retire(member: Sealed, name: str) -> None:
    """As the daemon does."""
    assert member.keys is not None
    ring = member.ring.next(retired=name)
    member.keys.ring = await keyring.publish(member.remote, ring, member.keys.holder)
    await member.replica.retire(name, START)


@pytest.fixture
def remote() -> MemoryRemote:
    return MemoryRemote()


async def members(remote: Any, *names: str) -> list[Sealed]:
    """Devices of one owner, each with a text that all have."""
    ring = new_keyring()
    made = [Sealed(name, remote, ring) for name in names]
    for _ in range(2):
        for member in made:
            member.store(f"by {member.device.id}")
            await member.sync()
    return made


def epochs(remote: MemoryRemote) -> list[int]:
    return [json.loads(clocks)["epoch"] for (clocks,) in remote.query("SELECT clocks FROM rows")]


async def test_a_device_that_was_not_told_of_an_epoch_cannot_write_with_the_old_key(remote):
    one, two, lost = await members(remote, "one", "two", "lost")
    assert two.keys is not None
    await keyring.publish(remote, one.ring.next(retired="lost"), one.keys.holder)  # type: ignore[union-attr]
    two.store("written with the key that the lost device has")
    cursor = await two.local.cursor()
    batch = await two.replica.batch(await two.local.pending(None, 9, 999))
    with pytest.raises(KeyMissing):
        await two.replica.push(batch, two.device, cursor.seq, START)
    await two.sync()
    assert two.ring.epoch == 2
    [clocks] = {c for c, s in remote.query("SELECT clocks, seq FROM rows") if s > cursor.seq}
    assert json.loads(clocks) == {"epoch": 2}
    assert lost.ring.epoch == 1


async def test_a_device_that_was_away_for_two_epochs_catches_up(remote):
    one, away, *_ = await members(remote, "one", "away", "x", "y")
    away.store("written while away")
    for name in ("x", "y"):
        await retire(one, name)
        one.store(f"after {name}")
        await one.sync()
    await away.sync()
    await one.sync()
    assert away.ring == one.ring
    assert away.ring.epoch == 3
    assert away.texts == one.texts >= {"after x", "after y", "written while away"}


async def test_a_device_that_the_remote_invents_gets_no_key(remote):
    [one] = await members(remote, "one")
    spy = DeviceKeys("spy", new_keyring())
    # It knows every public key, and may copy and sign with keys of its own.
    [own] = await keyring.read_roster(remote)
    forged = [
        entry(spy.ring, "spy", spy.holder.public),
        msgspec.structs.replace(own, device="copied"),
        msgspec.structs.replace(own, device="bare", tag=""),
    ]
    for each in forged:
        remote.query(
            "INSERT INTO replica_keys (device, epoch, public, wrapped, tag) VALUES (?, 1, ?, ?, ?)",
            *(each.device, each.public, each.wrapped, each.tag),
        )
    await retire(one, "nobody")
    assert [each.device for each in await keyring.read_roster(remote)] == ["one"]
    await one.sync()


async def test_keys_that_the_remote_makes_up_for_a_device_are_not_taken(remote):
    one, two = await members(remote, "one", "two")
    assert two.keys is not None
    evil = Keyring(one.ring.root, new_keyring().next().epochs)
    for ring in (new_keyring().next(), evil):
        made_up = entry(ring, "two", two.keys.holder.public)
        remote.query("DELETE FROM replica_keys WHERE device = 'two'")
        remote.query(
            "INSERT INTO replica_keys (device, epoch, public, wrapped, tag) VALUES (?, 2, ?, ?, ?)",
            *(made_up.device, made_up.public, made_up.wrapped, made_up.tag),
        )
        two.restart()
        with pytest.raises(KeyMissing):
            await two.sync()
        assert two.ring == one.ring


async def test_two_devices_that_retire_at_the_same_time_agree(remote):
    one, two, *_ = await members(remote, "one", "two", "x", "y")
    first, second = one.ring.next(retired="x"), two.ring.next(retired="y")
    assert one.keys is not None
    assert two.keys is not None
    one.keys.ring = await keyring.publish(remote, first, one.keys.holder)
    with pytest.raises(KeyMissing):
        await keyring.publish(remote, second, two.keys.holder)
    two.keys.ring = await keyring.learn(remote, two.ring, two.keys.holder)
    two.keys.ring = await keyring.publish(remote, two.ring.next(retired="y"), two.keys.holder)
    two.store("with the key of both")
    await two.sync()
    await one.sync()
    assert one.ring == two.ring
    assert {each.device for each in await keyring.read_roster(remote)} == {"one", "two"}


async def test_a_replica_that_was_set_back_to_an_earlier_epoch_gets_the_later_keys(remote):
    one, two, *_ = await members(remote, "one", "two", "x")
    old = remote.saved()
    await retire(one, "x")
    one.store("later")
    await one.sync()
    await two.sync()
    remote.set_back(old)
    for member in (one, two, one):
        member.restart()
        await member.sync()
    assert one.ring.epoch == two.ring.epoch == 2
    assert {each.device for each in await keyring.read_roster(remote)} == {"one", "two"}
    assert one.texts == two.texts >= {"later"}
    assert set(epochs(remote)) == {2}


async def test_a_row_that_was_set_back_is_put_right_by_whoever_has_seen_the_newer(remote):
    one, two = await members(remote, "one", "two")
    assert two.keys is not None
    key = two.replica.form.key("memory", "by one")[1]
    [old] = remote.query("SELECT version, data, clocks FROM rows WHERE id = ?", key)
    one.local.write("memory", "by one", {"text": "changed"})
    await one.sync()
    await two.sync()
    remote.query("UPDATE replica_clock SET seq = seq + 1")
    remote.query(
        "UPDATE rows SET version = ?, data = ?, clocks = ?, seq = (SELECT seq FROM replica_clock)"
        " WHERE id = ?",
        *(*old, key),
    )
    await two.sync()
    await one.sync()
    for member in (one, two):
        assert member.local.says("memory", "by one") == {"text": "changed"}
    assert remote.query("SELECT version FROM rows WHERE id = ?", key) != [(old[0],)]


async def test_a_row_that_was_changed_there_is_sent_again_by_who_has_it(remote):
    one, two = await members(remote, "one", "two")
    key, other = (two.replica.form.key("memory", f"by {name}")[1] for name in ("one", "two"))
    remote.query("UPDATE replica_clock SET seq = seq + 1")
    remote.query(
        "UPDATE rows SET data = (SELECT data FROM rows WHERE id = ?),"
        " seq = (SELECT seq FROM replica_clock) WHERE id = ?",
        *(other, key),
    )
    result = await two.exchange.run()
    assert (result.sent, result.refused) == (1, 0)
    [note] = result.notes
    assert note.startswith("memory by one: it is damaged")
    assert note.endswith("sent again from here")
    new = Sealed("new", remote, one.ring)
    await new.sync()
    assert new.texts == one.texts == two.texts


async def test_a_row_that_was_made_up_is_left_out_and_stays(remote):
    [one] = await members(remote, "one")
    remote.query("UPDATE replica_clock SET seq = seq + 1")
    remote.query(
        "INSERT INTO rows SELECT agent_id, kind, ?, seq + 1, version, device, data, clocks"
        " FROM rows",
        "f" * 32,
    )
    remote.query("UPDATE rows SET version = ? WHERE id = ?", "e" * 32, "f" * 32)
    result = await one.exchange.run()
    assert (result.sent, result.refused) == (0, 1)
    assert result.notes == [
        f"sealed {'f' * 32}: it is damaged: it was changed, or sealed with another key"
    ]


@pytest.mark.parametrize(
    "tables", [("rows",), ("replica_devices",), ("replica_clock",), ("rows", "replica_clock")]
)
async def test_tables_that_somebody_dropped_are_made_again(remote, tables):
    one, two = await members(remote, "one", "two")
    for table in tables:
        remote.query(f"DROP TABLE {table}")
    one.store("later")
    await one.sync()
    await two.sync()
    assert "later" in two.texts


async def test_keys_that_somebody_removed_are_there_again_after_a_day(remote):
    one, two = await members(remote, "one", "two")
    remote.query("DELETE FROM replica_keys")
    for member in (one, two):
        member.now += 90_000
        await member.sync()
    assert {each.device for each in await keyring.read_roster(remote)} == {"one", "two"}


async def test_a_row_of_a_key_that_no_device_is_given_says_that_it_was_made_up(remote):
    [one] = await members(remote, "one")
    remote.query("UPDATE replica_clock SET seq = seq + 1")
    remote.query("UPDATE rows SET clocks = ?, seq = seq + 1", '{"epoch":9}')
    with pytest.raises(KeyMissing, match="no device is listed that has it") as missing:
        await one.sync()
    assert "the row was made up" in missing.value.hint


async def test_of_two_devices_that_seal_at_the_same_time_one_is_told_to_join(remote):
    await members(remote, "one")
    ring = new_keyring()
    for theirs in (ring, ring.next()):
        other = Sealed("other", remote, theirs)
        other.store("by other")
        with pytest.raises(KeyMissing, match="does not have the key") as missing:
            await other.sync()
        assert "thermocline join" in missing.value.hint
        assert [each.device for each in await keyring.read_roster(remote)] == ["one"]


async def test_a_code_that_nobody_confirms_is_over_after_ten_minutes_on_both_devices(
    remote, tmp_path, monkeypatch
):
    host, guest = (
        Pairing(Keychain(tmp_path / name, lambda name=name: name, {})) for name in ("one", "two")
    )
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    await host.keychain.begin()
    code, _ = await host.invite(remote, Device("one", "the one"))
    await guest.knock(remote, code, Device("two", "the two"))
    assert not await guest.admitted()
    monkeypatch.setattr(pairing, "SECONDS", -1)
    with pytest.raises(NotFound, match="nobody has confirmed it within ten minutes"):
        await guest.admitted()
    with pytest.raises(NotFound, match="it is ten minutes old"):
        await host.visitor()
    with pytest.raises(NotFound, match="no invitation is open"):
        await host.decide(accept=True)


# Killed at each step: what a device has in its files is all that it has afterwards


def keychain(folder: Path, device: str) -> Keychain:
    """The keys in a folder, as a daemon that starts finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    return Keychain(folder, lambda: device, {})


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_retiring_is_finished_by_the_next_call_wherever_it_was_killed(tmp_path, *, is_done):
    at, is_killed = 0, True
    while is_killed:
        at += 1
        inner = MemoryRemote()
        one, two, lost = await members(inner, "one", "two", "lost")
        chain = keychain(tmp_path / str(at), "one")
        await chain.take(one.ring)
        one.remote = broken = FaultyRemote(inner, plan=failing_from(at, is_done=is_done))
        try:
            await chain.retire(broken, "lost")
            await chain.replica(broken, AGENT).retire("lost", START)
        except SyncError:
            is_killed = True
        else:
            is_killed = False
        broken.plan = iter(())
        one.keys = chain = keychain(tmp_path / str(at), "one")
        one.restart()
        await chain.retire(broken, "lost")
        await one.replica.retire("lost", START)
        one.store("later")
        await one.sync()
        await two.sync()
        assert "later" in two.texts
        assert two.ring == chain.ring
        with pytest.raises(Refused, match="retired"):
            await lost.sync()
        with pytest.raises(KeyMissing):
            await lost.exchange.receive()
    assert at > 3


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "at", [7, *(pytest.param(n, marks=pytest.mark.crash) for n in range(1, 7))]
)
async def test_after_pairing_was_killed_at_any_step_another_code_works(tmp_path, at, *, is_done):
    broken = FaultyRemote(MemoryRemote(), plan=failing_from(at, is_done=is_done))
    ring = new_keyring()
    await keychain(tmp_path / "one", "one").take(ring)

    async def pair() -> None:
        inviting, joining = (Pairing(keychain(tmp_path / name, name)) for name in ("one", "two"))
        code, _ = await inviting.invite(broken, Device("one", "the one"))
        _, words = await joining.knock(broken, code, Device("two", "the two"))
        visitor = await inviting.visitor()
        assert visitor is not None
        assert visitor[1] == words
        await inviting.decide(accept=True)
        assert await joining.admitted()
        await joining.finish()

    with pytest.raises(TryLater):
        await pair()
    broken.plan = iter(())
    await pair()
    assert keychain(tmp_path / "two", "two").ring == ring


# Switching on


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_switching_on_is_resumed_wherever_it_was_interrupted(*, is_done):
    at = 0
    while True:
        at += 1
        inner = MemoryRemote()
        two = Sealed("two", inner)
        one = Sealed("one", inner)
        for number in range(5):
            two.store(f"from two {number}")
        await two.sync()
        one.store("from one")
        await one.sync()
        two.store("sent and not received by one")
        await two.sync()
        broken = FaultyRemote(inner, plan=failing_from(at, is_done=is_done))
        sealed = Sealed("one", broken, new_keyring())
        sealed.local = one.local
        sealed.restart(takes_over=True)
        try:
            await sealed.sync()
        except SyncError:
            interrupted = True
        else:
            interrupted = False
        broken.plan = iter(())
        sealed.restart(takes_over=True)
        await sealed.sync()
        assert not sealed.local.outbox
        assert sealed.texts == {*two.texts, "from one"}, at
        assert {name[0] for (name,) in inner.query("SELECT agent_id FROM rows")} == {"="}
        assert inner.query("SELECT 1 FROM replica_clock WHERE agent_id = 'default'") == []
        assert inner.query("SELECT 1 FROM replica_devices WHERE agent_id = 'default'") == []
        assert len(inner.query("SELECT 1 FROM rows")) == 7
        if not interrupted:
            break
    assert at > 8


async def test_rows_that_somebody_puts_there_unsealed_are_not_taken_in_later(remote):
    [one] = await members(remote, "one")
    forger = Sealed("forger", MemoryRemote())
    forger.store("forged")
    await forger.sync()
    for trigger in ("rows_sealed", "clock_sealed"):
        remote.query(f"DROP TRIGGER {trigger}")
    for table in ("rows", "replica_clock"):
        for row in forger.remote.query(f"SELECT * FROM {table}"):
            remote.query(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    one.restart()
    await one.sync()
    assert "forged" not in one.texts
