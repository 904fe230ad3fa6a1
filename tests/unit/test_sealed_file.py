"""Sealed files: what opens them, and what is noticed."""

import functools
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.sync.sealing import FILE_MAGIC, keyring
from thermocline.sync.sealing.cipher import Unsealable
from thermocline.sync.sealing.sealed_file import UnsealedFile, sealed

KEY = keyring.new_recovery_key()


@functools.cache
def ring() -> keyring.Keyring:
    """The keys of the files; made by the first test, for the lock takes half a second."""
    bare = keyring.new_keyring()
    return keyring.Keyring(bare.root, bare.epochs, keyring.lock_for(KEY, bare.root))


def content_of(file: bytes, keys: keyring.Keyring | None = None) -> bytes:
    with io.BufferedReader(UnsealedFile(io.BytesIO(file), keys or ring())) as content:  # type: ignore[type-var]
        return content.read()


@given(st.lists(st.integers(0, 200_000), max_size=4))
def test_what_was_sealed_in_any_pieces_opens_as_it_was(sizes):
    pieces = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    file = b"".join(sealed(ring(), pieces))
    assert file.startswith(FILE_MAGIC)
    assert content_of(file) == b"".join(pieces)


def test_any_changed_moved_or_missing_piece_is_noticed():
    file = b"".join(sealed(ring(), [b"text " * 40_000]))
    start = file.index(b"\n", len(FILE_MAGIC)) + 1
    piece = 4 + 65_536 + 17
    one, two = file[start : start + piece], file[start + piece : start + 2 * piece]
    changes = [
        file[:start] + two + one + file[start + 2 * piece :],
        file[: start + piece] + one + file[start + piece :],
        file[:start] + file[start + piece :],
        file[: start + 100] + bytes([file[start + 100] ^ 1]) + file[start + 101 :],
        file.replace(b'"epoch":1', b'"epoch": 1'),
        file[: start + 3] + b"\xff" + file[start + 4 :],
    ]
    for changed in changes:
        with pytest.raises((zlib.error, EOFError)):
            content_of(changed)
    for length in (start + 2, start + piece, len(file) - 40):
        with pytest.raises(EOFError):
            content_of(file[:length])


def test_another_owner_and_what_is_no_sealed_file_are_told_apart():
    file = b"".join(sealed(ring(), [b"x"]))
    with pytest.raises(zlib.error):
        content_of(file, keyring.new_keyring())
    for other in (b"", b"PK", FILE_MAGIC, FILE_MAGIC + b"{}\n", file.replace(b'":1', b'":9', 1)):
        with pytest.raises(Unsealable):
            content_of(other)
