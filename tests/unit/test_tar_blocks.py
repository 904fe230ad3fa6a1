"""The bit of tar that archives are made of."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thermocline.daemon.store import tar_blocks
from thermocline.daemon.store.tar_blocks import CutOff, Member, NotTar, Reader

names = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\0/"), min_size=1, max_size=40
)
paths = st.lists(names, min_size=1, max_size=8).map(lambda parts: "/".join(["memory", *parts]))
files = st.lists(st.tuples(paths, st.binary(max_size=1500)), max_size=6)


def tar_of(content: list[tuple[str, bytes]]) -> bytes:
    out = bytearray()
    for name, data in content:
        out += tar_blocks.header(Member(name, len(data), 1_700_000_000))
        out += data + tar_blocks.padding(len(data))
    return bytes(out) + tar_blocks.END


def read(data: bytes) -> list[tuple[str, bytes]]:
    reader = Reader(io.BytesIO(data))
    found = [(member.name, b"".join(reader.content())) for member in reader.members()]
    reader.end()
    return found


def foreign(info: tarfile.TarInfo, data: bytes = b"", **options: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as tar:
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@settings(max_examples=50)
@given(files)
def test_what_is_written_is_read_again(content: list[tuple[str, bytes]]) -> None:
    assert read(tar_of(content)) == content


@settings(max_examples=50)
@given(files)
def test_any_other_tar_reads_it_too(content: list[tuple[str, bytes]]) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar_of(content))) as tar:
        found = []
        for info in tar:
            data = tar.extractfile(info)
            assert data is not None
            found.append((info.name.rstrip("/"), data.read()))
    assert found == [(name.rstrip("/"), data) for name, data in content]


@settings(max_examples=50)
@given(files, st.data())
def test_a_tar_that_ends_early_is_known_to_be_cut_off(
    content: list[tuple[str, bytes]], data: Any
) -> None:
    whole = tar_of(content)
    # The second block of zeros is for tapes: the first one is the end.
    cut = data.draw(st.integers(0, len(whole) - tar_blocks.BLOCK - 1))
    with pytest.raises(CutOff):
        read(whole[:cut])


def test_a_member_that_nobody_reads_is_passed_over() -> None:
    reader = Reader(io.BytesIO(tar_of([("a", b"x" * 5000), ("b", b"y")])))
    assert [member.name for member in reader.members()] == ["a", "b"]


def test_a_file_beyond_the_numbers_of_old_tars_keeps_its_size() -> None:
    size = 9 * 2**30
    reader = Reader(io.BytesIO(tar_blocks.header(Member("memory/big", size))))
    assert next(reader.members()).size == size


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
             tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, b"Z"]
)  # fmt: skip
def test_nothing_but_plain_files_is_read(kind: bytes) -> None:
    info = tarfile.TarInfo("memory/a")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(NotTar, match="something else than files"):
        read(foreign(info))


def test_a_header_that_announces_gigabytes_of_names_is_not_believed() -> None:
    info = tarfile.TarInfo("memory/a")
    info.type, info.size = tarfile.XHDTYPE, 8 * 2**30
    with pytest.raises(NotTar, match="too long"):
        read(info.tobuf(tarfile.GNU_FORMAT))


@pytest.mark.parametrize(
    "records",
    [
        b"5 path=memory/a\n", b"x path=a\n", b"0 path=a\n", b"999 path=a\n", b"12 path=a b\0",
        b"9999999999999999999999 path=a\n", b"\n\n\n", b"11 size=-1\n", b"12 size=1e9\n",
        b"10 size=\xff\n",
    ],
)  # fmt: skip
def test_extended_headers_that_make_no_sense_are_refused(records: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(records)
    head = info.tobuf(tarfile.USTAR_FORMAT) + records + tar_blocks.padding(len(records))
    with pytest.raises(NotTar):
        read(head + tar_of([("memory/a", b"1")]))


def test_a_negative_size_is_refused() -> None:
    info = tarfile.TarInfo("memory/a")
    info.size = -5
    with pytest.raises(NotTar):
        read(info.tobuf(tarfile.GNU_FORMAT) + tar_blocks.END)


def test_a_header_with_a_flipped_bit_is_refused() -> None:
    whole = bytearray(tar_of([("memory/a", b"1")]))
    whole[3] ^= 1
    with pytest.raises(NotTar, match="damaged"):
        read(bytes(whole))


def test_what_follows_the_end_is_refused() -> None:
    with pytest.raises(NotTar, match="follows"):
        read(tar_of([("memory/a", b"1")]) + b"more")
