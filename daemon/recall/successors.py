"""Which statement among the candidates probably tells what became of another.

"The thali is £14.95", told before "people pay £16.50 for a thali", is still likely the best match
of "what do we charge for the thali?". Such a pair is ordered by a logistic model of five features,
fitted on corrections and on statements that only look like them. It changes nothing but the order
of an answer; what surely replaces something is marked when it is stored (`store.supersession`).
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from heapq import nlargest
from itertools import chain, islice
from typing import Final

from ..language.dates import DAY_CODE
from ..language.meaning import BEING, CHANGE
from ..language.thesaurus import FIRST_CODE
from .pool import Pool
from .query import Query
from .signals import Signals, has_wanted, little_terms, number_terms
from .sources import MEMORIES, Candidate

# The best statements that something may have become of, and their least share of the best match.
_BEST: Final = 2
_LEAST_SHARE: Final = 0.7
_MOST: Final = 3
_SERIES: Final = 4
# The share of statements that have a topic that says nothing.
_COMMON: Final = 0.25
# Statements of one being share at least a role and a name.
_WITH_NAME: Final = 2
# The maximum number of later memories that are looked up by the topics of the best.
_LATER: Final = 12
# Longer texts, in terms, say more than one thing.
_LONGEST: Final = 22
_FIRST: Final = chr(FIRST_CODE)
_FIRST_DATE: Final = chr(DAY_CODE)
# The logarithm of the odds by feature (`tests/benchmarks/fit_successors.py`): the weight of the
# topics that both have, as a share of the older's; whether one beyond the question is in no
# other statement ("Chloé moved to Halifax"); whether the newer tells of a change; the share of the
# question's words that only the older has; the terms of the older.
WEIGHTS: Final = {
    "always": 1.7, "shared": 3.8, "rare": 2.3, "change": 1.3, "missing": -3.4, "length": -0.38,
}  # fmt: skip
# A question for what was true before says itself that something became of it.
_ONCE: Final = 1.5


def later_rows(db: sqlite3.Connection, query: Query, pool: Pool) -> list[int]:
    """The newest memory rows that share a topic beyond the question with its best statements.

    What became of something is often told without a word of the question: "the Transit lives in the
    yard now".
    """
    labels = {label for word in query.words for label in (word.term, *word.codes)}
    short = (entry for entry in pool.entries if _is_short(entry))
    best = list(islice(short, _BEST))
    topics: dict[str, None] = {}
    for entry in best:
        topics |= dict.fromkeys(_topics(_labels(entry)) - labels)
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
    """Pairs of an older statement and the newer one that probably tells what became of it.

    One of each pair is among the best matches: the older, or with `once` the newer.
    """
    statements = Statements(pool, signals)
    best = nlargest(_BEST, statements.all, key=matches.__getitem__)
    pairs: list[tuple[int, int]] = []
    for at in best:
        if matches[at] < _LEAST_SHARE * matches[best[0]]:
            break
        if once and (pool.entries[at].superseded_by or any(at == older for older, _ in pairs)):
            continue
        least = -_ONCE if once else 0.0
        candidates = statements.before(at) if once else statements.after(at)
        odds = {
            pair: value
            for pair in (((other, at) if once else (at, other)) for other in candidates)
            if (value := statements.log_odds(*pair, least)) > least
        }
        # More of them are a series, such as the entries of a diary.
        if 0 < len(odds) <= _MOST:
            pairs.append(max(odds, key=odds.__getitem__))
    return pairs


class Statements:
    """The short statements of a pool.

    Attributes:
        all: their indexes in the pool.
    """

    def __init__(self, pool: Pool, signals: Signals) -> None:
        self._entries = pool.entries
        self._signals = signals
        self.all = [at for at, entry in enumerate(pool.entries) if _is_short(entry)]
        self._bags = {at: _labels(pool.entries[at]) for at in self.all}
        # A topic of more statements says nothing, unless the question has another one of both.
        self._least_weight = math.log1p(min(len(self.all) / _SERIES, 1 / _COMMON))
        self._topics: dict[int, dict[str, float]] = {}

    @cached_property
    def _spread(self) -> Counter[str]:
        """The number of statements that have each term or code."""
        return Counter(chain.from_iterable(self._bags.values()))

    def after(self, at: int) -> Iterator[int]:
        """The statements that their speaker told after another."""
        entries, told = self._entries, self._entries[at]
        for other in self.all:
            entry = entries[other]
            if entry.actor != told.actor or entry.superseded_by:
                continue
            if _place(entry) > _place(told):
                yield other

    def before(self, at: int) -> Iterator[int]:
        """The statements that their speaker told before another."""
        entries, told = self._entries, self._entries[at]
        for other in self.all:
            if entries[other].actor == told.actor and _place(entries[other]) < _place(told):
                yield other

    def log_odds(self, older: int, newer: int, least: float) -> float:
        """The logarithm of the odds that the newer tells what became of the older.

        -inf if it may not follow it, or if the odds cannot be more than `least`.
        """
        if not self.may_follow(older, newer):
            return -math.inf
        odds = _weighted(self._features_of_each(older, newer))
        if odds + WEIGHTS["shared"] + WEIGHTS["rare"] <= least:
            return -math.inf
        return odds + _weighted(self._features_of_both(older, newer))

    def may_follow(self, older: int, newer: int) -> bool:
        """Whether they share a topic: beyond the question, or two of it, or one of which few speak.

        Of that one the newer must tell a change, or both a value.
        """
        topics = self._topics_of(older)
        shared = topics.keys() & self._bags[newer]
        # Most pairs end here.
        if not shared or (rarest := max(map(topics.__getitem__, shared))) < self._least_weight:
            return False
        if self._are_two_beings(older, newer, shared) or not self._may_answer(older, newer):
            return False
        met = self._signals.met
        if len(met[older].keys() & met[newer].keys()) > 1 or shared - self._signals.asked:
            return True
        if rarest < math.log1p(len(self.all) / _SERIES):
            return False
        return CHANGE in self._bags[newer] or all(
            has_wanted(self._entries[at], "value") for at in (older, newer)
        )

    def _may_answer(self, older: int, newer: int) -> bool:
        """Whether the newer can answer the question as the older does.

        It has the numbers of the question, a name or value if one is wanted, and unless it tells of
        a change one of the question's words itself where the older has one.
        """
        met, by_newer = (self._signals.met[at] for at in (older, newer))
        if any(word[0].isdigit() for word in met.keys() - by_newer.keys()):
            return False
        # "The dentist's appointment moved to Friday" changes nothing of who the dentist is.
        wants = self._signals.wants
        if has_wanted(self._entries[older], wants) and not has_wanted(self._entries[newer], wants):
            return False
        exact = [word for word, by in met.items() if not by]
        changes = CHANGE in self._bags[newer]
        return changes or not exact or any(by_newer.get(word) == "" for word in exact)

    def _are_two_beings(self, older: int, newer: int, shared: Iterable[str]) -> bool:
        """Whether both name somebody of a role and share no more than the role: two sisters."""
        if any(BEING not in self._bags[at] for at in (older, newer)):
            return False
        return sum(topic < _FIRST for topic in shared) < _WITH_NAME

    def features(self, older: int, newer: int) -> dict[str, float]:
        """The features of a pair that may follow, by the names of `WEIGHTS`."""
        return self._features_of_each(older, newer) | self._features_of_both(older, newer)

    def _features_of_each(self, older: int, newer: int) -> dict[str, float]:
        missing = self._signals.met[older].keys() - self._signals.met[newer].keys()
        return {
            "always": 1.0,
            "change": float(CHANGE in self._bags[newer]),
            "missing": len(missing) / max(1, self._signals.words),
            "length": _length(self._entries[older]),
        }

    def _features_of_both(self, older: int, newer: int) -> dict[str, float]:
        topics = self._topics_of(older)
        shared = topics.keys() & self._bags[newer]
        # The weight of a topic that only two statements have.
        rarest = math.log1p(len(self.all) / 2)
        rare = (topic for topic in shared - self._signals.asked if topic < _FIRST)
        return {
            "shared": sum(map(topics.__getitem__, shared)) / sum(topics.values()),
            "rare": float(any(topics[topic] == rarest for topic in rare)),
        }

    def _topics_of(self, at: int) -> Mapping[str, float]:
        """Its topics, each with a weight by the number of the statements that have it."""
        if at not in self._topics:
            self._topics[at] = {
                topic: math.log1p(len(self.all) / self._spread[topic])
                for topic in _topics(self._bags[at])
            }
        return self._topics[at]


def _weighted(features: Mapping[str, float]) -> float:
    return sum(WEIGHTS[name] * value for name, value in features.items())


def _is_short(entry: Candidate) -> bool:
    """Whether it is a memory that is a statement by itself."""
    return MEMORIES.has(entry.key) and not entry.is_turn and _length(entry) <= _LONGEST


def _length(entry: Candidate) -> int:
    """The number of its terms."""
    return entry.terms.count(" ") + 1


def _labels(entry: Candidate) -> set[str]:
    """Its terms and codes."""
    return {*entry.terms.split(), *entry.codes}


def _place(entry: Candidate) -> tuple[float, int]:
    """Its place in time; of the same moment, in the order of storing."""
    return entry.created_at, entry.key


def _topics(bag: Iterable[str]) -> frozenset[str]:
    """The terms with a topic of a statement, and the codes of its concepts without classes."""
    return frozenset(
        topic
        for topic in bag
        if (not ord(topic) & 1 if topic >= _FIRST else topic < _FIRST_DATE)
        and not topic[0].isdigit()
    ).difference(_little())


@cache
def _little() -> frozenset[str]:
    return little_terms() | number_terms()
