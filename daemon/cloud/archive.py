"""One agent's memory as one portable file: how an archive is written and read.

It is a `.tar.gz`: first `manifest.json`, then `rows.jsonl` with one row in each line, then the
files of the workspace below `workspace/`, last `checksums.json` with size and SHA-256 of every
file before it. Checksums come last because an archive is sent while it is made, in one pass. An
archive without them was cut off.

An archive may come from anybody. Reading one takes a bounded amount of memory, whatever sizes it
announces, and accepts only names that an archive of ours can have.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sqlite3
import stat
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from thermocline.sync.sealing import FILE_MAGIC

from ..errors import Conflict, DiskFull, InvalidInput, StoreDamaged, Unavailable
from ..files import walker
from ..files.walker import Skipped, is_plain
from ..store import apply
from ..store.apply import line_of
from ..store.kinds import kind_of

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
ROWS: Final = "rows.jsonl"
WORKSPACE: Final = "workspace"
CHECKSUMS: Final = "checksums.json"
_PIECE: Final = 262_144
_DIGEST_BYTES: Final = 32
# Higher levels save another twentieth of a text, for twice the time.
_LEVEL: Final = 4
_GZIP_WINDOW: Final = 31
_GZIP_MAGIC: Final = b"\x1f\x8b"
_LONGEST_HEADERS: Final = 1_048_576
_LONGEST_MANIFEST: Final = 65_536
_LONGEST_CHECKSUMS: Final = 67_108_864
# Of the names, and of the data kept for each file.
_MOST_BYTES_OF_NAMES: Final = 134_217_728
_BYTES_PER_FILE: Final = 300
_INVALID_ARCHIVE_ERRORS: Final = (
    *(tarfile.TarError, msgspec.MsgspecError, ValueError, ArithmeticError, LookupError),
    RecursionError,
)
_ANOTHER: Final = "copy it again from where it was kept, or take another backup"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description of an archive."""

    format: int  # of the archive; a release reads those up to its own
    agent: str
    device: str  # the id of the device that it was made on
    made_at: float  # seconds since the epoch; all rows are of that moment
    thermocline: str  # the release that made it
    counts: dict[str, int]  # live rows by kind
    workspace: str | None = None  # the folder elsewhere that held the workspace, if one did


class ArchivedFile(msgspec.Struct, frozen=True):
    """One file of an archive; its SHA-256 in hexadecimal digits."""

    path: str
    size: int
    sha256: str


class Archive(msgspec.Struct, frozen=True):
    """A complete archive with valid checksums."""

    manifest: Manifest
    files: tuple[ArchivedFile, ...]  # all but the checksums, in their order
    skipped: tuple[Skipped, ...]  # what the workspace held and the archive does not

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files)


class _Checksums(msgspec.Struct, frozen=True):
    files: tuple[ArchivedFile, ...]
    skipped: tuple[Skipped, ...] = ()


class _Format(msgspec.Struct):
    format: int


# Rows -------------------------------------------------------------------------------------


def spool(
    db: sqlite3.Connection, out: BinaryIO, stopped: Callable[[], bool], *, live_only: bool = False
) -> dict[str, int]:
    """Write every row of a database as a line, and count the live ones by kind. Blocking.

    The database is in a transaction, so all rows are of one moment. `live_only` leaves out
    tombstones. `Unavailable` once `stopped` returns true.
    """
    for number, row in enumerate(apply.every(db)):
        if number % 1000 == 0 and stopped():
            raise Unavailable("cannot continue the backup: its caller has left")
        if not live_only or kind_of(row.kind).lives(row):
            out.write(line_of(row, to_read=live_only))
    return apply.counts(db)


# Writing ------------------------------------------------------------------------------------


def write(
    manifest: Manifest, rows: BinaryIO, workspace: Path, never: Path
) -> Generator[bytes, None, None]:
    """An archive in pieces of a few hundred kilobytes at most, some of them empty. Blocking.

    The rows are those that `spool` wrote. The files of the workspace, which may be missing, are
    read when they are packed; the folder `never` is left out if it is in there. `StoreDamaged`: a
    file became shorter while it was read.
    """
    packer, made_at = _Packer(), int(manifest.made_at)
    rows.flush()
    rows.seek(0)
    size = os.fstat(rows.fileno()).st_size
    yield from packer.whole(MANIFEST, manifest, made_at)
    yield from packer.file(_member(ROWS, size, made_at), _pieces(rows.fileno(), size))
    skipped: list[Skipped] = []
    identity = walker.identity(never)
    with closing(walker.walk(workspace, WORKSPACE, identity)) as entries:
        for entry in entries:
            if isinstance(entry, Skipped):
                skipped.append(entry)
                continue
            member = _member(entry.path, entry.size, max(0, entry.mtime), entry.mode)
            yield from packer.file(member, _pieces(entry.handle, entry.size))
    checksums = _Checksums(tuple(packer.entries), tuple(skipped))
    yield from packer.whole(CHECKSUMS, checksums, made_at)
    yield packer.end()


class _Packer:
    """Compresses files into one stream, and remembers their checksums."""

    def __init__(self) -> None:
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        self.entries: list[ArchivedFile] = []

    def whole(self, name: str, value: msgspec.Struct, mtime: int) -> Iterator[bytes]:
        """A file of JSON."""
        content = msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
        return self.file(_member(name, len(content), mtime), [content])

    def file(self, member: tarfile.TarInfo, content: Iterable[bytes]) -> Iterator[bytes]:
        """A file with its content, which is as long as the header says."""
        digest, size = hashlib.sha256(), 0
        yield self._gzip.compress(member.tobuf(tarfile.PAX_FORMAT))
        for piece in content:
            digest.update(piece)
            size += len(piece)
            yield self._gzip.compress(piece)
        if size != member.size:
            raise StoreDamaged(
                f"cannot back up {member.name}: it became shorter while it was read",
                hint="try again when no program writes to it",
            )
        yield self._gzip.compress(bytes(-size % tarfile.BLOCKSIZE))
        self.entries.append(ArchivedFile(member.name, size, digest.hexdigest()))

    def end(self) -> bytes:
        """The end of the stream."""
        return self._gzip.compress(bytes(2 * tarfile.BLOCKSIZE)) + self._gzip.flush()


def _pieces(handle: int, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file, or fewer where it ends before."""
    while size and (piece := os.read(handle, min(size, _PIECE))):
        size -= len(piece)
        yield piece


def _member(name: str, size: int, mtime: int, mode: int = 0o600) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, mtime, mode
    return member


# Reading ------------------------------------------------------------------------------------


def is_sealed(file: Path) -> bool:
    """Whether a file begins as a sealed archive does. Blocking."""
    with file.open("rb") as raw:
        return raw.read(len(FILE_MAGIC)) == FILE_MAGIC


def check_sealed(file: Path) -> None:
    """Check the digest at the end of a sealed archive, else `StoreDamaged`. Blocking."""
    digest, left = hashlib.blake2b(digest_size=_DIGEST_BYTES), file.stat().st_size - _DIGEST_BYTES
    with file.open("rb") as raw:
        while left > 0 and (piece := raw.read(min(left, _PIECE))):
            digest.update(piece)
            left -= len(piece)
        if left or raw.read() != digest.digest():
            raise StoreDamaged(f"cannot use {file}: it is cut off or damaged", hint=_ANOTHER)


def read(
    file: Path,
    into: Path | None = None,
    *,
    room: int | None = None,
    opened: Callable[[], BinaryIO] | None = None,
) -> Archive:
    """Read an archive completely and check its checksums. Blocking.

    `into` is a folder for `rows.jsonl` and `workspace/`, which are not in it; if this raises, its
    content must not be used. An archive that takes more than `room` bytes is refused. `opened`
    opens what is in a sealed one. `InvalidInput`: it was not written by this program;
    `StoreDamaged`: it is cut off or damaged; `Conflict`: a later release wrote it; `DiskFull`.
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise InvalidInput(f"cannot use {file}: it is not a regular file")
    begin: Callable[[], BinaryIO] = opened or (lambda: file.open("rb"))
    try:
        with begin() as raw:
            if raw.read(len(_GZIP_MAGIC)) != _GZIP_MAGIC:
                raise _foreign(file, "it is not compressed")
        with begin() as raw, gzip.open(raw, "rb") as unpacked:
            return _read(file, unpacked, into, room)
    except EOFError as error:
        raise _cut_off(file) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise StoreDamaged(f"cannot use {file}: it is damaged", hint=_ANOTHER) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise _foreign(file, "one of its files is in the place of another") from error
    except _INVALID_ARCHIVE_ERRORS as error:
        if "end of" in str(error) or "truncated" in str(error):
            raise _cut_off(file) from error
        raise _foreign(file, str(error)) from error


def _read(file: Path, unpacked: gzip.GzipFile, into: Path | None, room: int | None) -> Archive:
    manifest: Manifest | None = None
    files: list[ArchivedFile] = []
    size = bytes_of_names = 0
    for member, content in _members(unpacked):
        if manifest is None:
            text = _whole(content, _LONGEST_MANIFEST)
            manifest = _manifest(file, text)
            files.append(ArchivedFile(MANIFEST, len(text), hashlib.sha256(text).hexdigest()))
            continue
        if member.name == CHECKSUMS:
            listed = msgspec.json.decode(_whole(content, _LONGEST_CHECKSUMS), type=_Checksums)
            # The data after the last block must be complete too.
            while unpacked.read(_PIECE):
                pass
            _compare(file, files, listed.files)
            return Archive(manifest, listed.files, listed.skipped)
        size += member.size
        bytes_of_names += len(member.name) + _BYTES_PER_FILE
        if room is not None and size > room:
            raise DiskFull(
                f"cannot unpack {file}: it takes more than {room:,} bytes, which are free",
                hint="free some space, or restore on another disk",
            )
        if bytes_of_names > _MOST_BYTES_OF_NAMES:
            raise _foreign(file, "it holds too many files")
        files.append(_entry(member, content, into))
    raise _cut_off(file)


class _Bounded:
    """A file limited to `left` bytes, whatever a header announces."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.left = _LONGEST_HEADERS

    def read(self, size: int) -> bytes:
        """Up to `size` bytes."""
        if size > self.left:
            msg = "a header is too long"
            raise tarfile.ReadError(msg)
        data = self._file.read(size)
        self.left -= len(data)
        return data


def _members(unpacked: gzip.GzipFile) -> Iterator[tuple[tarfile.TarInfo, BinaryIO]]:
    """Each file with its content, which must be read before the next file."""
    source = _Bounded(unpacked)
    first = True
    with tarfile.open(fileobj=source, mode="r|", errorlevel=2) as tar:  # type: ignore[call-overload]
        while (member := tar.next()) is not None:
            name = member.name
            regular = member.isreg() and not member.issparse() and member.size >= 0
            known = name == MANIFEST if first else name in {ROWS, CHECKSUMS}
            in_workspace = not first and name.startswith(f"{WORKSPACE}/") and is_plain(name)
            if not regular or not (known or in_workspace):
                msg = f"{name[:100]!r} is in it"
                raise tarfile.ReadError(msg)
            first = False
            source.left = member.size + _LONGEST_HEADERS
            yield member, tar.extractfile(member)
            source.left = _LONGEST_HEADERS
            # `tarfile` would keep all of them.
            tar.members.clear()
            tar.pax_headers.clear()


def _entry(member: tarfile.TarInfo, content: BinaryIO, into: Path | None) -> ArchivedFile:
    digest, size = hashlib.sha256(), 0
    path = Path(os.devnull) if into is None else into / member.name
    if into is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("wb" if into is None else "xb") as out:
        while piece := content.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            out.write(piece)
        if size != member.size:
            raise EOFError
        out.flush()
        if into is not None:
            os.fchmod(out.fileno(), 0o600 | (member.mode & 0o100))
            os.utime(out.fileno(), (member.mtime, member.mtime))
    return ArchivedFile(member.name, size, digest.hexdigest())


def _whole(content: BinaryIO, limit: int) -> bytes:
    text = content.read(limit + 1)
    if len(text) > limit:
        msg = "a file that describes it is too long"
        raise tarfile.ReadError(msg)
    return text


def _manifest(file: Path, text: bytes) -> Manifest:
    version = msgspec.json.decode(text, type=_Format).format
    if version > FORMAT:
        raise Conflict(
            f"cannot use {file}: its format is {version}, this release knows {FORMAT}",
            hint="install the release that wrote it, or a later one",
        )
    return msgspec.json.decode(text, type=Manifest)


def _compare(file: Path, files: list[ArchivedFile], listed: tuple[ArchivedFile, ...]) -> None:
    """Check that the archive has exactly the listed files, with their sizes and checksums."""
    if ROWS not in {entry.path for entry in listed}:
        raise _foreign(file, "it holds no rows")
    differing = (Counter(files) - Counter(listed)) | (Counter(listed) - Counter(files))
    if differing:
        path = min(entry.path for entry in differing)
        raise StoreDamaged(
            f"cannot use {file}: {path[:200]!r} in it has changed since it was written",
            hint=_ANOTHER,
        )


def _foreign(file: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"cannot use {file}: it is not an archive of thermocline's ({why})",
        hint="give a file that `thermocline backup` wrote",
    )


def _cut_off(file: Path) -> StoreDamaged:
    return StoreDamaged(f"cannot use {file}: it is cut off or damaged", hint=_ANOTHER)
