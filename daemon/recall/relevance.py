"""How likely a candidate answers a question, from 0 to 1, comparable between all questions.

A candidate answers if it contains most of the weight of the words that the question is about.
Words without a topic count little, and so do names of people about whom much is known; but a text
about another person than the question names is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from ..language.vocabulary import words
from ..memory.stemming import label_terms, terms_of, word_terms
from .pool import Pool
from .postings import Postings, weight_of
from .query import Query, little
from .sources import Candidate

# The coefficients of a logistic function. Fitted on questions about facts, alone and among
# conversations, with and without an answer. The threshold 0.2 best separates questions with an
# answer from those without.
CALIBRATION: Final = {
    "constant": -4.65,
    # BM25 of its own words over ln(1 + N).
    "evidence": 1.6,
    # The share of the question's weight in it, or in the turns next to it.
    "coverage": 6.0,
    "beside": 4.0,
    # ln(1 + the number of matched words).
    "matched": 0.4,
    # Turns seldom answer a question.
    "turn": -0.8,
    # It is about the known person that the question names.
    "person": 5.0,
    # It has no actor, and is in the first or second person, so that it does not contain a name.
    "spoken": 1.6,
    # A name of the question is missing in another person's statement, or in any other statement.
    "said by another": -0.5,
    "of another": -4.0,
}
_MOST_COVERAGE: Final = 1.2
_LITTLE: Final = 0.3
_NAME: Final = 0.5
# The weight of an unknown pair of characters, half of which join two words.
_PAIR: Final = 0.4
# The weight of a word that only begins alike.
_KIN: Final = 0.6
# The share of a name's weight that is dropped where a speaker would not say it.
_UNSAID: Final = 0.8
_BESIDE: Final = 2
# The number of topics up to which a missing name counts in full.
_TOPICS: Final = 3
# The relevance of anything in a time that was asked for.
_OF_TIME: Final = 0.6


@cache
def _spoken() -> frozenset[str]:
    return frozenset(terms_of(" ".join(words("self") | words("ours"))))


class _Word(msgspec.Struct, frozen=True):
    """A word of the question: its term, and its weights in texts and in the question.

    `about` is 1 for a topic, less for a name, and 0 for a word without a topic. `known` is
    whether any text contains it.
    """

    term: str
    found: float
    asked: float
    kin: frozenset[int]
    about: float
    name: bool
    known: bool


def relevance(
    query: Query,
    postings: Postings,
    pool: Pool,
    terms: Sequence[Sequence[str]],
    own: Sequence[float],
    filed: Mapping[str, Mapping[str, float]],
    columns: Mapping[str, Sequence[float]],
) -> Callable[[int], float]:
    """Returns a function from the index of a candidate to the likelihood that it answers.

    `terms` and `own` are the terms and the BM25 of each candidate, `columns` their signals, and
    `filed` the query's terms in each category, with their weights.
    """
    if query.of_time:
        return lambda _: _OF_TIME
    # A category, a person or a day counts by itself if there are no other words.
    worths = {"category": 0.5, "reasoned": 1.0, "phrase": 0.9}
    if not query.topics:
        worths |= {"actor": 0.5, "day": 0.6, "date": 0.5}
    sure = [(worth, columns[name]) for name, worth in worths.items() if name in columns]
    words = _words(query, postings)
    persons = columns.get("actor") if query.people else None

    def of(at: int) -> float:
        entry = pool.entries[at]
        found = {"constant": 1.0, "evidence": own[at] / (math.log1p(postings.size) or 1.0)}
        if query.people:
            found["person"] = 1.0 if persons is None else persons[at]
        found |= _matched(words, entry, set(terms[at]), _beside(pool, terms, at), filed)
        power = sum(CALIBRATION[name] * value for name, value in found.items())
        likely = 1 / (1 + math.exp(-max(-50.0, power)))
        return max(likely, *(worth * min(1.0, column[at]) for worth, column in sure), 0.0)

    return of


def _words(query: Query, postings: Postings) -> list[_Word]:
    shares = sum(query.shares.get(word, 1.0) for word in postings.unknown) or 1.0
    plain = weight_of(0, postings.size)
    known = {posting.word: posting for posting in postings.words}
    # Without other words a name is the topic.
    of_name = _NAME if set(query.words).difference(little(), query.names) else 1.0
    words: list[_Word] = []
    for word in (*known, *(word for word in postings.unknown if word not in known)):
        posting = known.get(word)
        found = posting.weight if posting is not None else 0.0
        kin = posting.kin if posting is not None else frozenset()
        asked = found
        if word in postings.unknown:
            asked = postings.unmet * query.shares.get(word, 1.0) / shares
            asked *= _PAIR if len(word) == 2 and not word.isascii() else 1.0
        name = word in query.names
        about = of_name if name and found else 0.0 if word in little() else 1.0
        share = about or _LITTLE
        words.append(
            _Word(
                "".join(word_terms(word)[:1]),
                (found or plain) * share,
                asked * share,
                kin,
                about,
                name,
                bool(found),
            )
        )
    return words


def _matched(
    words: Sequence[_Word],
    entry: Candidate,
    terms: set[str],
    beside: set[str],
    filed: Mapping[str, Mapping[str, float]],
) -> dict[str, float]:
    """The features of one candidate that its words give, by the names of `CALIBRATION`."""
    path = () if entry.is_turn else filed.get(entry.category, ())
    spoken = not entry.actor and not _spoken().isdisjoint(terms)
    said_by = label_terms(entry.actor)
    total = has = lent = matched = 0.0
    # One of several names is enough.
    missing = named = False
    for word in words:
        total += word.asked
        if word.term in terms or word.term in path:
            has += word.found
            named = named or word.name
            matched += word.about if word.about != _NAME else 0.6 * _NAME
        elif word.name and spoken:
            total -= _UNSAID * word.asked
        else:
            missing = missing or (word.name and word.known)
            named = named or (word.name and word.term in said_by)
            if entry.key in word.kin:
                has += _KIN * word.found
                matched += _KIN * (word.about == 1.0)
            elif word.term in beside:
                lent += word.found
    total = max(total, has / _MOST_COVERAGE) or 1.0
    found = {
        "coverage": has / total,
        "beside": lent / total,
        "matched": math.log1p(matched),
        "turn": float(entry.is_turn),
        "spoken": float(spoken),
    }
    if missing and not named:
        # The more topics a question has, the less a missing name says.
        topics = sum(word.about == 1.0 for word in words)
        found["said by another" if entry.actor else "of another"] = min(
            1.0, _TOPICS / (topics or 1)
        )
    return found


def _beside(pool: Pool, terms: Sequence[Sequence[str]], at: int) -> set[str]:
    near = (place for distance, place in pool.around(at) if abs(distance) <= _BESIDE)
    return set().union(*(terms[place] for place in near))
