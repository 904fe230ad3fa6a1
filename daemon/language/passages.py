"""Joins a statement with what it leans on, so that each kept text can be read by itself.

Who writes as they speak leaves the subject to the sentence before: "The lid is under the step. Next
pump out 2029". Such a statement goes with the one before it, or with the question or the remark
that it replies to. Without any of these it is not kept if only a pronoun says what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from ..memory.indexing import index_words
from ..memory.similarity import fold
from .cues import WORD, Signal, content_words, is_bare_answer, is_lasting, says
from .keeping import is_of_life, signals
from .persons import persons_in
from .references import WORTHLESS, begins_with_pronoun, noun_phrase
from .sentences import utf8_bytes
from .statements import SpokenSentence, continued
from .thesaurus import language_of
from .vocabulary import cue, words

_MOST_BYTES: Final = 480
_MOST_OF_REMARK: Final = 200
_HEADING_WORDS: Final = 6
# After this number of words "it" is one of them: "chose Postgres for the ledger as it is fast".
_OBJECTS: Final = 2
# With fewer words that tell something a statement without subject and verb says nothing.
_TELLING: Final = 3
# Languages in which a sentence has its subject in a word of its own.
_WITH_SUBJECTS: Final = frozenset({"en", "de"})
_NO_CONTEXT: Final[frozenset[Signal]] = frozenset({"greeting", "offer", "hedge", "request"})
_POLITE: Final = re.compile(r"\b(?:Sie|Ihnen|Ihr\w{0,2}|ihr)\b")
_CLAUSE: Final = re.compile(r"[,;:] | - ")


def passages(
    kept: Iterable[SpokenSentence], transcript: Sequence[SpokenSentence]
) -> Iterator[SpokenSentence]:
    """The kept statements of a talk, each with what it leans on; some are left out."""
    has_subjects = _language(transcript) in _WITH_SUBJECTS
    statements = [item for item in kept if item.role != "user" or not _is_heading(item)]
    known = {(item.place, item.original) for item in statements}
    before = {
        (two.place, two.original): one for one, two in pairwise(transcript) if two.role == "user"
    }
    last: SpokenSentence | None = None
    place = -1
    for statement in statements:
        context = _context(statement, before, known)
        named = context if context and context.role == "user" and _is_subject(context) else None
        leans = _leans(statement, has_subjects=has_subjects)
        replies = context and context.role == "agent" and says("replies", statement.original)
        leans = leans or bool(replies and not statement.answers and "[" not in statement.text)
        # "Where is it?" goes on from what the user said in the turn before.
        points = statement.answers or (last is not None and _points_at(last, statement))
        apart = statement.place - place - 2 * bool(points and not replies)
        place = statement.place
        if last and leans and not named and apart <= 0 and _has_room(last, statement):
            last = continued(last, statement)
            continue
        if last:
            yield last
        last = statement
        if context and (leans or _is_heading(context)):
            whole = replace(statement, text=context.text, original=context.original)
            last = continued(whole, statement)
        elif leans:
            last = _alone(statement)
    if last:
        yield last


def _points_at(last: SpokenSentence, statement: SpokenSentence) -> bool:
    """Whether a statement may speak of whom the last one names, or means as well."""
    is_of_somebody = says("pointing", last.text) or any(persons_in(last.text, weak=True))
    return is_of_somebody and says("pointing", statement.text)


def _context(
    statement: SpokenSentence,
    before: Mapping[tuple[int, str], SpokenSentence],
    known: Collection[tuple[int, str]],
) -> SpokenSentence | None:
    """What was said right before a statement, and is not kept by itself, from its subject on."""
    context: SpokenSentence | None = None
    item = before.get((statement.place, statement.original))
    if item and "correction" in statement.signals:
        # What it corrects is no context of it.
        item = before.get((item.place, item.original))
    while item and (item.place, item.original) not in known and _is_context(item, statement):
        context = continued(item, context) if context else item
        if item.role != "user" or _is_subject(item) or utf8_bytes(context.text) > _MOST_OF_REMARK:
            break
        item = before.get((item.place, item.original))
        if item and item.role != "user":
            break
    return context


def _is_subject(sentence: SpokenSentence) -> bool:
    """Whether a sentence names what the next ones are about."""
    return _is_heading(sentence) or _names(sentence.text)


def _has_room(last: SpokenSentence, statement: SpokenSentence) -> bool:
    size = utf8_bytes(last.text) + utf8_bytes(statement.text)
    return last.role == statement.role and size < _MOST_BYTES


def _leans(statement: SpokenSentence, *, has_subjects: bool) -> bool:
    """Whether a statement does not say what it is about."""
    text = statement.text
    by_itself = statement.confirmed or statement.role != "user" or is_lasting(statement.original)
    if by_itself or "[" in text or " → " in text:
        return False
    if statement.answers:
        return says("pointing", _POLITE.sub("", statement.original.partition("?")[0]))
    if begins_with_pronoun(text) or says("leans", text):
        return True
    if not has_subjects:
        return False
    clause = _CLAUSE.split(fold(text), maxsplit=1)[0]
    tokens = [re.split("['’]", token)[0] for token in WORD.findall(clause)]
    if not _own().isdisjoint(tokens):
        meant = cue("pointing").pattern.search(clause)
        return meant is not None and content_words(clause[: meant.start()]) < _OBJECTS
    return not _names(text)


@cache
def _own() -> frozenset[str]:
    return words("self") | words("ours") | words("my_own")


def _names(text: str) -> bool:
    """Whether a text begins with a noun phrase, as far as its article or its verb tells."""
    tokens = WORD.findall(fold(text))
    if not tokens or tokens[0][0].isdigit():
        return False
    is_verb = cue("is_or_has").pattern.fullmatch
    if len(tokens) > 1 and tokens[0] in words("articles") | words("determiners"):
        return tokens[1] not in words("vague_nouns") and not is_verb(tokens[1])
    return bool(noun_phrase(text)) or any(persons_in(text, weak=False))


def _is_heading(sentence: SpokenSentence) -> bool:
    """Whether a sentence only names what comes next: "Now the stall."."""
    brief = len(WORD.findall(sentence.original)) <= _HEADING_WORDS
    return brief and says("heading", sentence.original)


def _alone(statement: SpokenSentence) -> SpokenSentence | None:
    """A statement that leans on nothing that was said; None if it means nothing then."""
    brief = content_words(statement.text) < _TELLING and not is_of_life(statement.text)
    brief = brief and not says("clause", statement.text)
    return None if brief or statement.answers or begins_with_pronoun(statement.text) else statement


def _is_context(context: SpokenSentence, statement: SpokenSentence) -> bool:
    """Whether the sentence before says what a statement is about."""
    if context.signals & _NO_CONTEXT or says("unreal", context.original):
        return False
    if context.role == "user" and context.worth <= WORTHLESS:
        return False
    if context.place == statement.place and not _is_subject(context):
        told = signals(context.original, (), answers=False)
        # "Next thing": what was said before is another.
        brief = len(WORD.findall(context.original)) <= _HEADING_WORDS
        if (brief and "steers" in told) or "others_believe" in told:
            return False
    # Who replies to a remark does not always speak of it.
    replies = context.role != "user" and says("replies", statement.original)
    if context.place < statement.place and not replies:
        return False
    return (
        content_words(context.original) > 0
        and not is_bare_answer(context.original)
        and utf8_bytes(context.text) < _MOST_OF_REMARK
    )


def _language(transcript: Sequence[SpokenSentence]) -> str:
    told = " ".join(sentence.original for sentence in transcript)
    return language_of(frozenset(index_words(told.lower())))
