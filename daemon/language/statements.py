"""The statements of a text or conversation: their speakers, signals and worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import msgspec
from msgspec.structs import replace

from ..memory.similarity import exact_key, fold, words
from .comparison import judge
from .cues import WORD, Signal, is_of_self, outcome_of, signals_of, worth
from .normal_form import negations
from .sentences import plain, printable, sentences
from .speech import Role, Utterance, utterances
from .vocabulary import compiled, cue, not_topics
from .vocabulary import words as language_words

_INSTEAD: Final = r"(?i)(?P<new>.{1,300}?)[,;]? (?:{instead}) (?P<old>[^,;。]{1,60})[.!。]?$"
# The minimum worth of a kept statement: without aggression a plain sentence with a few content
# words; with the default a sentence that also states, reports or names something.
_LEAST_WORTH: Final = 0.6
_WORTH_PER_AGGRESSION: Final = 1.5
_ROLE_COST: Final[dict[Role, float]] = {"agent": 0.6, "system": 2.0, "tool": 0.5}
_CONFIRMED_WORTH: Final = 2.0
# A named speaker counts like a person named in the sentence; see `cues.worth`.
_SELF_WORTH: Final = 0.5
_ANSWER_WORDS: Final = 5
# A longer confirmation is a statement by itself.
_CONFIRMING_WORDS: Final = 7
_ASIDE: Final[frozenset[Signal]] = frozenset({"greeting", "question", "offer"})
# Statements with the same content words, at least this many, say the same.
_TELLING_WORDS: Final = 4
_NUMBER: Final = re.compile(r"(?<![\w.:])[\w.:/-]*\d[\w.:/-]*(?<![.:-])")
# "June 19th", "19. Juni", "19 de junio", where the word is a month.
_DATE: Final = re.compile(
    r"\b[^\W\d_]{3,10} \d{1,2}(?:st|nd|rd|th)?\b(?![.:]\d)"
    r"|\b\d{1,2}(?:st|nd|rd|th)?\.? (?:de |of )?[^\W\d_]{3,10}\b"
)
# "The 3rd" of April.
_ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")


class SaidSentence(msgspec.Struct, frozen=True):
    """A sentence that was said.

    Attributes:
        text: without its lead-in and full stop.
        said: the sentence, unchanged.
        role, speaker: who said it, see `speech.Utterance`.
        signals: see `cues.signals_of`.
        worth: how much it says, see `cues.worth`.
        place: the index of its utterance.
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


class Correction(msgspec.Struct, frozen=True):
    """A corrected text.

    Attributes:
        place: the index of the corrected text.
        text: that text with the new value, or the correction if it is self-contained.
    """

    place: int
    text: str


def statements(text: str, aggression: float = 0.7) -> list[SaidSentence]:
    """The statements of a text or of a conversation, in order.

    A short answer is joined with the question before it; a suggestion that another speaker
    confirms becomes a solution.

    Args:
        text: any text.
        aggression: 0 to 1; how much of a sentence is removed, see `sentences.plain`.
    """
    return spoken(utterances(printable(text)), aggression)


def spoken(said: tuple[Utterance, ...], aggression: float = 0.7) -> list[SaidSentence]:
    """`statements` of separate utterances, whose texts must be `printable`."""
    found: list[SaidSentence] = []
    for place, utterance in enumerate(said):
        for sentence in sentences(utterance.text):
            statement = _statement(sentence, utterance, aggression, place)
            if found and _answers(found[-1], statement):
                statement = _joined(found.pop(), statement)
            elif found and _goes_on(found[-1], statement):
                statement = _continued(found.pop(), statement)
            elif (confirmed := _confirmed_by(statement, found)) is not None:
                known = found[confirmed]
                signals = known.signals | {"solution"}
                value = known.worth + _CONFIRMED_WORTH
                found[confirmed] = replace(known, signals=signals, worth=value)
            found.append(statement)
    return found


def worth_keeping(said: Iterable[SaidSentence], aggression: float = 0.7) -> list[SaidSentence]:
    """The statements that say enough, in order, without those repeated or corrected later."""
    least = _LEAST_WORTH + _WORTH_PER_AGGRESSION * aggression
    seen: set[object] = set()
    kept: list[SaidSentence] = []
    for statement in said:
        if statement.worth < least or (gist := _gist(statement.text)) in seen:
            continue
        seen.add(gist)
        if "correction" in statement.signals:
            kept = [other for other in kept if not _corrects(statement, other)]
        kept.append(statement)
    return kept


def confirms(statement: SaidSentence) -> bool:
    """Whether it says that the suggestion before it works."""
    if cue("confirms").match(fold(statement.said)):
        return True
    # An agent's praise confirms nothing.
    if statement.role == "agent" or statement.signals & {"question", "request"}:
        return False
    short = len(WORD.findall(statement.said)) <= _CONFIRMING_WORDS and len(statement.said) < 50
    return short and outcome_of([statement.said]) == "positive"


def correction_of(said: str, earlier: Sequence[str]) -> Correction | None:
    """The newest of the `earlier` texts, corrected by `said`; None if it corrects none.

    A correction may consist of the value alone: "sorry, at 4, not 3".
    """
    found = compiled(_INSTEAD).match(said) or compiled("{~replaced}").match(said)
    if found is None:
        return None
    new, old = _value(found["new"]), _value(found["old"])
    about = _about(found["new"].replace(new, " ")) if new != found["new"].strip() else None
    denied = _about(found["old"])
    for place in range(len(earlier) - 1, -1, -1):
        text = earlier[place]
        if new and old and (span := _standing(old, text)) is not None:
            if not about or about & frozenset(words(text)):
                return Correction(place, _dated(text[: span[0]] + new + text[span[1] :], found))
        elif not (new and old) and denied and denied <= frozenset(words(text)):
            return Correction(place, said)
    return None


def redated(said: str, earlier: Sequence[str]) -> Correction | None:
    """The newest of the `earlier` texts with one date, if `said` is a date and nothing else."""
    dates = _DATE.findall(said)
    if len(dates) != 1 or not _months() & frozenset(words(said)) or _about(_DATE.sub(" ", said)):
        return None
    new = _DATE.search(said)
    for place in range(len(earlier) - 1, -1, -1):
        found = [one for one in _DATE.finditer(earlier[place]) if _is_date(one.group())]
        if new is not None and _is_date(new.group()) and len(found) == 1:
            start, end = found[0].span()
            return Correction(place, earlier[place][:start] + new.group() + earlier[place][end:])
    return None


def denies(said: str) -> bool:
    """Whether a sentence retracts the statement before it."""
    return cue("denies").match(fold(said)) is not None


def _is_date(text: str) -> bool:
    return not _months().isdisjoint(words(text))


def _dated(text: str, found: re.Match[str]) -> str:
    """`text` with the new month and weekday in place of the denied ones."""
    for dates in (_months(), language_words("days") - _months()):
        new, old = (
            [word for word in WORD.findall(found[part]) if word.lower() in dates]
            for part in ("new", "old")
        )
        if len(new) == len(old) == 1:
            text = re.sub(rf"\b{re.escape(old[0])}\b", new[0], text)
    return text


@cache
def _months() -> frozenset[str]:
    return language_words("months") - {"am", "pm"}


def _statement(sentence: str, utterance: Utterance, aggression: float, place: int) -> SaidSentence:
    signals = signals_of(sentence)
    if utterance.role == "agent":
        # A request by an agent is advice.
        signals -= {"request"}
    text = plain(sentence, aggression)
    value = _SELF_WORTH if utterance.speaker and is_of_self(text) else 0.0
    value += worth(text, signals) - _ROLE_COST.get(utterance.role, 0.0)
    return SaidSentence(text, sentence, utterance.role, utterance.speaker, signals, value, place)


def _same_speaker(one: SaidSentence, other: SaidSentence) -> bool:
    return (one.role, one.speaker) == (other.role, other.speaker)


def _answers(asked: SaidSentence, answer: SaidSentence) -> bool:
    """Whether a statement means little without the question right before it."""
    if "question" not in asked.signals or answer.signals & {"question", "solution"}:
        return False
    if asked.signals & {"request", "offer"}:
        return False
    if _same_speaker(asked, answer) or answer.role == "tool":
        return False
    short = len(WORD.findall(answer.text)) <= _ANSWER_WORDS and len(answer.text) < 40
    if "greeting" in answer.signals:
        return short and cue("short_answer").match(fold(answer.text)) is not None
    return short and not answer.signals & {"decision", "report", "preference"}


def _joined(asked: SaidSentence, answer: SaidSentence) -> SaidSentence:
    text = f"{asked.text} {answer.text}"
    value = 0.5 + worth(text, frozenset({"claim"})) - _ROLE_COST.get(answer.role, 0.0)
    signals = (answer.signals - {"greeting"}) | {"claim"}
    said = f"{asked.said} {answer.said}"
    return replace(answer, text=text, said=said, signals=signals, worth=value, answers=True)


def _goes_on(before: SaidSentence, statement: SaidSentence) -> bool:
    """Whether a statement continues the answer before it with a pronoun."""
    if not before.answers or statement.place != before.place or statement.signals & _ASIDE:
        return False
    return cue("pronoun").match(fold(statement.said)) is not None


def _continued(before: SaidSentence, statement: SaidSentence) -> SaidSentence:
    text = f"{before.text}, {statement.text}"
    signals = before.signals | statement.signals
    value = worth(text, signals) - _ROLE_COST.get(before.role, 0.0)
    said = f"{before.said} {statement.said}"
    return replace(before, text=text, said=said, signals=signals, worth=value)


def _confirmed_by(statement: SaidSentence, before: Sequence[SaidSentence]) -> int | None:
    """The index of the other speaker's statement that this one confirms."""
    # "Yes! That fixed it."
    if not before or before[0].place == statement.place or not confirms(statement):
        return None
    at = len(before) - 1
    while before[at].place == statement.place:
        if not before[at].signals & _ASIDE:
            return None
        at -= 1
    if _same_speaker(before[at], statement):
        return None
    last = before[at].place
    for place in range(at, -1, -1):
        if before[place].place != last:
            break
        if not before[place].signals & _ASIDE:
            return place
    return None


def _gist(text: str) -> object:
    """A key that is equal for statements that say the same."""
    said = frozenset(words(text))
    told = said - not_topics()
    denials = said & negations()
    return (told, bool(denials)) if len(told) >= _TELLING_WORDS else exact_key(text)


def _corrects(newer: SaidSentence, older: SaidSentence) -> bool:
    instead = compiled(_INSTEAD).match(newer.text)
    text = instead["new"] if instead else newer.text
    return judge(older.text, text).relation == "contradiction"


def _value(part: str) -> str:
    """The only number of a part, or the whole part in scripts without blanks."""
    if not part.isascii() and " " not in part.strip() and not _NUMBER.search(part):
        return part.strip()
    numbers = _NUMBER.findall(part)
    return _ORDINAL.sub("", str(numbers[0])) if len(numbers) == 1 else ""


def _about(part: str) -> frozenset[str]:
    said = frozenset(words(part)) - not_topics() - _months() - language_words("days")
    return frozenset(word for word in said if not cue("correction_words").fullmatch(word))


def _standing(value: str, text: str) -> tuple[int, int] | None:
    """The last position of a value in a text, as a whole word."""
    if value.isascii():
        spans = [one.span() for one in _NUMBER.finditer(text) if _ORDINAL.sub("", one[0]) == value]
        return spans[-1] if spans else None
    at = text.rfind(value)
    return (at, at + len(value)) if at >= 0 else None
