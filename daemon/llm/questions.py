"""Writes questions for models, so that quoted data cannot pass as instructions.

All data is put between two lines with a marker. The marker consists of random digits for each
request, so that no earlier text can contain it. The marker of a stable part is derived from the
part and a secret of the process: it stays the same, but cannot be guessed either.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from .model import PURPOSES, ModelQuestion, Part
from .wire import ChatMessage

# The maximum tokens of the reply, and the temperature.
_LIMITS: Final = {
    "distil": (300, 0.2),
    "observe": (2048, 0.0),
    "episode": (250, 0.2),
    "tree": (500, 0.0),
    "merge": (600, 0.0),
    "rebuild": (2000, 0.2),
    "ingest": (1500, 0.0),
    "compact": (1000, 0.2),
}
# Control tokens of models, which some servers interpret anywhere.
_CONTROL: Final = re.compile(
    r"<(?=\|)|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|think)>)|\[(?=/?INST\])"
)
_UNPRINTED: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_DIGITS: Final = 16

Random = Callable[[int], str]


class Prompts(msgspec.Struct, frozen=True):
    """The instructions, read from the files in `prompts/`.

    Attributes:
        data: the rule about quoted data, added to all instructions.
        repair: the message after an unusable reply.
        purposes: the instructions for each purpose.
    """

    data: str
    repair: str
    purposes: dict[str, str]

    def question(self, purpose: str, *parts: Part, max_tokens: int | None = None) -> ModelQuestion:
        """A question for a purpose, with its instructions and limits.

        Args:
            purpose: one of `PURPOSES`.
            parts: the data.
            max_tokens: the maximum length of the reply; None: that of the purpose.
        """
        tokens, temperature = _LIMITS[purpose]
        return ModelQuestion(
            purpose, self.purposes[purpose], parts, max_tokens or tokens, temperature
        )


def read_prompts() -> Prompts:
    """Read the files that are installed with the package. Blocking."""
    folder = Path(__file__).with_name("prompts")

    def text(name: str) -> str:
        return (folder / f"{name}.txt").read_text("utf-8").strip()

    return Prompts(text("data"), text("repair"), {purpose: text(purpose) for purpose in PURPOSES})


class Quoting:
    """Writes questions as messages for a model.

    Args:
        random: returns a number of random bytes as hexadecimal digits.
    """

    def __init__(self, random: Random = secrets.token_hex) -> None:
        self._secret = secrets.token_bytes(32)
        self._random = random

    def messages(self, question: ModelQuestion, rule: str) -> tuple[ChatMessage, ...]:
        """The instructions with the rule about data, then the parts, stable ones first."""
        marker = self._marker("".join(part.text for part in question.parts))
        parts = sorted(question.parts, key=lambda part: not part.stable)
        written = [
            quoted(part.name, part.text, self._kept(part.name, part.text))
            if part.stable and part.quoted
            else quoted(part.name, part.text, marker)
            if part.quoted
            else part.text
            for part in parts
        ]
        system = f"{question.system.strip()}\n\n{rule.strip()}"
        return ChatMessage("system", system), ChatMessage("user", "\n\n".join(written))

    def _marker(self, text: str) -> str:
        while (marker := self._random(_DIGITS // 2)) in text:
            continue
        return marker

    def _kept(self, name: str, text: str) -> str:
        """Digits derived from this text that do not occur in it."""
        made, content = "", f"{name}\n{text}".encode("utf-8", "replace")
        while made[:_DIGITS] in text:
            made = hmac.new(self._secret, content, hashlib.sha256).hexdigest()
            content = made.encode()
        return made[:_DIGITS]


def quoted(name: str, text: str, marker: str) -> str:
    """A text between two lines with its name and the marker.

    Control tokens are broken up, and unprintable characters removed.
    """
    safe = _CONTROL.sub(lambda found: f"{found[0]} ", _UNPRINTED.sub("", text))
    return f"[{name} {marker}]\n{safe}\n[end of {name} {marker}]"
