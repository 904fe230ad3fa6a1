"""The similarity of two texts, in any script, in time that grows with their length.

Similar texts need not mean the same: "likes tea" and "never likes tea" overlap well. See
`comparison` for their meaning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from .indexing import index_text

# Combining marks do not match `\w`: those of Latin, Cyrillic, Hebrew and Arabic,
# and the Indic and South-East Asian blocks but for their full stops.
_WORD: Final = re.compile(
    "[\\w\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0963\u0966-\u0df3\u0e00-\u0e4e\u0eb0-\u0ece\u1000-\u1049\u1780-\u17d3]+"
)
_WORD_RUN: Final = re.compile(r"\w+")
# Invisible: soft hyphen, zero-width blanks and marks, and variation selectors.
_INVISIBLE: Final = re.compile("[\u00ad\u200b\u200c\u200e\u200f\u2060\ufe00-\ufe0f\ufeff]+")
# NFKC would make 102 of 10².
_PLAIN: Final = str.maketrans(
    {
        **{char: f"^{digit}" for digit, char in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        **dict.fromkeys("‘’ʼ′", "'"),
        **dict.fromkeys("“”„«»″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)
# Punctuation that ends a statement without changing its meaning, unlike a question mark.
_FULL_STOPS: Final = " .!,;:。、।॥۔،؛"
_CASE_DECIDES: Final = re.compile(r"[0-9/\x00-\x1f\x7f]")
_REFERENCES: Final = ("/", "~/", "./", "../")


def fold(text: str) -> str:
    """`text` in NFKC and lower case, on one line; quotes, dashes and invisible marks made equal.

    Case is kept where it matters: in URLs and paths, and in words with a digit, which may be codes
    or passwords.
    """
    if text.isascii():
        if not _CASE_DECIDES.search(text):
            return " ".join(text.split()).lower()
        return " ".join(map(_fold_case, text.split()))
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text.translate(_PLAIN)))
    chunks = (_fold_case(chunk) for chunk in _INVISIBLE.sub("", plain.translate(_PLAIN)).split())
    return unicodedata.normalize("NFKC", " ".join(chunks))


@lru_cache(256)
def exact_key(text: str) -> str:
    """A key that is equal for texts that differ only in case, blanks and closing full stops.

    Text that consists of punctuation is kept, so that "!" and "..." differ.
    """
    folded = fold(text)
    return folded.rstrip(_FULL_STOPS) or folded


def text_digest(text: str) -> int:
    """48 bits that are equal for texts with the same `exact_key`, and seldom for others."""
    return int.from_bytes(blake2b(exact_key(text).encode(), digest_size=6).digest())


def words(text: str) -> list[str]:
    """The folded words of `text` in order; unspaced scripts as overlapping pairs."""
    return _WORD.findall(index_text(fold(text)))


def jaccard(first: AbstractSet[str], second: AbstractSet[str]) -> float:
    """The size of the intersection by that of the union; 0 where both are empty."""
    both = len(first & second)
    return both / (len(first) + len(second) - both) if both else 0.0


def _fold_case(chunk: str) -> str:
    if chunk.isascii() and chunk.isalpha():
        return chunk.lower()
    if "://" in chunk or chunk.startswith(_REFERENCES):
        return chunk
    return _WORD_RUN.sub(_fold_word, chunk)


def _fold_word(match: re.Match[str]) -> str:
    word = match.group()
    if any(char.isdigit() for char in word):
        return word
    return unicodedata.normalize("NFD", word).casefold()
