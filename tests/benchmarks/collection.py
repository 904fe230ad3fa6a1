"""What recall is judged on: memories to load, and questions whose right answers are known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

_NO_AGENT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the keys of the memories that answer it.

    Attributes:
        right: any of these is a right answer; empty where nothing stored answers.
        stale: what was right once and must not stand above the right answers.
        kind: the sort of question, to report by.
        origin: the conversation or the language, to report by.
        before: only memories older than this may answer, in seconds since 1970; None for any.
    """

    text: str
    right: frozenset[str]
    kind: str
    origin: str
    stale: frozenset[str] = frozenset()
    before: float | None = None


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Memories and questions of one agent.

    Attributes:
        name: of the conversation or the set.
        memories: bodies for the API by their keys, in the order of loading.
        unresolved: references to answers that name nothing in the collection.
        unanswerable: questions left out because no answer of theirs could be resolved.
        asked_at: when the questions are asked, in seconds since 1970; None if it does not matter.
    """

    name: str
    memories: dict[str, dict[str, Any]]
    questions: tuple[Question, ...]
    unresolved: int = 0
    unanswerable: int = 0
    asked_at: float | None = None

    @property
    def agent(self) -> str:
        """The agent that they are loaded into."""
        return _NO_AGENT.sub("-", self.name)[:64]

    def keeping(self, keep: Callable[[Question], bool]) -> Collection:
        """The same memories with fewer questions."""
        return replace(self, questions=tuple(filter(keep, self.questions)))
