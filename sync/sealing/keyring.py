"""The keys of one owner: a root that stays, and a key for each epoch.

The root names rows and versions, so that these stay when an epoch ends. A row is sealed with the
key of its epoch. Each key carries a link, which only who knew the key before could have made: a
device takes no key that somebody else put there for it.

The roster has the keys for each of the owner's devices, on the remote: `replica_keys` has a line
for each device and one for the recovery key. Triggers refuse what is not sealed, or sealed with the
key of an earlier epoch, from any program that writes there: a device on which sealing is off, or
that was away while another was retired. They protect from mistakes; what protects from the remote
is that devices seal, and check signatures.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from hmac import compare_digest
from typing import Final

import msgspec

from ..failures import KeyMissing, SchemaMissing
from ..ports import Remote, SqlStatement, rows_of, whole
from . import KIND, MARK
from .cipher import (
    KEY_BYTES,
    SALT_BYTES,
    Unsealable,
    decode,
    derive,
    encode,
    key_from_words,
    mac,
    public_key,
    unwrap,
    wrap,
)

# In the place of a device's id, in the roster.
RECOVERY: Final = "recovery"


class EpochKey(msgspec.Struct, frozen=True, array_like=True):
    """The key of an epoch, and its link to the key before."""

    key: bytes
    link: bytes


class RecoveryLock(msgspec.Struct, frozen=True, array_like=True):
    """What is wrapped for a recovery key needs, and no secret."""

    salt: bytes  # of Argon2id
    public: bytes  # the public key that belongs to the recovery key
    proof: bytes  # shows that the owner's root was there when the recovery key was made


class Keyring(msgspec.Struct, frozen=True):
    """All keys of an owner. It is secret as a whole."""

    root: bytes  # names rows, agents and versions; it never changes
    epochs: tuple[EpochKey, ...]  # the keys of the epochs 1, 2, …
    recovery: RecoveryLock | None = None  # for the recovery key, if there is one
    retired: dict[str, int] = {}  # devices, and the first epoch whose key each was not given

    @property
    def epoch(self) -> int:
        """The present epoch, in which new rows are sealed."""
        return len(self.epochs)

    def key(self, epoch: int) -> bytes:
        """The key of an epoch; `Unsealable` if it is not here."""
        if not 1 <= epoch <= self.epoch:
            raise Unsealable(f"the key of epoch {epoch} is not on this device")
        return self.epochs[epoch - 1].key

    def next(self, *, recovery: RecoveryLock | None = None, retired: str | None = None) -> Keyring:
        """The same with one more epoch: with another recovery key, or without a device."""
        key = secrets.token_bytes(KEY_BYTES)
        return Keyring(
            self.root,
            (*self.epochs, EpochKey(key, _link(self, self.epoch, key))),
            recovery or self.recovery,
            self.retired | ({} if retired is None else {retired: self.epoch + 1}),
        )

    def follows(self, older: Keyring) -> bool:
        """Whether it has all keys of an older one, and only a holder of those can have made it."""
        return (
            compare_digest(self.root, older.root)
            and self.epochs[: older.epoch] == older.epochs
            and self.is_linked()
        )

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)

    def is_linked(self) -> bool:
        """Whether each key, of which there is one, is linked to the key before."""
        return bool(self.epochs) and all(
            compare_digest(each.link, _link(self, number, each.key))
            for number, each in enumerate(self.epochs)
        )


def new_keyring() -> Keyring:
    """New keys, for an owner who has none."""
    return Keyring(secrets.token_bytes(KEY_BYTES), ()).next()


def decoded_keyring(content: bytes) -> Keyring:
    """The keyring whose `encoded` is given, else `Unsealable`."""
    try:
        ring = msgspec.json.decode(content, type=Keyring)
    except (msgspec.MsgspecError, ValueError):
        raise Unsealable("it is not a keyring") from None
    sizes = {len(ring.root), *(len(each.key) for each in ring.epochs)}
    if sizes != {KEY_BYTES} or not ring.is_linked():
        raise Unsealable("it is not a whole keyring")
    return ring


def _link(ring: Keyring, before: int, key: bytes) -> bytes:
    last = ring.root if before == 0 else ring.epochs[before - 1].key
    return mac(derive(last, "link"), str(before + 1), key)


# The roster


class RosterEntry(msgspec.Struct, frozen=True):
    """The keyring, for one device or for the recovery key."""

    epoch: int  # the last epoch that it has
    device: str  # the id of the device, or `RECOVERY`
    public: str  # of the device; for the recovery key the whole lock
    wrapped: str  # the keyring, which only the device can open
    tag: str  # shows that a holder of the epoch's key has added the device


def entry(ring: Keyring, device: str, public: bytes) -> RosterEntry:
    """The entry of a device."""
    return _entry(ring, device, encode(public), public)


def recovery_entry(ring: Keyring) -> RosterEntry:
    """The entry of the recovery key."""
    assert ring.recovery is not None
    return _entry(ring, RECOVERY, encode(msgspec.json.encode(ring.recovery)), ring.recovery.public)


def entries(ring: Keyring, earlier: Iterable[RosterEntry]) -> list[RosterEntry]:
    """The entries of a new epoch, for the devices of earlier ones and for the recovery key.

    Left out are devices that were retired since, and those that no holder of their epoch's key has
    signed: the remote may have invented them.
    """
    result = [
        entry(ring, each.device, decode(each.public))
        for each in earlier
        if each.device != RECOVERY
        and is_signed(ring, each)
        and each.epoch >= ring.retired.get(each.device, 0)
    ]
    return [*result, recovery_entry(ring)] if ring.recovery is not None else result


def is_signed(ring: Keyring, listed: RosterEntry) -> bool:
    """Whether a holder of its epoch's key, which the keyring has, has added the device."""
    try:
        return compare_digest(_tag(ring, listed), decode(listed.tag))
    except Unsealable:
        return False


def opened(listed: RosterEntry, private: bytes, older: Keyring | None = None) -> Keyring:
    """The keyring in a device's entry; with an older one, only a keyring that follows it.

    `Unsealable`: it is for another device, or was not made by the owner.
    """
    ring = decoded_keyring(unwrap(private, decode(listed.wrapped)))
    if not is_signed(ring, listed) or (older is not None and not ring.follows(older)):
        raise Unsealable("its keys do not come from a device of the owner")
    return ring


def _entry(ring: Keyring, device: str, shown: str, public: bytes) -> RosterEntry:
    bare = RosterEntry(ring.epoch, device, shown, encode(wrap(public, ring.encoded())), "")
    return msgspec.structs.replace(bare, tag=encode(_tag(ring, bare)))


def _tag(ring: Keyring, listed: RosterEntry) -> bytes:
    key = derive(ring.key(listed.epoch), "roster")
    return mac(key, str(listed.epoch), listed.device, listed.public, listed.wrapped)


# The recovery key: 128 bits in Crockford's base32, which has no I, L, O and U


_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ALIKE: Final = str.maketrans("ILO", "110")
_RECOVERY_BYTES: Final = 16
_DIGITS: Final = 26
_CHECK_DIGITS: Final = 2


def new_recovery_key() -> str:
    """A new recovery key: seven groups of four, the last two digits of them check digits."""
    digits = _base32(int.from_bytes(secrets.token_bytes(_RECOVERY_BYTES), "big"), _DIGITS)
    return grouped(digits + _check(digits))


def read_recovery_key(text: str) -> str:
    """A recovery key as a person typed it, in its normal form; `Unsealable` if it is mistyped."""
    digits = normal(text)
    if len(digits) != _DIGITS + _CHECK_DIGITS:
        raise Unsealable(f"it has {len(digits)} letters and digits instead of 28")
    if digits[_DIGITS:] != _check(digits[:_DIGITS]):
        raise Unsealable("it is mistyped: its last two digits do not fit the others")
    return grouped(digits)


def lock_for(recovery_key: str, root: bytes) -> RecoveryLock:
    """What a keyring needs to be wrapped for a recovery key. Blocking."""
    salt = secrets.token_bytes(SALT_BYTES)
    secret = key_from_words(read_recovery_key(recovery_key), salt)
    proof = mac(derive(secret, "proof"), root)
    return RecoveryLock(salt, public_key(derive(secret, "private")), proof)


def recovered(listed: RosterEntry, recovery_key: str) -> Keyring:
    """The keyring, by the recovery key alone. Blocking.

    `Unsealable`: it is another key, or the keyring was not made by the owner.
    """
    try:
        lock = msgspec.json.decode(decode(listed.public), type=RecoveryLock)
    except (msgspec.MsgspecError, ValueError):
        raise Unsealable("the entry of the recovery key is damaged") from None
    if len(lock.salt) != SALT_BYTES:
        raise Unsealable("the entry of the recovery key is damaged")
    secret = key_from_words(read_recovery_key(recovery_key), lock.salt)
    private = derive(secret, "private")
    if not compare_digest(public_key(private), lock.public):
        raise Unsealable("it is not the current recovery key of this replica")
    ring = opened(listed, private)
    if not compare_digest(mac(derive(secret, "proof"), ring.root), lock.proof):
        raise Unsealable("its keys do not come from a device of the owner")
    return ring


def grouped(digits: str) -> str:
    """Digits in groups of four."""
    return "-".join(digits[start : start + 4] for start in range(0, len(digits), 4))


def normal(text: str) -> str:
    """The digits that a person typed, in the alphabet: O as 0, I and L as 1; else `Unsealable`."""
    digits = "".join(text.upper().replace("-", " ").split()).translate(_ALIKE)
    if strange := sorted({digit for digit in digits if digit not in _ALPHABET}):
        raise Unsealable(f"it contains {strange[0]!r}, which no key has")
    return digits


def random_digits(number: int) -> str:
    """So many random digits, of five bits each."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(number))


def _base32(value: int, digits: int) -> str:
    return "".join(_ALPHABET[value >> 5 * place & 31] for place in reversed(range(digits)))


def _check(digits: str) -> str:
    number = int.from_bytes(mac(b"recovery key", digits)[:2], "big")
    return _base32(number & 1023, _CHECK_DIGITS)


# The roster on the remote


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


async def read_roster(remote: Remote) -> list[RosterEntry]:
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
        listed = await read_roster(remote)
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
            arguments = (_as_json(_own(ring, holder)), ring.epoch)
            await remote.batch([SqlStatement(_ADD, arguments)])
            return ring
        else:
            return ring


async def learn(remote: Remote, ring: Keyring, holder: KeyHolder) -> Keyring:
    """The keys of a later epoch; `KeyMissing` if there are none for this device."""
    return _learned(await read_roster(remote), ring, holder)


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
            SqlStatement(_BEGIN, (_as_json(listed), ring.epoch)),
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


def _as_json(listed: Sequence[RosterEntry]) -> str:
    return msgspec.json.encode(listed).decode()
