"""A cache of answers."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from .model import ModelQuestion

_LONGEST_ANSWER: Final = 65_536


class Cached(msgspec.Struct, frozen=True):
    """An answer: the model that gave it, and the value as JSON."""

    model: str
    value: bytes


class Cache:
    """The most recently used answers, in memory; empty after a restart.

    Args:
        most: returns the maximum number of answers.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._answers: OrderedDict[bytes, Cached] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: bytes) -> Cached | None:
        """The answer to a question, which then counts as used."""
        found = self._answers.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._answers.move_to_end(key)
        return found

    def put(self, key: bytes, answer: Cached) -> None:
        """Add an answer, and remove the least recently used ones beyond the maximum."""
        if len(answer.value) <= _LONGEST_ANSWER:
            self._answers[key] = answer
            self._answers.move_to_end(key)
        while len(self._answers) > self._most():
            self._answers.popitem(last=False)


def key_of(models: Sequence[str], question: ModelQuestion, schema: str) -> bytes:
    """The digest of a question: the models, its full text, and the form of the reply."""
    return hashlib.sha256(msgspec.json.encode((models, question, schema))).digest()
