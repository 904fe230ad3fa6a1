"""Messages between the daemon and the models' process: one JSON object per line."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

# The maximum length of a line; replies are cut before they are sent.
LONGEST_LINE: Final = 8 << 20
LONGEST_REPLY: Final = 100_000

Json: TypeAlias = Any


class Setup(msgspec.Struct, frozen=True, tag="setup"):
    """The first message; sent again after a change. Never shown.

    Attributes:
        keys: the key of each provider, or an object of arguments for litellm.
        main: the model whose provider the key under `""` belongs to.
        base: the URL of the models' server, unless `bases` has the provider.
        bases: the URLs of servers by provider.
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
        number: unique, chosen by the daemon.
        model: its name in litellm; "" for an endpoint.
        endpoint: the URL to ask instead, without a key.
        anywhere: whether the endpoint may be on another device.
        seconds: the timeout.
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
        text: at most `LONGEST_REPLY` characters.
        finish: `stop`, or `length` if it was cut off.
        tokens_in, tokens_out: None if the server did not say.
        cost: None if the price is unknown.
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
        code: see `failures.CallFailed`.
        message: the reason, without keys.
        retry_after: the seconds to wait, if the server said so.
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


# Decode lines; raise `msgspec.MsgspecError` if a line is not a message.
TO_WORKER: Final = msgspec.json.Decoder[ToWorker](ToWorker)
FROM_WORKER: Final = msgspec.json.Decoder[FromWorker](FromWorker)
