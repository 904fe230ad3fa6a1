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
from .openings import Entry, Finder
from .sentences import sentences
from .vocabulary import cue, entries_of, languages, whole_expression

# A longer text is a document and not a statement: it would fill the context block by itself.
_LONGEST: Final = 400
_WORD: Final = re.compile(r"[\w']+")
_THRESHOLD: Final = 2.4
# What else speaks against a sentence, and for it: cues, and the signals that they are.
_CUES: Final = ({"bygone": "bygone"}, {"rule": "rule", "vital": "vital", "identity": "vital"})
_BEFORE: Final = r"(?:(?<!\w)|(?=[,;:.=-]))"
_BEGIN, _END = r"(?<![\w'])", r"(?![\w'])"
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
    if is_outside(source) or len(text) > _LONGEST:
        return False
    is_standing = any(
        # Exact in any order: those of a set differ between processes.
        math.fsum(WEIGHTS.get(name, 0.0) for name in signals(sentence, _THRESHOLD)) > _THRESHOLD
        and "question" not in signals_of(sentence)
        for sentence in sentences(text)
    )
    return is_standing and not is_injected(text)


def signals(sentence: str, least: float = -1.0) -> frozenset[str]:
    """The names of the signals that a sentence has; none if those for it weigh at most `least`.

    Most sentences end there, and every store waits for it.
    """
    folded = fold(sentence)
    tokens = _WORD.findall(folded)
    names = {name for token in tokens for name in _words().get(token, ())}
    names.update(_phrases(favourable=True).names_in(folded))
    if "rule" in names and cue("one_off").any_in(folded):
        names.remove("rule")
    if "vital" not in names and names_told(sentence):
        names.add("vital")
    if math.fsum(max(0.0, WEIGHTS.get(name, 0.0)) for name in names) <= least:
        return frozenset()
    names.update(_phrases(favourable=False).names_in(folded))
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
def _phrases(*, favourable: bool) -> Finder:
    """Finds what speaks for a sentence, or against it, but for single words.

    A phrase may begin with a mark; `allerg*` is the beginning of a word, `*angst` the end of one.
    """
    entries: list[Entry] = []
    for name, item, expression, spaced in _listed():
        part = item.strip("*")
        if (WEIGHTS.get(name, 0.0) > 0) != favourable or (spaced and item.isalnum()):
            continue
        if spaced and part.isalnum():
            begin, end = ("" if item[at] == "*" else edge for at, edge in ((0, _BEGIN), (-1, _END)))
            entries.append((name, begin + part + end, None))
        else:
            entries.append((name, expression, _BEFORE if spaced else None))
    for name, signal in _CUES[favourable].items():
        entries += entries_of(name, signal)
    return Finder(entries)
