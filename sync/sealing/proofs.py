"""Proofs of what a replica held: by them an empty device notices rows that are missing or old.

Once a day each device writes, sealed, up to where it has received everything, and a fingerprint of
the rows that live there. Later rows explain the parts of it that they are in; in all others the
fingerprint of what the remote shows must be the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

# By the name of a row, which is evenly distributed.
_PARTS: Final = 64
_BYTES: Final = 8
# Deletions are pruned after 90 days, and then explain nothing any more.
MOST_SECONDS: Final = 60 * 86_400


class Proof(msgspec.Struct, frozen=True):
    """What a device had received.

    Attributes:
        at: when, in seconds since the epoch.
        seq: up to where.
        parts: the fingerprints of all living rows, by part.
    """

    at: int
    seq: int
    parts: bytes


class ListedRow(msgspec.Struct, frozen=True, array_like=True):
    """A row as a remote lists it: its name, version and place there, and whether it was deleted."""

    id: str
    version: str
    seq: int
    deleted: bool


def fingerprint(rows: Iterable[tuple[str, str]]) -> bytes:
    """The fingerprint of rows by their names and versions on the remote, in any order."""
    parts = [0] * _PARTS
    for key, version in rows:
        digest = hashlib.blake2b(f"{key} {version}".encode(), digest_size=_BYTES).digest()
        parts[_part(key)] ^= int.from_bytes(digest, "big")
    return b"".join(part.to_bytes(_BYTES, "big") for part in parts)


def differing(proof: Proof, rows: Iterable[ListedRow]) -> int:
    """The percentage of the rows of a proof in whose midst something is missing or old."""
    older: list[tuple[str, str]] = []
    explained: set[int] = set()
    for row in rows:
        if row.seq > proof.seq:
            explained.add(_part(row.id))
        elif not row.deleted:
            older.append((row.id, row.version))
    there, proven = fingerprint(older), proof.parts
    wrong = [
        part
        for part in range(_PARTS)
        if part not in explained
        and there[part * _BYTES : (part + 1) * _BYTES]
        != proven[part * _BYTES : (part + 1) * _BYTES]
    ]
    return -(-100 * len(wrong) // _PARTS)


def _part(key: str) -> int:
    try:
        return int(key[:8], 16) % _PARTS
    except ValueError:
        return 0
