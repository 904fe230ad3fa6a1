"""One agent's memory as one portable file: what an archive holds, and how it is read.

It is a `.tar.gz` that any tar unpacks, and unpacked into an agent's folder it is that agent's
memory. First comes `manifest.json`, which says what it is; then `memory.db`, the state files and
the workspace; last `checksums.json`, with size and SHA-256 of every file before it. Those come
last since the archive is sent while it is made, in one pass and without a copy on the disk: a
file of the workspace may change until the moment that it is read. And so an archive without
them is known to be cut off, wherever that happened.

An archive may come from anybody. Reading one holds a piece of it in memory at a time, believes no
size that it announces, and takes only names that an archive of ours can have.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import msgspec

from ..errors import Conflict, DiskFull, InvalidInput, StoreDamaged, ThermoclineError
from .database import FILE_NAME as DATABASE
from .tar_blocks import CutOff, Member, NotTar, Reader
from .workspace_files import Skipped, is_plain

S = TypeVar("S", bound=msgspec.Struct)

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
CHECKSUMS: Final = "checksums.json"
WORKSPACE: Final = "memory"
# Where the agent's own `memory/` goes while a folder elsewhere is its workspace.
UNUSED: Final = "memory-unused"
_FILES: Final = 400_000
_NAMES_BYTES: Final = 67_108_864
_MANIFEST_BYTES: Final = 65_536
_STATE_FILE: Final = re.compile(
    r"(hot-memory-state|warm-memory|memory-tree|metrics|key-values)\.json|MEMORY\.md"
    r"|cold/\d{6,15}\.jsonl",
    re.ASCII,
)
_GZIP: Final = b"\x1f\x8b"
_OURS: Final = "give a file that `thermocline backup` wrote"
_ANOTHER: Final = "copy it again from where it was kept, or take another backup"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive is.

    Attributes:
        format: of the archive; a release reads those up to its own.
        device: the id of the device that it was made on.
        made_at: seconds since the epoch; all of the database is of that moment.
        thermocline: the release that made it.
        schema: the version of the database's tables.
        counts: how many things of each kind the database holds.
        workspace: the folder elsewhere that `memory/` was in, if it was.
    """

    format: int
    agent: str
    device: str
    made_at: float
    thermocline: str
    schema: int
    counts: dict[str, int]
    workspace: str | None = None


class Entry(msgspec.Struct, frozen=True):
    """One file of an archive; its SHA-256 in hexadecimal digits."""

    path: str
    size: int
    sha256: str


class Checksums(msgspec.Struct, frozen=True):
    """Every file but the one that these stand in, in the order of the archive."""

    files: tuple[Entry, ...]
    skipped: tuple[Skipped, ...] = ()


class Archive(msgspec.Struct, frozen=True):
    """A whole archive, as its checksums confirm it."""

    manifest: Manifest
    files: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]

    @property
    def size(self) -> int:
        """The bytes of all files, unpacked."""
        return sum(entry.size for entry in self.files)


class _Format(msgspec.Struct):
    format: int


def verify(file: Path, *, room: int | None = None) -> Archive:
    """Read all of an archive and compare it with its checksums. Writes nothing. Blocking.

    Args:
        file: the archive.
        room: refuse one that takes more bytes than these, as soon as that shows.

    Raises:
        InvalidInput: it is no archive of ours.
        StoreDamaged: it is cut off, or not what was written.
        Conflict: a later release wrote it.
        DiskFull: it has not the room.
        OSError: it cannot be read.
    """
    found: dict[str, Entry] = {}
    manifest: Manifest | None = None
    with _opened(file) as tar:
        for member in _admitted(file, tar, room):
            if member.name == CHECKSUMS:
                if manifest is None:
                    _refuse(file)
                listed = _parsed(file, _whole(tar, member, _NAMES_BYTES), Checksums)
                _compare(file, found, listed)
                tar.end()
                return Archive(manifest, listed.files, listed.skipped)
            if manifest is None:
                content = _whole(tar, member, _MANIFEST_BYTES)
                manifest = _manifest(file, member, content)
                found[MANIFEST] = _entry(MANIFEST, iter([content]))
            else:
                found[member.name] = _entry(member.name, tar.content())
    raise _cut_off(file)


def unpack(file: Path, archive: Archive, write: Callable[[Member, Iterator[bytes]], None]) -> None:
    """Hand each file of a verified archive to `write`, and check again what was handed over.

    Args:
        file: the archive.
        archive: what `verify` found in it.
        write: takes all of a file's content; not called for the manifest and the checksums.

    Raises:
        StoreDamaged: it changed since; what `write` got last is not to be used.
        OSError: it cannot be read.
    """
    expected = {entry.path: entry for entry in archive.files}
    with _opened(file) as tar:
        for member in _admitted(file, tar, archive.size + _NAMES_BYTES):
            if member.name == CHECKSUMS:
                break
            entry = expected.pop(member.name, None)
            if member.name == MANIFEST:
                continue
            digest = hashlib.sha256()
            write(member, _hashed(tar.content(), digest.update))
            if Entry(member.name, member.size, digest.hexdigest()) != entry:
                raise _changed(file, member.name)
    for path in expected:
        raise _changed(file, path)


@contextmanager
def _opened(file: Path) -> Iterator[Reader]:
    """The tar in a file; whatever shows that it is none becomes an error of ours."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise InvalidInput(f"cannot use {file}: it is not a regular file")
    with file.open("rb") as raw:
        if raw.read(2) != _GZIP:
            _refuse(file)
    try:
        with gzip.open(file, "rb") as source:
            yield Reader(source)
    except (CutOff, EOFError) as error:
        raise _cut_off(file) from error
    except NotTar as error:
        raise InvalidInput(
            f"cannot use {file}: it is no archive of thermocline's ({error})", hint=_OURS
        ) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(file) from error


def _admitted(file: Path, tar: Reader, room: int | None) -> Iterator[Member]:
    """The members, as long as their names and sizes are such as an archive of ours may have."""
    seen: set[str] = set()
    names = sizes = 0
    for member in tar.members():
        if not seen and member.name != MANIFEST:
            _refuse(file)
        if member.name in seen or not _may_be_named(member.name):
            raise NotTar(f"it holds {member.name[:100]!r}")
        seen.add(member.name)
        names += len(member.name)
        sizes += member.size
        if names > _NAMES_BYTES or len(seen) > _FILES:
            raise NotTar("it holds too many files")
        if room is not None and sizes > room:
            raise DiskFull(
                f"cannot unpack {file}: it takes more than {sizes:,} bytes, and {room:,} are free",
                hint="free some space, or restore on another disk",
            )
        yield member


def _may_be_named(name: str) -> bool:
    if name in {MANIFEST, CHECKSUMS, DATABASE} or _STATE_FILE.fullmatch(name):
        return True
    first, *rest = name.split("/")
    return first in {WORKSPACE, UNUSED} and bool(rest) and is_plain(name)


def _manifest(file: Path, member: Member, content: bytes) -> Manifest:
    assert member.name == MANIFEST
    found = _parsed(file, content, _Format).format
    if found > FORMAT:
        raise Conflict(
            f"cannot use {file}: its format is {found}, this release knows {FORMAT}",
            hint="install the release that wrote it, or a later one",
        )
    return _parsed(file, content, Manifest)


def _whole(tar: Reader, member: Member, limit: int) -> bytes:
    if member.size > limit:
        raise NotTar(f"its {member.name} is too long")
    return b"".join(tar.content())


def _parsed(file: Path, content: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"cannot use {file}: it is no archive of thermocline's ({error})", hint=_OURS
        ) from error


def _entry(path: str, content: Iterator[bytes]) -> Entry:
    digest, size = hashlib.sha256(), 0
    for piece in content:
        digest.update(piece)
        size += len(piece)
    return Entry(path, size, digest.hexdigest())


def _hashed(content: Iterator[bytes], update: Callable[[bytes], object]) -> Iterator[bytes]:
    for piece in content:
        update(piece)
        yield piece


def _compare(file: Path, found: dict[str, Entry], listed: Checksums) -> None:
    """Every file that is listed is there, as it is listed, and no other."""
    for entry in listed.files:
        if found.pop(entry.path, None) != entry:
            raise _changed(file, entry.path)
    for path in found:
        raise _changed(file, path)
    if DATABASE not in {entry.path for entry in listed.files}:
        _refuse(file)


def _refuse(file: Path) -> NoReturn:
    raise InvalidInput(f"cannot use {file}: it is no archive of thermocline's", hint=_OURS)


def _changed(file: Path, path: str) -> ThermoclineError:
    return StoreDamaged(
        f"cannot use {file}: {path[:200]!r} in it is not what was written", hint=_ANOTHER
    )


def _damaged(file: Path) -> ThermoclineError:
    return StoreDamaged(f"cannot use {file}: it is damaged", hint=_ANOTHER)


def _cut_off(file: Path) -> ThermoclineError:
    return StoreDamaged(f"cannot use {file}: it is cut off", hint=_ANOTHER)
