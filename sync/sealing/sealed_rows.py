"""Sealed rows: what a remote is given of a row, and the row again.

| column | content |
|---|---|
| `agent_id` | `=` and the keyed digest of the agent's name |
| `kind`, `id` | `sealed`, and the keyed digest of agent, kind and id |
| `version` | the keyed digest of the version |
| `data` | the packed and sealed row in base64; NULL for a deletion |
| `clocks` | `{"epoch":1}`; for a deletion also its day, as a stamp, and the sealed row |

A page has only the first digits of the version, which are a part of the nonce: digests cannot be
compressed, and the row says its id and version itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ..clock import COUNTER_BITS
from ..failures import KeyMissing
from ..row_format import (
    Columns,
    Pending,
    Received,
    RowFormat,
    Unreadable,
    Value,
    has_valid_clocks,
)
from ..rows import Stamp, version_of
from . import KIND, MARK
from .cipher import NameDigest, Unsealable, decode, derive, encode, seal, unseal
from .keyring import Keyring
from .packing import pack, unpack

_DAY: Final = 86_400_000 << COUNTER_BITS
# The digits of the version that are a part of the nonce.
_DIGITS: Final = 8


class _Clocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The column `clocks` of a sealed row; `at` has the place that it has in a plain one."""

    epoch: int
    at: Stamp | None = None
    sealed: str | None = None


_clocks_decoder: Final = msgspec.json.Decoder(_Clocks)


class SealedRows(RowFormat):
    """The sealed rows of one agent.

    `keyring` is asked for each row: it may learn of another epoch at any time.
    """

    page = f"substr(version, 1, {_DIGITS}) || coalesce(data, ''), clocks"

    def __init__(self, name: str, keyring: Callable[[], Keyring]) -> None:
        self._name = name
        self._keyring = keyring
        root = keyring().root
        self._row_name = NameDigest(derive(root, "rows"), name)
        self._version_name = NameDigest(derive(root, "versions"))
        super().__init__(sealed_agent(root, name))
        self._epochs: dict[int, tuple[bytes, bytes, str]] = {}

    @property
    def epoch(self) -> int:
        return self._keyring().epoch

    def key(self, kind: str, key: str) -> tuple[str, str]:
        return KIND, self._row_name(kind, key)

    def version(self, version: str | None) -> str | None:
        if version is None or version.startswith(MARK):
            # The version of an unreadable row, as it stands there.
            return None if version is None else version.removeprefix(MARK)
        return self._version_name(version)

    def columns(self, row: Pending) -> Columns:
        kind, key = self.key(*row.row.key)
        version = self.version(row.version)
        assert version is not None
        epoch = self.epoch
        key_, place, clocks = self._of_epoch(epoch)
        mark = bytes.fromhex(version[:_DIGITS])
        sealed = encode(seal(key_, pack(self._name, row.row), place, mark))
        data: str | None = sealed
        if not row.row.data:
            at = row.row.clocks.at[0]
            data, clocks = None, _clocks(epoch, (at - at % _DAY, ""), sealed)
        return kind, key, self.version(row.seen), version, data, clocks

    def received(self, line: Sequence[Value]) -> Received | Unreadable:
        kind, key, version, data, clocks = line
        if kind != KIND:
            return self.unreadable(line[:3], "it is not a sealed row")
        try:
            row = self._opened(str(version)[:_DIGITS], data, clocks)
        except Unsealable as error:
            return self.unreadable(line[:3], f"it is damaged: {error}")
        if self.key(*row.row.key)[1] != key:
            return self.unreadable(line[:3], "it is damaged: it belongs elsewhere")
        if version != self.version(row.version):
            return self.unreadable(line[:3], "it is damaged: its digest differs")
        return row

    def listed(self, line: Sequence[Value]) -> Received | None:
        marked, clocks = line
        digits, data = str(marked)[:_DIGITS], str(marked)[_DIGITS:]
        try:
            row = self._opened(digits, data or None, clocks)
        except Unsealable:
            return None
        version = self.version(row.version)
        return row if version is not None and version.startswith(digits) else None

    def unreadable(self, line: Sequence[Value], reason: str) -> Unreadable:
        _, key, version = line
        return Unreadable(KIND, str(key), None if version is None else f"{MARK}{version}", reason)

    def conceal(self, place: str, text: str) -> str:
        epoch = self.epoch
        key = self._of_epoch(epoch)[0]
        sealed = seal(key, text.encode(), _place(self.agent, epoch, f"text\n{place}"))
        return f"{epoch}:{encode(sealed)}"

    def reveal(self, place: str, written: str) -> str:
        epoch, _, sealed = written.partition(":")
        try:
            bound = _place(self.agent, int(epoch), f"text\n{place}")
            return unseal(self._of_epoch(int(epoch))[0], decode(sealed), bound).decode()
        except ValueError:
            return ""

    def _opened(self, digits: str, data: Value, clocks: Value) -> Received:
        """The row, whose version begins with these digits; else `Unsealable`."""
        written, sealed = _sealed(data, clocks)
        if written.epoch > self.epoch:
            raise KeyMissing("key_missing")
        key, place, _ = self._of_epoch(written.epoch)
        name, row = unpack(unseal(key, sealed, place, _mark(digits)))
        if name != self._name or bool(row.data) == (data is None):
            raise Unsealable("it belongs elsewhere")
        if not has_valid_clocks(row):
            raise Unsealable("its clock is beyond the year 2200")
        return Received(row, version_of(row) or "")

    def _of_epoch(self, epoch: int) -> tuple[bytes, bytes, str]:
        """The key of rows, the place of rows, and the clocks of those that live."""
        if epoch not in self._epochs:
            key = derive(self._keyring().key(epoch), "row")
            self._epochs[epoch] = key, _place(self.agent, epoch), _clocks(epoch)
        return self._epochs[epoch]


def sealed_agent(root: bytes, name: str) -> str:
    """What stands for an agent on a remote."""
    return MARK + NameDigest(derive(root, "agents"))(name)


def agent_of(keyring: Keyring, agent: str, line: Sequence[Value]) -> str | None:
    """The name of a sealed agent, from one of its rows: version, data, clocks.

    None: it is not a row of the owner's.
    """
    version, data, clocks = line
    try:
        written, sealed = _sealed(data, clocks)
        key, place = derive(keyring.key(written.epoch), "row"), _place(agent, written.epoch)
        name, _ = unpack(unseal(key, sealed, place, _mark(str(version)[:_DIGITS])))
    except Unsealable:
        return None
    return name if sealed_agent(keyring.root, name) == agent else None


def _clocks(epoch: int, at: Stamp | None = None, sealed: str | None = None) -> str:
    return msgspec.json.encode(_Clocks(epoch, at, sealed)).decode()


def _sealed(data: Value, clocks: Value) -> tuple[_Clocks, bytes]:
    """What is sealed of a row, and its clocks on the remote."""
    try:
        written = _clocks_decoder.decode(str(clocks))
    except (msgspec.MsgspecError, ValueError):
        raise Unsealable("it is not a sealed row") from None
    sealed = written.sealed if data is None else data
    if not isinstance(sealed, str):
        raise Unsealable("it is not a sealed row")
    return written, decode(sealed)


def _mark(digits: str) -> bytes:
    try:
        mark = bytes.fromhex(digits)
    except ValueError:
        mark = b""
    if len(mark) != _DIGITS // 2:
        raise Unsealable("its version is not a digest")
    return mark


def _place(agent: str, epoch: int, about: str = "row 2") -> bytes:
    """What is authenticated with a sealed text: whose it is, and what it is about."""
    return f"thermocline {about}\n{agent}\n{epoch}".encode()
