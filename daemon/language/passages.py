"""Joins the sentences of a turn to passages, so that each kept text can be read by itself.

Who writes as they speak names a subject once: "House stuff. $480, fixed it Tuesday. Next pump out
2029". A passage is a run of sentences of one turn: those that are kept, and between and around them
those that say what these are about. It ends where another subject begins, or is long enough. What
still does not say what it is about is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
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
    says,
)
from .keeping import is_context, is_of_life, weight
from .persons import persons_in
from .references import WORTHLESS, begins_with_pronoun, noun_phrase
from .sentences import utf8_bytes
from .statements import SpokenSentence, continued, has_value
from .thesaurus import language_of
from .vocabulary import compiled, cue, words

_MOST_BYTES: Final = 300
# With a sentence at its end that does not say what it is about.
_MOST_LEANING: Final = 480
_HEADING_WORDS: Final = 6
_WHOLE: Final = 5
# After this number of words "it" is one of them: "chose Postgres for the ledger as it is fast".
_OBJECTS: Final = 2
_MOST_OF_REMARK: Final = 200
_NO_REMARK: Final[frozenset[Signal]] = frozenset({"greeting", "offer", "hedge"})
_PUT_IN: Final = re.compile(r" \[(?P<name>(?:(?! removed\])[^\]])+)\]")
# A sentence alone is kept for less; see `keeping`.
_LEAST_WEIGHT: Final = 0.3
# With fewer words that tell something a statement without subject and verb says nothing.
_TELLING: Final = 3
# Languages in which a sentence has its subject in a word of its own.
_WITH_SUBJECTS: Final = frozenset({"en", "de"})
_MATTERS: Final[frozenset[Signal]] = frozenset({"correction", "decision", "preference", "error"})
_NO_CONTEXT: Final[frozenset[Signal]] = frozenset(
    {"greeting", "offer", "hedge", "request", "question"}
)
# "From the store" is not what "it" means.
_PLACE: Final = (
    r"\b(?:from|at|with|of|vom?|beim?|mit|aus) (?:(?:the|my|our|de[rmn]|meine[rm]?) )?\w+"
)
_CLAUSE: Final = re.compile(r"[,;:] | - ")


def passages(
    kept: Iterable[SpokenSentence], transcript: Sequence[SpokenSentence]
) -> Iterator[SpokenSentence]:
    """The kept statements of a talk in passages; some are left out.

    `transcript` is the whole talk, but for what the talk has refuted or repeated.
    """
    statements = {(item.place, item.original): item for item in kept}
    has_subjects = _language(transcript) in _WITH_SUBJECTS
    passage = _Passage()
    before: SpokenSentence | None = None
    for sentence in transcript:
        statement = statements.get((sentence.place, sentence.original))
        if statement is not None or _is_context(sentence):
            if passage.ends_before(statement or sentence, is_kept=statement is not None):
                yield from passage.joined(has_subjects=has_subjects)
                passage = _Passage()
            passage.add(statement or sentence, before, is_kept=statement is not None)
        if sentence.role != "user" or not is_bare_answer(sentence.original):
            before = sentence
    yield from passage.joined(has_subjects=has_subjects)


class _Passage:
    """Sentences of a turn that are read together."""

    def __init__(self) -> None:
        self.sentences: list[SpokenSentence] = []
        self.kept: list[SpokenSentence] = []
        self._remark: SpokenSentence | None = None

    def add(
        self, sentence: SpokenSentence, before: SpokenSentence | None, *, is_kept: bool
    ) -> None:
        """Add a sentence; `before`: what was said right before it."""
        if not self.sentences and before and before.role != sentence.role:
            self._remark = before
        self.sentences.append(sentence)
        self.kept += [sentence] * is_kept

    def ends_before(self, sentence: SpokenSentence, *, is_kept: bool) -> bool:
        """Whether a sentence begins another passage."""
        if not self.sentences:
            return False
        last = self.sentences[-1]
        if (last.place, last.role) != (sentence.place, "user") or _is_heading(sentence):
            return True
        if " → " in last.text or " → " in sentence.text:
            return True
        # What is always to be known is a memory of its own.
        stands = is_lasting(sentence.original) or is_health(sentence.original)
        stands = stands or _introduces(sentence)
        if self.kept and is_kept and stands and not _leans(sentence, has_subjects=True):
            return True
        size = sum(utf8_bytes(item.text) for item in (*self.sentences, sentence))
        return size > (_MOST_LEANING if _leans(sentence, has_subjects=True) else _MOST_BYTES)

    def joined(self, *, has_subjects: bool) -> Iterator[SpokenSentence]:
        """The passage, if anything of it is kept and says what it is about."""
        if not self.kept:
            return
        while self.sentences[-1] is not self.kept[-1] and not _has_value(self.sentences[-1]):
            self.sentences.pop()
        first, whole = self.sentences[0], self.sentences[0]
        for sentence in self.sentences[1:]:
            whole = continued(whole, _without_known(sentence, whole.text))
        whole = replace(whole, place=self.kept[0].place)
        if first.role == "user" and not self._says_enough():
            return
        leans = _leans(first, has_subjects=has_subjects)
        remark = self._remark
        replies = first.role == "user" and not first.answers and says("replies", first.original)
        asks = remark and "question" in remark.signals and "hedge" not in first.signals
        takes_up = (leans and asks) or (replies and (asks or len(self.sentences) == 1))
        if remark and takes_up and _is_remark(remark):
            yield continued(replace(whole, text=remark.text, original=remark.original), whole)
        elif len(self.sentences) > 1 or not leans or _says_enough(first):
            yield whole

    def _says_enough(self) -> bool:
        """Whether its statements together are worth more than each of them has to be."""
        if any(item.answers and "hedge" in item.signals for item in self.sentences):
            return len(self.sentences) > 1
        for item in self.kept:
            text = item.original
            if " → " in item.text or "[" in item.text or item.signals & _MATTERS:
                return True
            if is_lasting(text) or is_health(text) or is_of_life(text):
                return True
            is_own = not _own().isdisjoint(re.findall(r"[^\W\d_]+", fold(text)))
            if is_own and not item.answers and _has_value(item):
                return True
        weights = (weight(item.original, item.signals, answers=item.answers) for item in self.kept)
        return sum(value for value in weights if value > 0) > _LEAST_WEIGHT


def _has_value(sentence: SpokenSentence) -> bool:
    days = day_names().isdisjoint(WORD.findall(fold(sentence.original)))
    return has_value(sentence.original) or not days


def _is_remark(remark: SpokenSentence) -> bool:
    """Whether what was said before a reply says what the reply is about."""
    return (
        content_words(remark.original) > 0
        and not (remark.signals & _NO_REMARK or is_bare_answer(remark.original))
        and not says("agenda", remark.original)
        and utf8_bytes(remark.text) < _MOST_OF_REMARK
    )


def _without_known(sentence: SpokenSentence, before: str) -> SpokenSentence:
    """A sentence without the name that was put in for a pronoun, if it was said right before."""
    put_in = _PUT_IN.search(sentence.text)
    if put_in is None or put_in["name"] not in before:
        return sentence
    return replace(sentence, text=_PUT_IN.sub("", sentence.text, count=1))


def _introduces(sentence: SpokenSentence) -> bool:
    """Whether a sentence begins with somebody or something else: "My sister Anna lives …"."""
    tokens = WORD.findall(fold(sentence.text))
    mine = _own() & (words("articles") | words("determiners"))
    return len(tokens) >= _WHOLE and tokens[0] in mine


def _is_context(sentence: SpokenSentence) -> bool:
    """Whether a sentence that is not kept may say what others are about."""
    text = sentence.original
    if sentence.role != "user" or sentence.worth <= WORTHLESS or " removed]" in text:
        return False
    if _is_heading(sentence):
        return True
    is_told = not (sentence.signals & _NO_CONTEXT or denies(text) or retracts(text))
    return is_told and is_context(text, sentence.signals, answers=sentence.answers)


def _leans(statement: SpokenSentence, *, has_subjects: bool) -> bool:
    """Whether a statement does not say what it is about."""
    text = statement.text
    if statement.confirmed or statement.role != "user" or "[" in text or " → " in text:
        return False
    if is_lasting(statement.original) or _is_of_unnamed(text):
        return _is_of_unnamed(text)
    if statement.answers:
        return False
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


def _says_enough(statement: SpokenSentence) -> bool:
    """Whether a statement that leans on nothing that was said still means something."""
    brief = content_words(statement.text) < _TELLING and not is_of_life(statement.text)
    brief = brief and not says("clause", statement.text)
    unnamed = "decision" not in statement.signals and _is_of_unnamed(statement.text)
    # "They put the rent up to 52": nobody in particular did.
    by_somebody = cue("they").pattern.match(fold(statement.text)) and has_number(statement.text)
    by_somebody = by_somebody and content_words(statement.text) > _TELLING
    unnamed = unnamed or (begins_with_pronoun(statement.text) and not by_somebody)
    return not (brief or unnamed)


def _language(transcript: Sequence[SpokenSentence]) -> str:
    told = " ".join(sentence.original for sentence in transcript)
    return language_of(frozenset(index_words(told.lower())))
