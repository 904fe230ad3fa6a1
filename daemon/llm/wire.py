"""Messages between the daemon and the models' process: one JSON object per line."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

# No line is longer: a reply is cut before it is sent.
LONGEST_LINE: Final = 8 << 20
LONGEST_REPLY: Final = 100_000

Json: TypeAlias = Any


class Setup(msgspec.Struct, frozen=True, tag="setup"):
    """The first message; sent again after a change. Never shown.

    Attributes:
        keys: for each provider its key, or several things that litellm wants to know for it.
        main: the model whose provider the key under `""` is for.
        base: the URL of the models' server, unless `bases` has one for the provider.
        bases: likewise for a provider.
    """

    keys: dict[str, str | dict[str, str]] = {}
    main: str | None = None
    base: str | None = None
    bases: dict[str, str] = {}

    def __repr__(self) -> str:
        return "Setup(...)"


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Import litellm now; the answer is `LitellmLoaded`."""


class ChatMessage(msgspec.Struct, frozen=True):
    """One message of a conversation with a model."""

    role: str
    content: str


class ReplyForm(msgspec.Struct, frozen=True):
    """The form of a reply: its name, its JSON Schema, and the schema as text for a prompt."""

    name: str
    schema: dict[str, Json]
    words: str


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """A request to a model or an endpoint; `Answered` or `Failed` of the same number follows.

    Attributes:
        number: chosen by the daemon, each once.
        model: as litellm names it; empty for an endpoint.
        endpoint: the URL to ask instead, without a key.
        anywhere: the endpoint may be elsewhere than on this device.
        seconds: after which it fails with `timeout`.
    """

    number: int
    model: str
    messages: tuple[ChatMessage, ...]
    form: ReplyForm
    max_tokens: int
    temperature: float
    seconds: float
    endpoint: str | None = None
    anywhere: bool = False


class Window(msgspec.Struct, frozen=True, tag="window"):
    """Asks for a model's context window; `Answered` has the number as text, "" if unknown."""

    number: int
    model: str


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Cancel a request; `Failed` with `cancelled` follows."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process has started and is set up."""

    pid: int


class LitellmLoaded(msgspec.Struct, frozen=True, tag="loaded"):
    """litellm is loaded, with its version; or it is not, and why."""

    version: str | None
    why: str | None = None


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The answer of a model.

    Attributes:
        text: it, cut at `LONGEST_REPLY` characters.
        finish: `stop`, or `length` when it had to stop.
        tokens_in, tokens_out: None where the server did not say.
        cost: None where the price is not known.
    """

    number: int
    text: str
    finish: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Why a request got no reply.

    Attributes:
        code: one of the words of `failures`.
        message: in words, without keys.
        retry_after: seconds, where the server said how long to wait.
    """

    number: int
    code: str
    message: str
    retry_after: float | None = None


ToWorker: TypeAlias = Setup | Load | Ask | Window | Cancel
FromWorker: TypeAlias = Ready | LitellmLoaded | Answered | Failed


def line(message: ToWorker | FromWorker) -> bytes:
    """A message as a line of the pipe."""
    return msgspec.json.encode(message) + b"\n"


def to_worker(data: bytes) -> ToWorker:
    """The message in a line from the daemon.

    Raises:
        msgspec.MsgspecError: it is not a message.
    """
    message: ToWorker = msgspec.json.decode(data, type=ToWorker)
    return message


def from_worker(data: bytes) -> FromWorker:
    """The message in a line from the model's process.

    Raises:
        msgspec.MsgspecError: it is not a message.
    """
    message: FromWorker = msgspec.json.decode(data, type=FromWorker)
    return message
