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

import itertools
import os
import re
import struct
import threading
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import msgspec

from ..memory.han import simplified
from ..memory.indexing import fold, index_words
from ..memory.stemming import base_of
from .vocabulary import grammar, grammar_by_language, not_topics, word_endings
from .vocabulary import words as listed

FOLDER: Final = Path(__file__).with_name("concepts")
# The codes below are those of dates.
FIRST_CODE: Final = 0xE200
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
# A concept is a member of a class if words of at least this many languages are both.
_LINKING: Final = 2
_ENGLISH: Final = "en"
_LANGUAGES: Final = ("en", "de", "es", "fr", "nl", "zh")
_HAN_LANGUAGE: Final = "zh"
_SPACED: Final = ("en", "de", "es", "fr", "nl")
_LONGEST_HAN: Final = 6
_LONGEST_PHRASE: Final = 4
# What a question for a member adds to a text about its class.
_TO_CLASS: Final = 0.5
# Languages that join nouns, and the letters that may join them.
_JOINING: Final = frozenset({"de", "nl"})
_JOINTS: Final = ("", "s", "es", "n", "en", "er", "e")
_SHORTEST_COMPOUND: Final = 7
_LONGEST_WORD: Final = 48
_SHORTEST_HEAD: Final = 3
_SHORTEST_TAIL: Final = 4
# The mean number of words of a table that are searched for a word.
_IN_BUCKET: Final = 12
# Where a bucket begins, and where the next.
_START: Final = struct.Struct("I")
_BOUNDS: Final = struct.Struct("II")
# The checksum of a word, and a byte of its first letter and its length.
_DIGEST: Final = struct.Struct("=IB")
# The digest of a word, and the place of its codes.
_ENTRY: Final = struct.Struct("=5s3s")
# Endings of what is listed as a member in another form than as a concept: "pancakes", "Winzerin".
_OF_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("s", "es"), "de": ("n", "en", "e", "in"), "es": ("s", "es"), "fr": ("s", "x"),
    "nl": ("s", "en"), "zh": (),
}  # fmt: skip
_SHORTEST_BASE: Final = 4
_ANY: Final = "*"
_LEAST_BEFORE_ENDING: Final = 3
# What marks a second word, within two bytes of UTF-8.
_FIRST_MARK: Final = 0x80
_MARKS: Final = 0x780
# Raised whenever `_Compiled` or what it holds changes.
_FORMAT: Final = 7
# "ue" for "ü", which is folded to "u".
_TYPED_UMLAUT: Final = re.compile("([aou])e")
_DOUBLED: Final = re.compile(r"([bdfgklmnprt])\1$")


class Meaning(msgspec.Struct, frozen=True):
    """Consecutive words of a text, and the codes of the concepts that they mean."""

    words: tuple[str, ...]
    codes: str


class _Table(msgspec.Struct, frozen=True, array_like=True):
    """An immutable mapping of words to codes, in a twentieth of the memory of a dictionary.

    It has a digest in the place of each word: a word that is not in it is taken for another once
    in some million look-ups.

    Attributes:
        starts: the number of the first entry of each bucket, and of all.
        entries: the digest of each word, and where its codes are.
        codes: the different codes, a line each.
    """

    starts: bytes
    entries: bytes
    codes: str

    def get(self, word: str) -> str:
        """The codes of a word, or ""."""
        digest, bucket = _digest(word, len(self.starts) // _START.size - 1)
        start, end = _BOUNDS.unpack_from(self.starts, _START.size * bucket)
        at = self.entries.find(digest, _ENTRY.size * start, _ENTRY.size * end)
        while at >= 0 and at % _ENTRY.size:
            # It is a part of two others.
            at = self.entries.find(digest, at + 1, _ENTRY.size * end)
        if at < 0:
            return ""
        place = int.from_bytes(_ENTRY.unpack_from(self.entries, at)[1])
        return self.codes[place : self.codes.index("\n", place)]


def _digest(word: str, buckets: int) -> tuple[bytes, int]:
    """What stands for a word in a table, and the bucket that it is in."""
    key = word.encode(errors="replace")
    checksum = zlib.crc32(key)
    mark = (len(key) + 32 * sum(key[:1])) & 255
    return _DIGEST.pack(checksum, mark), checksum % buckets


def _table(entries: Mapping[str, str]) -> _Table:
    places: dict[str, int] = {}
    end = 0
    for codes in entries.values():
        if codes not in places:
            places[codes] = end
            end += len(codes) + 1
    buckets: list[list[bytes]] = [[] for _ in range(len(entries) // _IN_BUCKET + 1)]
    for word, codes in entries.items():
        digest, bucket = _digest(word, len(buckets))
        buckets[bucket].append(_ENTRY.pack(digest, places[codes].to_bytes(3)))
    starts = array("I", itertools.accumulate(map(len, buckets), initial=0))
    lines = "".join(f"{codes}\n" for codes in places)
    return _Table(starts.tobytes(), b"".join(itertools.chain.from_iterable(buckets)), lines)


class _Compiled(msgspec.Struct, frozen=True, array_like=True):
    """What is made of the files of concepts, in few large objects."""

    names: bytes
    fields: tuple[tuple[int, str], ...]
    members: frozenset[str]
    tables: dict[str, _Table]
    classes: _Table
    phrases: _Table
    seconds: _Table
    endings: dict[str, str]


class Thesaurus:
    """The concepts of some files.

    Reading them takes ten times the memory that they take then, most of which the heap would keep:
    what is made of them is kept in a file, like the bytecode of a module.

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
        file = None if cache is None else cache / f"concepts-{_FORMAT}-{self.version:08x}.bin"
        compiled = None if file is None else _saved(file)
        if compiled is None:
            compiled = _compile(contents)
            if file is not None:
                _save(file, compiled)
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
        words = index_words(text if is_plain else _HAN.sub(" ", text))
        words = words if is_plain else [*map(fold, words)]
        language = language_of(frozenset(words))
        words = words if is_plain else [word.replace("ß", "ss") for word in words]
        for at, word in enumerate(words):
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

    def _meanings_of_run(self, run: str) -> Iterator[Meaning]:
        """The longest words first, from the left: there are no blanks between them."""
        table, at = self._tables.get(_HAN_LANGUAGE), 0
        while table is not None and at < len(run):
            for length in range(min(_LONGEST_HAN, len(run) - at), 0, -1):
                if codes := table.get(run[at : at + length]):
                    classes = "".join(self._compiled.classes.get(code) for code in codes)
                    yield Meaning((run[at : at + length],), _joined(codes, classes))
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
        codes = self._own_codes(word, language)
        return _joined(codes, "".join(self._compiled.classes.get(code) for code in codes))

    def _own_codes(self, word: str, language: str) -> str:
        if language in self._tables and (codes := self._in_language(word, language)):
            return codes
        if language and (word in grammar(language) or word in not_topics()):
            return ""
        if language:
            # What has one name everywhere stands with English. Words of other languages are false
            # friends more often than not: "area", "half", "worst".
            is_english = language == _ENGLISH or word in grammar(_ENGLISH)
            return ("" if is_english else self._tables[_ENGLISH].get(word)) or self._by_ending(word)
        listed_in = (self._listed(word, name) for name in self._tables)
        result = _joined("", "".join(listed_in))
        if not result:
            # Of no clear language, it is a compound only if it is nothing else.
            joining = sorted(_JOINING & self._tables.keys())
            result = _joined("", "".join(self._in_language(word, name) for name in joining))
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
            return _joined(codes, self._of_parts(word, language))
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
                return _joined(head, tail)
        return ""


def _compile(contents: Mapping[str, bytes]) -> _Compiled:
    """Read the concepts from the contents of files, by the names of their fields."""
    lines: list[str] = []
    fields: list[tuple[int, str]] = []
    for field, content in contents.items():
        text = unicodedata.normalize("NFD", content.decode())
        text = simplified(_ACCENTS.sub("", text).replace("ß", "ss"))
        lines += (line for line in text.splitlines() if "|" in line)
        fields.append((FIRST_CODE + 2 * len(lines), field))
    phrases: dict[str, str] = {}
    endings: dict[str, str] = {}
    tables: dict[str, _Table] = {}
    classes: dict[str, str] = {}
    links: Counter[tuple[str, str]] = Counter()
    members: set[str] = set()
    # One language at a time, as dictionaries take ten times the room of tables.
    for language in _LANGUAGES:
        words = _words_of(lines, language, phrases, endings)
        links.update({link for codes in words.values() for link in _links(codes)})
        members.update(code for codes in words.values() for code in codes if ord(code) & 1)
        tables[language] = _table(words)
    for (concept, of_class), count in links.items():
        if count >= _LINKING:
            classes[concept] = classes.get(concept, "") + of_class
    for phrase, codes in phrases.items():
        phrases[phrase] = _joined(codes, "".join(classes.get(code, "") for code in codes))
    members.update(code for codes in phrases.values() for code in codes if ord(code) & 1)
    seconds: dict[str, set[str]] = {}
    for phrase in phrases:
        first, second, *_ = phrase.split(" ")
        seconds.setdefault(first, set()).add(_mark(second))
    return _Compiled(
        names="\n".join(line.partition("|")[0].strip() for line in lines).encode(),
        fields=tuple(fields),
        members=frozenset(members),
        tables=tables,
        classes=_table(classes),
        phrases=_table(phrases),
        seconds=_table({first: "".join(sorted(marks)) for first, marks in seconds.items()}),
        endings=endings,
    )


def _words_of(
    lines: Iterable[str], language: str, phrases: dict[str, str], endings: dict[str, str]
) -> dict[str, str]:
    """The codes of the words of a language; phrases and endings are added to those of all."""
    entries: dict[str, str] = {}
    begin = f" {language}:"
    for code, line in zip(itertools.count(FIRST_CODE, 2), lines, strict=False):
        at = line.find(begin)
        if at < 0:
            continue
        synonyms, _, members = line[at + len(begin) :].partition("|")[0].partition(">")
        # A word that is both is the concept itself.
        for part, char in ((members, chr(code | 1)), (synonyms, chr(code))):
            for entry in part.replace(";", ",").split(","):
                word = entry.strip()
                if word.startswith(_ANY):
                    endings[word.removeprefix(_ANY)] = char
                elif word.isalnum():
                    entries[word] = _joined(entries[word], char) if word in entries else char
                elif word:
                    _note_phrase(word, char, entries, phrases)
    return {word: _with_base(word, codes, entries, language) for word, codes in entries.items()}


def _with_base(word: str, codes: str, entries: Mapping[str, str], language: str) -> str:
    """The codes of a word; of a mere member also those of the concept that it is a form of."""
    if any(not ord(code) & 1 for code in codes):
        return codes
    bases = (word.removesuffix(end) for end in _OF_MEMBERS[language] if word.endswith(end))
    of_bases = (entries.get(base, "") for base in bases if len(base) >= _SHORTEST_BASE)
    concepts = ("".join(code for code in of_base if not ord(code) & 1) for of_base in of_bases)
    return _joined(codes, next(filter(None, concepts), ""))


def _note_phrase(phrase: str, code: str, entries: dict[str, str], phrases: dict[str, str]) -> None:
    is_plain = phrase.isascii() and phrase.replace(" ", "").isalnum()
    words = phrase.split() if is_plain else index_words(phrase)
    if len(words) > 1:
        key = " ".join(words)
        phrases[key] = _joined(phrases.get(key, ""), code)
    elif words:
        entries[words[0]] = _joined(entries.get(words[0], ""), code)


def _saved(file: Path) -> _Compiled | None:
    """What `_save` has written; None if it is not there, or not whole."""
    try:
        content = file.read_bytes()
        if zlib.crc32(content[4:]) != int.from_bytes(content[:4]):
            return None
        return msgspec.msgpack.decode(content[4:], type=_Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def _save(file: Path, compiled: _Compiled) -> None:
    """Write it beside the bytecode of this module, if that can be written."""
    content = msgspec.msgpack.encode(compiled)
    part = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        part.write_bytes(zlib.crc32(content).to_bytes(4) + content)
        part.chmod(0o644)
        part.replace(file)


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
    if language == _ENGLISH and word in listed("no_forms"):
        return
    if language == _ENGLISH and (base := base_of(word)) != word:
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
    return tuple((form, _mark(form)) for form in _forms(second))


def _mark(second: str) -> str:
    """A letter for the second word of a phrase; few others have the same."""
    return chr(_FIRST_MARK + zlib.crc32(second.encode(errors="replace")) % _MARKS)


def _links(codes: str) -> Iterator[tuple[str, str]]:
    """The pairs of a concept and of the members' code of a class that one word links."""
    for members in codes if len(codes) > 1 else ():
        if ord(members) & 1:
            for code in codes:
                if not ord(code) & 1 and ord(code) != ord(members) & ~1:
                    yield code, members


def _joined(codes: str, more: str) -> str:
    return "".join(dict.fromkeys(codes + more))
