"""Archives: what is in them, and that damaged or hostile ones are refused, whatever they claim."""

import gzip
import io
import json
import sqlite3
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from store_parts import transaction

from thermocline.daemon.cloud import archive
from thermocline.daemon.cloud.archive import FORMAT, Manifest, read, spool, write
from thermocline.daemon.errors import Conflict, DiskFull, InvalidInput, StoreDamaged
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import apply
from thermocline.daemon.store.apply import rows_in
from thermocline.daemon.store.records import key_values, memories

NOW = 1_750_000_000.0


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """A database with a few rows."""
    texts = {"m1": "Ana prefers tea — ça va", "m2": "soon gone"}
    made = remembered(
        Memory(id=key, text=text, tags=("b", "a"), created_at=NOW, updated_at=NOW)
        for key, text in texts.items()
    )
    tx = transaction(made, NOW)
    memories.forget(tx, "m2")
    key_values.put(tx, "theme", "dark")
    return made


@pytest.fixture
def file(tmp_path: Path, db: sqlite3.Connection) -> Path:
    """An archive with two files of a workspace."""
    workspace = tmp_path / "w"
    (workspace / "deep").mkdir(parents=True)
    (workspace / "n.md").write_text("a note\n")
    (workspace / "deep/big.bin").write_bytes(bytes(range(256)) * 4000)
    (workspace / "deep/run.sh").write_text("true\n")
    (workspace / "deep/run.sh").chmod(0o755)
    (workspace / "link").symlink_to("/etc/passwd")
    target = tmp_path / "a.tar.gz"
    with (tmp_path / "rows").open("w+b") as rows, target.open("wb") as out:
        counts = spool(db, rows, lambda: False)
        manifest = Manifest(
            format=FORMAT, agent="ana", device="d1", made_at=NOW, thermocline="1", counts=counts
        )
        out.writelines(write(manifest, rows, workspace, tmp_path))
    return target


def remade(file: Path, change: Callable[[tarfile.TarFile], None]) -> Path:
    """The archive made anew, with `change` adding what it likes before the checksums."""
    other = file.with_name("other.tar.gz")
    with tarfile.open(file) as old, tarfile.open(other, "w:gz") as new:
        for member in old:
            if member.name == archive.CHECKSUMS:
                change(new)
            new.addfile(member, old.extractfile(member))
    return other


def add(name: str, content: bytes = b"x", **fields: object) -> Callable[[tarfile.TarFile], None]:
    def change(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for field, value in fields.items():
            setattr(member, field, value)
        tar.addfile(member, io.BytesIO(content))

    return change


def test_what_was_written_is_read_back(file, tmp_path, db):
    found = read(file, tmp_path / "into")
    assert found.manifest.counts == {"memory": 1, "category": 1, "pair": 1}
    assert [entry.path for entry in found.files] == [
        "manifest.json", "rows.jsonl", "workspace/deep/big.bin", "workspace/deep/run.sh",
        "workspace/n.md",
    ]  # fmt: skip
    assert [(one.path, one.why) for one in found.skipped] == [("workspace/link", "a link")]
    into = tmp_path / "into"
    assert (into / "workspace/deep/big.bin").read_bytes() == bytes(range(256)) * 4000
    assert (into / "workspace/deep/run.sh").stat().st_mode & 0o777 == 0o700
    with (into / "rows.jsonl").open("rb") as lines:
        assert list(rows_in(lines)) == list(apply.every(db))
    (tmp_path / "any").mkdir()
    subprocess.run(["tar", "-xzf", file, "-C", tmp_path / "any"], check=True)
    assert (tmp_path / "any/workspace/n.md").read_text() == "a note\n"


def test_one_cut_off_anywhere_is_refused(file, tmp_path):
    whole = file.read_bytes()
    cut = tmp_path / "cut.tar.gz"
    for size in {2, 10, 100, len(whole) // 2, len(whole) - 1, len(whole) - 9}:
        cut.write_bytes(whole[:size])
        with pytest.raises(StoreDamaged, match="cut off"):
            read(cut)
    unpacked = gzip.decompress(whole)
    for blocks in range(1, len(unpacked) // 512, 211):
        cut.write_bytes(gzip.compress(unpacked[: blocks * 512], 1))
        with pytest.raises(StoreDamaged, match="cut off"):
            read(cut)


def unpacks_to(packed: Path, content: bytes) -> bool:
    try:
        return gzip.decompress(packed.read_bytes()) == content
    except (OSError, EOFError, zlib.error):
        return False


def test_a_flipped_bit_is_found(file, tmp_path):
    unpacked = bytearray(gzip.decompress(file.read_bytes()))
    bad = tmp_path / "bad.tar.gz"
    with tarfile.open(file) as tar:
        ends = [m.offset_data + m.size for m in tar]
    for place in range(600, len(unpacked) - 1024, len(unpacked) // 60):
        unpacked[place] ^= 4
        bad.write_bytes(gzip.compress(bytes(unpacked), 1))
        unpacked[place] ^= 4
        # Members begin and are padded at multiples of 512.
        if not any(end <= place < -(-end // 512) * 512 for end in ends):
            with pytest.raises((StoreDamaged, InvalidInput)):
                read(bad)
    packed = bytearray(file.read_bytes())
    for place in range(20, len(packed), len(packed) // 30):
        packed[place] ^= 4
        bad.write_bytes(packed)
        packed[place] ^= 4
        # A few bits of the compressed form carry nothing, such as those behind its last symbol.
        if not unpacks_to(bad, unpacked):
            with pytest.raises((StoreDamaged, InvalidInput, Conflict)):
                read(bad)


@pytest.mark.parametrize(
    "change",
    [
        add("workspace/../../escaped"),
        add("/workspace/absolute"),
        add("workspace//double"),
        add("memory.db"),
        add("workspace/link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        add("workspace/hard", b"", type=tarfile.LNKTYPE, linkname="rows.jsonl"),
        add("workspace/fifo", b"", type=tarfile.FIFOTYPE),
        add("workspace/device", b"", type=tarfile.CHRTYPE),
        add("workspace/folder", b"", type=tarfile.DIRTYPE),
        add("workspace/sparse", b"", pax_headers={"GNU.sparse.map": "0,1", "GNU.sparse.size": "9"}),
        add("rows.jsonl"),
        add("workspace/n.md/below"),
        add("workspace/x", pax_headers={"comment": "x" * 3_000_000}),
        add(f"workspace/{'n' * 300}"),
        add("workspace/unlisted"),
    ],
)  # fmt: skip
def test_a_hostile_member_is_refused_and_nothing_is_written_elsewhere(file, tmp_path, change):
    before = set(tmp_path.rglob("*"))
    other = remade(file, change)
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises((InvalidInput, StoreDamaged)):
        read(other, into)
    after = {path for path in tmp_path.rglob("*") if into not in (path, *path.parents)}
    assert after == before | {other}


def test_sizes_that_are_not_true_take_no_room(file, tmp_path):
    with pytest.raises(DiskFull, match="takes more than 1,000 bytes"):
        read(file, room=1000)
    huge = tarfile.TarInfo("workspace/huge")
    huge.size = 1 << 50
    unpacked = gzip.decompress(file.read_bytes())
    for header in (
        huge.tobuf(tarfile.GNU_FORMAT),
        huge.tobuf(tarfile.GNU_FORMAT)[:124] + b"\xff" * 12,
    ):
        (tmp_path / "bad").write_bytes(gzip.compress(unpacked[:-10240] + header + bytes(1024)))
        with pytest.raises((StoreDamaged, InvalidInput, DiskFull)):
            read(tmp_path / "bad", room=10**9)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", gzip.compress(b""), gzip.compress(b"x" * 5000)],
    ids=["empty", "text", "nothing packed", "text packed"],
)
def test_any_other_file_is_none(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises((InvalidInput, StoreDamaged), match="cannot use"):
        read(tmp_path / "x")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read(tmp_path)


def test_one_of_a_later_release_says_so(file):
    def later(tar: tarfile.TarFile) -> None:
        pass

    with tarfile.open(remade(file, later)) as tar:
        content = tar.extractfile("manifest.json")
        assert content is not None
        manifest = json.loads(content.read()) | {"format": 99}
    other = file.with_name("later")
    with tarfile.open(other, "w:gz") as new:
        add("manifest.json", json.dumps(manifest).encode())(new)
    with pytest.raises(Conflict, match="its format is 99"):
        read(other)


def test_lines_that_are_no_rows_are_none():
    lines = io.BytesIO(
        b'{"kind":"pair","id":"k","clocks":{"at":[1,"d"]},"data":{"value":"v"}}\n'
        b"nonsense\n\n[]\n"
        b'{"kind":1,"id":"k","clocks":{"at":[1,"d"]}}\n' + b"[" * 20_000_000 + b"\n"
        b'{"kind":"pair","id":"gone","clocks":{"at":[1,"d"],"deleted":[1,"d"]},"data":null}'
    )
    found = list(rows_in(lines))
    assert [row and row.id for row in found] == ["k", None, None, None, None, "gone"]
