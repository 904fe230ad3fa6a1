"""The statements of a text, each with who makes it, what it does and how much it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..contradiction import judge
from .outcomes import outcome_of
from .plain import plain, printable
from .sentences import sentences
from .signals import Signal, signals_of
from .speech import Role, Utterance, utterances
from .voice import attributed
from .weighing import WORD, worth

_ROLE_COST: Final[dict[Role, float]] = {"agent": 0.6, "system": 2.0, "tool": 0.5}
_CONFIRMED_WORTH: Final = 2.0
_ANSWER_WORDS: Final = 5
_ANSWER: Final = re.compile(
    r"(?:yes|yeah|yep|no|nope|sure|ok|okay|agreed|exactly|correct)\b", re.IGNORECASE
)
_CONFIRMS: Final = re.compile(
    r"(?:(?:yes|ok|thanks|great|perfect|awesome|wow)[,.!]? )?(?:that|it|this)(?: (?:has|just|now"
    r"|did))*"
    r" (?:fixed|solved|worked|works|helped|resolved|the trick)\b",
    re.IGNORECASE,
)
# A longer one is a statement by itself.
_CONFIRMING_WORDS: Final = 7
_ASIDE: Final[frozenset[Signal]] = frozenset({"greeting", "question", "offer"})
# "…, not 4711", "… instead of 4711".
_PRONOUN: Final = re.compile(r"(?:it|he|she|they)\b", re.IGNORECASE)
_INSTEAD: Final = re.compile(r",? (?:not|instead of|rather than) [^,.;]{1,60}$", re.IGNORECASE)


class SaidSentence(msgspec.Struct, frozen=True):
    """A sentence that was said.

    Attributes:
        text: what it says by itself: without its lead-in, said by the speaker's name where the
            grammar is certain, without a full stop.
        said: the sentence as it stands in the text.
        role, speaker: who said it, see `speech.Utterance`.
        signals: what it does.
        worth: how much it says, see `weighing.worth`.
        place: which utterance it is from, the first being 0.
        answers: whether it begins with a question that it answers.
    """

    text: str
    said: str
    role: Role
    speaker: str
    signals: frozenset[Signal]
    worth: float
    place: int = 0
    answers: bool = False


def statements(text: str, aggression: float = 0.7) -> list[SaidSentence]:
    """The statements of a text or of a conversation, in order.

    A short answer is joined with the question before it, which says what it is about; what
    another speaker finds to work becomes a solution.

    Args:
        text: any text.
        aggression: 0 to 1, how much is taken off a sentence: its lead-in from 0.2 on, words
            that only fill it from 0.5 on.
    """
    return spoken(utterances(printable(text)), aggression)


def spoken(said: tuple[Utterance, ...], aggression: float = 0.7) -> list[SaidSentence]:
    """`statements` of what was told apart already; its texts must be `printable`."""
    found: list[SaidSentence] = []
    for place, utterance in enumerate(said):
        for sentence in sentences(utterance.text):
            statement = replace(_statement(sentence, utterance, aggression), place=place)
            if found and _answers(found[-1], statement):
                statement = _joined(found.pop(), statement)
            elif found and _goes_on(found[-1], statement):
                statement = _continued(found.pop(), statement)
            elif (confirmed := _confirmed_by(statement, found)) is not None:
                found[confirmed] = _confirmed(found[confirmed])
            found.append(statement)
    return found


def corrects(newer: SaidSentence, older: SaidSentence) -> bool:
    """Whether `newer` takes `older` back: it is worded as a correction and contradicts it."""
    if "correction" not in newer.signals:
        return False
    text = _INSTEAD.sub("", newer.text)
    return judge(older.text, text).relation == "contradiction"


def _statement(sentence: str, utterance: Utterance, aggression: float) -> SaidSentence:
    signals = signals_of(sentence)
    if utterance.role == "agent":
        # What an agent wants done is advice.
        signals -= {"request"}
    text = plain(sentence, aggression)
    speaker = utterance.speaker or ("User" if utterance.role == "user" else "")
    if "question" not in signals:
        text = attributed(text, speaker) or text
    value = worth(text, signals) - _ROLE_COST.get(utterance.role, 0.0)
    return SaidSentence(text, sentence, utterance.role, utterance.speaker, signals, value)


def _same_speaker(one: SaidSentence, other: SaidSentence) -> bool:
    return (one.role, one.speaker) == (other.role, other.speaker)


def _answers(asked: SaidSentence, answer: SaidSentence) -> bool:
    """Whether a statement means little without the question that came right before it."""
    if "question" not in asked.signals or answer.signals & {"question", "solution"}:
        return False
    if asked.signals & {"request", "offer"}:
        return False
    if _same_speaker(asked, answer) or answer.role == "tool":
        return False
    words = WORD.findall(answer.text)
    short = len(words) <= _ANSWER_WORDS and len(answer.text) < 40
    if "greeting" in answer.signals:
        return short and _ANSWER.match(answer.text) is not None
    return short and not answer.signals & {"decision", "report", "preference"}


def _goes_on(before: SaidSentence, statement: SaidSentence) -> bool:
    """Whether a statement says of an answer before it what "it" or "they" do."""
    if not before.answers or statement.place != before.place or not _PRONOUN.match(statement.said):
        return False
    return not statement.signals & _ASIDE


def _continued(before: SaidSentence, statement: SaidSentence) -> SaidSentence:
    text = f"{before.text}, {statement.text}"
    signals = before.signals | statement.signals
    gained = worth(text, signals) - _ROLE_COST.get(before.role, 0.0)
    said = f"{before.said} {statement.said}"
    return replace(before, text=text, said=said, signals=signals, worth=gained)


def _joined(asked: SaidSentence, answer: SaidSentence) -> SaidSentence:
    text = f"{asked.text} {answer.text}"
    return SaidSentence(
        text,
        f"{asked.said} {answer.said}",
        answer.role,
        answer.speaker,
        (answer.signals - {"greeting"}) | {"claim"},
        0.5 + worth(text, frozenset({"claim"})) - _ROLE_COST.get(answer.role, 0.0),
        answer.place,
        answers=True,
    )


def _confirmed_by(statement: SaidSentence, before: Sequence[SaidSentence]) -> int | None:
    """The place of what another speaker said last, where the statement finds that it works."""
    if not before or _same_speaker(before[-1], statement) or not confirms(statement):
        return None
    last = before[-1].place
    for place in range(len(before) - 1, -1, -1):
        if before[place].place != last:
            break
        if not before[place].signals & _ASIDE:
            return place
    return None


def confirms(statement: SaidSentence) -> bool:
    """Whether it says that what came before works."""
    if _CONFIRMS.match(statement.said):
        return True
    # An agent that is glad has tried nothing.
    if statement.role == "agent" or statement.signals & {"question", "request"}:
        return False
    short = len(WORD.findall(statement.said)) <= _CONFIRMING_WORDS and len(statement.said) < 50
    return short and outcome_of([statement.said]) == "positive"


def _confirmed(statement: SaidSentence) -> SaidSentence:
    return replace(
        statement,
        signals=statement.signals | {"solution"},
        worth=statement.worth + _CONFIRMED_WORTH,
    )
