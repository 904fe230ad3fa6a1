"""The roster of a sealed replica: the keys for each of the owner's devices, on the remote.

`replica_keys` has a line for each device and one for the recovery key. Triggers refuse what is not
sealed, or sealed with the key of an earlier epoch, from any program that writes there: a device on
which sealing is off, or that was away while another was retired. They protect from mistakes; what
protects from the remote is that devices seal, and check signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..failures import KeyMissing, SchemaMissing
from ..ports import Remote, SqlStatement, rows_of, whole
from . import KIND
from .keyring import (
    RECOVERY,
    Keyring,
    RosterEntry,
    entries,
    entry,
    is_signed,
    opened,
    recovery_entry,
)
from .sealed_rows import MARK

_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS replica_keys (
        device TEXT PRIMARY KEY, epoch INTEGER NOT NULL, public TEXT NOT NULL,
        wrapped TEXT NOT NULL, tag TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS replica_proofs (
        agent_id TEXT NOT NULL, device_id TEXT NOT NULL, proof TEXT NOT NULL,
        PRIMARY KEY (agent_id, device_id)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TRIGGER IF NOT EXISTS rows_sealed BEFORE INSERT ON rows WHEN NEW.kind <> '{KIND}'
    BEGIN SELECT RAISE(ABORT, 'the replica is sealed'); END
    """,
    f"""
    CREATE TRIGGER IF NOT EXISTS clock_sealed BEFORE INSERT ON replica_clock
    WHEN substr(NEW.agent_id, 1, 1) <> '{MARK}'
    BEGIN SELECT RAISE(ABORT, 'the replica is sealed'); END
    """,
)
# ?1: the entries as JSON, ?2: their epoch. Nothing happens if another device was first.
_REPLACE: Final = "DELETE FROM replica_keys WHERE (SELECT max(epoch) FROM replica_keys) < ?1"
_BEGIN: Final = """
    INSERT INTO replica_keys (device, epoch, public, wrapped, tag)
    SELECT j.value->>'device', ?2, j.value->>'public', j.value->>'wrapped', j.value->>'tag'
    FROM json_each(?1) AS j WHERE NOT EXISTS (SELECT 1 FROM replica_keys)
"""
_ADD: Final = """
    INSERT OR REPLACE INTO replica_keys (device, epoch, public, wrapped, tag)
    SELECT j.value->>'device', ?2, j.value->>'public', j.value->>'wrapped', j.value->>'tag'
    FROM json_each(?1) AS j WHERE ?2 = (SELECT max(epoch) FROM replica_keys)
"""


class KeyHolder(msgspec.Struct, frozen=True):
    """This device in the roster: its id, and its pair of keys (X25519)."""

    device: str
    private: bytes
    public: bytes


async def read(remote: Remote) -> list[RosterEntry]:
    """Every entry, whoever made it; none: the remote is not sealed."""
    try:
        rows = await rows_of(remote, "SELECT epoch, device, public, wrapped, tag FROM replica_keys")
    except SchemaMissing:
        return []
    return [RosterEntry(whole(epoch), *map(str, texts)) for epoch, *texts in rows]


async def publish(remote: Remote, ring: Keyring, holder: KeyHolder) -> Keyring:
    """Make sure that the remote has these keys for this device, and takes only sealed rows.

    Returns the keys; those of later epochs too, which other devices have begun. `KeyMissing`: its
    rows are sealed with other keys, or with later ones that this device lacks.
    """
    while True:
        listed = await read(remote)
        epoch = max((each.epoch for each in listed), default=0)
        mine = next((each for each in listed if each.device == holder.device), None)
        if epoch > ring.epoch:
            return _learned(listed, ring, holder)
        if listed and not any(is_signed(ring, each) for each in listed):
            raise _missing()
        if epoch < ring.epoch:
            # It is new, or another database of the owner's, or was set back, or the epoch begins.
            own = _own(ring, holder)
            others = [each for each in entries(ring, listed) if each.device != holder.device]
            await _write(remote, ring, [*own, *(e for e in others if e.device != RECOVERY)])
        elif mine is None or not is_signed(ring, mine) or _is_changed(ring, listed):
            arguments = (_json(_own(ring, holder)), ring.epoch)
            await remote.batch([SqlStatement(_ADD, arguments)])
            return ring
        else:
            return ring


async def learn(remote: Remote, ring: Keyring, holder: KeyHolder) -> Keyring:
    """The keys of a later epoch; `KeyMissing` if there are none for this device."""
    return _learned(await read(remote), ring, holder)


async def add(remote: Remote, ring: Keyring, device: str, public: bytes) -> bool:
    """Add a device to the present epoch; False: another epoch has begun."""
    arguments = (_json([entry(ring, device, public)]), ring.epoch)
    [added] = await remote.batch([SqlStatement(_ADD, arguments)])
    return added.affected == 1


async def _write(remote: Remote, ring: Keyring, listed: Sequence[RosterEntry]) -> None:
    """Replace the entries of earlier epochs."""
    # The epoch is the first number in its column. A file's triggers may not use JSON functions.
    later = f"""
        CREATE TRIGGER IF NOT EXISTS rows_of_epoch BEFORE INSERT ON rows WHEN NEW.kind = '{KIND}'
        AND CAST(substr(NEW.clocks, length('{{"epoch":') + 1) AS INTEGER) < {ring.epoch}
        BEGIN SELECT RAISE(ABORT, 'the key of this epoch is no longer used'); END
    """
    await remote.batch(
        [
            *map(SqlStatement, (*_TABLES, "DROP TRIGGER IF EXISTS rows_of_epoch", later)),
            SqlStatement(_REPLACE, (ring.epoch,)),
            SqlStatement(_BEGIN, (_json(listed), ring.epoch)),
        ]
    )


def _own(ring: Keyring, holder: KeyHolder) -> list[RosterEntry]:
    """The entries that every device can make: its own, and that of the recovery key."""
    own = [entry(ring, holder.device, holder.public)]
    return [*own, recovery_entry(ring)] if ring.recovery is not None else own


def _learned(listed: Sequence[RosterEntry], ring: Keyring, holder: KeyHolder) -> Keyring:
    mine = next((each for each in listed if each.device == holder.device), None)
    is_owner = not listed or any(is_signed(ring, each) for each in listed)
    if is_owner and all(each.epoch <= ring.epoch for each in listed):
        raise KeyMissing(
            "key_missing",
            "cannot trust the remote: a row is sealed with a later key, and no device is listed"
            " that has it",
            hint="a device that has this key puts it there when it replicates; if none does, the"
            " row was made up: use an empty database, and replicate this device there first",
        )
    if mine is None or mine.epoch <= ring.epoch:
        raise _missing()
    try:
        return opened(mine, holder.private, ring)
    except ValueError:
        raise _missing() from None


def _is_changed(ring: Keyring, listed: Sequence[RosterEntry]) -> bool:
    own = [each for each in listed if each.device == RECOVERY]
    return ring.recovery is not None and not (own and is_signed(ring, own[0]))


def _missing() -> KeyMissing:
    return KeyMissing("key_missing")


def _json(listed: Sequence[RosterEntry]) -> str:
    return msgspec.json.encode(listed).decode()
