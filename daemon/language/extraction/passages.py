"""Joins the sentences of a turn to passages, so that each kept text can be read by itself.

Who writes as they speak names a subject once: "House stuff. $480, fixed it Tuesday. Next pump out
2029". A passage is a run of sentences of one turn: those that are kept, and between and around them
those that say what these are about. It ends where another subject begins, or is long enough. What
still does not say what it is about is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from ...memory.similarity import fold
from ..cues import (
    OF_OURS,
    WORD,
    Signal,
    content_words,
    day_names,
    is_bare_answer,
    is_of_us,
    says,
)
from ..sentences import utf8_bytes
from ..vocabulary import cue, words
from .corrections import denies, has_number, retracts
from .keeping import is_passing, tells_what_lasts, weight
from .references import WORTHLESS, begins_with_pronoun
from .statements import MASKED, SpokenSentence, continued, has_value

_MOST_BYTES: Final = 400
_MOST_OF_REMARK: Final = 200
_PUT_IN: Final = re.compile(r" \[(?P<name>(?:(?! removed\])[^\]])+)\]")
# A sentence alone is kept for less; see `keeping`.
_LEAST_WEIGHT: Final = 0.2
# What is not kept stands before what leans on it, or if it weighs more, before anything.
_LEAST_CONTEXT: Final = -1.5
_CONTEXT: Final = -0.3
_TELLING: Final = 3
_MATTERS: Final[frozenset[Signal]] = frozenset({"correction", "decision", "preference", "error"})
_NO_CONTEXT: Final[frozenset[Signal]] = frozenset({"greeting", "offer", "hedge"})


def passages(
    kept: Iterable[SpokenSentence], transcript: Sequence[SpokenSentence]
) -> Iterator[SpokenSentence]:
    """The kept statements of a talk in passages; some are left out.

    `transcript` is the whole talk, but for what the talk has refuted or repeated.
    """
    statements = {(item.place, item.original): item for item in kept}
    passage = _Passage()
    remark: SpokenSentence | None = None
    for sentence in transcript:
        statement = statements.get((sentence.place, sentence.original))
        if statement is not None or _is_context(sentence):
            if passage.ends_before(statement or sentence):
                yield from passage.joined()
                passage = _Passage()
            passage.add(statement or sentence, remark, is_kept=statement is not None)
        remark = sentence if sentence.role == "agent" else remark
    yield from passage.joined()


class _Passage:
    """Sentences of a turn that are read together."""

    def __init__(self) -> None:
        self.sentences: list[SpokenSentence] = []
        self.kept: list[SpokenSentence] = []
        # Those that are kept, and a few words that add to them.
        self._sure: list[SpokenSentence] = []
        self._remark: SpokenSentence | None = None

    def add(
        self, sentence: SpokenSentence, before: SpokenSentence | None, *, is_kept: bool
    ) -> None:
        """Add a sentence; `before`: the last that an agent said."""
        if not self.sentences and before and before.place + 1 == sentence.place:
            self._remark = before
        adds = self.sentences[-1:] == self._sure[-1:] != [] and _is_fragment(sentence)
        self._sure += [sentence] * (is_kept or adds)
        self.sentences.append(sentence)
        self.kept += [sentence] * is_kept

    def ends_before(self, sentence: SpokenSentence) -> bool:
        """Whether a sentence begins another passage."""
        if not self.sentences:
            return False
        last = self.sentences[-1]
        if (last.place, last.role) != (sentence.place, sentence.role) or " → " in sentence.text:
            return True
        # Another one begins with somebody or something else: "My sister Anna lives …".
        if self.kept and OF_OURS.match(sentence.text):
            return True
        size = sum(utf8_bytes(item.text) for item in (*self.sentences, sentence))
        return size > _MOST_BYTES

    def joined(self) -> Iterator[SpokenSentence]:
        """The passage, if anything of it is kept and says what it is about."""
        if not self.kept:
            return
        stated = self._stated()
        first, whole = stated[0], stated[0]
        for before, sentence in pairwise(stated):
            # What stands on both sides of what was left out was not said in one breath.
            adjoins = sentence.breath - before.breath in {0, 1}
            following = replace(sentence, breath=sentence.breath * adjoins)
            whole = continued(whole, _without_known(following, whole.text))
        whole = replace(whole, place=self.kept[0].place)
        if first.role != "user":
            yield whole
            return
        remark = self._remark
        asks = remark is not None and "question" in remark.signals
        takes_up = not first.answers and says("replies", first.text)
        if not (takes_up and asks) and not self._says_enough():
            return
        alone = len(stated) == 1
        is_named = _PUT_IN.search(first.text) is not None
        points = alone and not (is_named or begins_with_pronoun(first.text))
        if remark and takes_up and (asks or points) and _is_remark(remark):
            yield continued(replace(whole, text=remark.text, original=remark.original), whole)
        elif not alone or _stands_alone(first):
            yield whole

    def _stated(self) -> list[SpokenSentence]:
        """Its sentences without those that are neither kept nor say what the next is about."""
        stated: list[SpokenSentence] = []
        for sentence in reversed(self.sentences):
            ends = _has_value(sentence) and "question" not in sentence.signals
            leads = stated and (_names_subject(sentence) or not _stands_alone(stated[-1]))
            if (
                sentence in self._sure
                or leads
                or (ends and not (stated or is_passing(sentence.original)))
            ):
                stated.append(sentence)
        return stated[::-1]

    def _says_enough(self) -> bool:
        """Whether its statements together are worth more than each of them has to be."""
        for item in self.kept:
            text = item.original
            matters = item.signals & _MATTERS or tells_what_lasts(text)
            if " → " in item.text or "[" in item.text or matters:
                return True
            if is_of_us(text) and not item.answers and _has_value(item):
                return True
        return sum(value for value in map(_weight, self.kept) if value > 0) > _LEAST_WEIGHT


def _is_fragment(sentence: SpokenSentence) -> bool:
    """Whether a few words add to what was said before: "3,850. Transfer."."""
    text = sentence.original
    few = len(WORD.findall(text)) <= _TELLING and content_words(text) > 0
    return few and not (sentence.signals or is_bare_answer(text) or is_passing(text))


def _has_value(sentence: SpokenSentence) -> bool:
    days = day_names().isdisjoint(WORD.findall(fold(sentence.original)))
    return has_value(sentence.original) or not days


def _is_remark(remark: SpokenSentence) -> bool:
    """Whether what was said before a reply says what the reply is about."""
    return (
        content_words(remark.original) > 0
        and not (remark.signals & _NO_CONTEXT or is_bare_answer(remark.original))
        and not says("agenda", remark.original)
        and utf8_bytes(remark.text) < _MOST_OF_REMARK
    )


def _without_known(sentence: SpokenSentence, before: str) -> SpokenSentence:
    """A sentence without the name that was put in for a pronoun, if it was said right before."""
    put_in = _PUT_IN.search(sentence.text)
    if put_in is None or put_in["name"] not in before:
        return sentence
    return replace(sentence, text=_PUT_IN.sub("", sentence.text, count=1))


def _is_context(sentence: SpokenSentence) -> bool:
    """Whether a sentence that is not kept may say what others are about."""
    text = sentence.original
    if sentence.role != "user" or sentence.worth <= WORTHLESS or MASKED in text:
        return False
    if sentence.signals & _NO_CONTEXT or denies(text) or retracts(text):
        return False
    # "Now the stall."
    is_brief = sentence.answers or len(WORD.findall(text)) <= _TELLING
    return is_brief or _weight(sentence) > _LEAST_CONTEXT


def _names_subject(sentence: SpokenSentence) -> bool:
    """Whether a sentence that is not kept names what others may be about: "ok next, the boat"."""
    tokens = WORD.findall(fold(sentence.original))
    return _weight(sentence) > _CONTEXT or not words("articles").isdisjoint(tokens)


def _weight(sentence: SpokenSentence) -> float:
    return weight(sentence.original, sentence.signals, answers=sentence.answers)


def _stands_alone(statement: SpokenSentence) -> bool:
    """Whether a statement says what it is about, and leans on nothing that was said before."""
    text = statement.text
    if statement.answers or "[" in text:
        return True
    if begins_with_pronoun(text) and not statement.signals & _MATTERS:
        # "They put the rent up to 52": nobody in particular did.
        by_somebody = cue("they").pattern.match(fold(text)) and has_number(text)
        return bool(by_somebody) and content_words(text) > _TELLING
    # "I always mix those up."
    clause = re.split("[,;:] ", text, maxsplit=1)[0]
    return content_words(text) > 1 or has_value(text) or not says("pointing", clause)
