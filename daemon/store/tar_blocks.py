"""Just the part of tar that an archive takes: regular files, one after another.

The standard library's own reader keeps whatever a header announces in memory, and its writer wants
to push into a file. Here every size is known before a byte of it is read, and the caller pulls.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

BLOCK: Final = tarfile.BLOCKSIZE
END: Final = bytes(2 * BLOCK)
_PIECE: Final = 262_144
# A longest path of 4096 bytes fits, with what else such a header may hold.
_EXTENDED_AT_MOST: Final = 16_384


class NotTar(Exception):
    """The bytes are no tar, or hold what an archive of ours never has."""


class CutOff(Exception):
    """The bytes end before the tar does."""


class Readable(Protocol):
    """What is read: at most `size` bytes, and none only at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""


class Member(msgspec.Struct, frozen=True):
    """One file. `mtime` is in whole seconds since the epoch."""

    name: str
    size: int
    mtime: int = 0
    mode: int = 0o600


def header(member: Member) -> bytes:
    """The blocks before the content; they name no user and no group."""
    info = tarfile.TarInfo(member.name)
    info.size, info.mtime, info.mode = member.size, member.mtime, member.mode
    return info.tobuf(tarfile.PAX_FORMAT)


def padding(size: int) -> bytes:
    """The zeros after a content of `size` bytes."""
    return bytes(-size % BLOCK)


class Reader:
    """Reads the members one after another; memory does not grow with their sizes.

    Args:
        source: the tar, uncompressed.
    """

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._left = 0
        self._padding = 0

    def members(self) -> Iterator[Member]:
        """Each member in turn; what was not read of the one before is passed over.

        Raises:
            NotTar, CutOff: while iterating, or reading `content`.
        """
        while (member := self._next()) is not None:
            self._left, self._padding = member.size, -member.size % BLOCK
            yield member
            for _ in self.content():
                pass
            self._exactly(self._padding)

    def content(self) -> Iterator[bytes]:
        """What is left of the present member's content, in pieces."""
        while self._left:
            piece = self._source.read(min(self._left, _PIECE))
            if not piece:
                raise CutOff
            self._left -= len(piece)
            yield piece

    def end(self) -> None:
        """Make sure that nothing but zeros follows the last member.

        Raises:
            NotTar: something does.
        """
        while piece := self._source.read(_PIECE):
            if any(piece):
                raise NotTar("something follows its end")

    def _next(self) -> Member | None:
        info = self._head()
        extended: dict[str, str] = {}
        if info is not None and info.type == tarfile.XHDTYPE:
            extended = self._extended(info.size)
            info = self._head()
            if info is None:
                raise NotTar("a header stands before nothing")
        if info is None:
            return None
        if info.type != tarfile.REGTYPE:
            raise NotTar(f"it holds something else than files: {info.name[:100]!r}")
        size = _number(extended.get("size", str(info.size)))
        name = extended.get("path", info.name)
        return Member(name, size, max(0, int(info.mtime)), info.mode & 0o777)

    def _head(self) -> tarfile.TarInfo | None:
        block = self._exactly(BLOCK)
        try:
            return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            if not any(block):
                return None
            raise NotTar("a header of it is damaged") from error

    def _extended(self, size: int) -> dict[str, str]:
        """The records `length key=value` of an extended header."""
        if not 0 < size <= _EXTENDED_AT_MOST:
            raise NotTar("a header of it is too long")
        rest = self._exactly(size)
        self._exactly(-size % BLOCK)
        found: dict[str, str] = {}
        while rest:
            digits, _, _ = rest.partition(b" ")
            length = _number(digits.decode("ascii", "replace"))
            key, equals, value = rest[len(digits) + 1 : length].partition(b"=")
            if length > len(rest) or not equals or not value.endswith(b"\n"):
                raise NotTar("a header of it is damaged")
            rest = rest[length:]
            found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
        return found

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._source.read(size - len(found))
            if not piece:
                raise CutOff
            found += piece
        return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotTar("a header of it is damaged")
    return int(text)
