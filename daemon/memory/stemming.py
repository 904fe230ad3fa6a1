"""Terms: the words of a text as ranking compares them, in base form and stemmed.

The stemmer is Porter's (1980), like that of the full-text index; other scripts are unchanged.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from .indexing import fold, index_words
from .irregular import base_of

_STEP_2: Final = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3: Final = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4: Final = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
        "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip


def terms_of(text: str) -> list[str]:
    """The terms of `text`, in order."""
    return [_term(word) for word in index_words(text.replace("_", " "))]


@lru_cache(2_048)
def word_terms(word: str) -> tuple[str, ...]:
    """The terms of a word of a question: one, unless it contains a `_`."""
    return tuple(terms_of(word))


@lru_cache(1_024)
def label_terms(path: str) -> frozenset[str]:
    """The terms of a category's path or description, or of a name."""
    return frozenset(terms_of(path))


@lru_cache(8_192)
def _term(word: str) -> str:
    folded = fold(word)
    return stem(base_of(folded)) if folded.isascii() and folded.isalpha() else folded


def stem(word: str) -> str:
    """The stem of an English word in lower case."""
    if len(word) < 3:
        return word
    word = _step_1(word)
    word = _replace(word, _STEP_2, 0)
    word = _replace(word, _STEP_3, 0)
    word = _replace(word, _STEP_4, 1)
    if word.endswith("e"):
        shorter = word[:-1]
        if _measure(shorter) > 1 or (_measure(shorter) == 1 and not _ends_short(shorter)):
            word = shorter
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _step_1(word: str) -> str:
    """Removes plural, past and progressive endings, and replaces a final `y` by `i`."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        word = word[:-1] if _measure(word[:-3]) else word
    else:
        for ending in ("ed", "ing"):
            rest = word.removesuffix(ending)
            if rest != word and "V" in _kinds(rest):
                word = _repaired(rest)
                break
    return word[:-1] + "i" if word.endswith("y") and "V" in _kinds(word[:-1]) else word


def _repaired(rest: str) -> str:
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-1:] == rest[-2:-1] and _kinds(rest).endswith("C") and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replace(word: str, endings: dict[str, str], least: int) -> str:
    """Replace the longest of the endings if the measure of the rest is above `least`."""
    for length in range(min(7, len(word)), 1, -1):
        ending = word[-length:]
        if ending in endings:
            rest = word[:-length]
            kept = _measure(rest) <= least or (ending == "ion" and rest[-1:] not in {"s", "t"})
            return word if kept else rest + endings[ending]
    return word


def _kinds(word: str) -> str:
    """Vowels and consonants as V and C; `y` is a vowel after a consonant."""
    kinds = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and kinds.endswith("C"))
        kinds += "V" if vowel else "C"
    return kinds


def _measure(word: str) -> int:
    """The number of consonants after a vowel."""
    return _kinds(word).count("VC")


def _ends_short(word: str) -> bool:
    return _kinds(word).endswith("CVC") and word[-1] not in "wxy"
