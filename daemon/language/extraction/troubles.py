"""Solutions and the problems that they end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from ...memory.similarity import words
from ..cues import signals_of
from ..sentences import plain, shortened
from ..thesaurus import language_of_text
from ..vocabulary import grammar, not_topics
from ..vocabulary import words as words_of
from .keeping import tells_what_lasts
from .statements import SpokenSentence

_PROBLEM_BYTES: Final = 200
_CLAUSE: Final = re.compile(r"[,;] | (?:and|but|und|aber|y|pero|et|mais) ")


def with_problems(
    remaining: Iterable[SpokenSentence],
    transcript: Sequence[SpokenSentence],
    earlier: Sequence[str],
) -> tuple[list[SpokenSentence], dict[str, str]]:
    """The statements, and the earlier text that each solution ends.

    A solution names the problem before it, which is no longer a statement by itself.
    """
    whole: list[SpokenSentence] = []
    ended: dict[str, str] = {}
    done: set[str] = set()
    problems = [text for text in earlier if {"error"} == signals_of(text) & {"error", "solution"}]
    for statement in remaining:
        if "solution" not in statement.signals:
            if "error" in statement.signals and not tells_what_lasts(statement.original):
                problems.append(statement.text)
            whole.append(statement)
            continue
        by_agent = statement.role == "agent"
        about = _content(statement.text)
        # "That's decided" alone solves nothing.
        is_told = by_agent or "solution" in signals_of(statement.original)
        troubles = _troubles_before(statement, transcript) if is_told else []
        troubles = [text for text in troubles if text not in done]
        named = [text for text in (*troubles, *problems) if about & _content(text)]
        questions = _asked_before(statement, transcript) if by_agent else []
        solved = (named or problems or troubles or questions)[-1:]
        text = statement.text
        if solved and (by_agent or not named):
            text = f"{solved[0]} → {text}"
        done.update(solved)
        ended.update((text, problem) for problem in solved if problem in earlier)
        whole = [entry for entry in whole if entry.text not in solved]
        problems = [problem for problem in problems if problem not in solved]
        whole.append(replace(statement, text=text))
    return whole, ended


def _troubles_before(statement: SpokenSentence, transcript: Sequence[SpokenSentence]) -> list[str]:
    """What the user said was wrong, without their guesses at the cause."""
    clauses = (
        plain(clause)
        for item in transcript
        if item.place < statement.place and item.role == "user" and "error" in item.signals
        for clause in _CLAUSE.split(item.original)
        if {"error"} == signals_of(clause) & {"error", "hedge", "solution"}
    )
    # "Still crashing" does not say what does.
    return [clause for clause in clauses if not words_of("articles").isdisjoint(words(clause))]


def _content(text: str) -> frozenset[str]:
    """The words that say what a text is about."""
    telling = frozenset(word for word in words(text) if len(word) > 1)
    return telling - not_topics() - grammar(language_of_text(text))


def _asked_before(statement: SpokenSentence, transcript: Sequence[SpokenSentence]) -> list[str]:
    """The user's last statement before an agent's advice."""
    before = [
        item for item in transcript if item.place == statement.place - 1 and item.role == "user"
    ]
    questions = [
        item.text.rstrip("?？")
        for item in before
        if not item.signals & {"greeting", "preference"} and not tells_what_lasts(item.original)
    ]
    return [shortened(text, _PROBLEM_BYTES) for text in questions[-1:]]
