"""Whether a statement stands: holds until somebody takes it back, whatever an agent is asked.

Who somebody is, how to answer, what must never happen, what a body cannot bear. There are more
ways to say this than phrases could list, so a sentence is weighed by a logistic regression: of its
words and concepts ("penicillin", "hives", "sign off"), and of signals that phrases tell: what
speaks for it (never, nobody, only, a limit, an order) and against (a past tense, a day, a doubt).
The phrases are those of `[standing]` in the lexicon; the weights of `standing.toml` are fitted by
`tests/benchmarks/fit_standing.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from ..memory.records import is_outside
from ..memory.similarity import fold
from ..memory.stemming import terms_of
from .cues import is_injected, names_told, signals_of
from .openings import Entry, Finder
from .sentences import dictated_parts, sentences
from .vocabulary import cue, entries_of, languages, not_topics, whole_expression
from .weights import FittedWeights, concepts_in

_FILE: Final = Path(__file__).with_name("standing.toml")
# A longer text is a document and not a statement: it would fill the context block by itself.
_LONGEST: Final = 400
# The logarithm of the odds above which a statement stands; and above which it may, and is shown
# where it has to do with a request.
_THRESHOLD: Final = 0.0
_POSSIBLE: Final = -1.0
# The most that signals add, but for few sentences.
_MOST_OF_SIGNALS: Final = 4.0
# Several words that somebody else said or wrote.
_CITED: Final = re.compile(r"(?<!\w)[\"“„«](?:[^\"“”„«»\n ]+ ){2,}[^\"“”„«»\n]*[\"”“»](?!\w)")
_WORD: Final = re.compile(r"[\w']+")
# Cues of other purposes, and the signals that they are.
_CUES: Final = {"bygone": "bygone", "rule": "rule", "vital": "vital", "identity": "vital"}
_HARMFUL: Final = frozenset({"health", "vital"})
_OVER: Final = frozenset({"was", "has_been", "bygone", "dated", "doubted"})
_BEFORE: Final = r"(?:(?<!\w)|(?=[,;:.=-]))"
_BEGIN, _END = r"(?<![\w'])", r"(?![\w'])"
# What limits the one answer that is asked for: "give me three ideas, no essays".
_OF_ONE_ANSWER: Final = frozenset({"bound", "limit", "no_such", "answers"})


def is_standing_statement(text: str, source: str = "") -> bool:
    """Whether any sentence of a short text holds until somebody takes it back.

    Questions, suppositions, reports of the past, attempts to instruct a model and what came from
    an outside source are not standing.
    """
    return not is_outside(source) and _exceeds(text, _THRESHOLD) and not is_injected(text)


def may_stand(text: str) -> bool:
    """Whether a short text may hold until somebody takes it back: likelier than most others.

    Cached for a thousand texts, since the questions of a session find the same memories.
    """
    return len(text) <= _LONGEST and _may_stand(text)


@lru_cache(1_024)
def _may_stand(text: str) -> bool:
    return _exceeds(text, _POSSIBLE)


def _exceeds(text: str, threshold: float) -> bool:
    return len(text) <= _LONGEST and any(
        _odds(part, threshold) > threshold and "question" not in signals_of(part)
        for part in parts_of(text)
    )


def parts_of(text: str) -> Iterator[str]:
    """The sentences of a text, or what was dictated in a breath, without what they quote."""
    for sentence in sentences(_CITED.sub(" ", text)):
        yield from dictated_parts(sentence)


def _odds(sentence: str, least: float) -> float:
    """The logarithm of the odds that a sentence stands, exact if it is greater than `least`."""
    weights = _weights()
    concepts = weights.of_concepts(concepts_in(sentence))
    odds = math.fsum((weights.always, *weights.of_words(words_in(sentence)), *concepts))
    # Most sentences end here, and every store waits for it.
    if odds + _MOST_OF_SIGNALS <= least:
        return odds
    names = signals(sentence)
    if names >= _HARMFUL and names.isdisjoint(_OVER):
        # "Allergic to eggs": what does harm is of no account.
        odds -= math.fsum(weight for weight in concepts if weight < 0.0)
    return math.fsum((odds, *(weights.signals.get(name, 0.0) for name in names)))


def words_in(sentence: str) -> frozenset[str]:
    """The stems of a sentence's words, but for words of grammar: what those say, signals do."""
    return frozenset(terms_of(sentence)) - _grammar()


@cache
def _grammar() -> frozenset[str]:
    return frozenset(terms_of(" ".join(not_topics())))


def signals(sentence: str) -> frozenset[str]:
    """The names of the signals that the phrases of a sentence tell; each counts once."""
    folded = fold(sentence)
    names = {name for token in _WORD.findall(folded) for name in _words().get(token, ())}
    names.update(_phrases().names_in(folded))
    if "rule" in names and cue("one_off").any_in(folded):
        names.remove("rule")
    if "vital" not in names and names_told(sentence):
        names.add("vital")
    if "asks_now" in names:
        names -= _OF_ONE_ANSWER
    if "ordered" in names:
        # "The vet said that he has to …" tells of the order, and not of the past.
        names.discard("was")
    return frozenset(names - {"vital"} if "doubted" in names else names)


def _listed() -> Iterator[tuple[str, str, str, bool]]:
    """Each signal with its items: as written, as an expression, and whether of whole words."""
    for language in languages():
        for name, items in language.standing.items():
            for item in items:
                yield name, item, whole_expression(language, item), language.spaced


@cache
def _words() -> Mapping[str, frozenset[str]]:
    """The signals of each word that tells one by itself."""
    known: dict[str, frozenset[str]] = {}
    for name, item, _, spaced in _listed():
        if spaced and item.isalnum():
            known[item] = known.get(item, frozenset()) | {name}
    return known


@cache
def _phrases() -> Finder:
    """Finds the signals but for single words.

    A phrase may begin with a mark; `allerg*` is the beginning of a word, `*angst` the end of one.
    """
    entries: list[Entry] = []
    for name, item, expression, spaced in _listed():
        part = item.strip("*")
        if spaced and item.isalnum():
            continue
        if spaced and part.isalnum():
            begin, end = ("" if item[at] == "*" else edge for at, edge in ((0, _BEGIN), (-1, _END)))
            entries.append((name, begin + part + end, None))
        else:
            entries.append((name, expression, _BEFORE if spaced else None))
    for name, signal in _CUES.items():
        entries += entries_of(name, signal)
    return Finder(entries)


@cache
def _weights() -> FittedWeights:
    return FittedWeights.read(_FILE)
