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
from .corrections import denies, has_number, retracts
from .cues import (
    WORD,
    Signal,
    content_words,
    day_names,
    is_bare_answer,
    is_health,
    is_lasting,
    is_of_self,
    names_told,
    says,
)
from .keeping import is_of_life, is_worth_keeping, signals
from .persons import persons_in
from .references import WORTHLESS, begins_with_pronoun, noun_phrase
from .sentences import utf8_bytes
from .statements import SpokenSentence, continued, has_value
from .thesaurus import language_of
from .vocabulary import compiled, cue, words

_MOST_BYTES: Final = 480
_MOST_OF_REMARK: Final = 200
_HEADING_WORDS: Final = 6
# After this number of words "it" is one of them: "chose Postgres for the ledger as it is fast".
_OBJECTS: Final = 2
# With fewer words that tell something a statement without subject and verb says nothing.
_TELLING: Final = 3
# Languages in which a sentence has its subject in a word of its own.
_WITH_SUBJECTS: Final = frozenset({"en", "de"})
_VALUE_WORDS: Final = 10
_NO_VALUE: Final[frozenset[Signal]] = frozenset({"greeting", "offer", "question", "request"})
_NO_FACT: Final = frozenset(
    {"unreal", "others_believe", "others_say", "mood", "sky", "refutes", "unsure", "leaves"}
    | {"steers"}
)
_MATTERS: Final[frozenset[Signal]] = frozenset({"correction", "decision", "preference", "error"})
_CHATTER: Final = frozenset({"sky", "leaves"})
_NO_CONTEXT: Final[frozenset[Signal]] = frozenset({"greeting", "offer", "hedge", "request"})
_POLITE: Final = re.compile(r"\b(?:Sie|Ihnen|Ihr\w{0,2}|ihr)\b")
# "From the store" is not what "it" means.
_PLACE: Final = (
    r"\b(?:from|at|with|of|vom?|beim?|mit|aus) (?:(?:the|my|our|de[rmn]|meine[rm]?) )?\w+"
)
_CLAUSE: Final = re.compile(r"[,;:] | - ")


def passages(
    kept: Iterable[SpokenSentence], transcript: Sequence[SpokenSentence]
) -> Iterator[SpokenSentence]:
    """The kept statements of a talk, each with what it leans on; some are left out."""
    has_subjects = _language(transcript) in _WITH_SUBJECTS
    statements = [item for item in kept if item.role != "user" or not _is_heading(item)]
    talk = _Neighbours(transcript, statements)
    last: SpokenSentence | None = None
    # Whether the last passage says enough.
    says_enough = False
    place = -1
    for statement in statements:
        context = talk.context(statement)
        named = context if context and context.role == "user" and _is_subject(context) else None
        leans = _leans(statement, has_subjects=has_subjects)
        replies = context and context.role == "agent" and says("replies", statement.original)
        leans = leans or bool(replies and not statement.answers and "[" not in statement.text)
        # "Where is it?" goes on from what the user said in the turn before.
        points = statement.answers or (last is not None and _points_at(last, statement))
        apart = statement.place - place - 2 * bool(points and not replies)
        goes_on = leans or (apart == 0 and last is not None and _goes_on(last, statement))
        place = statement.place
        whole = talk.with_values(statement)
        enough = whole is not statement or _is_enough(statement)
        if last and goes_on and not named and apart <= 0 and _has_room(last, statement):
            last, says_enough = continued(last, whole), True
            continue
        if last and says_enough:
            yield last
        last, says_enough = whole, enough
        if context and (leans or _is_heading(context)):
            begun = replace(whole, text=context.text, original=context.original)
            last = continued(begun, whole)
        elif leans:
            last = _alone(whole)
    if last and says_enough:
        yield last


def _is_enough(statement: SpokenSentence) -> bool:
    """Whether a statement says enough to be kept if nothing else is said with it."""
    matters = statement.role != "user" or statement.confirmed
    matters = matters or bool(statement.signals & _MATTERS)
    # "My neighbour, Mr Pole": a name alone says nothing.
    if not matters and _only_names(statement.original):
        return False
    return (
        matters
        or is_lasting(statement.original)
        or is_health(statement.original)
        or is_of_life(statement.original)
        or (is_of_self(statement.original) and has_value(statement.original))
        or is_worth_keeping(
            statement.original, statement.signals, answers=statement.answers, alone=True
        )
    )


def _only_names(text: str) -> bool:
    """Whether a text is somebody's name with a word before it, and no verb."""
    ending = text.rstrip(" .,!")
    ends = any(ending.endswith(name) for name, _ in persons_in(text, weak=True))
    return (
        ends and content_words(text) <= _TELLING and not (says("clause", text) or has_number(text))
    )


class _Neighbours:
    """The sentences of a talk beside its kept statements."""

    def __init__(
        self, transcript: Sequence[SpokenSentence], kept: Iterable[SpokenSentence]
    ) -> None:
        self._known = {(item.place, item.original) for item in kept}
        pairs = list(pairwise(transcript))
        self._before = {(two.place, two.original): one for one, two in pairs if two.role == "user"}
        self._after = {(one.place, one.original): two for one, two in pairs}

    def context(self, statement: SpokenSentence) -> SpokenSentence | None:
        """What was said right before, and is not kept by itself, from its subject on."""
        context: SpokenSentence | None = None
        item = self._before.get((statement.place, statement.original))
        if item and "correction" in statement.signals:
            # What it corrects is no context of it.
            item = self._before.get((item.place, item.original))
        while item and not self._is_known(item) and _is_context(item, statement):
            context = continued(item, context) if context else item
            is_long = utf8_bytes(context.text) > _MOST_OF_REMARK
            if item.role != "user" or _is_subject(item) or is_long:
                break
            item = self._before.get((item.place, item.original))
            if item and item.role != "user":
                break
        return context

    def with_values(self, statement: SpokenSentence) -> SpokenSentence:
        """A statement with the values right behind it that mean nothing alone: "9 an hour"."""
        item = self._after.get((statement.place, statement.original))
        while item and not self._is_known(item) and _is_value(item, statement):
            following = self._after.get((item.place, item.original))
            if following and (retracts(following.original) or denies(following.original)):
                break
            statement, item = continued(statement, item), following
        return statement

    def _is_known(self, item: SpokenSentence) -> bool:
        return (item.place, item.original) in self._known


def _goes_on(last: SpokenSentence, statement: SpokenSentence) -> bool:
    """Whether a few words behind a statement of the same turn still speak of the same."""
    brief = len(WORD.findall(statement.original)) <= _HEADING_WORDS
    brief = brief and not (is_lasting(statement.original) or names_told(last.original))
    brief = brief and not (is_health(statement.original) or "[" in statement.text)
    who = next(persons_in(statement.text, weak=True), ("", ""))[0]
    brief = brief and not (who and statement.text.startswith(who))
    begins = not _own().isdisjoint(WORD.findall(fold(statement.text))[:1])
    return brief and not begins and utf8_bytes(last.text) < _MOST_OF_REMARK


def _is_value(item: SpokenSentence, statement: SpokenSentence) -> bool:
    if item.place != statement.place or item.role != "user" or item.signals & _NO_VALUE:
        return False
    if " removed]" in item.original or item.worth <= WORTHLESS or retracts(item.original):
        return False
    tokens = WORD.findall(fold(item.original))
    brief = len(tokens) <= _VALUE_WORDS
    brief = brief and (has_value(item.original) or not day_names().isdisjoint(tokens))
    return brief and not signals(item.original, (), answers=False) & _NO_FACT


def _points_at(last: SpokenSentence, statement: SpokenSentence) -> bool:
    """Whether a statement may speak of whom the last one names, or means as well."""
    is_of_somebody = says("pointing", last.text) or any(persons_in(last.text, weak=True))
    return is_of_somebody and says("pointing", statement.text)


def _is_subject(sentence: SpokenSentence) -> bool:
    """Whether a sentence names what the next ones are about."""
    return _is_heading(sentence) or _names(sentence.text)


def _has_room(last: SpokenSentence, statement: SpokenSentence) -> bool:
    size = utf8_bytes(last.text) + utf8_bytes(statement.text)
    # How to answer is a memory of its own.
    is_long = len(WORD.findall(statement.original)) > _HEADING_WORDS and not statement.answers
    if is_long and says("manner", last.original):
        return False
    return last.role == statement.role and size < _MOST_BYTES


def _leans(statement: SpokenSentence, *, has_subjects: bool) -> bool:
    """Whether a statement does not say what it is about."""
    text = statement.text
    if statement.confirmed or statement.role != "user" or "[" in text or " → " in text:
        return False
    if is_lasting(statement.original) or _is_of_unnamed(text):
        return _is_of_unnamed(text)
    if statement.answers:
        return says("pointing", _POLITE.sub("", statement.original.partition("?")[0]))
    if begins_with_pronoun(text) or says("leans", text):
        return True
    return has_subjects and _has_no_subject(text)


def _has_no_subject(text: str) -> bool:
    """Whether the first clause of a text leaves its subject to what was said before."""
    clause = _CLAUSE.split(fold(text), maxsplit=1)[0]
    tokens = [re.split("['’]", token)[0] for token in WORD.findall(clause)]
    if not _own().isdisjoint(tokens):
        meant = cue("pointing").pattern.search(clause)
        return meant is not None and content_words(clause[: meant.start()]) < _OBJECTS
    # "No pork at all": of what has been said, unless the rest says of whom.
    denies_only = tokens[:1] in (["no"], ["kein"], ["keine"], ["keinen"])
    is_own = not _own().isdisjoint(WORD.findall(fold(text)))
    return (denies_only and not is_own) or not _names(text)


def _is_of_unnamed(text: str) -> bool:
    """Whether a text has an object that it does not name: "the shop wants it back by noon"."""
    clause = _CLAUSE.split(text, maxsplit=1)[0]
    if (meant := cue("unnamed").pattern.search(fold(clause))) is None:
        return False
    before = clause[: meant.start()]
    for name, _ in persons_in(before, weak=True):
        before = before.replace(name, "")
    return content_words(compiled(_PLACE).sub("", fold(before))) < _OBJECTS


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
    unnamed = "decision" not in statement.signals and _is_of_unnamed(statement.text)
    # "They put the rent up to 52": nobody in particular did.
    by_somebody = cue("they").pattern.match(fold(statement.text)) and has_number(statement.text)
    by_somebody = by_somebody and content_words(statement.text) > _TELLING
    unnamed = unnamed or (begins_with_pronoun(statement.text) and not by_somebody)
    return None if brief or statement.answers or unnamed else statement


def _is_context(context: SpokenSentence, statement: SpokenSentence) -> bool:
    """Whether the sentence before says what a statement is about."""
    if context.signals & _NO_CONTEXT or says("unreal", context.original):
        return False
    if context.role != "user":
        told_nothing = says("agenda", context.original)
    else:
        told_nothing = _is_chatter(context.original) and not _is_heading(context)
        told_nothing = told_nothing or context.worth <= WORTHLESS
    if told_nothing:
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


def _is_chatter(text: str) -> bool:
    """Whether a sentence tells how somebody feels, or judges what it does not name."""
    names = signals(text, (), answers=False)
    of_self = "mood" in names and not _own().isdisjoint(WORD.findall(fold(text)))
    # What somebody took for the cause is what the next sentence denies.
    judges = "verdict" in names and not ("believes" in names or _names(text))
    return bool(names & _CHATTER) or of_self or judges


def _language(transcript: Sequence[SpokenSentence]) -> str:
    told = " ".join(sentence.original for sentence in transcript)
    return language_of(frozenset(index_words(told.lower())))
