"""The fitted weights of a logistic regression on sentences: of signals, concepts and words.

Concepts carry what a word says over to its synonyms and to other languages. The files are written
by the programs `fit_*.py` of `tests/benchmarks`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from .concept_tables import FIRST_CODE
from .thesaurus import thesaurus


class FittedWeights(NamedTuple):
    """What each adds to the logarithm of the odds: signals and words by name, concepts by code.

    Words are stems, as of the full text. The weights of a class, and of its members, are one.
    """

    always: float
    signals: Mapping[str, float]
    concepts: Mapping[str, float]
    words: Mapping[str, float]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Those of a file. Blocking."""
        known = tomllib.loads(file.read_text(encoding="utf-8"))
        codes = {name: chr(FIRST_CODE + 2 * at) for at, name in enumerate(thesaurus().names)}
        concepts = {codes[name]: weight for name, weight in known.pop("concepts").items()}
        return cls(concepts=concepts, **known)

    # To be summed with `math.fsum`, exact in any order: those of a set differ between processes.

    def of_words(self, words: Iterable[str]) -> list[float]:
        """The weights of words, each given once."""
        return [self.words.get(word, 0.0) for word in words]

    def of_concepts(self, codes: Iterable[str]) -> list[float]:
        """The weights of concepts, each given once."""
        return [self.concepts.get(code, 0.0) for code in codes]


def concepts_in(sentence: str) -> frozenset[str]:
    """The codes of a sentence's concepts, of a class also where it names a member."""
    codes = map(ord, thesaurus().codes_of(sentence))
    return frozenset(chr(code - (code - FIRST_CODE) % 2) for code in codes)
