"""The primitives of sealing: encryption, padding, keyed digests, and keys made from keys.

XChaCha20-Poly1305, X25519 and Argon2id are libsodium's; BLAKE2b is Python's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterable
from typing import Final

from nacl import bindings as sodium
from nacl.exceptions import CryptoError

KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 24
_SALT_OF_MARKED: Final = 8
_NAME_BYTES: Final = 16
# Nine of ten rows are longer; shorter ones all look alike.
_SHORTEST: Final = 96
_END: Final = b"\x80"
_ARGON2_PASSES: Final = 3
_ARGON2_BYTES: Final = 64 << 20


class Unsealable(ValueError):
    """What is sealed was changed, is for another place, or is for another key."""


def seal(key: bytes, text: bytes, place: bytes, mark: bytes = b"") -> bytes:
    """Encrypt a text; only the same key, `place` and `mark` open it.

    The result is a random nonce and the ciphertext of the padded text: its length says the length
    of the text to within 12 %. `mark` are four bytes of the text's keyed digest, if the reader has
    them: they are a part of the nonce, of which then only eight more bytes are random and written.
    """
    salt = secrets.token_bytes(_salt_bytes(mark))
    nonce = (mark + salt).ljust(_NONCE_BYTES, b"\0")
    padded = (text + _END).ljust(_padded_length(len(text) + 1), b"\0")
    return salt + sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(padded, place, nonce, key)


def unseal(key: bytes, sealed: bytes, place: bytes, mark: bytes = b"") -> bytes:
    """The text that was sealed with this key for this place, else `Unsealable`."""
    length = _salt_bytes(mark)
    nonce, ciphertext = (mark + sealed[:length]).ljust(_NONCE_BYTES, b"\0"), sealed[length:]
    try:
        padded = sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(ciphertext, place, nonce, key)
    except (CryptoError, ValueError):
        raise Unsealable("it was changed, or sealed with another key") from None
    text, end, zeros = padded.rpartition(_END)
    if not end or any(zeros):
        raise Unsealable("its padding is invalid")
    return text


def derive(key: bytes, purpose: str) -> bytes:
    """A key for one purpose, of at most 16 ASCII characters, made from another key."""
    return hashlib.blake2b(key=key, person=purpose.encode(), digest_size=KEY_BYTES).digest()


def mac(key: bytes, *parts: bytes | str) -> bytes:
    """The digest of some parts that only a holder of the key can make, 32 bytes."""
    return hashlib.blake2b(_joined(parts), key=key, digest_size=KEY_BYTES).digest()


class NameDigest:
    """The digest of names that only a holder of the key can make, 32 hexadecimal digits.

    The parts `first` are those of every name.
    """

    def __init__(self, key: bytes, *first: str) -> None:
        self._begun = hashlib.blake2b(_joined(first), key=key, digest_size=_NAME_BYTES)

    def __call__(self, *parts: str) -> str:
        """The digest of a name."""
        digest = self._begun.copy()
        digest.update(_joined(parts))
        return digest.hexdigest()


def key_from_words(words: str, salt: bytes) -> bytes:
    """A key from what a person types, by Argon2id with 64 MiB. Blocking: a quarter of a second."""
    return sodium.crypto_pwhash_alg(
        KEY_BYTES,
        words.encode(),
        salt,
        _ARGON2_PASSES,
        _ARGON2_BYTES,
        sodium.crypto_pwhash_ALG_ARGON2ID13,
    )


def public_key(private: bytes) -> bytes:
    """The public key of a private key (X25519)."""
    return sodium.crypto_scalarmult_base(private)


def wrap(public: bytes, text: bytes) -> bytes:
    """Encrypt a text for the holder of the private key; it does not say by whom."""
    return sodium.crypto_box_seal(text, public)


def unwrap(private: bytes, wrapped: bytes) -> bytes:
    """The text that was encrypted for this private key, else `Unsealable`."""
    try:
        return sodium.crypto_box_seal_open(wrapped, public_key(private), private)
    except (CryptoError, ValueError, TypeError):
        raise Unsealable("it is for another device") from None


def encode(content: bytes) -> str:
    """Bytes as a text (base64)."""
    return base64.b64encode(content).decode()


def decode(text: str) -> bytes:
    """The bytes in a text of base64, else `Unsealable`."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unsealable("it is not base64") from None
    # Several texts may stand for the same bytes; only one of them was written here.
    if encode(content) != text:
        raise Unsealable("it is not base64")
    return content


def _salt_bytes(mark: bytes) -> int:
    return _SALT_OF_MARKED if mark else _NONCE_BYTES


def _padded_length(length: int) -> int:
    """The length after PADMÉ (Nikitin et al., 2019): of its bits only the first few are free."""
    if length <= _SHORTEST:
        return _SHORTEST
    exponent = length.bit_length() - 1
    free = exponent.bit_length()
    mask = (1 << (exponent - free)) - 1
    return (length + mask) & ~mask


def _joined(parts: Iterable[bytes | str]) -> bytes:
    """Without their lengths, ("ab", "c") and ("a", "bc") would be equal."""
    contents = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join([b"%d:%b" % (len(content), content) for content in contents])
