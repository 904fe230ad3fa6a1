"""The port to a language model: questions, replies, the protocol of a model, and its prompts.

Callers fall back to rules on `ModelUnavailable`. Questions are written so that quoted data cannot
pass as instructions: all data is put between two lines with a marker. The marker consists of random
digits for each request, so that no earlier text can contain it. The marker of a stable part is
derived from the part and a secret of the process: it stays the same, but cannot be guessed either.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar, get_args

import msgspec

from ..config.settings import EMBED, Purpose
from .replies import form_of
from .wire import ChatMessage

PURPOSES: Final = tuple(purpose for purpose in get_args(Purpose) if purpose != EMBED)

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True):
    """A part of a question besides the instructions."""

    name: str  # a plain word, such as `tree` or `question`
    text: str  # the text; secrets in it are removed before it is sent
    # Whether it is data, such as anything stored or said, which is set apart by a marker that it
    # cannot forge. Only our own texts may be unquoted.
    quoted: bool = True
    # Whether it is usually the same in the next request. Stable parts come first, so that a
    # provider or a local server can cache them.
    stable: bool = False


class ModelQuestion(msgspec.Struct, frozen=True):
    """A question to a model."""

    purpose: str  # one of `PURPOSES`; determines the model and the timeout
    system: str  # the instructions; constant, without any data
    parts: tuple[Part, ...]
    max_tokens: int  # the maximum length of the reply
    temperature: float  # 0 for the likeliest reply


class ModelReply(msgspec.Struct, Generic[T], frozen=True):
    """The reply of a model."""

    value: T  # the value of the requested type
    model: str  # the name of the model, or the endpoint's URL
    # The tokens, including a repair; estimated if the server does not say; 0 from the cache.
    tokens_in: int = 0
    tokens_out: int = 0
    # In US dollars by litellm's price list; None if the model is not in it.
    cost: float | None = 0.0
    cached: bool = False  # whether it is from the cache
    repaired: bool = False  # whether the first reply was not usable
    seconds: float = 0.0  # the time to the reply
    cleared: dict[str, int] = {}  # the number of secrets removed from the question, by kind


class Model(Protocol):
    """A language model."""

    def available(self, purpose: str) -> bool:
        """Whether to ask: a model is configured, and the budget is not spent. No I/O."""
        ...

    async def ask(
        self, question: ModelQuestion, kind: type[T], *, endpoint: str | None = None
    ) -> ModelReply[T]:
        """Ask, and read the reply as a `kind`.

        `kind` is a msgspec struct, or a list or tuple of them; not recursive. The
        configuration has the timeout of the purpose, to which the start of the process adds.
        `endpoint` is a server to ask instead of the configured models; it gets no key.
        `ModelUnavailable` says why no model can answer now; `InvalidInput`: the endpoint is not an
        address.
        """
        ...


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
    """The instructions, read from the files in `prompts/`."""

    data: str  # the rule about quoted data, added to all instructions
    repair: str  # the message after an unusable reply
    form: str  # the text before the schema of the reply
    purposes: dict[str, str]  # the instructions for each purpose

    def question(self, purpose: str, *parts: Part, max_tokens: int | None = None) -> ModelQuestion:
        """A question for a purpose, with its instructions and limits.

        `purpose` is in `PURPOSES`; `max_tokens` is the maximum length of the reply, None: that of
        the purpose.
        """
        tokens, temperature = _LIMITS[purpose]
        return ModelQuestion(
            purpose, self.purposes[purpose], parts, max_tokens or tokens, temperature
        )

    def written(self, question: ModelQuestion, kind: Any) -> str:
        """A question as one text, for a model that answers with a `kind`."""
        system, *others = Quoting().messages(question, self.data)
        instructions = f"{system.content}\n\n{self.form}\n{form_of(kind).words}"
        return "\n\n".join([instructions, *(message.content for message in others)])


def read_prompts() -> Prompts:
    """Read the files that are installed with the package. Blocking."""
    folder = Path(__file__).with_name("prompts")

    def text(name: str) -> str:
        return (folder / f"{name}.txt").read_text("utf-8").strip()

    purposes = {purpose: text(purpose) for purpose in PURPOSES}
    return Prompts(text("data"), text("repair"), text("form"), purposes)


class Quoting:
    """Writes questions as messages for a model.

    `random` returns a number of random bytes as hexadecimal digits.
    """

    def __init__(self, random: Random = secrets.token_hex) -> None:
        self._secret = secrets.token_bytes(32)
        self._random = random

    def messages(self, question: ModelQuestion, rule: str) -> tuple[ChatMessage, ...]:
        """The instructions with the rule about data, then the parts, stable ones first."""
        text = "".join(part.text for part in question.parts)
        while (marker := self._random(_DIGITS // 2)) in text:
            continue
        parts = sorted(question.parts, key=lambda part: not part.stable)
        written = [
            quoted(part.name, part.text, self._stable_marker(part.name, part.text))
            if part.stable and part.quoted
            else quoted(part.name, part.text, marker)
            if part.quoted
            else part.text
            for part in parts
        ]
        system = f"{question.system.strip()}\n\n{rule.strip()}"
        return ChatMessage("system", system), ChatMessage("user", "\n\n".join(written))

    def _stable_marker(self, name: str, text: str) -> str:
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
    safe = _CONTROL.sub(lambda match: f"{match[0]} ", _UNPRINTED.sub("", text))
    return f"[{name} {marker}]\n{safe}\n[end of {name} {marker}]"
