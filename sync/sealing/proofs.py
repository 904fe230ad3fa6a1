"""Proofs of what a replica held: by them an empty device notices rows that are missing or old.

Once a day each device writes, sealed, up to where it has received everything, and a fingerprint of
the rows that live there. Later rows explain the parts of it that they are in; in all others the
fingerprint of what the remote shows must be the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ..failures import SchemaMissing
from ..ports import rows_of, whole

if TYPE_CHECKING:
    from ..replica import Device, Replica

# By the name of a row, which is evenly distributed.
_PARTS: Final = 64
_BYTES: Final = 8
# Of the name: they say the part.
_DIGITS: Final = slice(6, 8)
_NEWEST: Final = 2000
# Deletions are pruned after 90 days, and then explain nothing any more.
MOST_SECONDS: Final = 60 * 86_400


class Proof(msgspec.Struct, frozen=True):
    """What a device had received."""

    at: int  # when, in seconds since the epoch
    seq: int  # up to where
    parts: bytes  # the fingerprints of all living rows, by part


async def prove(replica: Replica, device: Device, proof: Proof) -> None:
    """Record what this device has received, for devices that will have nothing."""
    text = replica.form.conceal(f"proof of {device.id}", msgspec.json.encode(proof).decode())
    sql = "INSERT OR REPLACE INTO replica_proofs (agent_id, device_id, proof) VALUES (?, ?, ?)"
    # The table is missing where a device with another release has sealed the replica.
    with suppress(SchemaMissing):
        await rows_of(replica.remote, sql, replica.form.agent, device.id, text)


async def read(replica: Replica) -> dict[str, Proof]:
    """What each device in use had received, by its name; what cannot be read is left out."""
    form = replica.form
    sql = (
        "SELECT p.device_id, p.proof, d.name FROM replica_proofs AS p"
        " JOIN replica_devices AS d ON d.agent_id = p.agent_id"
        " AND d.device_id = p.device_id AND d.retired_at IS NULL WHERE p.agent_id = ?1"
    )
    try:
        rows = await rows_of(replica.remote, sql, form.agent)
    except SchemaMissing:
        return {}
    result = {}
    for device, text, name in rows:
        with suppress(msgspec.MsgspecError):
            content = form.reveal(f"proof of {device}", str(text))
            shown = form.reveal(str(device), str(name)) or device
            result[f"{shown} ({device})"] = msgspec.json.decode(content, type=Proof)
    return result


def fingerprint(rows: Iterable[tuple[str, str]]) -> bytes:
    """The fingerprint of rows by their names and versions on the remote, in any order."""
    parts = [0] * _PARTS
    for key, version in rows:
        digest = hashlib.blake2b(f"{key} {version}".encode(), digest_size=_BYTES).digest()
        parts[_part_of(key[_DIGITS])] ^= int.from_bytes(digest, "big")
    return b"".join(part.to_bytes(_BYTES, "big") for part in parts)


def joined(first: bytes, second: bytes) -> bytes:
    """The fingerprint of the rows that are in one of two, and not in both."""
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


async def newest(replica: Replica, after: int) -> dict[int, int]:
    """The last place in the order after `after` in each part that has any.

    Of more rows than `_NEWEST` only these are read: a part is in none of them once in 10¹² times.
    """
    sql = (
        f"SELECT substr(id, {_DIGITS.start + 1}, {_DIGITS.stop - _DIGITS.start}), seq FROM rows"
        f" WHERE agent_id = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT {_NEWEST}"
    )
    rows = await rows_of(replica.remote, sql, replica.form.agent, after)
    return {_part_of(str(digits)): whole(seq) for digits, seq in reversed(rows)}


def differing(proof: Proof, shown: tuple[int, bytes], newest: Mapping[int, int]) -> int:
    """The percentage of the rows of a proof in whose midst something is missing or old.

    `shown` is up to where the replica was received, and the fingerprint of what lives there.
    """
    until, there = shown
    wrong = [
        part
        for part in range(_PARTS)
        if newest.get(part, 0) <= min(proof.seq, until)
        and there[part * _BYTES : (part + 1) * _BYTES]
        != proof.parts[part * _BYTES : (part + 1) * _BYTES]
    ]
    return -(-100 * len(wrong) // _PARTS)


def _part_of(digits: str) -> int:
    try:
        return int(digits, 16) % _PARTS
    except ValueError:
        return 0
