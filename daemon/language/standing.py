"""Whether a statement stands: holds until somebody takes it back, whatever an agent is asked.

Who somebody is, how to answer, what must never happen, what a body cannot bear. There are more
ways to say this than phrases could list, so a sentence is weighed: what speaks for it (never,
nobody, only, a limit, health, an order) against what tells of one event (a past tense, a day, a
place, a doubt). A sentence has each signal once, however many words tell it. The words are those
of `[standing]` in the lexicon, and those of the concepts of some fields of life;
`tests/benchmarks/fit_standing.py` fits the weights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final

from ..memory.records import is_outside
from ..memory.similarity import fold
from .cues import is_injected, names_told, signals_of
from .openings import Entry, Finder
from .sentences import dictated_parts, sentences
from .thesaurus import FIRST_CODE, thesaurus
from .vocabulary import cue, entries_of, languages, whole_expression

# A longer text is a document and not a statement: it would fill the context block by itself.
_LONGEST: Final = 400
# Several words that somebody else said or wrote.
_CITED: Final = re.compile(r"(?<!\w)[\"“„«](?:[^\"“”„«»\n ]+ ){2,}[^\"“”„«»\n]*[\"”“»](?!\w)")
_WORD: Final = re.compile(r"[\w']+")
_THRESHOLD: Final = 2.5
# What may stand: shown where it has to do with a request.
_POSSIBLE: Final = 1.2
# What else speaks against a sentence, and for it: cues, and the signals that they are.
_CUES: Final = ({"bygone": "bygone"}, {"rule": "rule", "vital": "vital", "identity": "vital"})
_BEFORE: Final = r"(?:(?<!\w)|(?=[,;:.=-]))"
# The fields of life whose concepts are signals, and the concepts of another one.
_FIELDS: Final = frozenset({"body", "food", "family"})
_CONTACT: Final = frozenset({
    "answer_reply", "chat_app", "contact_reach", "email", "letter", "message", "phone",
    "phone_call", "photo", "talk", "tell_mention", "visit", "voicemail", "whatsapp",
})  # fmt: skip
_MEDICINES: Final = frozenset({
    "acid_reducer", "adhd_medicine", "anticonvulsant", "antidepressant", "antipsychotic",
    "beta_blocker", "blood_thinner", "diuretic", "immunosuppressant", "inhaler", "insulin",
    "levothyroxine", "metformin", "statin",
})  # fmt: skip
# What limits the one answer that is asked for: "give me three ideas, no essays".
_OF_ONE_ANSWER: Final = frozenset({"bound", "limit", "no_such", "answers"})
# Signals that say something else together.
_PAIRS: Final = (("not", "family"), ("not", "contact"), ("am", "trade"))
# What concepts add to a sentence, but for few.
_MOST_OF_CONCEPTS: Final = 4.0
_BEGIN, _END = r"(?<![\w'])", r"(?![\w'])"
WEIGHTS: Final[Mapping[str, float]] = {
    "vital": 4.7, "forbidden": 3.3, "rule": 3.2, "rules": 3.2, "medicine": 2.6, "whatever": 2.5,
    "am trade": 2.4, "am": 2.4, "when_you": 2.3, "restricts": 2.3, "harms": 2.2, "please": 2.0,
    "dose": 1.9, "forbids": 1.9, "always": 1.8, "answers": 1.7, "limit": 1.7, "bound": 1.7,
    "follows": 1.6, "ordered": 1.5, "reacts": 1.5, "does_not": 1.4, "no_such": 1.3, "not": 1.3,
    "nobody_does": 1.1, "only": 1.1, "contact": 1.0, "to_me": 0.9, "must": 0.9, "health": 0.8,
    "orders": 0.8, "body": 0.7, "recurs": 0.6, "not family": 0.6, "nobody": 0.5, "needs": 0.4,
    "family": 0.2, "may_not": -0.1, "food": -0.2, "trade": -0.3, "lies": -0.6, "doubted": -0.9,
    "not contact": -1.0, "has_been": -1.1, "asks_now": -1.1, "bygone": -1.2, "was": -1.3,
    "dated": -1.7,
}  # fmt: skip


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
        # Exact in any order: those of a set differ between processes.
        math.fsum(WEIGHTS.get(name, 0.0) for name in signals(sentence, threshold)) > threshold
        and "question" not in signals_of(sentence)
        for whole in sentences(_CITED.sub(" ", text))
        for sentence in dictated_parts(whole)
    )


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
    if _in_favour(names) + _MOST_OF_CONCEPTS <= least:
        return frozenset()
    # The signals that concepts are.
    meant = map(_concepts().get, thesaurus().codes_of(sentence))
    names.update(filter(None, meant))
    names.update(f"{first} {second}" for first, second in _PAIRS if names >= {first, second})
    if _in_favour(names) <= least:
        return frozenset()
    names.update(_phrases(favourable=False).names_in(folded))
    if "asks_now" in names:
        names -= _OF_ONE_ANSWER
    return frozenset(names - {"vital"} if "doubted" in names else names)


def _in_favour(names: Iterable[str]) -> float:
    return math.fsum(max(0.0, WEIGHTS.get(name, 0.0)) for name in names)


@cache
def _concepts() -> Mapping[str, str]:
    """The signals that concepts are, by their codes."""
    known: dict[str, str] = {}
    for at, name in enumerate(thesaurus().names):
        for code in map(chr, (FIRST_CODE + 2 * at, FIRST_CODE + 2 * at + 1)):
            if name in _MEDICINES:
                known[code] = "medicine"
            elif (field := thesaurus().field_of(code)) in _FIELDS:
                known[code] = field
            elif name in _CONTACT:
                known[code] = "contact"
            elif name == "profession":
                known[code] = "trade"
    return known


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
