"""Single messages that people type to an assistant, and what the rules keep of them.

    python tests/benchmarks/messages.py

Prints, for each kind of message, of how many what a person would keep is kept; of those of the
moment, of how many nothing is. The rules were fitted on the first file; whoever wrote the second
had not seen them, and nobody who works on the rules reads it.

A line of a file is, between tabs: its language; its kind; the message; what a person would keep of
it; a question for that, in other words; words of the message that answer it, any of those between
"|". The last three are empty where nothing is worth keeping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from report import table

from thermocline.daemon.language.extraction.extraction import extract_turns
from thermocline.daemon.language.speech import Turn

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


def main() -> None:
    """Print what is kept of both files."""
    rows: dict[str, dict[str, str]] = {}
    for name in ("fitted", "held_out"):
        right, messages = Counter[str](), Counter[str]()
        for message in read_messages(FOLDER / f"{name}.tsv"):
            kept = [item.text for item in extract_turns([Turn("user", message.text)])]
            messages[message.kind] += 1
            right[message.kind] += (
                not kept if message.is_of_the_moment else message.is_answered_by(kept)
            )
        rows[name] = {kind: f"{right[kind]} of {count}" for kind, count in messages.items()}
    kinds = dict.fromkeys(kind for row in rows.values() for kind in row)
    table(
        "kept as a person would", {k: {n: row.get(k, "") for n, row in rows.items()} for k in kinds}
    )


if __name__ == "__main__":
    main()
