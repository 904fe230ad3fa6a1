"""Single messages that people type to an assistant, and what of each is worth remembering.

A line of a file is, between tabs: its language; its kind; the message; what a person would keep of
it; a question for that, in other words; words of the message that answer it, any of those between
"|". The last three are empty where nothing is worth keeping.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("data") / "messages"


class Message(NamedTuple):
    """One message: `kept` is what a person would keep, `answers` are lower-case alternatives."""

    language: str
    kind: str
    text: str
    kept: str
    question: str
    answers: tuple[str, ...]

    @property
    def is_of_the_moment(self) -> bool:
        """Whether nothing of it is worth keeping."""
        return not self.kept

    def is_answered_by(self, texts: Iterable[str]) -> bool:
        """Whether any of some texts has an answer to the question."""
        return any(answer in text.lower() for text in texts for answer in self.answers)


def read_messages(path: Path) -> list[Message]:
    """The messages of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_message(line.split("\t")) for line in lines]


def _message(fields: list[str]) -> Message:
    language, kind, text, kept, question, answer = fields
    return Message(
        language, kind, text, kept, question, tuple(filter(None, answer.lower().split("|")))
    )
