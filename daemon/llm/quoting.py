"""Telling a model what is an instruction and what is only data.

Whatever was stored or said by anybody stands between two lines that bear a marker. The marker is
made anew for each request, of random digits, so that no text can hold it that was written before;
for parts that stay the same it is made of the part itself and a secret of the process, so that it
stays the same with them and is no more to be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Final

from .model import Asked
from .wire import Message

# Words of the models' own, which some servers obey wherever they stand.
_CONTROL: Final = re.compile(
    r"<(?=\|)|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|think)>)|\[(?=/?INST\])"
)
_UNPRINTED: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_DIGITS: Final = 16

Random = Callable[[int], str]


class Quoting:
    """Writes questions for models.

    Args:
        secret: for the markers of parts that stay the same; of the process, never stored.
        random: gives so many random bytes as hexadecimal digits.
    """

    def __init__(self, secret: bytes | None = None, random: Random = secrets.token_hex) -> None:
        self._secret = secret or secrets.token_bytes(32)
        self._random = random

    def messages(self, asked: Asked, rule: str) -> tuple[Message, ...]:
        """The conversation: the instructions and the rule about data, then the parts.

        What stays the same comes first.
        """
        marker = self._marker("".join(part.text for part in asked.parts))
        parts = sorted(asked.parts, key=lambda part: not part.stable)
        written = [
            quoted(part.name, part.text, self._kept(part.name, part.text))
            if part.stable and part.quoted
            else quoted(part.name, part.text, marker)
            if part.quoted
            else part.text
            for part in parts
        ]
        system = f"{asked.system.strip()}\n\n{rule.strip()}"
        return Message("system", system), Message("user", "\n\n".join(written))

    def _marker(self, text: str) -> str:
        """Random digits that do not stand in the text."""
        while (marker := self._random(_DIGITS // 2)) in text:
            continue
        return marker

    def _kept(self, name: str, text: str) -> str:
        """Digits that stand for this very text, and do not stand in it."""
        return next(marker for marker in self._made_of(name, text) if marker not in text)

    def _made_of(self, name: str, text: str) -> Iterator[str]:
        content = f"{name}\n{text}".encode("utf-8", "replace")
        while True:
            made = hmac.new(self._secret, content, hashlib.sha256).hexdigest()
            yield made[:_DIGITS]
            content = made.encode()


def quoted(name: str, text: str, marker: str) -> str:
    """A text between two lines that name it and bear the marker.

    Words that steer a model's server are broken up, and what cannot be printed is left out.
    """
    safe = _CONTROL.sub(lambda found: f"{found[0]} ", _UNPRINTED.sub("", text))
    return f"[{name} {marker}]\n{safe}\n[end of {name} {marker}]"
