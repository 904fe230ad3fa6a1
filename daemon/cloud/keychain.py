"""This device's keys for sealed replicas and backups, in the state folder. Needs PyNaCl.

`device.key` has the private key of the device, in base64, unless systemd passes it as a credential
of that name. `keyring` has the owner's keys, encrypted for the device.
"""

from __future__ import annotations

import asyncio
import io
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from thermocline.sync import Heads, KeyMissing, Remote, Replica
from thermocline.sync.ports import rows_of
from thermocline.sync.sealing import keyring, sealed_file
from thermocline.sync.sealing.cipher import Unsealable, decode, encode, public_key, unwrap, wrap
from thermocline.sync.sealing.keyring import KeyHolder, Keyring, RosterEntry
from thermocline.sync.sealing.sealed_file import UnsealedFile
from thermocline.sync.sealing.sealed_rows import SealedRows, agent_of

from ..errors import Conflict, InvalidInput, StoreDamaged
from ..runtime import atomic
from ..store.database.memory_database import translated
from .account import KEY_FILE, RING_FILE

_KEY_BYTES: Final = 32
_LOST: Final = (
    "move it away and take part again: `thermocline pair` on another device and `thermocline join`"
    " here, or `thermocline restore` with the recovery key"
)


_NO_ENTRY: Final = (
    "if there was one, somebody has removed its entry: a device that replicates puts it back"
    " within a day, or when its daemon starts"
)


class _StoredKeys(msgspec.Struct, frozen=True):
    """What is in the keyring's file."""

    ring: Keyring  # the owner's keys
    # Whether these keys were made here. Then this device alone takes in what replicas had unsealed:
    # for any other that would be a way to give it forged rows.
    is_first: bool = False
    # Whether a remote has these keys: others may have rows that need them.
    is_published: bool = False
    switched: tuple[str, ...] = ()  # the agents of which nothing unsealed is left to take in


class Keychain:
    """The keys on this device; implements `SharedKeys`. Made on a thread.

    `device` returns the id of this device, which may change; `env` may name a folder of systemd's
    credentials. `StoreDamaged`: a file is damaged, or belongs to another device; or `OSError`.
    """

    def __init__(self, state_dir: Path, device: Callable[[], str], env: Mapping[str, str]) -> None:
        self._state_dir = state_dir
        self._device = device
        private = _private(state_dir, env)
        self._is_new = private is None
        self.private = private or secrets.token_bytes(_KEY_BYTES)  # of this device
        self.public = public_key(self.private)
        self._stored = self._read()
        self._changing = asyncio.Lock()

    @property
    def ring(self) -> Keyring | None:
        """The owner's keys, if this device has them."""
        return None if self._stored is None else self._stored.ring

    def needed(self) -> Keyring:
        """The owner's keys; `Conflict` if this device does not have them."""
        if self._stored is None:
            raise Conflict(
                "cannot seal: this device has no keys",
                hint="run `thermocline seal` on the first device, and on each other one"
                " `thermocline join` with the code that `thermocline pair` shows",
            )
        return self._stored.ring

    def replica(self, remote: Remote, agent: str, heads: Heads | None = None) -> Replica:
        """The sealed replica of an agent; `Conflict` without the owner's keys."""
        self.needed()
        return Replica(remote, agent, heads, form=SealedRows(agent, self.needed), keys=self)

    async def begin(self) -> str:
        """Make keys for a new owner; return the recovery key, which is not stored."""
        async with self._changing:
            if self._stored is not None:
                raise Conflict(
                    "cannot make keys: this device has some",
                    hint="`thermocline seal --recovery` makes another recovery key for them",
                )
            recovery_key, ring = keyring.new_recovery_key(), keyring.new_keyring()
            lock = await asyncio.to_thread(keyring.lock_for, recovery_key, ring.root)
            await self._store(_StoredKeys(Keyring(ring.root, ring.epochs, lock), is_first=True))
            return recovery_key

    async def replace_recovery_key(self, remote: Remote | None) -> str:
        """Begin an epoch with another recovery key, which is returned: the old one opens no later.

        `Conflict` without keys. If the remote cannot be reached, nothing was changed.
        """
        recovery_key = keyring.new_recovery_key()
        lock = await asyncio.to_thread(keyring.lock_for, recovery_key, self.needed().root)
        await self._advance(remote, lambda ring: ring.next(recovery=lock))
        return recovery_key

    async def retire(self, remote: Remote, device: str) -> None:
        """Begin an epoch whose key a device is not given; errors as `replace_recovery_key`."""
        await self._advance(remote, lambda ring: ring.next(retired=device))

    async def _advance(self, remote: Remote | None, change: Callable[[Keyring], Keyring]) -> None:
        async with self._changing:
            ring = change(self.needed())
            if remote is not None:
                try:
                    ring = await keyring.publish(remote, ring, self._holder())
                except KeyMissing:
                    # Another device has begun an epoch, perhaps at the same time.
                    ring = await keyring.learn(remote, self.needed(), self._holder())
                    await self._take(ring)
                    ring = await keyring.publish(remote, change(ring), self._holder())
            await self._take(ring)

    async def take(self, ring: Keyring) -> None:
        """Keep an owner's keys, from another device or by the recovery key; else `Conflict`."""
        async with self._changing:
            # The file may have been moved away.
            self._stored = stored = await asyncio.to_thread(self._read)
            if stored is not None and stored.is_published and not ring.follows(stored.ring):
                raise Conflict(
                    "cannot take these keys: this device has those of another owner",
                    hint=f"move {self._state_dir / RING_FILE} away first, if they are not needed,"
                    " or use another state folder",
                )
            await self._store(_StoredKeys(ring))

    async def epochs(self, remote: Remote) -> tuple[int, dict[str, int]]:
        """The present epoch of a remote, and the last epoch whose key each device has.

        Missing are devices of which this one cannot tell; 0: the remote has no keys.
        """
        listed, ring = await keyring.read_roster(remote), self.ring
        present = max((each.epoch for each in listed), default=0)
        if ring is None:
            return present, {}
        known = {device: first - 1 for device, first in ring.retired.items()}
        signed = (each for each in listed if keyring.is_signed(ring, each))
        own = {self._device(): ring.epoch}
        return present, known | own | {each.device: each.epoch for each in signed}

    async def entries(self, remote: Remote) -> list[RosterEntry]:
        """The keys on a remote for each device and the recovery key, whoever put them there."""
        return await keyring.read_roster(remote)

    def opens(self, entries: Sequence[RosterEntry]) -> bool:
        """Whether this device has the latest of the keys that are in these entries."""
        ring, latest = self.ring, max((each.epoch for each in entries), default=0)
        return ring is not None and any(
            each.epoch == latest and keyring.is_signed(ring, each) for each in entries
        )

    async def recover(self, entries: Sequence[RosterEntry], recovery_key: str) -> None:
        """Take the owner's keys by the recovery key, and keep them in memory.

        `InvalidInput`: it is mistyped, or another one, or there are no keys for one.
        """
        listed = next((each for each in entries if each.device == keyring.RECOVERY), None)
        if listed is None:
            raise InvalidInput(
                "cannot use a recovery key: nothing is sealed for one here", hint=_NO_ENTRY
            )
        try:
            ring = await asyncio.to_thread(keyring.recovered, listed, recovery_key)
        except Unsealable as error:
            raise InvalidInput(f"cannot use the recovery key: {error}") from error
        self._stored = _StoredKeys(ring)

    def sealed(self, content: Iterable[bytes]) -> Iterator[bytes]:
        """Seal a stream. `Conflict` without keys. Blocking."""
        return sealed_file.sealed(self.needed(), content)

    def entries_of(self, file: Path) -> list[RosterEntry]:
        """The keys in a sealed file for the recovery key; `StoreDamaged`. Blocking."""
        try:
            with file.open("rb") as content:
                listed = sealed_file.header_of(content).recovery
        except Unsealable as error:
            raise StoreDamaged(f"cannot use {file}: {error}") from error
        return [] if listed is None else [listed]

    def unsealed(self, file: Path) -> BinaryIO:
        """Open what is in a sealed file; `InvalidInput` if sealed with other keys. Blocking."""
        try:
            content: Any = UnsealedFile(file.open("rb"), self.needed())
        except Unsealable as error:
            raise InvalidInput(f"cannot use {file}: {error}") from error
        return io.BufferedReader(content)

    async def save(self) -> None:
        """Write what `recover` took; `Conflict` if this device has the keys of another owner."""
        ring, self._stored = self.needed(), self._read()
        if ring != self.ring:
            await self.take(ring)

    async def save_private(self) -> None:
        """Write the private key of this device, if it is new."""
        if self._is_new:
            await self._write(KEY_FILE, encode(self.private))
            self._is_new = False

    async def publish(self, remote: Remote) -> None:
        async with self._changing:
            ring = await keyring.publish(remote, self.needed(), self._holder())
            assert self._stored is not None
            await self._store(msgspec.structs.replace(self._stored, ring=ring, is_published=True))

    async def learn(self, remote: Remote) -> None:
        async with self._changing:
            await self._take(await keyring.learn(remote, self.needed(), self._holder()))

    def switching(self, agents: set[str]) -> set[str]:
        """Those of some agents whose replicas may have unsealed rows that are to be taken in."""
        stored = self._stored
        return agents - {*stored.switched} if stored is not None and stored.is_first else set()

    async def switched(self, agent: str) -> None:
        async with self._changing:
            if self._stored is not None and self.switching({agent}):
                agents = (*self._stored.switched, agent)
                await self._store(msgspec.structs.replace(self._stored, switched=agents))

    async def agent_of(self, remote: Remote, sealed: str) -> str | None:
        """The name of a sealed agent, from one of its rows; None: it has none that opens."""
        if self._stored is None:
            return None
        sql = "SELECT version, data, clocks FROM rows WHERE agent_id = ?1 ORDER BY seq DESC LIMIT 1"
        rows = await rows_of(remote, sql, sealed)
        return agent_of(self._stored.ring, sealed, rows[0]) if rows else None

    def _holder(self) -> KeyHolder:
        return KeyHolder(self._device(), self.private, self.public)

    async def _take(self, ring: Keyring) -> None:
        assert self._stored is not None
        await self._store(msgspec.structs.replace(self._stored, ring=ring))

    async def _store(self, stored: _StoredKeys) -> None:
        if stored == self._stored:
            return
        await self.save_private()
        content = encode(wrap(self.public, msgspec.json.encode(stored)))
        await self._write(RING_FILE, content)
        self._stored = stored

    async def _write(self, name: str, content: str) -> None:
        with translated(self._state_dir):
            await asyncio.to_thread(atomic.write, self._state_dir / name, content.encode())

    def _read(self) -> _StoredKeys | None:
        path = self._state_dir / RING_FILE
        try:
            text = path.read_text("ascii").strip()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        try:
            return msgspec.json.decode(unwrap(self.private, decode(text)), type=_StoredKeys)
        except (Unsealable, msgspec.MsgspecError) as error:
            raise StoreDamaged(f"cannot use {path}: {error}", hint=_LOST) from error


def _private(state_dir: Path, env: Mapping[str, str]) -> bytes | None:
    """The private key of this device; None: it has none yet."""
    paths = [state_dir / KEY_FILE]
    if directory := env.get("CREDENTIALS_DIRECTORY"):
        paths.insert(0, Path(directory) / KEY_FILE)
    for path in paths:
        try:
            private = decode(path.read_text("ascii").strip())
        except FileNotFoundError:
            continue
        except ValueError:
            private = b""
        if len(private) != _KEY_BYTES:
            raise StoreDamaged(f"cannot use {path}: it is not a key", hint=_LOST)
        return private
    return None
