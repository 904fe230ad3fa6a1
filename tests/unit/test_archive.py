"""Archives: what a good one says, and what is refused of those that anybody may have made."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from thermocline.daemon.errors import (
    Conflict,
    DiskFull,
    InvalidInput,
    StoreDamaged,
    ThermoclineError,
)
from thermocline.daemon.store.archive import unpack, verify
from thermocline.daemon.store.tar_blocks import Member, header, padding

MANIFEST = {
    "format": 1, "agent": "ana", "device": "d", "made_at": 1.0, "thermocline": "0", "schema": 1,
    "counts": {},
}  # fmt: skip
GOOD = {"manifest.json": json.dumps(MANIFEST).encode(), "memory.db": b"db" * 900}
NOTES = {"memory/2026-03-01.md": b"a day", "cold/000000.jsonl": b"{}\n", "MEMORY.md": b"# M"}


def listed(files: dict[str, bytes]) -> bytes:
    entries = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for path, data in files.items()
    ]
    return json.dumps({"files": entries}).encode()


def packed(
    files: list[tuple[str, bytes]], edit: Callable[[tarfile.TarInfo], None] = lambda _: None
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            edit(info)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def archive_of(files: dict[str, bytes], checksums: bytes | None = None) -> bytes:
    whole = [*files.items(), ("checksums.json", checksums or listed(files))]
    return gzip.compress(packed(whole), mtime=0)


@pytest.fixture
def save(tmp_path: Path) -> Callable[[bytes], Path]:
    """`save(data)` writes a file to read."""

    def save(data: bytes) -> Path:
        path = tmp_path / "a.tar.gz"
        path.write_bytes(data)
        return path

    return save


def refusal(path: Path, **options: Any) -> ThermoclineError:
    with pytest.raises(ThermoclineError) as caught:
        verify(path, **options)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_good_archive_is_what_its_checksums_say(save: Callable[[bytes], Path]) -> None:
    path = save(archive_of(GOOD | NOTES))
    archive = verify(path)
    assert msgspec.to_builtins(archive.manifest) == MANIFEST | {"workspace": None}
    assert [entry.path for entry in archive.files] == [*GOOD, *NOTES]
    assert archive.size == sum(map(len, (GOOD | NOTES).values()))
    handed: dict[str, bytes] = {}
    unpack(path, archive, lambda member, data: handed.update({member.name: b"".join(data)}))
    assert handed == {k: v for k, v in (GOOD | NOTES).items() if k != "manifest.json"}


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "/etc/passwd", "memory/../../evil", "memory/./a", "memory//a", "memory/",
        "memory", "memory/a\0b", "memory/" + "x" * 256, "memory/" + "x/" * 2100,
        "evil",
        "memory.db-wal", "memory.db-shm", "memory.db-journal", "memory.db.rebuilt", "cold/x.jsonl",
        "cold/0.jsonl", "cold/../000000.jsonl", "cold/000000.jsonl/x", "MEMORY.md/x", "lock",
        "replica.db", "memory-unused", "memory-unused/../x", ".hidden", "memory/b\udcffd",
    ],
)  # fmt: skip
def test_a_name_that_no_archive_of_ours_has_is_refused(
    name: str, save: Callable[[bytes], Path]
) -> None:
    files = [*GOOD.items(), (name, b"evil")]
    try:
        data = packed([*files, ("checksums.json", listed(dict(files)))])
    except UnicodeEncodeError:
        data = packed([*GOOD.items(), ("memory/bXXd", b"evil")]).replace(b"bXXd", b"b\xff\xffd")
    assert isinstance(refusal(save(gzip.compress(data))), (InvalidInput, StoreDamaged))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_an_archive_with_anything_but_files_is_refused(
    kind: bytes, save: Callable[[bytes], Path]
) -> None:
    def edit(info: tarfile.TarInfo) -> None:
        if info.name == "memory/link":
            info.type, info.linkname, info.size = kind, "/etc/passwd", 0

    files = GOOD | {"memory/link": b""}
    data = packed([*files.items(), ("checksums.json", listed(files))], edit)
    assert isinstance(refusal(save(gzip.compress(data))), InvalidInput)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [("memory/a", b"x")],
        [*reversed(GOOD.items())],
        [("manifest.json", b"{}"), ("memory.db", b"x")],
        [("manifest.json", b"[" * 60_000), ("memory.db", b"x")],
        [("manifest.json", b" " * 70_000 + json.dumps(MANIFEST).encode()), ("memory.db", b"x")],
        [("manifest.json", json.dumps(MANIFEST).encode())],
        [*GOOD.items(), ("memory.db", b"another")],
    ],
)
def test_a_tar_that_is_something_else_is_refused(
    files: list[tuple[str, bytes]], save: Callable[[bytes], Path]
) -> None:
    data = packed([*files, ("checksums.json", listed(dict(files)))])
    assert isinstance(refusal(save(gzip.compress(data))), InvalidInput)


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f\x8b", b"PK\x03\x04" * 300, b"\0" * 4096])
def test_a_file_that_is_something_else_is_refused(
    data: bytes, save: Callable[[bytes], Path]
) -> None:
    assert isinstance(refusal(save(data)), (InvalidInput, StoreDamaged))


def test_a_folder_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a regular file"):
        verify(tmp_path)


def test_one_of_a_later_format_says_what_to_do(save: Callable[[bytes], Path]) -> None:
    later = json.dumps(MANIFEST | {"format": 2, "new": True}).encode()
    error = refusal(save(archive_of(GOOD | {"manifest.json": later})))
    assert isinstance(error, Conflict)
    assert "its format is 2, this release knows 1" in error.message


@pytest.mark.parametrize(
    "checksums",
    [
        listed(GOOD | NOTES | {"memory/more.md": b"x"}),
        listed(GOOD),
        listed(GOOD | NOTES | {"memory/2026-03-01.md": b"a dax"}),
        listed(GOOD | NOTES | {"memory/2026-03-01.md": b"a day "}),
        json.dumps({"files": json.loads(listed(GOOD | NOTES))["files"] * 2}).encode(),
        b'{"files": []}',
    ],
)
def test_files_and_checksums_that_do_not_agree_are_refused(
    checksums: bytes, save: Callable[[bytes], Path]
) -> None:
    assert isinstance(refusal(save(archive_of(GOOD | NOTES, checksums))), StoreDamaged)


def test_an_archive_that_is_cut_off_anywhere_is_refused(save: Callable[[bytes], Path]) -> None:
    whole = archive_of(GOOD | NOTES)
    for end in range(2, len(whole), 3):
        error = refusal(save(whole[:end]))
        assert isinstance(error, StoreDamaged), end
        assert "cut off" in error.message, end


def test_an_archive_with_any_byte_changed_is_refused_or_the_same(
    save: Callable[[bytes], Path],
) -> None:
    whole = archive_of(GOOD | NOTES)
    right = verify(save(whole))
    dice = random.Random(7)
    harmless = 0
    for position in range(0, len(whole), 2):
        changed = bytearray(whole)
        changed[position] ^= 1 << dice.randrange(8)
        try:
            assert verify(save(bytes(changed))) == right
            harmless += 1
        except (InvalidInput, StoreDamaged):
            continue
    # Time and system in the head mean nothing, and zeros can be told in more than one way.
    assert harmless < 15


def test_what_follows_an_archive_is_not_passed_over(save: Callable[[bytes], Path]) -> None:
    whole = archive_of(GOOD)
    refusal(save(whole + b"more"))
    refusal(save(whole + gzip.compress(b"more")))


def test_one_that_is_larger_than_the_disk_is_refused_before_it_is_read(
    save: Callable[[bytes], Path],
) -> None:
    data = b""
    for name, content in GOOD.items():
        size = len(content)
        data += header(Member(name, size)) + content + padding(size)
    # Its content never comes: whoever wanted it first would call the archive cut off.
    data += header(Member("memory/bomb", 2**40))
    error = refusal(save(gzip.compress(data)), room=10**9)
    assert isinstance(error, DiskFull)
    assert "1,000,000,000 are free" in error.message


def test_an_archive_that_changes_between_two_looks_is_not_trusted(
    save: Callable[[bytes], Path],
) -> None:
    path = save(archive_of(GOOD | NOTES))
    archive = verify(path)
    for other in (
        GOOD,
        GOOD | NOTES | {"memory/2026-03-01.md": b"a dax"},
        GOOD | NOTES | {"memory/more.md": b"x"},
    ):
        save(archive_of(other))
        with pytest.raises(StoreDamaged, match="not what was written"):
            unpack(path, archive, lambda _member, data: [*data] and None)
