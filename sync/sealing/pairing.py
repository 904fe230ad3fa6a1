"""Pairing: a device that has the keys gives them to a new one, through the remote.

A code of 60 bits, which a person carries from one screen to the other, encrypts and authenticates
the three messages. Argon2id makes guessing it from what the remote sees hopeless; that both screens
show the same four words shows that nobody stands between.

    offer    the inviting device's public key and name
    request  the new device's public key, id and name
    answer   the keyring, encrypted for the new device's public key
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ..failures import SchemaMissing
from ..ports import Remote, SqlStatement, rows_of, whole
from .cipher import (
    SALT_BYTES,
    Unsealable,
    decode,
    derive,
    encode,
    key_from_words,
    mac,
    seal,
    unseal,
    unwrap,
    wrap,
)
from .keyring import Keyring, decoded_keyring, grouped, normal, random_digits

CODE_DIGITS: Final = 12
MOST_TRIES: Final = 5
SECONDS: Final = 600
# Each costs a quarter of a second; there is hardly ever more than one.
_MOST_INVITATIONS: Final = 4
_WORDS: Final = Path(__file__).with_name("words.txt")


class Guest(msgspec.Struct, frozen=True, array_like=True):
    """A device in a message: its public key, its id, and its name."""

    public: bytes
    device: str
    name: str


class Handshake:
    """One pairing, on either side. Making it is blocking: a quarter of a second.

    `code` is as a person typed it, else `Unsealable`; `salt` is in the offer, None: this is the
    inviting device.
    """

    def __init__(self, number: str, code: str, salt: bytes | None = None) -> None:
        digits = normal(code)
        if len(digits) != CODE_DIGITS:
            raise Unsealable(f"a code has {CODE_DIGITS} letters and digits, not {len(digits)}")
        self.number = number
        self.salt = salt or secrets.token_bytes(SALT_BYTES)
        self._secret = key_from_words(digits, self.salt)

    def offer(self, host: Guest) -> str:
        return encode(self.salt + self._seal("offer", msgspec.json.encode(host)))

    def read_offer(self, offer: str) -> Guest:
        """The inviting device; `Unsealable` if the code is another one."""
        return _guest(self._unseal("offer", decode(offer)[SALT_BYTES:]))

    def request(self, guest: Guest) -> str:
        return encode(self._seal("request", msgspec.json.encode(guest)))

    def read_request(self, request: str) -> Guest:
        """The new device; `Unsealable` if who wrote it did not have the code."""
        return _guest(self._unseal("request", decode(request)))

    def answer(self, guest: Guest, ring: Keyring) -> str:
        return encode(self._seal("answer", wrap(guest.public, ring.encoded())))

    def read_answer(self, answer: str, private: bytes) -> Keyring:
        """The owner's keys; `Unsealable` if who wrote it did not have the code."""
        return decoded_keyring(unwrap(private, self._unseal("answer", decode(answer))))

    def words(self, host: Guest, guest: Guest) -> tuple[str, ...]:
        """Four words, the same on both screens if both devices saw the same keys."""
        digest = mac(derive(self._secret, "words"), host.public, guest.public, guest.device)
        words = _WORDS.read_text("ascii").split()
        return tuple(words[byte] for byte in digest[:4])

    def _seal(self, message: str, text: bytes) -> bytes:
        return seal(derive(self._secret, message), text, self.number.encode())

    def _unseal(self, message: str, sealed: bytes) -> bytes:
        return unseal(derive(self._secret, message), sealed, self.number.encode())


def new_code() -> str:
    """A new code: three groups of four."""
    return grouped(random_digits(CODE_DIGITS))


def salt_of(offer: str) -> bytes:
    """The salt in an offer, else `Unsealable`."""
    salt = decode(offer)[:SALT_BYTES]
    if len(salt) != SALT_BYTES:
        raise Unsealable("it is not an offer")
    return salt


def _guest(content: bytes) -> Guest:
    try:
        return msgspec.json.decode(content, type=Guest)
    except (msgspec.MsgspecError, ValueError):
        raise Unsealable("it is not a device") from None


# The messages on the remote

TABLE: Final = """
    CREATE TABLE IF NOT EXISTS replica_invitations (
        number TEXT PRIMARY KEY, made_at INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0,
        offer TEXT NOT NULL, request TEXT, answer TEXT
    ) STRICT, WITHOUT ROWID
"""


class Invitation(msgspec.Struct, frozen=True):
    """An invitation on the remote; anybody with its token may have written it."""

    number: str
    made_at: int
    tries: int  # how often somebody typed another code
    offer: str
    request: str | None
    answer: str | None


async def place(remote: Remote, number: str, offer: str, now: float) -> None:
    """Put an invitation there, and remove those that are over."""
    await remote.batch(
        [
            SqlStatement(TABLE),
            SqlStatement(
                "DELETE FROM replica_invitations WHERE made_at < ?", (int(now) - SECONDS,)
            ),
            SqlStatement(
                "INSERT INTO replica_invitations (number, made_at, offer) VALUES (?, ?, ?)",
                (number, int(now), offer),
            ),
        ]
    )


async def read(remote: Remote, number: str | None = None) -> list[Invitation]:
    """The invitations, the latest first, or one of them."""
    sql = "SELECT number, made_at, tries, offer, request, answer FROM replica_invitations"
    try:
        rows = await rows_of(
            remote,
            f"{sql} WHERE ?1 IS NULL OR number = ?1 ORDER BY made_at DESC LIMIT ?2",
            number,
            _MOST_INVITATIONS,
        )
    except SchemaMissing:
        return []
    return [
        Invitation(
            *(str(name), whole(at), whole(tries), str(offer)),
            *(None if text is None else str(text) for text in rest),
        )
        for name, at, tries, offer, *rest in rows
    ]


async def write(remote: Remote, number: str, **message: str | None) -> bool:
    """Put a message there, if it has no message yet, or remove it; False: too late."""
    [(column, text)] = message.items()
    assert column in ("request", "answer")
    sql = f"UPDATE replica_invitations SET {column} = ?2 WHERE number = ?1"
    if text is not None:
        sql += f" AND {column} IS NULL"
    [result] = await remote.batch([SqlStatement(sql, (number, text))])
    return result.affected == 1


async def count_try(remote: Remote, numbers: Sequence[str]) -> None:
    """Count a wrong code for these invitations."""
    sql = "UPDATE replica_invitations SET tries = tries + 1 WHERE number = ?"
    await remote.batch([SqlStatement(sql, (number,)) for number in numbers])


async def end(remote: Remote, number: str) -> None:
    """Remove an invitation."""
    sql = "DELETE FROM replica_invitations WHERE number = ?"
    await remote.batch([SqlStatement(sql, (number,))])
