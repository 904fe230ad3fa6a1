"""Sealed rows: what a remote is given of a row, and the row again.

| column | content |
|---|---|
| `agent_id` | `=` and the keyed digest of the agent's name |
| `kind`, `id` | `sealed`, and the keyed digest of agent, kind and id |
| `version` | the keyed digest of the version |
| `data` | the sealed row in base64; NULL for a deletion |
| `clocks` | `{"epoch":1}`; for a deletion also its day, as a stamp, and the sealed row |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ..clock import COUNTER_BITS
from ..failures import KeyMissing
from ..ports import Pending, Received, Value
from ..row_format import Columns, Unreadable, read_row, size_of
from ..rows import digest
from . import KIND
from .cipher import NameDigest, Unsealable, decode, derive, encode, seal, sealed_length, unseal
from .keyring import Keyring

# No agent has a name that begins so; nor has a version of a row.
MARK: Final = "="
_DAY: Final = 86_400_000 << COUNTER_BITS
_COLUMNS: Final = 220


class _Clocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The column `clocks` of a sealed row; `at` has the place that it has in a plain one."""

    epoch: int
    at: tuple[int, str] | None = None
    sealed: str | None = None


class _Text(msgspec.Struct, frozen=True, array_like=True):
    """What is sealed of a row; its data and clocks byte by byte, as their digest is of these."""

    agent: str
    kind: str
    id: str
    data: msgspec.Raw
    clocks: msgspec.Raw


_clocks_decoder: Final = msgspec.json.Decoder(_Clocks)
_text_decoder: Final = msgspec.json.Decoder(_Text)
_encoder: Final = msgspec.json.Encoder()


class SealedRows:
    """The sealed rows of one agent; implements `RowFormat`.

    `keyring` is asked for each row: it may learn of another epoch at any time.
    """

    def __init__(self, name: str, keyring: Callable[[], Keyring]) -> None:
        self._name = name
        self._keyring = keyring
        root = keyring().root
        self._row_name = NameDigest(derive(root, "rows"), name)
        self._version_name = NameDigest(derive(root, "versions"))
        self.agent = sealed_agent(root, name)
        self._keys: dict[int, bytes] = {}

    @property
    def epoch(self) -> int:
        """As for `RowFormat`."""
        return self._keyring().epoch

    def key(self, kind: str, key: str) -> tuple[str, str]:
        """As for `RowFormat`."""
        return KIND, self._row_name(kind, key)

    def version(self, version: str | None) -> str | None:
        """As for `RowFormat`."""
        if version is None or version.startswith(MARK):
            # The version of an unreadable row, as it stands there.
            return None if version is None else version.removeprefix(MARK)
        return self._version_name(version)

    def columns(self, row: Pending) -> Columns:
        """As for `RowFormat`."""
        data, clocks = row.row.encoded()
        text = (self._name, *row.row.key, _raw(data or "null"), _raw(clocks))
        kind, key = self.key(*row.row.key)
        epoch = self.epoch
        sealed = encode(
            seal(self._key(epoch), _encoder.encode(text), _place(self.agent, key, epoch))
        )
        written = _Clocks(epoch)
        if data is None:
            at = row.row.clocks.at[0]
            written = _Clocks(epoch, (at - at % _DAY, ""), sealed)
        version = self.version(row.version)
        assert version is not None
        return (
            *(kind, key, self.version(row.seen), version),
            None if data is None else sealed,
            _encoder.encode(written).decode(),
        )

    def size(self, row: Pending) -> int:
        """As for `RowFormat`."""
        return _COLUMNS + sealed_length(size_of(row))

    def received(self, line: Sequence[Value]) -> Received | Unreadable:
        """As for `RowFormat`."""
        kind, key, version, data, clocks = line
        try:
            written = _clocks_decoder.decode(str(clocks))
        except (msgspec.MsgspecError, ValueError):
            return self.unreadable(line[:3], "it is not a sealed row")
        sealed = written.sealed if data is None else data
        if kind != KIND or not isinstance(sealed, str):
            return self.unreadable(line[:3], "it is not a sealed row")
        if written.epoch > self.epoch:
            raise KeyMissing("key_missing")
        try:
            row = self._opened(sealed, str(key), written.epoch, is_deleted=data is None)
        except Unsealable as error:
            return self.unreadable(line[:3], f"it is damaged: {error}")
        if isinstance(row, str):
            return self.unreadable(line[:3], row)
        if version != self.version(row.version):
            return self.unreadable(line[:3], "it is damaged: its digest differs")
        return row

    def unreadable(self, line: Sequence[Value], reason: str) -> Unreadable:
        """As for `RowFormat`."""
        _, key, version = line
        return Unreadable(KIND, str(key), None if version is None else f"{MARK}{version}", reason)

    def conceal(self, place: str, text: str) -> str:
        """As for `RowFormat`."""
        epoch = self.epoch
        sealed = seal(self._key(epoch), text.encode(), _place(self.agent, place, epoch))
        return f"{epoch}:{encode(sealed)}"

    def reveal(self, place: str, written: str) -> str:
        """As for `RowFormat`."""
        epoch, _, sealed = written.partition(":")
        try:
            bound = _place(self.agent, place, int(epoch))
            return unseal(self._key(int(epoch)), decode(sealed), bound).decode()
        except ValueError:
            return ""

    def _opened(self, sealed: str, key: str, epoch: int, *, is_deleted: bool) -> Received | str:
        """The row, or what is wrong with it."""
        text = _text(unseal(self._key(epoch), decode(sealed), _place(self.agent, key, epoch)))
        data, clocks = bytes(text.data).decode(), bytes(text.clocks).decode()
        is_moved = text.agent != self._name or self.key(text.kind, text.id)[1] != key
        if is_moved or is_deleted != (data == "null"):
            return "it is damaged: it belongs elsewhere"
        whole = None if is_deleted else data
        row = read_row(text.kind, text.id, whole, clocks)
        return row if isinstance(row, str) else Received(row, digest(whole, clocks))

    def _key(self, epoch: int) -> bytes:
        if epoch not in self._keys:
            self._keys[epoch] = derive(self._keyring().key(epoch), "row")
        return self._keys[epoch]


def sealed_agent(root: bytes, name: str) -> str:
    """What stands for an agent on a remote."""
    return MARK + NameDigest(derive(root, "agents"))(name)


def agent_of(keyring: Keyring, agent: str, line: Sequence[Value]) -> str | None:
    """The name of a sealed agent, from one of its rows: id, data, clocks. None: no row of ours."""
    key, data, clocks = line
    try:
        written = msgspec.json.decode(str(clocks), type=_Clocks)
        sealed = decode(str(written.sealed if data is None else data))
        place = _place(agent, str(key), written.epoch)
        name = _text(unseal(derive(keyring.key(written.epoch), "row"), sealed, place)).agent
    except (msgspec.MsgspecError, ValueError):
        return None
    return name if sealed_agent(keyring.root, name) == agent else None


def _place(agent: str, key: str, epoch: int) -> bytes:
    """Where a sealed row belongs, which is authenticated with it."""
    return f"thermocline row\n{agent}\n{key}\n{epoch}".encode()


def _text(content: bytes) -> _Text:
    try:
        return _text_decoder.decode(content)
    except (msgspec.MsgspecError, ValueError):
        raise Unsealable("it is not a row") from None


def _raw(text: str) -> Any:
    return msgspec.Raw(text.encode())
