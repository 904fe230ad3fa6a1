"""What is made of the files of concepts: tables from words, phrases and endings to codes.

Making them takes ten times the memory that they take then, most of which the heap would keep: they
are kept in a file, like the bytecode of a module.
"""

from __future__ import annotations

import itertools
import os
import re
import struct
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ..memory.han import simplified
from ..memory.indexing import index_words

# The codes below are those of dates.
FIRST_CODE: Final = 0xE200
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
# A concept is a member of a class if words of at least this many languages are both.
_LINKING: Final = 2
ENGLISH: Final = "en"
LANGUAGES: Final = ("en", "de", "es", "fr", "nl", "zh")
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
# What marks a second word, within two bytes of UTF-8.
_FIRST_MARK: Final = 0x80
_MARKS: Final = 0x780
# Raised whenever `ConceptTables` or what it holds changes.
FORMAT: Final = 7


class Table(msgspec.Struct, frozen=True, array_like=True):
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


def _table(entries: Mapping[str, str]) -> Table:
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
    return Table(starts.tobytes(), b"".join(itertools.chain.from_iterable(buckets)), lines)


class ConceptTables(msgspec.Struct, frozen=True, array_like=True):
    """What is made of the files of concepts, in few large objects."""

    names: bytes
    fields: tuple[tuple[int, str], ...]
    members: frozenset[str]
    tables: dict[str, Table]
    classes: Table
    phrases: Table
    seconds: Table
    endings: dict[str, str]


def tables_of(contents: Mapping[str, bytes]) -> ConceptTables:
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
    tables: dict[str, Table] = {}
    classes: dict[str, str] = {}
    links: Counter[tuple[str, str]] = Counter()
    members: set[str] = set()
    # One language at a time, as dictionaries take ten times the room of tables.
    for language in LANGUAGES:
        words = _words_of(lines, language, phrases, endings)
        links.update({link for codes in words.values() for link in _links(codes)})
        members.update(filter(_is_member, set("".join(words.values()))))
        tables[language] = _table(words)
    for (concept, of_class), count in links.items():
        if count >= _LINKING:
            classes[concept] = classes.get(concept, "") + of_class
    for phrase, codes in phrases.items():
        if of_class := "".join(classes.get(code, "") for code in codes):
            phrases[phrase] = joined(codes, of_class)
    members.update(filter(_is_member, set("".join(phrases.values()))))
    seconds: dict[str, set[str]] = {}
    for phrase in phrases:
        first, second, *_ = phrase.split(" ")
        seconds.setdefault(first, set()).add(mark_of(second))
    return ConceptTables(
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
                    known = entries.get(word, "")
                    entries[word] = known if char in known else known + char
                elif word:
                    _note_phrase(word, char, entries, phrases)
    return {word: _with_base(word, codes, entries, language) for word, codes in entries.items()}


def _is_member(code: str) -> bool:
    return bool(ord(code) & 1)


def _with_base(word: str, codes: str, entries: Mapping[str, str], language: str) -> str:
    """The codes of a word; of a mere member also those of the concept that it is a form of."""
    if not all(map(_is_member, codes)):
        return codes
    bases = (word.removesuffix(end) for end in _OF_MEMBERS[language] if word.endswith(end))
    of_bases = (entries.get(base, "") for base in bases if len(base) >= _SHORTEST_BASE)
    concepts = ("".join(code for code in of_base if not ord(code) & 1) for of_base in of_bases)
    return joined(codes, next(filter(None, concepts), ""))


def _note_phrase(phrase: str, code: str, entries: dict[str, str], phrases: dict[str, str]) -> None:
    is_plain = phrase.isascii() and phrase.replace(" ", "").isalnum()
    words = phrase.split() if is_plain else index_words(phrase)
    if len(words) > 1:
        key = " ".join(words)
        known = phrases.get(key, "")
        phrases[key] = known if code in known else known + code
    elif words:
        entries[words[0]] = joined(entries.get(words[0], ""), code)


def saved(file: Path) -> ConceptTables | None:
    """What `save` has written; None if it is not there, or not whole."""
    try:
        content = file.read_bytes()
        if zlib.crc32(content[4:]) != int.from_bytes(content[:4]):
            return None
        return msgspec.msgpack.decode(content[4:], type=ConceptTables)
    except (OSError, msgspec.MsgspecError):
        return None


def save(file: Path, compiled: ConceptTables) -> None:
    """Write it beside the bytecode of this module, if that can be written."""
    content = msgspec.msgpack.encode(compiled)
    part = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        part.write_bytes(zlib.crc32(content).to_bytes(4) + content)
        part.chmod(0o644)
        part.replace(file)


def mark_of(second: str) -> str:
    """A letter for the second word of a phrase; few others have the same."""
    return chr(_FIRST_MARK + zlib.crc32(second.encode(errors="replace")) % _MARKS)


def _links(codes: str) -> Iterator[tuple[str, str]]:
    """The pairs of a concept and of the members' code of a class that one word links."""
    for members in codes if len(codes) > 1 else ():
        if ord(members) & 1:
            for code in codes:
                if not ord(code) & 1 and ord(code) != ord(members) & ~1:
                    yield code, members


def joined(codes: str, more: str) -> str:
    """Codes and more of them, each once."""
    return "".join(dict.fromkeys(codes + more))
