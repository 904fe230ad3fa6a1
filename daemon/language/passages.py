"""Joins a statement with what it leans on, so that each kept text can be read by itself.

Who writes as they speak leaves the subject to the sentence before: "The lid is under the step. Next
pump out 2029". Such a statement goes with the one before it, or with the question or the remark
that it replies to. Without any of these it is not kept if only a pronoun says what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from ..memory.indexing import index_words
from ..memory.similarity import fold
from .cues import WORD, Signal, content_words, is_bare_answer, is_lasting, says
from .persons import persons_in
from .references import noun_phrase
from .sentences import utf8_bytes
from .statements import SpokenSentence, continued
from .thesaurus import language_of
from .vocabulary import compiled, cue, words

_MOST_BYTES: Final = 360
_MOST_OF_REMARK: Final = 200
_HEADING_WORDS: Final = 6
# Languages in which a sentence has its subject in a word of its own.
_WITH_SUBJECTS: Final = frozenset({"en", "de"})
_NO_CONTEXT: Final[frozenset[Signal]] = frozenset({"greeting", "offer", "hedge", "request"})
_CLAUSE: Final = re.compile(r"[,;:] | - ")
# "I'll let it settle", "we park them": what is meant was said before.
_MEANT: Final = re.compile(r"\b(?:it|them|em)\b")
_PRONOUN: Final = r"(?i:{he}|{she}|{it}|{they}|thats|theyre|shes|hes)(?:['’]\w+)?(?!\w)"


def passages(
    kept: Iterable[SpokenSentence], transcript: Sequence[SpokenSentence]
) -> Iterator[SpokenSentence]:
    """The kept statements of a talk, each with what it leans on; some are left out."""
    before = {(two.place, two.original): one for one, two in pairwise(transcript)}
    has_subjects = _language(transcript) in _WITH_SUBJECTS
    last: SpokenSentence | None = None
    for statement in kept:
        context = before.get((statement.place, statement.original))
        heading = _heading(context, statement)
        if last and not heading and _goes_on(last, statement, has_subjects=has_subjects):
            last = continued(last, statement)
            continue
        if last:
            yield last
        last = statement
        if heading:
            last = continued(heading, statement)
        elif _leans(statement, has_subjects=has_subjects):
            last = _completed(statement, context)
    if last:
        yield last


def _goes_on(last: SpokenSentence, statement: SpokenSentence, *, has_subjects: bool) -> bool:
    """Whether a statement leans on what its speaker said before it in the same turn."""
    if (last.place, last.role) != (statement.place, statement.role):
        return False
    size = utf8_bytes(last.text) + utf8_bytes(statement.text)
    return size < _MOST_BYTES and _leans(statement, has_subjects=has_subjects)


def _leans(statement: SpokenSentence, *, has_subjects: bool) -> bool:
    """Whether a statement does not say what it is about."""
    text = statement.text
    by_itself = statement.answers or statement.confirmed or statement.role != "user"
    if by_itself or "[" in text or " → " in text or is_lasting(statement.original):
        return False
    if compiled(_PRONOUN).match(text):
        return True
    if not has_subjects:
        return False
    folded = fold(text)
    clause = _CLAUSE.split(folded, maxsplit=1)[0]
    tokens = [re.split("['’]", token)[0] for token in WORD.findall(clause)]
    if not _own().isdisjoint(tokens):
        meant = _MEANT.search(clause)
        return meant is not None and content_words(clause[: meant.start()]) == 0
    return not (_names_subject(text, tokens) or any(persons_in(text, weak=False)))


@cache
def _own() -> frozenset[str]:
    return words("self") | words("ours") | words("my_own")


def _names_subject(text: str, tokens: Sequence[str]) -> bool:
    """Whether a text begins with a noun phrase, as far as its article or its verb tells."""
    if not tokens or tokens[0][0].isdigit():
        return False
    is_verb = cue("is_or_has").pattern.fullmatch
    if len(tokens) > 1 and tokens[0] in words("articles") | words("determiners"):
        return tokens[1] not in words("vague_nouns") and not is_verb(tokens[1])
    return bool(noun_phrase(text))


def _heading(context: SpokenSentence | None, statement: SpokenSentence) -> SpokenSentence | None:
    """The sentence before, if it names what comes next: "Now the stall."."""
    if context is None or (context.place, context.role) != (statement.place, statement.role):
        return None
    brief = len(WORD.findall(context.original)) <= _HEADING_WORDS
    return context if brief and says("heading", context.original) else None


def _completed(statement: SpokenSentence, context: SpokenSentence | None) -> SpokenSentence | None:
    """The statement behind the sentence before it; None if it means nothing without."""
    remark = context is not None and statement.place - context.place <= 1
    if remark and not context.signals & _NO_CONTEXT and not is_bare_answer(context.original):
        if 1 < content_words(context.original) and utf8_bytes(context.text) < _MOST_OF_REMARK:
            return continued(replace(statement, text=context.text, original=context.original), statement)
    return None if compiled(_PRONOUN).match(statement.text) else statement


def _language(transcript: Sequence[SpokenSentence]) -> str:
    told = " ".join(sentence.original for sentence in transcript)
    return language_of(frozenset(index_words(told.lower())))
