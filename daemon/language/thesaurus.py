"""Concepts: words that mean the same, in several languages.

A line of a file in `concepts/` is a concept: its name, then its words by language.

    dog | en: dog, puppy | de: hund, welpe | es: perro | fr: chien | zh: 狗 | nl: hond
    pet | en: pet > dog, cat, rabbit | de: haustier > hund, katze, kaninchen

Behind `>` stand the members of a class. A question for a class finds its members, one for a member
finds the class, and members do not find each other.
A member that has one name everywhere (Netflix) stands with English, and is found in all languages.
So does what a long word must end with that is known by nothing else: `*pril` is a medicine.

Each concept has a code, one character of Unicode's private use area, and its members have another.
The codes of a text are terms of the full-text index; they are valid for one `version` of the files.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import msgspec

from ..memory.han import simplified
from ..memory.indexing import fold, index_words
from ..memory.stemming import base_of
from .concept_tables import (
    ENGLISH,
    FIRST_CODE,
    FORMAT,
    joined,
    mark_of,
    save,
    saved,
    tables_of,
)
from .vocabulary import grammar, grammar_by_language, not_topics, word_endings, words_of
from .vocabulary import words as listed

FOLDER: Final = Path(__file__).with_name("concepts")
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")
_HAN_LANGUAGE: Final = "zh"
_SPACED: Final = ("en", "de", "es", "fr", "nl")
_LONGEST_HAN: Final = 6
_LONGEST_PHRASE: Final = 4
# What a question for a member adds to a text about its class.
_TO_CLASS: Final = 0.5
# Languages that join nouns, and the letters that may join them.
_JOINING: Final = frozenset({"de", "nl"})
_JOINTS: Final = ("", "s", "es", "n", "en", "er", "e")
_CLAUSE_END: Final = re.compile(r"[.,;:!?()](?=\s|$)|\n")
_SHORTEST_COMPOUND: Final = 7
_LONGEST_WORD: Final = 48
_SHORTEST_HEAD: Final = 3
_SHORTEST_TAIL: Final = 4
_LEAST_BEFORE_ENDING: Final = 3
# "ue" for "ü", which is folded to "u".
_TYPED_UMLAUT: Final = re.compile("([aou])e")
_DOUBLED: Final = re.compile(r"([bdfgklmnprt])\1$")


class Meaning(msgspec.Struct, frozen=True):
    """Consecutive words of a text, and the codes of the concepts that they mean."""

    words: tuple[str, ...]
    codes: str


class Thesaurus:
    """The concepts of some files.

    Args:
        files: which.
        cache: the folder of that file; it need not be writable.

    Attributes:
        version: the checksum of the files.
    """

    def __init__(self, files: Iterable[Path], cache: Path | None = None) -> None:
        contents = {file.stem: file.read_bytes() for file in sorted(files)}
        self.version = 0
        for content in contents.values():
            self.version = zlib.crc32(content, self.version)
        file = None if cache is None else cache / f"concepts-{FORMAT}-{self.version:08x}.bin"
        compiled = None if file is None else saved(file)
        if compiled is None:
            compiled = tables_of(contents)
            if file is not None:
                save(file, compiled)
        self._compiled = compiled
        self._tables = compiled.tables
        self._codes = lru_cache(4_096)(self._codes_of_word)
        self._seconds = lru_cache(4_096)(self._seconds_of)

    @property
    def names(self) -> list[str]:
        """The concepts' names, in the order of their codes."""
        return self._compiled.names.decode().split("\n")

    def has(self, word: str, language: str) -> bool:
        """Whether a word means a concept in a language, by itself and as it is."""
        return language in self._tables and bool(self._tables[language].get(word))

    def sought(self, codes: str) -> dict[str, float]:
        """The codes that answer a question for `codes`, with their worth as a share of the word's.

        A class is answered by itself and by its members, a member by its class. The more concepts
        a word has, the less each of them is worth.
        """
        own = sum(not ord(code) & 1 for code in codes) or len(codes)
        share = own**-0.5 if codes else 0.0
        worth: dict[str, float] = {}
        for code in codes:
            name, members = chr(ord(code) & ~1), chr(ord(code) | 1)
            if code == members:
                worth[name] = max(worth.get(name, 0.0), share * _TO_CLASS)
                continue
            worth[name] = share
            # Few concepts have members, and each code is looked up in every index.
            if members in self._compiled.members:
                worth[members] = share
        return worth

    def codes_of(self, text: str) -> str:
        """The codes of all concepts in a text, each once: what the index holds of it."""
        return "".join(
            dict.fromkeys(code for meaning in self.meanings(text) for code in meaning.codes)
        )

    def meanings(self, text: str) -> Iterator[Meaning]:
        """The words and phrases of a text that mean a concept.

        The language of the text decides between the meanings of a word that exists in several.
        """
        is_plain = text.isascii()
        spaced = text if is_plain else _HAN.sub(" ", text)
        words = index_words(spaced) if is_plain else [*map(fold, index_words(spaced))]
        language = language_of(frozenset(words))
        words = words if is_plain else [word.replace("ß", "ss") for word in words]
        joined_verbs = self._separated(spaced, words, language) if language in _JOINING else {}
        for at, word in enumerate(words):
            if at in joined_verbs:
                yield Meaning((word,), joined_verbs[at])
                continue
            if word == "won" and words[at + 1 : at + 2] == ["t"]:
                # "I won't" tells of no victory.
                continue
            if codes := self._codes(word, language):
                yield Meaning((word,), codes)
            if at + 1 < len(words) and (seconds := self._seconds(word)):
                for form, mark in _marked_forms(words[at + 1]):
                    for base, marks in seconds:
                        if mark in marks:
                            behind = words[at : at + _LONGEST_PHRASE]
                            yield from self._phrases_from(f"{base} {form}", behind)
        for run in () if is_plain else _HAN.findall(text):
            yield from self._meanings_of_run(simplified(run))

    def _separated(self, text: str, words: Sequence[str], language: str) -> dict[int, str]:
        """The codes of verbs whose first part ends their clause ("holt … ab"), by their places."""
        firsts, joining = words_of(language, "separable"), words_of(language, "joining")
        codes: dict[int, str] = {}
        if firsts.isdisjoint(words):
            return codes
        begin = 0
        for clause in _CLAUSE_END.split(text):
            end = min(begin + len(index_words(clause)), len(words))
            for last in range(begin + 1, end):
                if words[last] not in firsts or (last + 1 < end and words[last + 1] not in joining):
                    continue
                for at in range(begin, last):
                    verb = words[at]
                    if verb not in grammar(language) and (
                        own := self._listed(words[last] + verb, language)
                    ):
                        codes[at] = self._with_classes(own)
                        break
            begin = end
        return codes

    def _meanings_of_run(self, run: str) -> Iterator[Meaning]:
        """The longest words first, from the left: there are no blanks between them."""
        table, at = self._tables.get(_HAN_LANGUAGE), 0
        while table is not None and at < len(run):
            for length in range(min(_LONGEST_HAN, len(run) - at), 0, -1):
                if codes := table.get(run[at : at + length]):
                    yield Meaning((run[at : at + length],), self._with_classes(codes))
                    at += length - 1
                    break
            at += 1

    def name_of(self, code: str) -> str:
        """The name of a concept."""
        return self.names[(ord(code) - FIRST_CODE) // 2]

    def field_of(self, code: str) -> str:
        """The field of life that a concept belongs to: the name of its file."""
        return next(field for end, field in self._compiled.fields if ord(code) < end)

    def _seconds_of(self, word: str) -> Sequence[tuple[str, str]]:
        """The bases of a word that begin phrases, each with the marks of their second words."""
        bases = dict.fromkeys(base for name in _SPACED for base in _bases(word, name))
        seconds = ((base, self._compiled.seconds.get(base)) for base in bases)
        return tuple((base, marks) for base, marks in seconds if marks)

    def _phrases_from(self, opening: str, words: Sequence[str]) -> Iterator[Meaning]:
        """The phrases of an opening that some words begin with; each word may have an ending."""
        if codes := self._compiled.phrases.get(opening):
            yield Meaning(tuple(words[:2]), codes)
        phrase = opening
        for length in range(3, len(words) + 1):
            forms = (f"{phrase} {form}" for form in _forms(words[length - 1]))
            if codes := next(filter(None, map(self._compiled.phrases.get, forms)), ""):
                yield Meaning(tuple(words[:length]), codes)
            phrase = f"{phrase} {words[length - 1]}"

    def _codes_of_word(self, word: str, language: str) -> str:
        """The codes of a word and of the classes that its concepts are members of."""
        if len(word) > _LONGEST_WORD:
            return ""
        return self._with_classes(self._own_codes(word, language))

    def _with_classes(self, codes: str) -> str:
        return joined(codes, "".join(self._compiled.classes.get(code) for code in codes))

    def _own_codes(self, word: str, language: str) -> str:
        if language in self._tables and (codes := self._in_language(word, language)):
            return codes
        if language and (word in grammar(language) or word in not_topics()):
            return ""
        if language:
            # What has one name everywhere stands with English. Words of other languages are false
            # friends more often than not: "area", "half", "worst".
            is_english = language == ENGLISH or word in grammar(ENGLISH)
            return ("" if is_english else self._tables[ENGLISH].get(word)) or self._by_ending(word)
        listed_in = (self._listed(word, name) for name in self._tables)
        result = joined("", "".join(listed_in))
        if not result:
            # Of no clear language, it is a compound only if it is nothing else.
            joining = sorted(_JOINING & self._tables.keys())
            result = joined("", "".join(self._in_language(word, name) for name in joining))
        return result or self._by_ending(word)

    def _by_ending(self, word: str) -> str:
        """The codes by the longest ending that a word has, with three letters before it or more."""
        endings = self._compiled.endings
        begin = _LEAST_BEFORE_ENDING
        return next(
            (endings[word[at:]] for at in range(begin, len(word)) if word[at:] in endings), ""
        )

    def _in_language(self, word: str, language: str) -> str:
        codes = self._listed(word, language)
        is_joined = language in _JOINING and len(word) >= _SHORTEST_COMPOUND
        is_joined = is_joined and word not in grammar(language)
        # A compound that is listed as a member alone means its parts too.
        if is_joined and all(ord(code) & 1 for code in codes):
            return joined(codes, self._of_parts(word, language))
        return codes

    def _listed(self, word: str, language: str) -> str:
        if word in grammar(language):
            return ""
        return next(filter(None, map(self._tables[language].get, _bases(word, language))), "")

    def _of_parts(self, word: str, language: str) -> str:
        """The codes of the parts of a compound; its last part must be known."""
        table = self._tables[language]
        for at in range(_SHORTEST_HEAD, len(word) - _SHORTEST_TAIL + 1):
            bases = (base for base in _bases(word[at:], language) if len(base) >= _SHORTEST_TAIL)
            tail = next(filter(None, map(table.get, bases)), "")
            if not tail:
                continue
            start = word[:at]
            heads = (start.removesuffix(joint) for joint in _JOINTS if start.endswith(joint))
            known = (table.get(head) for head in heads if len(head) >= _SHORTEST_HEAD)
            head = next(filter(None, known), "")
            if head or (at >= _SHORTEST_TAIL and word[at:] not in listed("endings_of_others")):
                return joined(head, tail)
        return ""


def thesaurus() -> Thesaurus:
    """The concepts of this release; they are read once, at the first call (about 40 ms)."""
    # Threads that ask for them at once would each read them.
    with _reading:
        return _read()


@cache
def _read() -> Thesaurus:
    return Thesaurus(FOLDER.glob("*.txt"), FOLDER.with_name("__pycache__"))


_reading: Final = threading.Lock()


def language_of_text(text: str) -> str:
    """`language_of` the words of a text."""
    return language_of(frozenset(index_words(text.lower())))


@lru_cache(64)
def language_of(words: frozenset[str]) -> str:
    """The language to which most words of grammar in a text belong; "" if that is not clear."""
    counts = sorted(
        ((len(words & of_it), name) for name, of_it in grammar_by_language().items()),
        reverse=True,
    )
    (most, language), (second, _) = counts[:2]
    if most == second:
        return "de" if any("ß" in word for word in words) else ""
    if most == 1 and language != "en":
        # "car" is no French, "son" no Spanish and "Ben" no Dutch if nothing else is.
        (word,) = words & grammar(language)
        is_other = word in listed("given_names") or thesaurus().has(word, "en")
        return "" if is_other else language
    return language


def _bases(word: str, language: str) -> Iterator[str]:
    """The word, and what it may be an inflected form of."""
    yield word
    if word in listed("no_forms"):
        return
    if language == ENGLISH and (base := base_of(word)) != word:
        yield base
    for ending, replacement in word_endings(language).get(word[-1:], ()):
        if word.endswith(ending) and len(word) - len(ending) > 1:
            base = word[: -len(ending)]
            yield base + replacement
            if not replacement and _DOUBLED.search(base):
                yield base[:-1]
    if language == "de" and _TYPED_UMLAUT.search(word):
        yield _TYPED_UMLAUT.sub(r"\1", word)


def _forms(word: str) -> tuple[str, ...]:
    """A word without and with the last letters that may be its ending; three are left."""
    return word, *(word[:end] for end in (-1, -2) if len(word) + end > 2)


@lru_cache(4_096)
def _marked_forms(second: str) -> Sequence[tuple[str, str]]:
    """The forms of the second word of a phrase, with their marks."""
    return tuple((form, mark_of(form)) for form in _forms(second))
