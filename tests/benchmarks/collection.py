"""What recall is judged on: memories to load, and questions whose right answers are known."""

import re
from dataclasses import dataclass
from typing import Any

_NO_AGENT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the keys of the memories that answer it.

    Attributes:
        right: any of these is a right answer; empty where nothing stored answers.
        stale: what was right once and must not stand above the right answers.
        kind: the sort of question, to report by.
        before: only memories older than this may answer, in seconds since 1970; None for any.
    """

    text: str
    right: frozenset[str]
    kind: str
    stale: frozenset[str] = frozenset()
    before: float | None = None


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Memories and questions of one agent.

    Attributes:
        name: of the conversation or the set.
        memories: bodies for the API by their keys, in the order of loading.
        asked_at: when the questions are asked, in seconds since 1970; None if it does not matter.
    """

    name: str
    memories: dict[str, dict[str, Any]]
    questions: tuple[Question, ...]
    asked_at: float | None = None

    @property
    def agent(self) -> str:
        """The agent that they are loaded into."""
        return _NO_AGENT.sub("-", self.name)[:64]
