"""The statements of a text or conversation: their speakers, signals and worth."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ...memory.similarity import exact_key, fold, words
from ..comparison import judge, repeats
from ..cues import (
    WORD,
    Signal,
    content_words,
    is_bare_answer,
    is_of_self,
    names_told,
    outcome_of,
    says,
    signals_of,
    worth,
)
from ..names import people
from ..normal_form import negations
from ..secret_names import names_in
from ..sentences import UNALTERED, dictated_parts, plain, printable, sentences
from ..speech import Role, Utterance, utterances
from ..vocabulary import compiled, cue, not_topics
from .corrections import (
    DATE,
    INSTEAD,
    corrected_within,
    denies,
    has_number,
    retracts,
    without_denial,
)
from .keeping import VALUE, has_name, is_passing

# The minimum worth of a kept statement: without aggression a plain sentence with a few content
# words; with the default a sentence that also states, reports or names something.
_LEAST_WORTH: Final = 0.6
_WORTH_PER_AGGRESSION: Final = 1.5
_ROLE_COST: Final[dict[Role, float]] = {"agent": 0.6, "system": 2.0, "tool": 0.5}
_CONFIRMED_WORTH: Final = 2.0
# A named speaker counts like a person named in the sentence; see `cues.worth`.
_SELF_WORTH: Final = 0.5
_SHORT_ANSWER: Final = 5
# The answer to a question for a value may be a whole sentence.
_ANSWER_WORDS: Final = 22
# The most turns after which an answer that was yet to come is given.
_SOON: Final = 6
# More tell something besides.
_ACCEPTING_WORDS: Final = 14
# A longer confirmation is a statement by itself.
_CONFIRMING_WORDS: Final = 7
_ASIDE: Final[frozenset[Signal]] = frozenset({"greeting", "question", "offer"})
# Statements with the same content words, at least this many, say the same.
_TELLING_WORDS: Final = 4
# Where a further clause begins.
_CLAUSE: Final = re.compile(r"[,;]\s+(?:(?:and|but|und|aber|y|et|pero|mais) )?|\s[-–—]\s")
_AND: Final = re.compile(r"(?<![,;]) (?:and|but|und|aber|y|et|pero|mais) (?=\S+ \S+ \S)")
_PART: Final = re.compile(r"[,;]\s+(?:(?:and|und|y|et) )?| (?:and|und|y|et) ")
MASKED: Final = " removed]"
_SECRETS: Final = frozenset({"pin", "password", "word", "token", "person"})


class SpokenSentence(msgspec.Struct, frozen=True):
    """A sentence that was said.

    Attributes:
        text: without its lead-in and full stop.
        original: the sentence, unchanged.
        role, speaker: who said it, see `speech.Utterance`.
        signals: see `cues.signals_of`.
        worth: how much it says, see `cues.worth`.
        place: the index of its utterance.
        answers: whether it begins with a question that it answers.
        confirmed: whether another speaker says that it works.
        breath: its number, from 0, among those that were said in one breath.
    """

    text: str
    original: str
    role: Role
    speaker: str
    signals: frozenset[Signal]
    worth: float
    place: int = 0
    answers: bool = False
    confirmed: bool = False
    breath: int = 0


def statements(text: str, aggression: float = UNALTERED) -> list[SpokenSentence]:
    """The statements of a text or of a conversation, in order.

    A short answer is joined with the question before it; a suggestion that another speaker
    confirms becomes a solution.

    Args:
        text: any text.
        aggression: 0 to 1; how much of a sentence is removed, see `sentences.plain`.
    """
    return spoken(utterances(printable(text)), aggression)


def spoken(
    uttered: tuple[Utterance, ...],
    aggression: float = UNALTERED,
    parts: Callable[[SpokenSentence], Iterable[SpokenSentence]] = lambda sentence: (sentence,),
) -> list[SpokenSentence]:
    """`statements` of separate utterances, whose texts must be `printable`.

    `parts` divides a sentence that says more than one thing.
    """
    talk = _Talk()
    for place, utterance in enumerate(uttered):
        talk.begin_turn()
        for sentence in sentences(utterance.text):
            for number, said in enumerate(_said_by(utterance, sentence)):
                statement = _statement(said, utterance, aggression, place)
                for part in parts(replace(statement, breath=number)):
                    talk.add(part)
    return talk.statements


def _said_by(utterance: Utterance, sentence: str) -> list[str]:
    """The parts of a sentence that are weighed by themselves."""
    return dictated_parts(sentence) if utterance.role == "user" else [sentence]


class _Talk:
    """Joins answers with their questions."""

    def __init__(self) -> None:
        self.statements: list[SpokenSentence] = []
        # A question whose answer is yet to come: "I don't know yet".
        self._open: SpokenSentence | None = None
        self.begin_turn()

    def begin_turn(self) -> None:
        """Forget what the turn before answered."""
        self._asked: SpokenSentence | None = None
        self._retracted: SpokenSentence | None = None

    def add(self, statement: SpokenSentence) -> None:
        if not self.statements:
            self.statements.append(statement)
            return
        last = self._last_before(statement)
        if "question" in last.signals and (
            # The answer is yet to come: "let me look", "I thought it was free".
            says("stalls", statement.original) or says("supposed", statement.original)
        ):
            self._open = last
            return
        answered = last.answers and last.place == statement.place
        if answered and self._asked is not None and _goes_on(self._asked, last, statement):
            # "Do you have photos? Loads. On the tablet".
            self.statements[-1] = continued(last, statement)
            return
        if answered and self._asked is not None and _takes_back(statement.original):
            self._retracted = self.statements.pop()
        if self._asked is not None and (old := self._retracted) is not None:
            # "84. Wait no, it's 76": the new value answers the question.
            is_value = (has_number if has_number(old.text) else VALUE.search)(statement.original)
            is_value = is_value or says("rather", statement.original)
            if not is_value and retracts(statement.original):
                return
            self._retracted = None
            statement = _joined(self._asked, statement) if is_value else statement
        elif "question" in last.signals and last.place < statement.place:
            statement = self._reply(last, statement)
        elif (question := self._open) in self.statements and _settles(question, statement):
            self.statements.remove(question)
            self._open, self._asked = None, question
            statement = _joined(question, statement)
        else:
            statement = self._answer(last, statement)
        self.statements.append(statement)

    def _last_before(self, statement: SpokenSentence) -> SpokenSentence:
        """The last sentence; before a reply the agent's last question, moved behind its remarks."""
        known = self.statements
        last = known[-1]
        if last.role == "agent" and last.place < statement.place:
            of_turn = (item for item in known if item.place == last.place)
            if questions := [item for item in of_turn if "question" in item.signals]:
                known.remove(questions[-1])
                known.append(questions[-1])
        return known[-1]

    def _reply(self, question: SpokenSentence, statement: SpokenSentence) -> SpokenSentence:
        """The first sentence after another speaker's question."""
        # The "no" of an answer corrects nothing.
        no = cue("denies").pattern.match(fold(statement.original))
        rest = signals_of(statement.original[no.end() :].lstrip(" ,.!")) if no else {"correction"}
        signals = statement.signals - {"correction"} | statement.signals & rest
        statement = replace(statement, signals=signals)
        if says("offers", question.original) and is_taken_up(statement.original):
            # How something shall be done this once: "Yes please, but one page only".
            return replace(statement, signals=statement.signals | {"offer"})
        return self._answer(question, statement)

    def _answer(self, last: SpokenSentence, statement: SpokenSentence) -> SpokenSentence:
        """The statement, joined with the question that it answers, which is removed."""
        known = self.statements
        if _answers(last, statement):
            self._asked = known.pop()
            return _joined(self._asked, statement)
        before = known[-2] if len(known) > 1 else None
        is_bare = "greeting" in last.signals or is_bare_answer(last.original)
        is_bare = is_bare and last.place == statement.place
        if before and is_bare and _answers(before, statement):
            # "No! My brother."
            question = f"{before.original} {last.original}"
            self._asked = replace(before, text=question, original=question)
            del known[-2:]
            return _joined(self._asked, statement)
        if (confirmed := _confirmed_by(statement, known)) is not None:
            advice = known[confirmed]
            signals = advice.signals | {"solution"}
            value = _CONFIRMED_WORTH + max(0.0, advice.worth)
            known[confirmed] = replace(advice, signals=signals, worth=value, confirmed=True)
        return statement


def _goes_on(question: SpokenSentence, bare: SpokenSentence, following: SpokenSentence) -> bool:
    """Whether a few words say what the bare answer to a question before them leaves open."""
    is_open = following.signals <= {"claim"} and not is_passing(following.original)
    is_open = is_open and _is_short(following, _SHORT_ANSWER) and not denies(following.original)
    return is_open and is_bare_answer(bare.original[len(question.original) :].strip())


def _settles(question: SpokenSentence, statement: SpokenSentence) -> bool:
    """Whether a few words of a later turn decide what was asked: "we took Turso"."""
    later = 0 < statement.place - question.place <= _SOON
    few = statement.role == "user" and _is_short(statement, _SHORT_ANSWER)
    return later and few and "decision" in statement.signals


def is_taken_up(sentence: str) -> bool:
    """Whether an answer accepts an offer, and only says how it is to be done."""
    if says("standing", sentence) or people(sentence) or says("is_or_has", sentence):
        return False
    if len(WORD.findall(sentence)) > _ACCEPTING_WORDS:
        return False
    return cue("accepts").pattern.match(fold(sentence)) is not None and not DATE.search(sentence)


def _takes_back(sentence: str) -> bool:
    """Whether a sentence gives another value for the one just given: "hm no, 32"."""
    no = cue("denies").pattern.match(fold(sentence))
    denied = no is not None and fold(sentence)[no.end() :].startswith((",", ".", "!", ":"))
    return retracts(sentence) or (denied and (has_number(sentence) or says("rather", sentence)))


def has_value(text: str) -> bool:
    """Whether a text has a number or a name."""
    return has_number(text) or has_name(text) or bool(names_told(text))


def _is_short(statement: SpokenSentence, most: int) -> bool:
    return len(WORD.findall(statement.text)) <= most and len(statement.text) < 8 * most


def worth_keeping(candidates: Iterable[SpokenSentence], aggression: float) -> list[SpokenSentence]:
    """The statements that say enough, in order, without those repeated or corrected later."""
    least = _LEAST_WORTH + _WORTH_PER_AGGRESSION * aggression
    seen: defaultdict[object, list[str]] = defaultdict(list)
    others: list[SpokenSentence] = []
    for statement in candidates:
        if statement.worth < least:
            continue
        alike = seen[statement.role, statement.speaker, _gist(statement.text)]
        if any(repeats(text, statement.text).relation == "duplicate" for text in alike):
            continue
        alike.append(statement.text)
        if "correction" in statement.signals:
            others = [other for other in others if not _corrects(statement, other)]
        others.append(statement)
    return others


def confirms(statement: SpokenSentence) -> bool:
    """Whether it says that the suggestion before it works."""
    if cue("confirms").pattern.match(fold(statement.original)):
        return True
    # An agent's praise confirms nothing.
    if statement.role == "agent" or statement.signals & {"question", "request"}:
        return False
    if says("denies", statement.original) or says("finished", statement.original):
        return False
    short = (
        len(WORD.findall(statement.original)) <= _CONFIRMING_WORDS and len(statement.original) < 50
    )
    return short and outcome_of([statement.original]) == "positive"


def _without_aside(sentence: str) -> str:
    """The sentence without the clauses at its end that are a joke, or of the moment only."""
    ends = [*_CLAUSE.finditer(sentence), *_AND.finditer(sentence)]
    for end in sorted(ends, key=re.Match.start, reverse=True):
        clause = sentence[end.end() :]
        joins = end.re is _AND
        jokes = says("joking", clause) and not joins
        rest = sentence[: end.start()]
        if not jokes and (not is_passing(clause) or says("vague", rest) or not has_value(rest)):
            break
        sentence = sentence[: end.start()]
    return sentence


def _without_secret(sentence: str) -> str:
    """The clauses before the one in which a secret was removed, or that only names it.

    A question stays as it is: it states nothing.
    """
    if MASKED not in sentence or sentence.endswith("?"):
        return sentence
    begin = end = 0
    for part in _PART.finditer(sentence):
        clause = sentence[begin : part.start()]
        if MASKED in clause or not _SECRETS.isdisjoint(name.kind for name in names_in(clause)):
            break
        begin, end = part.end(), part.start()
    before = sentence[:end]
    return before if content_words(before) else sentence


def _statement(
    sentence: str, utterance: Utterance, aggression: float, place: int
) -> SpokenSentence:
    corrects = False
    if utterance.role == "user":
        corrected = without_denial(corrected_within(sentence))
        corrects = corrected != sentence
        sentence = _without_aside(_without_secret(corrected))
    signals = signals_of(sentence)
    if corrects:
        signals |= {"correction"}
    if utterance.role == "agent":
        # A request by an agent is advice.
        signals -= {"request"}
    text = plain(sentence, aggression)
    value = _SELF_WORTH if utterance.speaker and is_of_self(text) else 0.0
    value += worth(text, signals) - _ROLE_COST.get(utterance.role, 0.0)
    return SpokenSentence(text, sentence, utterance.role, utterance.speaker, signals, value, place)


def continued(before: SpokenSentence, sentence: SpokenSentence) -> SpokenSentence:
    """A statement with the sentence that goes on from it."""
    # With its lead-in, unless it is corrected or has a name put in.
    rest = sentence.original.rstrip(" .!。！;,")
    rest = rest if rest.endswith(sentence.text[1:]) else sentence.text
    end = before.original[len(before.original.rstrip(".!?…,;")) :]
    end = end or "" if sentence.breath else end or "."
    text = f"{before.text.rstrip('?')}{end} {rest}"
    signals = before.signals | sentence.signals
    value = max(before.worth, sentence.worth)
    return replace(
        before,
        text=text,
        original=f"{before.original} {sentence.original}",
        signals=signals,
        worth=value,
    )


def _same_speaker(statement: SpokenSentence, other: SpokenSentence) -> bool:
    return (statement.role, statement.speaker) == (other.role, other.speaker)


def _answers(question: SpokenSentence, answer: SpokenSentence) -> bool:
    """Whether a statement means little without the question right before it."""
    question_words = words(question.original)
    # "Who?" says nothing of what its answer is about.
    unrelated = len(question_words) == 1 and cue("asks_name").any_in(question_words[0])
    # A turn between them was the answer, which is not to be kept.
    unrelated |= answer.place - question.place > 1
    if "question" not in question.signals or unrelated or answer.signals & {"question", "solution"}:
        return False
    is_value = cue("which").pattern.match(fold(question.original)) is not None
    # "Anything else?", but not "Anything else, an allergy?".
    is_open = cue("agenda").any_in(fold(question.original))
    is_open |= bool(question.signals & {"request", "offer"}) and not is_value
    if is_open and not says("illness", question.original):
        return False
    short = _is_short(answer, _SHORT_ANSWER)
    if _same_speaker(question, answer):
        # "Which database? We took Turso."
        return short and not is_bare_answer(answer.original) and bool(VALUE.search(answer.original))
    if "greeting" in answer.signals:
        return short and cue("short_answer").pattern.match(fold(answer.text)) is not None
    if is_value or has_number(answer.original):
        return _is_short(answer, _ANSWER_WORDS)
    return short and not answer.signals & {"decision", "report", "preference"}


def _joined(question: SpokenSentence, answer: SpokenSentence) -> SpokenSentence:
    text = f"{question.text} {answer.text}"
    value = 0.5 + worth(text, frozenset({"claim"})) - _ROLE_COST.get(answer.role, 0.0)
    signals = (answer.signals - {"greeting"}) | {"claim"}
    original = f"{question.original} {answer.original}"
    return replace(answer, text=text, original=original, signals=signals, worth=value, answers=True)


def _confirmed_by(statement: SpokenSentence, before: Sequence[SpokenSentence]) -> int | None:
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
    of_turn = (place for place in range(at, -1, -1) if before[place].place == last)
    places = [place for place in of_turn if not before[place].signals & _ASIDE]
    advice = (place for place in places if says("advice", before[place].original))
    return next(advice, places[0] if places else None)


def _gist(text: str) -> object:
    """A key that is equal for most statements that say the same."""
    known = frozenset(words(text))
    content = known - not_topics()
    denials = known & negations()
    return (content, bool(denials)) if len(content) >= _TELLING_WORDS else exact_key(text)


def _corrects(newer: SpokenSentence, older: SpokenSentence) -> bool:
    instead = compiled(INSTEAD).match(newer.text)
    text = instead["new"] if instead else newer.text
    return judge(older.text, text).relation == "contradiction"
