"""A sealed file: a stream that only the owner's devices, or the recovery key, can read.

    thermocline sealed
    {"epoch":1,"salt":…,"stream":…,"recovery":{…}}
    pieces: length (4 bytes, big-endian) and ciphertext; the last piece is marked within
    BLAKE2b of everything before (32 bytes), which finds damage without any key

The pieces are libsodium's secretstream (XChaCha20-Poly1305): none can be changed, moved, repeated
or left out. Its key is made from the epoch's key and the salt; the first piece authenticates the
line above.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

import msgspec
from nacl import bindings as sodium
from nacl.exceptions import CryptoError

from . import FILE_MAGIC
from .cipher import SALT_BYTES, Unsealable, derive, mac
from .keyring import Keyring, RosterEntry, recovery_entry

_PIECE: Final = 65_536
_LENGTH_BYTES: Final = 4
_DIGEST_BYTES: Final = 32
_LONGEST_LINE: Final = 65_536


class SealedHeader(msgspec.Struct, frozen=True):
    """The line above the pieces."""

    epoch: int  # whose key seals it
    # Random, for this file alone.
    salt: bytes
    stream: bytes
    recovery: RosterEntry | None = None  # the keyring for the recovery key, if there is one


def sealed(ring: Keyring, content: Iterable[bytes]) -> Iterator[bytes]:
    """Seal a stream of pieces of any length."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    state = sodium.crypto_secretstream_xchacha20poly1305_state()
    salt = secrets.token_bytes(SALT_BYTES)
    start = sodium.crypto_secretstream_xchacha20poly1305_init_push(
        state, _key(ring, ring.epoch, salt)
    )
    recovery = None if ring.recovery is None else recovery_entry(ring)
    line = msgspec.json.encode(SealedHeader(ring.epoch, salt, start, recovery)) + b"\n"
    extra: bytes | None = line

    def piece(text: bytes, *, is_last: bool = False) -> bytes:
        nonlocal extra
        tag = sodium.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
        if is_last:
            tag = sodium.crypto_secretstream_xchacha20poly1305_TAG_FINAL
        text = sodium.crypto_secretstream_xchacha20poly1305_push(state, text, extra, tag)
        extra = None
        return hashed(len(text).to_bytes(_LENGTH_BYTES, "big") + text)

    def hashed(text: bytes) -> bytes:
        digest.update(text)
        return text

    yield hashed(FILE_MAGIC + line)
    waiting = bytearray()
    for some in content:
        waiting += some
        while len(waiting) >= _PIECE:
            yield piece(bytes(waiting[:_PIECE]))
            del waiting[:_PIECE]
    yield piece(bytes(waiting), is_last=True)
    yield digest.digest()


def header_of(file: BinaryIO) -> SealedHeader:
    """The line of a sealed file, which is then read up to its first piece; else `Unsealable`."""
    return _header(file)[0]


class UnsealedFile(io.RawIOBase):
    """The content of a sealed file, to be read once from its beginning.

    Reading raises `EOFError` if the file is cut off and `zlib.error` if it was changed, as reading
    a compressed file does. `file` is at its beginning, and closed with this one; `ring` has the key
    of its epoch. `Unsealable`: it is not a sealed file, or of another owner.
    """

    def __init__(self, file: BinaryIO, ring: Keyring) -> None:
        super().__init__()
        self._file = file
        header, self._line = _header(file)
        self._state = sodium.crypto_secretstream_xchacha20poly1305_state()
        try:
            sodium.crypto_secretstream_xchacha20poly1305_init_pull(
                self._state, header.stream, _key(ring, header.epoch, header.salt)
            )
        except (CryptoError, ValueError):
            raise Unsealable("its first line was changed") from None
        self._extra: bytes | None = self._line
        self._waiting = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Fill the beginning of a buffer; 0: the end."""
        while not self._waiting and not self._is_over:
            self._waiting = self._piece()
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()

    def _piece(self) -> bytes:
        length = int.from_bytes(_exactly(self._file, _LENGTH_BYTES), "big")
        if length > _PIECE + sodium.crypto_secretstream_xchacha20poly1305_ABYTES:
            raise zlib.error("a piece was changed")
        sealed_piece = _exactly(self._file, length)
        try:
            text, tag = sodium.crypto_secretstream_xchacha20poly1305_pull(
                self._state, sealed_piece, self._extra
            )
        except (CryptoError, ValueError):
            raise zlib.error("a piece was changed") from None
        self._extra = None
        self._is_over = tag == sodium.crypto_secretstream_xchacha20poly1305_TAG_FINAL
        return text


def _exactly(file: BinaryIO, length: int) -> bytes:
    content = file.read(length)
    if len(content) != length:
        raise EOFError
    return content


def _header(file: BinaryIO) -> tuple[SealedHeader, bytes]:
    if file.read(len(FILE_MAGIC)) != FILE_MAGIC:
        raise Unsealable("it is not sealed")
    line = file.readline(_LONGEST_LINE)
    try:
        return msgspec.json.decode(line, type=SealedHeader), line
    except (msgspec.MsgspecError, ValueError):
        raise Unsealable("its first line was changed") from None


def _key(ring: Keyring, epoch: int, salt: bytes) -> bytes:
    return mac(derive(ring.key(epoch), "file"), salt)
