"""Whether a sentence of a talk is worth keeping: a fact of somebody's life, or of the moment only.

There are more ways to chat than phrases could list, so a sentence is weighed by a logistic
regression: of its words and concepts, and of signals that phrases tell: what speaks for it (a
number, a day, a name, a habit, an answer) and what of the moment (a mood, a verdict, a guess, a
supposition, how the talk goes on). The phrases are those of `[keeping]` in the lexicon; the weights
of `keeping.toml` are fitted by `tests/benchmarks/fit_keeping.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Final

from ...memory.similarity import fold
from ...memory.stemming import terms_of
from ..cues import (
    WORD,
    Signal,
    content_words,
    day_names,
    is_bare_answer,
    is_health,
    is_lasting,
    names_told,
    says,
)
from ..names import people
from ..openings import Finder
from ..speech import MARK_OF_WORDS
from ..standing import is_standing_statement
from ..thesaurus import language_of_text
from ..vocabulary import languages, table, whole_expression, words
from ..weights import FittedWeights, concepts_in
from .corrections import DATE, has_number

_FILE: Final = Path(__file__).parent.with_name("keeping.toml")
_PASSING: Final = -0.3
_SHORT: Final = 3
_FEW: Final = 1
_MANY: Final = 5
# The comma behind a lead-in does not count: "No, we …".
_PAUSE: Final = re.compile(r"\S \S+[,;] ")
_TIME: Final = re.compile(r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?(?:am|pm|uhr|h)\b", re.IGNORECASE)
# A name or a number within a sentence.
VALUE: Final = re.compile(r"(?<=[a-zß-ÿ,] )(?!I\b)[A-ZÀ-ÖØ-Þ]|\d")
_VALUES: Final = frozenset({"number", "dated", "time", "habit", "health", "stands", "lasting"})
# A phrase may begin with an apostrophe: "'m moving".
_BEFORE: Final = r"(?:(?<!\w)|(?='))"
_BELIEVED: Final = frozenset({"others_believe", "others_say", "status"})
_OF_FACTS: Final = frozenset({"number", "third", "habit", "place", "full", "kin"})
# What a sentence of any content may have.
_OF_FORM: Final = _OF_FACTS | {"capital", "pause", "pauses", "has"}
# Of whom, or for how long, a sentence speaks.
_OF_SOMEBODY: Final = frozenset(
    {"own", "third", "life", "stands", "answers", "lasting", "health", "is_decision",
     "is_preference", "is_solution"}
)  # fmt: skip
# Without one of these, text of a machine was only pasted, and a request is for the moment.
_OF_ITS_USER: Final = frozenset({"own", "life", "answers", "lasting", "is_solution"})
_OF_WHAT_LASTS: Final = _OF_SOMEBODY - {"own", "third"} | {
    "habit", "number", "dated", "time", "capital", "pause"
}  # fmt: skip
_VITAL: Final = frozenset({"life", "health", "lasting"})
_OF_THE_MOMENT: Final = frozenset(
    {"mood", "verdict", "exclaims", "unreal", "sky", "leaves", "believes", "refutes", "now"}
)


def is_worth_keeping(text: str, cue_signals: Collection[Signal], *, answers: bool) -> bool:
    """Whether what a user says is a fact that holds beyond the moment; see `signals`."""
    return weight(text, cue_signals, answers=answers) > 0.0


def weight(text: str, cue_signals: Collection[Signal], *, answers: bool) -> float:
    """How much speaks for keeping what a user says, less what speaks against; see `signals`."""
    said = said_in(text, answers=answers)
    return _weight(signals(text, cue_signals, answers=answers), said)


def is_passing(text: str) -> bool:
    """Whether a sentence or clause speaks of the moment alone; one with a value only of parting."""
    names = signals(text, (), answers=False)
    is_momentary = bool(names & _OF_THE_MOMENT) and not names & _VALUES
    return (is_momentary or "leaves" in names) and _weight(names, text) < _PASSING


def signals(text: str, cue_signals: Collection[Signal], *, answers: bool) -> frozenset[str]:
    """The names of the signals that a sentence has.

    Args:
        text: the sentence as it was said, behind the question that it `answers`.
        cue_signals: what `cues.signals_of` says of it.
        answers: whether it begins with the question that it answers.
    """
    answer = said_in(text, answers=answers)
    question = text[: -len(answer)].rstrip("?？ ")
    folded = fold(answer)
    tokens = WORD.findall(folded)
    content = content_words(answer)
    # In scripts without blanks a sentence is few tokens.
    length = max(len(tokens), 2 * content if len(tokens) < content else 0)
    pauses = len(_PAUSE.findall(answer))
    names = set(_phrases().names_in(folded))
    # "Use the other one instead" is no request of the moment; a correction is what it says.
    stands = is_standing_statement(text)
    left_out = {"correction", "request" if "decision" in cue_signals or stands else ""}
    names |= {f"is_{signal}" for signal in cue_signals if signal not in left_out}
    if content > _FEW and _from_now_on().search(folded):
        names.discard("now")
    # "Your birthday is on 5 May, right? Yes": the yes confirms what the question says.
    confirmed = answers and has_number(text) and says("tagged", text) and not says("denies", answer)
    measures = {
        "answers": answers,
        "bare": is_bare_answer(answer) and not confirmed,
        "number": has_number(answer),
        "time": _TIME.search(answer) is not None,
        "dated": DATE.search(answer) is not None or not day_names().isdisjoint(tokens),
        "capital": has_name(answer),
        "short": length <= _SHORT and not is_health(text),
        "pause": pauses > 0 and content > _FEW,
        "pauses": pauses > 1,
        "empty": content <= _FEW,
        "full": content >= _MANY,
        "mood": not table("feelings").keys().isdisjoint(tokens),
        "lasting": is_lasting(text) or bool(names_told(text)) or says("keep_this", text),
        "health": is_health(text),
        "stands": stands,
        "code": _is_machine_text(answer),
        "unreal": says("unreal", text) or says("supposed", text),
        # "How is it going? Badly" tells of the moment only.
        "status": answers and says("status", question) and not has_number(answer),
    }
    names |= {name for name, holds in measures.items() if holds}
    return _together(names, ends_in_content=bool(tokens and content_words(tokens[-1])))


def _together(names: set[str], *, ends_in_content: bool) -> frozenset[str]:
    """The signals of a sentence, as some of them decide what others say."""
    about_nobody = names.isdisjoint(_OF_SOMEBODY)
    pasted = "code" in names and names.isdisjoint(_OF_ITS_USER)
    if pasted or (about_nobody and "is_request" in names):
        # Whatever else it says, it is to be worked on now.
        return frozenset({"errand"})
    if about_nobody:
        names.add("nobody")
    if "unreal" in names:
        names.discard("life")
    if names >= {"stands", "is_preference"}:
        # "Answer with a joke" passes no judgement.
        names.discard("verdict")
    if "is_decision" in names:
        # It is about code, but none: "we decided to use `src/**`".
        names.discard("code")
    if names & {"code", "sky"}:
        names -= _OF_FORM | {"is_preference"}
    if "is_request" in names and names.isdisjoint(_OF_WHAT_LASTS):
        names.add("plain_request")
    if "stands" in names:
        # An order needs few words: "stop apologising".
        names -= {"short", "empty"}
    if "is_preference" in names:
        # What somebody hates is no mood, and "I love basketball" says all of it.
        names -= {"mood", "short", "empty"} if ends_in_content else {"mood"}
    # What somebody else believes, or how things go, is no fact, whatever it says.
    return frozenset(names - _OF_FACTS if names & _BELIEVED else names)


def tells_what_lasts(text: str) -> bool:
    """Whether a text tells what lasts, whatever else it is: a name, health, "Mochi died"."""
    is_of_life = "life" in _phrases().names_in(fold(text))
    return is_of_life or is_lasting(text) or is_health(text)


def said_in(text: str, *, answers: bool) -> str:
    """A sentence without the question that it answers."""
    return re.split(r"[?？]\s*", text)[-1] if answers else text


def words_in(said: str) -> frozenset[str]:
    """The stems of a sentence, but for numbers and days: that it has one is a signal."""
    words = frozenset(term for term in terms_of(said) if not term[0].isdigit())
    return words - _stems_of_days()


@cache
def _stems_of_days() -> frozenset[str]:
    return frozenset(terms_of(" ".join(day_names())))


def _weight(names: frozenset[str], said: str) -> float:
    """The logarithm of the odds by the signals, words and concepts of what was said."""
    weights = _weights()
    of_signals = [weights.always, *(weights.signals.get(name, 0.0) for name in names)]
    if not names.isdisjoint({"errand", "code"}):
        # The words of what was pasted say nothing of it.
        return math.fsum(of_signals)
    of_words = weights.of_words(words_in(said)) + weights.of_concepts(concepts_in(said))
    is_momentary = not _OF_THE_MOMENT.isdisjoint(names) and not names >= {"health", "stands"}
    if not _VITAL.isdisjoint(names) and not is_momentary:
        # "Allergic to kiwis": what somebody cannot bear is of no account.
        of_words = [weight for weight in of_words if weight > 0.0]
    return math.fsum((*of_signals, *of_words))


@cache
def _weights() -> FittedWeights:
    return FittedWeights.read(_FILE)


def has_name(text: str) -> bool:
    """Whether a text has a name; German writes all nouns like these."""
    capital = VALUE.search(text) is not None and language_of_text(text) != "de"
    return capital or bool(people(text))


@cache
def _from_now_on() -> re.Pattern[str]:
    """A day beside "now": "the bins are Tuesdays now" holds beyond the moment."""
    now, days = ("|".join(sorted(names)) for names in (words("now"), day_names()))
    return re.compile(rf"\b(?:{now})(?: [^\s,]+){{0,2}} (?:{days})\b|\b(?:{days}) (?:{now})\b")


@cache
def _phrases() -> Finder:
    return Finder(
        (name, whole_expression(language, item), _BEFORE if language.spaced else None)
        for language in languages()
        for name, items in language.keeping.items()
        for item in items
    )


_MARKS: Final = re.compile(
    # Stack traces and what compilers, shells and package managers print.
    r"\bTraceback \(most recent|\bFile \"[^\"\n]+\", line \d|\b[A-Za-z]*(?:Error|Exception): ?\S"
    r"|\b[\w/.-]+\.(?:py|[jt]sx?|go|rs|cc?|cpp|h|java|rb|php|kt|swift|sh|sql|css|vue):\d+"
    r"|\berrno \d|\b(?:npm|yarn|pip|cargo) (?:ERR!|error|warn)|: command not found"
    r"|^[\w-]+: (?:error|Error|fatal)\b"
    r"|^(?:fatal|error|panic|segmentation fault|warning|fehler|erreur)(?:\[\w+\])?: "
    # Lines of logs: a time with seconds, an uptime, a level.
    r"|^\W{0,3}(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d\b|^\W{0,3}\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|^\[ *\d+\.\d+\] |(?:^|\s|\[)(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL)\b[:\]\s]"
    # Queries and statements of programs.
    r"|\bSELECT\b.{1,200}\bFROM\b|\b(?:INSERT INTO|DELETE FROM|(?:CREATE|ALTER|DROP) TABLE)\b"
    r"|\b(?:const|let|var|int|auto) \w+ ?=|\b(?:def|function|func|fn|class) \w+ ?[({:]|\) ?\{|\};?$"
    r"|\breturn \w+;|\bimport \w+ from\b|^from [\w.]+ import\b|^#include\b|</\w+>|\{\"\w+\": ?"
    r"|^[-+] ?(?:const|let|var|def|return|import|if)\b|^(?:\w+: ){2,}|^\w+\('|^\$ \S|console\.log"
)
_SYMBOLS: Final = frozenset("{}()[];=<>|&$\\^*+/_")
# A sentence with more of these than its letters bear is a formula or code.
_MOST_SYMBOLS: Final = 0.12


def _is_machine_text(text: str) -> bool:
    """Whether a sentence is, or has, text that a machine wrote or that is written for one.

    Whoever pastes logs, code, queries or data asks about them; they tell nothing of them.
    """
    text = MARK_OF_WORDS.sub("", text)
    if _MARKS.search(text):
        return True
    return sum(letter in _SYMBOLS for letter in text) > _MOST_SYMBOLS * len(text)
