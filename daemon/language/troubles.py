"""What becomes of a trouble in the course of a talk: guesses, attempts in vain, and its cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from ..memory.indexing import index_words
from ..memory.similarity import words
from .cues import WORD, Signal, says, signals_of
from .keeping import tells_what_lasts
from .references import noun_phrase
from .sentences import sentences, shortened, utf8_bytes
from .speech import Turn
from .statements import SpokenSentence, continued, has_value
from .thesaurus import language_of
from .vocabulary import grammar, not_topics

# The line with the error in a code fence.
_PASTED_ERROR: Final = re.compile(
    r"^```(?:(?!```)[^\n]{0,400}\n){0,40}?"
    r"(?P<error>[^\n`]{0,120}(?:[Ee]rror|Exception|panic|[Ff]ailed|FATAL)[^\n`]{0,120})$",
    re.MULTILINE,
)
# An error by its name or number says more than what it was about.
_ERROR_NAME: Final = re.compile(r"\w(?:Error|Exception)\b|\b[45]\d\d\b|[\"“„`]")
_PROBLEM_BYTES: Final = 200
_GUESSES: Final[frozenset[Signal]] = frozenset({"error", "hedge"})
_STATED: Final[frozenset[Signal]] = frozenset({"preference", "decision", "commitment", "question"})
# What is said of the cause right behind it, and means little alone.
_OUTCOME_WORDS: Final = 7
# A longer answer tells more than how things stand.
_STATUS_WORDS: Final = 9
_SOLVED_WORTH: Final = 2.0
_NAME_PUT_IN: Final = re.compile(r"(?<=\b(?:it|es)) \[[^\]]*\]", re.IGNORECASE)


def with_causes(transcript: Sequence[SpokenSentence]) -> list[SpokenSentence]:
    """The sentences of a talk, with the trouble before the cause that the user found for it.

    What was supposed and tried until then is left out: "the keys hum → it's the dimmer".
    """
    result: list[SpokenSentence] = []
    for sentence in transcript:
        troubles = list(_troubles(result, sentence)) if _finds_cause(sentence) else []
        if troubles:
            left = [item for at, item in enumerate(result) if at not in troubles]
            left.append(_solution([result[at] for at in troubles], sentence))
            result = left
        elif result and _is_outcome(result[-1], sentence):
            if sentence.original.startswith(sentence.text):
                result[-1] = continued(result[-1], sentence)
        elif _tells_the_moment(result[-1:], sentence):
            result.append(replace(sentence, signals=sentence.signals | {"hedge"}))
        else:
            result.append(sentence)
    return result


def _tells_the_moment(before: Sequence[SpokenSentence], sentence: SpokenSentence) -> bool:
    """Whether an answer only says how something stands now: "How is it going? Badly"."""
    if sentence.role != "user":
        return False
    question, answer = before[0].original if before else "", sentence.original
    if sentence.answers:
        *questions, answer = re.split(r"[?？]\s*", sentence.original)
        question = " ".join(questions)
    elif not before or before[0].role != "agent" or "question" not in before[0].signals:
        return False
    stands = says("status", question.rstrip("?？ ")) and len(WORD.findall(answer)) <= _STATUS_WORDS
    return stands and not (has_value(answer) or says("health", answer))


def _solution(troubles: Sequence[SpokenSentence], cause: SpokenSentence) -> SpokenSentence:
    before = [item for item in troubles if item.place < cause.place]
    sure = [item for item in before if "hedge" not in item.signals]
    signals = (cause.signals - {"hedge", "error"}) | {"solution"}
    problem = sure[-1].text if sure else before[0].text if before else ""
    # "It" is the trouble, and no name is put in for it.
    solved = _NAME_PUT_IN.sub("", cause.text, count=1)
    text = f"{problem} → {solved}" if problem else cause.text
    return replace(cause, text=text, signals=signals, worth=cause.worth + _SOLVED_WORTH)


def _finds_cause(sentence: SpokenSentence) -> bool:
    return (
        sentence.role == "user"
        and "question" not in sentence.signals
        and any(says("found_cause", part) for part in sentences(sentence.original))
    )


def _troubles(transcript: Sequence[SpokenSentence], cause: SpokenSentence) -> Iterator[int]:
    """The places of what was tried and supposed in its turn, and of the whole turn before that."""
    by_user = [item for item in transcript if item.role == "user"]
    turn = [item for item in by_user if item.place == cause.place]
    about = frozenset().union(*map(_content, [*turn, cause]))
    guessed = {item.place for item in by_user if item.signals & _GUESSES} - {cause.place}
    met = [s.place for s in by_user if s.place in guessed and about & _content(s)]
    first = max(met, default=cause.place - 2)
    stated = [
        at
        for at, item in enumerate(transcript)
        if item.place in {first, cause.place - 1, cause.place}
        and item.role == "user"
        and ("hedge" in item.signals or not item.signals & _STATED)
    ]
    doubted = {
        transcript[at].place
        for at in stated
        if transcript[at].signals & _GUESSES or says("fruitless", transcript[at].original)
    }
    for at in stated:
        sentence = transcript[at]
        in_vain = bool(sentence.signals & _GUESSES) or says("fruitless", sentence.original)
        if in_vain or (sentence.place == first and first in doubted):
            yield at


def _content(sentence: SpokenSentence) -> frozenset[str]:
    language = language_of(frozenset(index_words(sentence.original.lower())))
    transcript = frozenset(word for word in words(sentence.original) if len(word) > 1)
    return transcript - not_topics() - grammar(language)


def _is_outcome(cause: SpokenSentence, sentence: SpokenSentence) -> bool:
    """Whether a sentence only says that it works now, behind the cause."""
    if (cause.place, cause.role) != (sentence.place, sentence.role) or sentence.signals & _STATED:
        return False
    if "solution" not in cause.signals or not _finds_cause(cause):
        return False
    length = len(WORD.findall(sentence.original))
    return 1 < length <= _OUTCOME_WORDS and not has_value(sentence.original)


def content_of(text: str) -> frozenset[str]:
    """The words of a text that say what it is about."""
    return frozenset(words(text)) - not_topics()


def with_problems(
    remaining: Iterable[SpokenSentence],
    transcript: Sequence[SpokenSentence],
    turns: Sequence[Turn],
    earlier: Sequence[str],
) -> tuple[list[SpokenSentence], dict[str, str]]:
    """The statements, and the earlier text that each solution ends.

    A solution names the problem before it, which is no longer a statement by itself.
    """
    whole: list[SpokenSentence] = []
    ended: dict[str, str] = {}
    before = {
        two.original: [entry.text]
        for entry, two in pairwise(transcript)
        if entry.place == two.place
    }
    errors = [text for text in earlier if {"error"} == signals_of(text) & {"error", "solution"}]
    for statement in remaining:
        if "solution" not in statement.signals:
            if "error" in statement.signals and not tells_what_lasts(statement.original):
                errors.append(statement.text)
            whole.append(statement)
            continue
        if statement.role == "agent":
            solved = errors[-1:] or _asked_before(statement, transcript)
            pasted = _PASTED_ERROR.search(turns[max(0, statement.place - 1)].text)
            shown = [f"{pasted['error'].strip()}: {item}" if pasted else item for item in solved]
        else:
            about = content_of(statement.text)
            solved = [error for error in errors if about & content_of(error)] or errors[-1:]
            shown = [entry for entry in solved if _ERROR_NAME.search(entry)]
        problems = [*solved, *errors] or before.get(statement.original, [])
        name = next(filter(None, map(noun_phrase, problems)), "")
        text = statement.text
        if shown:
            text = f"{shown[0]} → {text}"
        elif name and name not in text:
            text = f"{text} [{name}]"
        if text != statement.text or any(content_of(text) & content_of(entry) for entry in solved):
            ended.update((text, entry) for entry in solved if entry in earlier)
            whole = [entry for entry in whole if entry.text not in solved]
            errors = [entry for entry in errors if entry not in solved]
        whole.append(replace(statement, text=text))
    return whole, ended


def _asked_before(statement: SpokenSentence, transcript: Sequence[SpokenSentence]) -> list[str]:
    """The user's last statement before an agent's advice."""
    before = [
        item for item in transcript if item.place == statement.place - 1 and item.role == "user"
    ]
    texts = [entry.text.rstrip("?？") for entry in before if "greeting" not in entry.signals]
    return [shortened(text, _PROBLEM_BYTES, utf8_bytes) for text in texts[-1:]]
