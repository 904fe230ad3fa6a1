"""What a short statement is about: its owners, topics and values, and whether it tells a change.

"Mum's flight is delayed, lands at 20:15" has the owner "mum", the topics "flight" and "land", the
number 20:15, and tells a change. The tables of the lexicon say of what sort each word is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

import msgspec

from ..memory.indexing import index_words
from ..memory.similarity import fold
from ..memory.stemming import STOP_WORDS, word_terms
from .normal_form import Statement, negations, read
from .vocabulary import compiled, cue, each, not_topics, words

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
_UNSPACED_VALUES: Final = {
    "weekday": "{~value_weekday}",
    "daypart": "{~value_daypart}",
    "number": "{~value_number}",
}
_CONTENT: Final = frozenset({"topic", "single", "relative"})
_OF: Final = frozenset({"of", "von", "vom", "de", "du", "del", "d'"})
_NUMBER: Final = re.compile(r"[€$£#]?(\d(?:[\d.,:/-]*\d)?)([^\d\W]{0,3}|[€$£%])")
_BLOCK: Final = re.compile(r"\+?\d{2,}")
_DIGIT: Final = re.compile(r"\d")
_UMLAUT: Final = re.compile("[äöüß]")
UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


class Facets(msgspec.Struct):
    """The words of a statement by their sorts, and what its cues tell.

    Attributes:
        statement: its normal form.
        owners: whose it is, if not the speaker's: relatives, names, words with a possessive ending.
        own: whether it speaks of the speaker.
        topics: its content words by their stems, in order, without values and names.
        first: the stem of the first topic or name, or "".
        single: the stems of nouns of which an owner has one at a time: "rent", "dentist".
        values: numbers, weekdays, dates and times of day; numbers with a unit by that unit.
        names: the stems of the words written as names.
        modifiers: for topics, the topic right before: "garage" for "code" in "the garage code".
        labels: whether a number follows its noun at once: "version 2", "code 12".
    """

    statement: Statement
    owners: set[str] = msgspec.field(default_factory=set)
    own: bool = False
    topics: dict[str, str] = msgspec.field(default_factory=dict)
    first: str = ""
    single: set[str] = msgspec.field(default_factory=set)
    values: dict[str, set[str]] = msgspec.field(default_factory=lambda: defaultdict(set))
    names: set[str] = msgspec.field(default_factory=set)
    modifiers: dict[str, str] = msgspec.field(default_factory=dict)
    labels: bool = False

    @property
    def content(self) -> set[str]:
        """The topics and the names."""
        return self.names.union(self.topics)

    @property
    def stems(self) -> set[str]:
        """The stems of all words."""
        return set(map(stem_of, self.statement.words))

    @property
    def frame(self) -> set[str]:
        """The stems of small words that may tell which attribute is meant: "starts"."""
        empty = STOP_WORDS | words(*_EMPTY)
        small = (word for word in self.statement.words if is_small(word))
        return {stem_of(word) for word in small if word not in empty}

    @property
    def without_reason(self) -> frozenset[str]:
        """The words before a reason or an event since which it holds: "since the upgrade"."""
        reason = _REASON.search(self.statement.text)
        text = self.statement.text[: reason.start() if reason else None]
        return frozenset(word.strip(".,;:!?") for word in text.split())

    @property
    def opening(self) -> str:
        """The stem of the first word, which may be a name in spite of its capital letter."""
        first = self.statement.words[0] if self.statement.words else ""
        return stem_of(first) if self.statement.text.startswith(first) else ""

    @property
    def returns(self) -> bool:
        """Whether it is about the way back."""
        return not words("returns").isdisjoint(self.statement.words)

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
    def ended(self) -> list[set[str]]:
        """The content of each clause that tells of an end: "sold the Golf"."""
        if not self.tells("ended"):
            return []
        clauses = _CLAUSE.split(self.statement.text)
        parts = (part for clause in clauses for part in cue("joins").pattern.split(clause))
        return [stems for part in parts if (stems := self.content & _ended(part))]

    @property
    def states(self) -> dict[str, bool]:
        """For "meat", "smoking" and so on, whether it tells of being without, or of having it."""
        having = {name: False for name, (_, having) in _STATES.items() if self.tells(having)}
        return having | {
            name: True for name, (without, _) in _STATES.items() if self.tells(without)
        }

    def tells(self, name: str) -> bool:
        """Whether it has a cue of that name."""
        return _tells(name, self.statement.text)


@lru_cache(256)
def content_terms(text: str) -> dict[str, str]:
    """The words of `text` that may be its topics, names or owners, by their stems, in order.

    Cheaper than `facets_of`, and without what follows from the order of the words.
    """
    sorts = _sorts()
    return {
        stem_of(word): word
        for word in index_words(text)
        if sorts.get(word, "topic") in _CONTENT and len(word) > 1 and not word.isdigit()
    }


@cache
def single_stems() -> frozenset[str]:
    """The stems of the nouns of which an owner has one at a time."""
    return frozenset(map(stem_of, words("value_nouns", "single_nouns")))


def stem_of(word: str) -> str:
    """The stem by which words are compared."""
    terms = word_terms(word)
    return terms[0] if terms else word


def is_small(word: str) -> bool:
    """Whether a word is of no topic."""
    return _sorts().get(word) == "light"


def sort_words(parts: Facets) -> None:
    """Sort the words of `parts.statement`, which is in a script with blanks."""
    statement = parts.statement
    # In German capital letters begin all nouns.
    nouns_large = _UMLAUT.search(statement.text) is not None or not (
        (words("nouns_large") - words("was", "copulas")).isdisjoint(statement.words)
    )
    for at, word in enumerate(statement.words):
        before = statement.words[at - 1] if at else ""
        after = statement.words[at + 1 : at + 2]
        bare = _without_ending(word)
        if _DIGIT.search(word):
            _add_number(parts, bare, before, after)
            continue
        sort = _sort_of(bare, before)
        if sort == "own":
            parts.own = True
        elif sort in {"month", "weekday", "daypart", "number"}:
            _add_value(parts, sort, bare, before + "".join(after))
        elif bare != word or _owns(parts, bare, sort, statement.words[max(0, at - 1) : at + 3]):
            parts.owners.add(stem_of(bare))
        elif sort != "single" and (
            bare in words("given_names") or (bare in statement.names and not nouns_large)
        ):
            if sort != "light":
                parts.names.add(stem_of(bare))
                parts.first = parts.first or stem_of(bare)
        elif sort not in {"light", "unit"}:
            _add_topic(parts, bare, before)
    parts.names -= parts.owners
    if "date" in parts.values:
        parts.values["date"] = {" ".join(sorted(parts.values["date"]))}


def sort_characters(parts: Facets) -> None:
    """Sort the characters of a script without blanks: the topics are pairs of them."""
    rest = parts.statement.text
    parts.own = "我" in rest
    for sort, template in _UNSPACED_VALUES.items():
        pattern = compiled(template)
        if values := pattern.findall(rest):
            parts.values[sort] = set(values)
            rest = pattern.sub(" ", rest)
    for relative in each("relative", spaced=False):
        parts.owners.update(re.findall(relative, rest))
    small = compiled("{~changes}|{~ended}|{~grammar}")
    for run in UNSPACED.findall(small.sub(" ", rest)):
        parts.topics.update({pair: pair for pair in character_pairs(run)})
    parts.first = next(iter(parts.topics), "")
    parts.single.update(parts.topics.keys() & words("value_noun_ends"))


def character_pairs(run: str) -> list[str]:
    """The overlapping pairs of a run of characters; a single character as it is."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def _sort_of(word: str, before: str) -> str:
    sort = _sorts().get(word, "topic")
    if sort == "relative" and not _is_relative(word, before):
        return "light" if word in words("titles", "light") else "topic"
    return "light" if sort == "topic" and _tells_change(word) else sort


def _owns(parts: Facets, word: str, sort: str, around: tuple[str, ...]) -> bool:
    """Whether a word names whose the matter is."""
    if sort == "relative":
        return True
    if word not in words("given_names"):
        return False
    at = around.index(word) if word in around else 0
    if at and around[0] in _OF:
        return True
    is_first = not (parts.topics or parts.owners)
    return is_first and not _introduces(around[at + 1 : at + 3])


def _add_topic(parts: Facets, word: str, before: str) -> None:
    stem = stem_of(word)
    parts.topics.setdefault(stem, word)
    parts.first = parts.first or stem
    if stem in single_stems():
        parts.single.add(stem)
    if stem_of(before) in parts.topics:
        parts.modifiers.setdefault(stem, stem_of(before))


def _add_value(parts: Facets, sort: str, word: str, around: str) -> None:
    if sort != "month":
        # "on Mondays" is "on Monday".
        parts.values[sort].add(word.removesuffix("s") if sort == "weekday" else word)
    elif _DIGIT.search(around):
        # "may" and "mar" are months only beside a number.
        parts.values["date"].add(word[:3])


def _add_number(parts: Facets, word: str, before: str, after: tuple[str, ...]) -> None:
    parts.labels = parts.labels or stem_of(before) in parts.topics
    match = _NUMBER.fullmatch(word)
    if match is None:
        # A code, a version with a letter: "3b", "maple-9".
        parts.values["number"].add(word)
    elif not words("months").isdisjoint((before, *after)):
        parts.values["date"].add(match[1])
    elif _BLOCK.fullmatch(word) and _BLOCK.fullmatch(before) and parts.values.get("number"):
        # A number in blocks is one value, as the phone number 0171 555 1234.
        parts.values["number"] = {" ".join((*sorted(parts.values["number"]), word))}
    else:
        unit = match[2] or "".join(after)
        kind = f"number {unit}" if unit in words("measures") else "number"
        if stem_of(before) in parts.names:
            # "Postgres 16" is no value of a port.
            kind = f"number {before}"
        parts.values[kind].add(match[1].replace(",", "").removesuffix(":00"))


def _without_ending(word: str) -> str:
    """A word without the ending of an owner: "Mum's", "parents'", German "Annas", "Opas"."""
    if word.endswith("'s"):
        return word[:-2]
    if len(word) > 3 and word.endswith("s'"):
        return word[:-1]
    bare = word[:-1]
    is_name = bare in words("given_names", "relatives")
    return bare if word.endswith("s") and is_name and word not in words("given_names") else word


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


@lru_cache(1_024)
def _tells_change(word: str) -> bool:
    return cue("changes", "ended").pattern.fullmatch(word) is not None


@cache
def _sorts() -> dict[str, str]:
    light = dict.fromkeys(not_topics() | negations(), "light")
    return light | {
        word: sort for sort, tables in _SORTS.items() for table in tables for word in words(table)
    }


_CLAUSE: Final = re.compile(r"[,;:!?.](?:\s|$)|[,。;!?、]|\s-\s")
_REASON: Final = re.compile(
    r"\s(?:because|since|after|weil|da|denn|seit|wegen|porque|parce que)\s", re.IGNORECASE
)
# What somebody is without, or has, at one time; the cues of both are in the lexicon.
_STATES: Final = {
    "meat": ("without_meat", "having_meat"),
    "alcohol": ("without_alcohol", "having_alcohol"),
    "smoking": ("without_smoking", "having_smoking"),
    "marriage": ("without_marriage", "having_marriage"),
}
# Small words that never tell which attribute is meant.
_EMPTY: Final = (
    "light", "copulas", "articles", "helping", "links", "connecting", "now", "titles",
)  # fmt: skip


@lru_cache(128)
def facets_of(text: str) -> Facets:
    """The facets of `text`, in time that grows with its length."""
    facets = Facets(read(text))
    folded = facets.statement.text
    unspaced = sum(map(len, UNSPACED.findall(folded))) * 2 > len(folded)
    (sort_characters if unspaced else sort_words)(facets)
    return facets


@lru_cache(64)
def claims_of(text: str) -> tuple[str, ...]:
    """The clauses of a text with several that tell of a change by themselves."""
    clauses = [clause.strip() for part in _CLAUSE.split(text) for clause in _REASON.split(part)]
    if len(clauses) < 2:
        return ()
    return tuple(
        clause for clause in clauses if " " in clause and "change" in statement_kinds(clause)
    )


# A batch is compared as a whole, then indexed as a whole.
@lru_cache(1_024)
def statement_kinds(text: str) -> frozenset[str]:
    """What a statement is beside its topic: cheaper than its facets.

    `age`: how old somebody is; `change`: that something may no longer be as it was.
    """
    folded = fold(text)
    names = {*cue("age", "changes", "ended", "turns").names_in(folded)}
    age = names & {"age"}
    if names == age or _tells("adds", folded):
        return frozenset(age)
    return frozenset((*age, "change"))


@lru_cache(1_024)
def _tells(name: str, folded: str) -> bool:
    return cue(name).any_in(folded)


def _ended(clause: str) -> set[str]:
    """The stems of a clause that tells of an end; empty for other clauses."""
    if not _tells("ended", clause):
        return set()
    instead = compiled(r"(?:{instead_of}) (?:the )?(\w+)").search(clause)
    rest = instead[1] if instead is not None else cue("ended").pattern.sub(" ", clause)
    stems: set[str] = set()
    for word in rest.split():
        stems.update(word_terms(word.strip(".,;:!?'\"()")))
        stems.update(pair for run in UNSPACED.findall(word) for pair in character_pairs(run))
    return stems
