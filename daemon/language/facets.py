"""What a short statement is about: its owners, its topics, its values, and whether it tells a change.

The words are sorted by the tables of the lexicon. "Mum's flight is delayed, lands at 20:15" has the
owner "mum", the topics "flight" and "land", the number 20:15, and tells a change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

import msgspec

from ..memory.indexing import index_words
from ..memory.stemming import word_terms
from ..memory.stop_words import STOP_WORDS
from .normal_form import Statement, negations, read
from .vocabulary import compiled, cue, each, named_languages, not_topics, words

# The tables by the sort of their words; later ones win.
_SORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "light": ("light", "copulas", "articles", "helping", "links", "connecting", "now", "titles"),
    "own": ("self", "ours", "own_words"),
    "month": ("months",),
    "unit": ("units",),
    "number": ("numbers",),
    "weekday": ("weekdays",),
    "daypart": ("dayparts",),
    "relative": ("relatives",),
    "single": ("value_nouns", "single_nouns"),
}
_CONTENT: Final = frozenset({"topic", "single", "relative"})
_NUMBER: Final = re.compile(r"[€$£#]?(\d(?:[\d.,:/-]*\d)?)([^\d\W]{0,3}|[€$£%])")
_BLOCK: Final = re.compile(r"\+?\d{2,}")
_DIGIT: Final = re.compile(r"\d")
_CLAUSE: Final = re.compile(r"[,;:!?.](?:\s|$)|[,。;!?、]|\s-\s")
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_UNSPACED_RUN: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# What somebody is without, or has, at one time; the cues of both are in the lexicon.
_STATES: Final = {
    "meat": ("without_meat", "having_meat"),
    "alcohol": ("without_alcohol", "having_alcohol"),
    "smoking": ("without_smoking", "having_smoking"),
    "marriage": ("without_marriage", "having_marriage"),
}
_UNSPACED_VALUES: Final = {
    "weekday": "{~value_weekday}",
    "daypart": "{~value_daypart}",
    "number": "{~value_number}",
}
_UMLAUT: Final = re.compile("[äöüß]")
_OF: Final = frozenset({"of", "von", "vom", "de", "du", "del", "d'"})


class Facets(msgspec.Struct, frozen=True):
    """The parts of a statement.

    Attributes:
        statement: its normal form.
        owners: whose it is, if not the speaker's: relatives, names, words with a possessive ending.
        own: whether it speaks of the speaker.
        topics: its content words by their stems, in order, without values and names.
        single: the stems of nouns of which an owner has one at a time: "rent", "dentist".
        values: numbers, weekdays, dates and times of day; numbers with a unit by that unit.
        names: the stems of the words written as names.
        first: the stem of the first of them, or "".
        language: the name of its language, or "" if few words tell.
        words: the stems of all words.
        frame: the stems of small words that may tell which attribute is meant: "starts".
        labels: whether a number follows its noun at once: "version 2", "code 12".
        returns: whether it is about the way back.
        opening: the stem of the first word, which may be a name in spite of its capital letter.
        modifiers: for topics, the topic right before: "garage" for "code" in "the garage code".
    """

    statement: Statement
    owners: frozenset[str]
    own: bool
    topics: dict[str, str]
    single: frozenset[str]
    values: dict[str, frozenset[str]]
    names: frozenset[str]
    first: str
    language: str
    words: frozenset[str]
    frame: frozenset[str]
    labels: bool
    returns: bool
    opening: str
    modifiers: dict[str, str]

    @property
    def content(self) -> frozenset[str]:
        """The topics and the names."""
        return self.names.union(self.topics)

    @property
    def changes(self) -> bool:
        """Whether it tells of a change, "now", "moved to", and not of something more, "also"."""
        return self.tells("changes") and not self.tells("adds")

    @property
    def open(self) -> bool:
        """Whether it is a question, a plan, a doubt, or only about what was true before."""
        if self.statement.asks or self.statement.open or self.tells("planned"):
            return True
        return self.tells("formerly") and not self.tells("changes")

    @property
    def ended(self) -> list[frozenset[str]]:
        """The content of each clause that tells of an end: "sold the Golf"."""
        if not self.tells("ended"):
            return []
        return [found for clause in _clauses(self.statement.text) if (found := self._ended(clause))]

    @property
    def states(self) -> dict[str, bool]:
        """For "meat", "smoking", … whether it tells of being without it, or of having it."""
        found = {name: False for name, (_, having) in _STATES.items() if self.tells(having)}
        return found | {name: True for name, (without, _) in _STATES.items() if self.tells(without)}

    def tells(self, name: str) -> bool:
        """Whether it has a cue of that name."""
        return _tells(name, self.statement.text)

    def _ended(self, clause: str) -> frozenset[str]:
        if not _tells("ended", clause):
            return frozenset()
        instead = compiled(r"(?:{instead_of}) (?:the )?(\w+)").search(clause)
        rest = instead[1] if instead is not None else cue("ended").sub(" ", clause)
        stems: set[str] = set()
        for word in rest.split():
            if _CJK.search(word):
                stems.update(pair for run in _UNSPACED_RUN.findall(word) for pair in _pairs(run))
            else:
                stems.update(word_terms(word.strip(".,;:!?'\"()")))
        return self.content & stems


class _Sorted(msgspec.Struct):
    """The words of a text by their sorts."""

    owners: set[str] = msgspec.field(default_factory=set)
    own: bool = False
    topics: dict[str, str] = msgspec.field(default_factory=dict)
    single: set[str] = msgspec.field(default_factory=set)
    values: dict[str, set[str]] = msgspec.field(default_factory=lambda: defaultdict(set))
    names: set[str] = msgspec.field(default_factory=set)
    modifiers: dict[str, str] = msgspec.field(default_factory=dict)
    labels: bool = False
    first: str = ""


@lru_cache(2_048)
def content_terms(text: str) -> dict[str, str]:
    """The words of `text` that may be its topics, names or owners, by their stems, in order.

    Cheaper than `facets_of`, and without what follows from the order of the words.
    """
    sorts = _sorts()
    return {
        _stem(word): word
        for word in index_words(text)
        if sorts.get(word, "topic") in _CONTENT and len(word) > 1 and not word.isdigit()
    }


@lru_cache(512)
def facets_of(text: str) -> Facets:
    """The facets of `text`, in time that grows with its length."""
    statement = read(text)
    folded = statement.text
    unspaced = len(_CJK.findall(folded)) * 2 > len(folded)
    parts = _sort_characters(folded) if unspaced else _sort_words(statement)
    return Facets(
        statement=statement,
        owners=frozenset(parts.owners),
        own=parts.own,
        topics=parts.topics,
        single=frozenset(parts.single),
        values={sort: frozenset(found) for sort, found in parts.values.items()},
        names=frozenset(parts.names - parts.owners),
        first=parts.first,
        language=_language(statement),
        words=frozenset(map(_stem, statement.words)),
        frame=frozenset(_stem(word) for word in statement.words if _is_framing(word)),
        labels=parts.labels,
        returns=not words("returns").isdisjoint(statement.words),
        opening=_stem(statement.words[0]) if _opens(statement) else "",
        modifiers=parts.modifiers,
    )


def _sort_words(statement: Statement) -> _Sorted:
    parts = _Sorted()
    sorts, given = _sorts(), words("given_names")
    all_words = statement.words
    nouns_large = _has_large_nouns(statement)
    content = 0
    for at, whole in enumerate(all_words):
        word = whole.removesuffix("'s")
        if len(word) > 3 and word.endswith("s'"):
            word = word[:-1]
        sort = sorts.get(word, "topic")
        stem = _stem(word)
        after = all_words[at + 1] if at + 1 < len(all_words) else ""
        before = all_words[at - 1] if at else ""
        if sort == "relative" and not _is_relative(word, before):
            sort = "light" if word in words("titles") | words("light") else "topic"
        if sort == "topic" and _tells_change(word):
            sort = "light"
        if _DIGIT.search(word):
            _add_number(parts, word, all_words[:at], after)
            parts.labels = parts.labels or _stem(before) in parts.topics
        elif sort == "own":
            parts.own = True
        elif sort == "month":
            # "may" and "mar" are months only beside a number.
            if _DIGIT.search(before + after):
                parts.values["date"].add(word[:3])
        elif sort in {"weekday", "daypart", "number"}:
            # "one left", "mondays"
            parts.values[sort].add(word.removesuffix("s") if sort == "weekday" else word)
        elif word != whole or _is_genitive(word) or (before in _OF and word in given):
            parts.owners.add(_owner(word))
            content += 1
        elif sort == "relative":
            parts.owners.add(stem)
            content += 1
        elif word in given and not content and not _introduces(all_words[at + 1 : at + 3]):
            parts.owners.add(stem)
            content += 1
        elif sort != "single" and (word in given or (word in statement.names and not nouns_large)):
            if sort != "light":
                parts.names.add(stem)
                parts.first = parts.first or stem
        elif sort not in {"light", "unit"}:
            parts.topics.setdefault(stem, word)
            parts.first = parts.first or stem
            content += 1
            if stem in single_stems():
                parts.single.add(stem)
            if _stem(before) in parts.topics:
                parts.modifiers.setdefault(stem, _stem(before))
    _join_dates(parts)
    return parts


def _join_dates(parts: _Sorted) -> None:
    """Make one value of a date's parts."""
    if "date" in parts.values:
        parts.values["date"] = {" ".join(sorted(parts.values["date"]))}


def _add_number(parts: _Sorted, word: str, earlier: Sequence[str], after: str) -> None:
    match = _NUMBER.fullmatch(word)
    before = earlier[-1] if earlier else ""
    if match is None:
        # A code, a version with a letter: "3b", "maple-9".
        parts.values["number"].add(word)
        return
    if before in words("months") or after in words("months"):
        parts.values["date"].add(match[1])
        return
    if _BLOCK.fullmatch(word) and _BLOCK.fullmatch(before) and parts.values.get("number"):
        # A number in blocks is one value, as the phone number 0171 555 1234.
        parts.values["number"] = {" ".join((*sorted(parts.values["number"]), word))}
        return
    unit = match[2] or after
    kind = f"number {unit}" if unit in words("measures") else "number"
    if _stem(before) in parts.names:
        # "Postgres 16" is no value of a port.
        kind = f"number {before}"
    parts.values[kind].add(match[1].replace(",", "").removesuffix(":00"))


def _sort_characters(folded: str) -> _Sorted:
    """As `_sort_words`, of a text in a script without blanks: the topics are pairs of characters."""
    parts = _Sorted(own="我" in folded)
    rest = folded
    for sort, template in _UNSPACED_VALUES.items():
        pattern = compiled(template)
        parts.values[sort].update(pattern.findall(rest))
        rest = pattern.sub(" ", rest)
    parts.values = {sort: found for sort, found in parts.values.items() if found}
    for relative in each("relative", spaced=False):
        if relative in rest:
            parts.owners.add(relative)
    small = compiled("{~changes}|{~ended}|{~grammar}")
    for run in _UNSPACED_RUN.findall(small.sub(" ", rest)):
        for pair in _pairs(run):
            parts.topics[pair] = pair
    parts.first = next(iter(parts.topics), "")
    nouns = words("value_noun_ends")
    parts.single.update(pair for pair in parts.topics if pair in nouns)
    return parts


def _has_large_nouns(statement: Statement) -> bool:
    """Whether capital letters begin all nouns, as in German."""
    if _UMLAUT.search(statement.text):
        return True
    return not (words("nouns_large") - words("was") - words("copulas")).isdisjoint(statement.words)


def _language(statement: Statement) -> str:
    counts = {
        name: sum(word in small for word in statement.words) for name, small in _small().items()
    }
    best = max(counts, key=lambda name: counts[name])
    return best if sorted(counts.values())[-2] < counts[best] else ""


@cache
def _small() -> dict[str, frozenset[str]]:
    """The small words of each language that has a good list of them."""
    tables = ("no_topics", "own_words", "self", "ours", "articles", "copulas", "helping", "links")
    found = {
        name: frozenset(word for table in tables for word in language.words.get(table, "").split())
        for name, language in named_languages().items()
        if "no_topics" in language.words
    }
    return found | {"en": found["en"] | STOP_WORDS}


def _is_framing(word: str) -> bool:
    sort = _sorts().get(word)
    return sort == "light" and not _is_empty(word)


@cache
def _empty() -> frozenset[str]:
    tables = ("light", "copulas", "articles", "helping", "links", "connecting", "now", "titles")
    return frozenset[str]().union(*map(words, tables), STOP_WORDS)


def _is_empty(word: str) -> bool:
    return word in _empty()


@lru_cache(2_048)
def _tells(name: str, folded: str) -> bool:
    return cue(name).search(folded) is not None


def _opens(statement: Statement) -> bool:
    return bool(statement.words) and statement.text.startswith(statement.words[0])


def _stem(word: str) -> str:
    return next(iter(word_terms(word)), word)


@lru_cache(1_024)
def _tells_change(word: str) -> bool:
    return any(cue(name).fullmatch(word) is not None for name in ("changes", "ended"))


@cache
def single_stems() -> frozenset[str]:
    """The stems of the nouns of which an owner has one at a time."""
    return frozenset(map(_stem, words("value_nouns") | words("single_nouns")))


def _clauses(folded: str) -> list[str]:
    return [
        part
        for clause in _CLAUSE.split(folded)
        for part in cue("joins").split(clause)
        if part.strip()
    ]


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def _is_relative(word: str, before: str) -> bool:
    """Whether "Frau" is a wife and no title, and "son" no Spanish verb."""
    sort = _sorts().get(before, "topic") if before else ""
    return sort == "own" or (word not in words("titles") and sort not in {"topic", "single"})


def _introduces(following: tuple[str, ...]) -> bool:
    """Whether "is my manager" follows a name, which is then the value."""
    return (
        len(following) == 2
        and following[0] in words("copulas")
        and _sorts().get(following[1]) == "own"
    )


def _is_genitive(word: str) -> bool:
    """Whether a German name has an ending: "Annas", "Opas"."""
    bare = word[:-1]
    if not word.endswith("s") or word in words("given_names"):
        return False
    return bare in words("given_names") or bare in words("relatives")


def _owner(word: str) -> str:
    bare = word[:-1] if _is_genitive(word) else word
    return _stem(bare)


@cache
def _sorts() -> dict[str, str]:
    light = {word: "light" for word in not_topics() | negations()}
    return light | {
        word: sort
        for sort, names in _SORTS.items()
        for name in names
        for word in words(name)
    }
