"""Making an archive: the bytes of a `.tar.gz`, one piece after another, as they are asked for."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from ..errors import StoreDamaged
from . import tar_blocks, workspace_files
from .archive import (
    CHECKSUMS,
    FORMAT,
    MANIFEST,
    UNUSED,
    WORKSPACE,
    Checksums,
    Entry,
    Manifest,
)
from .database import FILE_NAME as DATABASE
from .faces import render_segment
from .opening import Place
from .snapshot import Snapshot
from .tar_blocks import Member
from .workspace_files import Skipped

_PIECE: Final = 262_144
# Of a text the higher levels save another twentieth, for twice the time.
_LEVEL: Final = 4
_GZIP: Final = 31


class _Packer:
    """Compresses files into one stream, and remembers their checksums."""

    def __init__(self, mtime: float) -> None:
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._mtime = int(mtime)
        self.entries: list[Entry] = []

    def whole(self, name: str, content: bytes) -> Iterator[bytes]:
        """A file whose content is at hand."""
        return self.file(Member(name, len(content), self._mtime), iter([content]))

    def file(self, member: Member, content: Iterable[bytes]) -> Iterator[bytes]:
        """A file with its content, which is as long as the member says.

        Now and then a piece is empty: its reader is to have a look around.
        """
        digest, size = hashlib.sha256(), 0
        yield self._gzip.compress(tar_blocks.header(member))
        for piece in content:
            digest.update(piece)
            size += len(piece)
            yield self._gzip.compress(piece)
        if size != member.size:
            raise StoreDamaged(
                f"cannot back up {member.name}: it became shorter while it was read",
                hint="try again once nobody writes to it",
            )
        yield self._gzip.compress(tar_blocks.padding(size))
        self.entries.append(Entry(member.name, size, digest.hexdigest()))

    def end(self) -> bytes:
        """What closes the stream."""
        return self._gzip.compress(tar_blocks.END) + self._gzip.flush()


def stream(
    place: Place, snapshot: Snapshot, release: str, state_dir: Path
) -> Generator[bytes, None, None]:
    """The archive of one agent, in pieces of a few hundred kilobytes at most, some of them empty.

    Only the copy of the database is of one moment; the files of the workspace are as they are
    when their turn comes. Blocking.

    Args:
        place: whose it is.
        snapshot: the copy of its database.
        release: the version of this program.
        state_dir: never archived, even where it lies in the workspace.

    Raises:
        StoreDamaged: a file was cut while it was read.
        OSError: the disk refuses.
    """
    packer = _Packer(snapshot.made_at)
    manifest = _manifest(place, snapshot, release)
    yield from packer.whole(MANIFEST, _json(manifest))
    yield from _database(packer, snapshot)
    for rendered in snapshot.files:
        yield from packer.whole(rendered.name, rendered.content or b"")
    yield from _segments(packer, snapshot)
    skipped: list[Skipped] = []
    for top, prefix in _workspaces(place):
        yield from _workspace(packer, top, prefix, state_dir, skipped)
    listed = Checksums(tuple(packer.entries), tuple(skipped))
    yield from packer.whole(CHECKSUMS, _json(listed))
    yield packer.end()


def _manifest(place: Place, snapshot: Snapshot, release: str) -> Manifest:
    return Manifest(
        format=FORMAT,
        agent=place.agent,
        device=place.device,
        made_at=snapshot.made_at,
        thermocline=release,
        schema=snapshot.schema,
        counts=snapshot.counts,
        workspace=None if place.workspace is None else str(place.workspace),
    )


def _database(packer: _Packer, snapshot: Snapshot) -> Iterator[bytes]:
    with snapshot.database.open("rb") as file:
        member = Member(DATABASE, os.fstat(file.fileno()).st_size, int(snapshot.made_at))
        yield from packer.file(member, _pieces(file.fileno(), member.size))


def _segments(packer: _Packer, snapshot: Snapshot) -> Iterator[bytes]:
    with closing(sqlite3.connect(snapshot.database, check_same_thread=False)) as db:
        for segment in snapshot.segments:
            rendered = render_segment(db, segment)
            if rendered.content is not None:
                yield from packer.whole(rendered.name, rendered.content)


def _workspaces(place: Place) -> Iterator[tuple[Path, str]]:
    """The workspace in force; and beside one elsewhere, what is in the agent's own folder."""
    own = place.folder / WORKSPACE
    if place.workspace is None:
        yield own, WORKSPACE
        return
    elsewhere = place.workspace / WORKSPACE
    yield elsewhere, WORKSPACE
    if not (own.exists() and elsewhere.exists() and own.samefile(elsewhere)):
        yield own, UNUSED


def _workspace(
    packer: _Packer, top: Path, prefix: str, state_dir: Path, skipped: list[Skipped]
) -> Iterator[bytes]:
    never = workspace_files.identity(state_dir)
    with closing(workspace_files.walk(top, prefix, never)) as found:
        for one in found:
            if isinstance(one, Skipped):
                skipped.append(one)
                continue
            member = Member(one.path, one.size, max(0, one.mtime), one.mode)
            yield from packer.file(member, _pieces(one.handle, one.size))


def _pieces(handle: int, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file, or fewer where it ends before."""
    while size and (piece := os.read(handle, min(size, _PIECE))):
        size -= len(piece)
        yield piece


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
