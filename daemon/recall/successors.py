"""Which statement among the candidates probably tells what became of another.

"The thali is £14.95", told before "people pay £16.50 for a thali", is still likely the best match
of "what do we charge for the thali?". Such a pair is ordered by a logistic model of a few features,
fitted on corrections and on statements that only look like them. It changes nothing but the order
of an answer; what surely replaces something is marked when it is stored (`store.similar`).
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from itertools import chain, islice
from typing import Final

import msgspec

from ..language.concept_tables import FIRST_CODE
from ..language.dates import DAY_CODE
from ..language.meaning import CHANGE, VALUE, number_terms
from ..language.thesaurus import thesaurus
from ..language.vocabulary import cue, each, words
from ..memory.stemming import terms_of
from .pool import Pool
from .query import Query, joins_words
from .signals import Signals, has_wanted
from .sources import MEMORIES, Candidate
from .word_scores import little_terms

# The best statements that something may have become of, and their least share of the best match.
_BEST: Final = 8
_LEAST_SHARE: Final = 0.25
_MOST: Final = 3
# Of fewer texts any word is rare.
_FEW: Final = 30
# The best statements by whose topics later memories are looked up, and the maximum number of these.
_LOOKED_UP: Final = 2
_LATER: Final = 12
# Longer texts, in terms, say more than one thing; so few terms are a name.
_LONGEST: Final = 22
_NAMING: Final = 2
_FIRST: Final = chr(FIRST_CODE)
# What may be said of anything, whatever it is about.
_GENERAL: Final = frozenset(
    {"name", "euro", "price", "sell", "buy", "order_goods", "replace_thing", "bring", "live_reside"}
)
_FIRST_DATE: Final = chr(DAY_CODE)
# The logarithm of the odds by feature (`tests/benchmarks/fit_successors.py`), see `features`.
WEIGHTS: Final = {
    "always": -0.8, "best": 2.0, "answers all": 1.53, "lacks": -0.96, "alike": 5.64,
    "most similar": 1.19, "topic": -4.76, "rarest": 6.01, "rare": 1.44, "two": -0.37,
    "change": 1.02, "length": -0.52,
}  # fmt: skip


def later_rows(db: sqlite3.Connection, query: Query, pool: Pool) -> list[int]:
    """The newest memory rows that share a topic beyond the question with its best statements.

    What became of something is often told without a word of the question: "the Transit lives in the
    yard now".
    """
    labels = {label for word in query.words for label in (word.term, *word.codes)}
    short = (entry for entry in pool.entries if _is_short(entry))
    best = list(islice(short, _LOOKED_UP))
    topics: dict[str, None] = {}
    for entry in best:
        topics |= dict.fromkeys(_topics(_bag(entry)) - labels)
    if not topics:
        return []
    rows = db.execute(
        f"SELECT rowid FROM {MEMORIES.index} WHERE {MEMORIES.index} MATCH ? AND rowid > ?"
        f" ORDER BY rowid DESC LIMIT {_LATER}",
        (" OR ".join(f'"{topic}"' for topic in topics), min(entry.row for entry in best)),
    )
    return [row for (row,) in rows]


def successors(
    pool: Pool, signals: Signals, matches: Sequence[float], *, once: bool
) -> list[tuple[int, int]]:
    """Pairs of an older statement and a newer, which probably tells what became of it.

    One of each pair is among the best matches: the older, or with `once` the newer.
    """
    statements = Statements(pool, signals, matches)
    best = nlargest(_BEST, statements.all, key=matches.__getitem__)
    pairs: list[tuple[int, int]] = []
    for at in best:
        if matches[at] < _LEAST_SHARE * matches[best[0]]:
            break
        if once and (pool.entries[at].superseded_by or any(at == older for older, _ in pairs)):
            continue
        others = statements.before(at) if once else statements.after(at)
        odds = {
            pair: value
            for pair in (((other, at) if once else (at, other)) for other in others)
            if (value := statements.log_odds(*pair)) > 0
        }
        # More of them are a series, such as the entries of a diary.
        if odds and (once or len(odds) <= _MOST):
            pairs.append(max(odds, key=odds.__getitem__))
    return pairs


class Statements:
    """The short statements of a pool.

    Attributes:
        all: their indexes in the pool.
    """

    def __init__(self, pool: Pool, signals: Signals, matches: Sequence[float]) -> None:
        self._entries = pool.entries
        self._signals = signals
        self._matches = matches
        self.all = [at for at, entry in enumerate(pool.entries) if _is_short(entry)]
        # In the order of telling.
        self._told = sorted(self.all, key=lambda at: _place(pool.entries[at]))
        self._places = {at: place for place, at in enumerate(self._told)}
        self._bags = {at: _bag(pool.entries[at]) for at in self.all}
        self._spread = Counter(chain.from_iterable(self._bags.values()))
        # The weight of a topic that only two statements have.
        self._rarest = math.log1p(len(self.all) / 2)
        self._topics: dict[int, frozenset[str]] = {}
        self._weights: dict[int, dict[str, float]] = {}
        self._followers: dict[int, _Followers] = {}

    def after(self, at: int) -> Iterator[int]:
        """The statements that may tell what became of another, by what they are about.

        Of those that its speaker told after it: which share a topic, or have another member of a
        class of which it has one ("coffee", "tea"), and the best match.
        """
        followers = self._followers_of(at)
        yield from followers.similarities
        members = self._members_of(at)
        for other in followers.others:
            if other == followers.best or not members.isdisjoint(self._bags[other]):
                yield other

    def before(self, at: int) -> Iterator[int]:
        """The statements with a topic of another that their speaker told before it."""
        actor = self._entries[at].actor
        for other in self._told[: self._places[at]]:
            if self._entries[other].actor == actor and self._shared(at, other):
                yield other

    def log_odds(self, older: int, newer: int) -> float:
        """The logarithm of the odds that the newer tells what became of the older.

        -inf if it may not follow it.
        """
        if not self.may_follow(older, newer):
            return -math.inf
        return sum(
            WEIGHTS[name] * value for name, value in self.features(older, newer).items() if value
        )

    def may_follow(self, older: int, newer: int) -> bool:
        """Whether one of `after` may tell what became of the older.

        It has other words, with the numbers and dates of the question that the older has.
        """
        met, bags = self._signals.met, self._bags
        if bags[older] == bags[newer] or _length(self._entries[newer]) <= _NAMING:
            return False
        if self._answers_less(older, newer) or self._lacks_words(older, newer):
            return False
        return all(
            word in met[newer]
            for word, by in met[older].items()
            if word[0].isdigit() or _FIRST_DATE <= by < CHANGE
        )

    def _lacks_words(self, older: int, newer: int) -> bool:
        """Whether the newer lacks words of the question, where few texts or words tell it apart.

        Whoever gives words, and asks nothing, wants all of them; who gives a time alone, what is
        of it.
        """
        signals, met = self._signals, self._signals.met
        if signals.words < 2 and not signals.asks:
            return True
        if not signals.words:
            return not met[older] or not met[older].keys() <= met[newer].keys()
        if signals.texts >= _FEW:
            return False
        if self._lacks_wanted(older, newer):
            return True
        if signals.asks and CHANGE in self._bags[newer]:
            return False
        exact = [met[newer].get(word) == "" for word, by in met[older].items() if not by]
        return bool(exact) and not (any if signals.wants else all)(exact)

    def _answers_less(self, older: int, newer: int) -> bool:
        """Whether the newer is of something else, by what of the question the older alone has."""
        bags, met = self._bags, self._signals.met
        shared = self._shared(older, newer)
        if not shared:
            return not (met[newer] or self._alternatives(older, newer))
        if not met[newer] and CHANGE not in bags[newer] and all(t >= _FIRST for t in shared):
            # "Filip borrowed my trimmer" is no news of "I owe Marcos 100 euros".
            return True
        lacks = not met[older].keys() <= met[newer].keys()
        is_subject = shared <= self._signals.query_terms and len(met[newer]) < 2
        if lacks and is_subject and not any(met[newer].values()):
            # "Ada lives in Bonn now" is no news of "Ada is allergic to nuts".
            return not self._alternatives(older, newer)
        # "Lena's birthday is on 4 June", and Lea's.
        alike = 2 * len(bags[older] & bags[newer]) >= max(map(len, (bags[older], bags[newer])))
        return alike and any(
            not by and word not in met[newer] and not _means_something(word)
            for word, by in met[older].items()
        )

    def _lacks_wanted(self, older: int, newer: int) -> bool:
        """Whether the older alone has what the question wants: a name, a value."""
        entries, wants = self._entries, self._signals.wants
        return has_wanted(entries[older], wants) and not has_wanted(entries[newer], wants)

    def _alternatives(self, older: int, newer: int) -> frozenset[str]:
        """The classes of which both have a member; asked for the plumber, no electrician is one."""
        query_terms = self._signals.query_terms
        return frozenset(
            code
            for code in self._members_of(older) & self._bags[newer]
            if code in query_terms or chr(ord(code) & ~1) not in query_terms
        )

    def _shared(self, older: int, newer: int) -> frozenset[str]:
        return self._bags[newer] & self._topics_of(older)

    def features(self, older: int, newer: int) -> dict[str, float]:
        """The features of a pair that may follow, by the names of `WEIGHTS`.

        Whether the newer is the best match of all that follow, has all of the question that the
        older has, and lacks the name or value that is wanted; how much of their words they share,
        and whether the topics of nothing else that follows are as similar; whether they share any
        topic, how rare the rarest is, whether one beyond the question is in no other statement
        ("Chloé moved to Halifax"), and whether they share two; whether the newer tells of a
        change; the terms of the older.
        """
        met, followers = self._signals.met, self._followers_of(older)
        weights, shared = self._weights_of(older), self._shared(older, newer)
        beyond = (topic for topic in shared - self._signals.query_terms if topic < _FIRST)
        bags = self._bags[older], self._bags[newer]
        return {
            "always": 1.0,
            "best": float(newer == followers.best),
            "answers all": float(met[older].keys() <= met[newer].keys()),
            "lacks": float(self._lacks_wanted(older, newer)),
            "alike": 2 * len(bags[0] & bags[1]) / (len(bags[0]) + len(bags[1])),
            "most similar": float(0 < followers.similarities.get(newer, 0) == followers.highest),
            "topic": float(bool(shared)),
            "rarest": max(map(weights.__getitem__, shared), default=0.0) / self._rarest,
            "rare": float(any(weights[topic] == self._rarest for topic in beyond)),
            "two": float(len(shared) > 1),
            "change": float(CHANGE in self._bags[newer]),
            "length": _length(self._entries[older]),
        }

    def _rarity(self, label: str) -> float:
        """The weight of a term or code by the number of the statements that have it."""
        return math.log1p(len(self.all) / self._spread[label])

    def _followers_of(self, at: int) -> _Followers:
        if at not in self._followers:
            weights, bags = self._weights_of(at), self._bags
            after, own = self._told_after(at), self._topics_of(at)
            norm = sum(weights.values())
            similarities: dict[int, float] = {}
            for other in after:
                if not own.isdisjoint(bags[other]):
                    whole = norm * sum(self._weights_of(other).values())
                    shared = sum(map(weights.__getitem__, own & bags[other]))
                    similarities[other] = shared / math.sqrt(whole)
            best = max(after, key=self._matches.__getitem__, default=-1)
            if best >= 0 and not self._matches[best]:
                best = -1
            others = [other for other in after if other not in similarities]
            highest = max(similarities.values(), default=0.0)
            self._followers[at] = _Followers(similarities, highest, others, best)
        return self._followers[at]

    def _told_after(self, at: int) -> list[int]:
        actor, entries = self._entries[at].actor, self._entries
        return [
            other
            for other in self._told[self._places[at] + 1 :]
            if entries[other].actor == actor and not entries[other].superseded_by
        ]

    def _topics_of(self, at: int) -> frozenset[str]:
        if at not in self._topics:
            self._topics[at] = _topics(self._bags[at])
        return self._topics[at]

    def _weights_of(self, at: int) -> Mapping[str, float]:
        """Its topics, each with a weight by the number of the statements that have it."""
        if at not in self._weights:
            self._weights[at] = {topic: self._rarity(topic) for topic in self._topics_of(at)}
        return self._weights[at]

    def _members_of(self, at: int) -> frozenset[str]:
        """The codes of the classes of which it has a member."""
        codes = self._entries[at].codes
        return frozenset(code for code in codes if code >= _FIRST and ord(code) & 1)


class _Followers(msgspec.Struct, frozen=True):
    """The statements that their speaker told after another.

    Attributes:
        similarities: how similar those are that share a topic.
        highest: the highest of these, or 0.
        others: those that share none.
        best: the best match of all, or -1.
    """

    similarities: Mapping[int, float]
    highest: float
    others: Sequence[int]
    best: int


def _is_short(entry: Candidate) -> bool:
    """Whether it is a memory that is a statement by itself."""
    return MEMORIES.has(entry.key) and not entry.is_turn and _length(entry) <= _LONGEST


def _length(entry: Candidate) -> int:
    """The number of its terms."""
    return entry.terms.count(" ") + 1


def _bag(entry: Candidate) -> frozenset[str]:
    """Its terms and codes, but for that of a value, which has a term or a code of its own."""
    return frozenset((*entry.terms.split(), *entry.codes.replace(VALUE, "")))


def _place(entry: Candidate) -> tuple[float, int]:
    """Its place in time; of the same moment, in the order of storing."""
    return entry.created_at, entry.key


def _topics(bag: Iterable[str]) -> frozenset[str]:
    """What a statement is about: terms with a topic, and codes of concepts without classes."""
    return frozenset(filter(_is_topic, bag))


@lru_cache(1_024)
def _means_something(word: str) -> bool:
    """Whether a word of a question is a known one, and no name."""
    return any(thesaurus().meanings(word))


@lru_cache(4_096)
def _is_topic(label: str) -> bool:
    """Not what texts about anything share: "now", a weekday, a currency, being called."""
    if label >= _FIRST:
        is_class = ord(label) & 1
        return not is_class and label not in _general() and thesaurus().field_of(label) != "time"
    return (
        label < _FIRST_DATE
        and not label[0].isdigit()
        and label not in _little()
        and not joins_words(label)
        and not _is_of_anything(label)
        and label not in _changing()
        and cue("changes").pattern.fullmatch(label) is None
    )


def _is_of_anything(term: str) -> bool:
    """Whether a term means nothing but what may be said of anything, such as "sold"."""
    codes = [code for code in thesaurus().codes_of(term) if not ord(code) & 1]
    return bool(codes) and _general().issuperset(codes)


@cache
def _changing() -> frozenset[str]:
    """The terms of words that tell of a change, such as "neuerdings", and of nothing else."""
    return frozenset(terms_of(" ".join(filter(str.isalpha, (*each("changes"), *each("turns"))))))


@cache
def _general() -> frozenset[str]:
    """The codes of the concepts that are no topic by their names."""
    names = enumerate(thesaurus().names)
    return frozenset(chr(FIRST_CODE + 2 * at) for at, name in names if name in _GENERAL)


@cache
def _little() -> frozenset[str]:
    general = words("days", "units")
    return little_terms() | number_terms() | frozenset(terms_of(" ".join(general)))
