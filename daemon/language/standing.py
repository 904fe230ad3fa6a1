"""Whether a statement stands: holds until somebody takes it back, whatever an agent is asked.

Who somebody is, how to answer, what must never happen, what a body cannot bear. There are more
ways to say this than phrases could list, so a sentence is weighed: what speaks for it (never,
nobody, only, a limit, health, an order) against what tells of one event (a past tense, a day, a
place, a doubt). A sentence has each signal once, however many words tell it. The words are those
of `[standing]` in the lexicon; `tests/benchmarks/fit_standing.py` fits the weights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from ..memory.records import is_outside
from ..memory.similarity import fold
from .cues import is_injected, names_told, signals_of
from .sentences import sentences
from .vocabulary import cue, languages, whole_expression

# A longer text is a document and not a statement: it would fill the context block by itself.
_LONGEST: Final = 400
_WORD: Final = re.compile(r"[\w']+")
_THRESHOLD: Final = 2.4
WEIGHTS: Final[Mapping[str, float]] = {
    "vital": 6.0, "rule": 5.6, "answers": 2.1, "does_not": 2.0, "forbidden": 1.8, "health": 1.8,
    "whatever": 1.8, "reacts": 1.7, "nobody_does": 1.5, "no_such": 1.4, "rules": 1.4,
    "bound": 1.4, "please": 1.3, "limit": 1.3, "orders": 1.0, "only": 1.0, "may_not": 1.0,
    "forbids": 0.9, "follows": 0.9, "to_me": 0.7, "always": 0.7, "contact": 0.7, "nobody": 0.7,
    "must": 0.6, "if": 0.5, "when_you": 0.5, "needs": 0.4, "rather": 0.3, "bygone": -0.2,
    "has_been": -0.5, "dated": -0.5, "lies": -0.5, "was": -0.8,
}  # fmt: skip


def is_standing_statement(text: str, source: str = "") -> bool:
    """Whether any sentence of a short text holds until somebody takes it back.

    Questions, suppositions, reports of the past, attempts to instruct a model and what came from
    an outside source are not standing.
    """
    if is_outside(source) or len(text) > _LONGEST or is_injected(text):
        return False
    return any(
        # Exact in any order: those of a set differ between processes.
        math.fsum(WEIGHTS.get(name, 0.0) for name in signals(sentence, _THRESHOLD)) > _THRESHOLD
        and "question" not in signals_of(sentence)
        for sentence in sentences(text)
    )


def signals(sentence: str, least: float = -1.0) -> frozenset[str]:
    """The names of the signals that a sentence has; none if those for it weigh at most `least`.

    Most sentences end there, and every store waits for it.
    """
    folded = fold(sentence)
    tokens = frozenset(_WORD.findall(folded))
    # Whether words are parted by blanks, as in all scripts but some beyond ASCII.
    scripts = (True,) if folded.isascii() else (True, False)
    names = {name for token in tokens & _words().keys() for name in _words()[token]}
    names |= {name for name, part in _affixes().items() if any(map(part.match, tokens))}
    for spaced in scripts:
        if _any_favourable(spaced).search(folded):
            favourable = _phrases(spaced, favourable=True).items()
            names |= {name for name, known in favourable if known.search(folded)}
    if cue("rule").search(folded) and not cue("one_off").search(folded):
        names.add("rule")
    if cue("vital").search(folded) or cue("identity").search(folded) or names_told(sentence):
        names.add("vital")
    if math.fsum(max(0.0, WEIGHTS.get(name, 0.0)) for name in names) <= least:
        return frozenset()
    for spaced in scripts:
        contrary = _phrases(spaced, favourable=False).items()
        names |= {name for name, known in contrary if known.search(folded)}
    if cue("bygone").search(folded):
        names.add("bygone")
    return frozenset(names - {"vital"} if "doubted" in names else names)


def _listed(*, spaced: bool) -> Iterator[tuple[str, str, str]]:
    """Each signal with each of its items, as written and as an expression."""
    for language in languages():
        for name, items in language.standing.items():
            for item in items if language.spaced == spaced else ():
                yield name, item, whole_expression(language, item)


@cache
def _words() -> Mapping[str, frozenset[str]]:
    """The signals of each word that tells one by itself."""
    known: dict[str, frozenset[str]] = {}
    for name, item, _ in _listed(spaced=True):
        if item.isalnum():
            known[item] = known.get(item, frozenset()) | {name}
    return known


@cache
def _affixes() -> Mapping[str, re.Pattern[str]]:
    """The beginnings and ends of words by which a signal is told."""
    parts: dict[str, list[str]] = {}
    for name, item, _ in _listed(spaced=True):
        if item.strip("*").isalnum() and not item.isalnum():
            parts.setdefault(name, []).append(item.replace("*", ".*"))
    return {name: re.compile(rf"(?:{'|'.join(items)})\Z") for name, items in parts.items()}


@cache
def _phrases(spaced: bool, *, favourable: bool) -> Mapping[str, re.Pattern[str]]:
    """An expression for each signal that phrases tell; a phrase may begin with a mark."""
    parts: dict[str, list[str]] = {}
    for name, item, expression in _listed(spaced=spaced):
        is_phrase = not (spaced and item.strip("*").isalnum())
        if is_phrase and (WEIGHTS.get(name, 0.0) > 0) == favourable:
            parts.setdefault(name, []).append(expression)
    around = (r"(?:(?<!\w)|(?=[,;:.=-]))(?:", r")(?!\w)") if spaced else ("", "")
    return {name: re.compile("|".join(items).join(around)) for name, items in parts.items()}


@cache
def _any_favourable(spaced: bool) -> re.Pattern[str]:
    """An expression for all of those together that speak for a sentence."""
    favourable = _phrases(spaced, favourable=True).values()
    return re.compile("|".join(known.pattern for known in favourable))
