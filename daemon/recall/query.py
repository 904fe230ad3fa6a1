"""Reading a query: which words it asks for. Whatever it contains, it is data."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ..memory.indexing import index_text

# Words that say how a question is built, not what it is about.
STOP_WORDS: Final = frozenset(
    {
        "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at",
        "be", "because", "been", "before", "being", "but", "by", "can", "could", "did",
        "do", "does", "doing", "done", "for", "from", "get", "give", "go", "had", "has",
        "have", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in",
        "into", "is", "it", "its", "just", "let", "me", "more", "my", "no", "not", "of",
        "off", "on", "or", "our", "out", "over", "please", "s", "she", "should", "so",
        "some", "t", "tell", "than", "that", "the", "their", "them", "then", "there",
        "these", "they", "this", "those", "to", "too", "under", "until", "up", "us", "very",
        "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom",
        "whose", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip
# More words than this make a query no clearer, only slower.
MOST_WORDS: Final = 48

_WORD: Final = re.compile(r"\w+")


class Query(msgspec.Struct, frozen=True):
    """The words that a query asks for, each once, as the index would hold them unstemmed."""

    words: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not self.words


def parse(text: str) -> Query:
    """The words of `text`; those that merely build the sentence go, if others remain."""
    # Not `casefold`: it makes "ß" into "ss", and the index keeps it.
    found = dict.fromkeys(word.lower() for word in _WORD.findall(index_text(text)))
    telling = [word for word in found if word not in STOP_WORDS]
    return Query(tuple(telling or found)[:MOST_WORDS])


def match_expression(words: tuple[str, ...]) -> str:
    """The full-text expression for any of `words`.

    Every word is quoted, so that none can be read as an operator. A lone character of a script
    that is indexed in pairs stands for all pairs that begin with it.
    """
    return " OR ".join(f'"{word}"*' if _is_lone(word) else f'"{word}"' for word in words)


def _is_lone(word: str) -> bool:
    return len(word) == 1 and ord(word) > 0x0E00
