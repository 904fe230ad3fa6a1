"""Messages between the daemon and a child process, one JSON object per line; and the child's side.

Every request has a number, and its answer has the same. An answer with the number 0 says that the
process has started.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

# The maximum length of a line; replies are cut before they are sent.
LONGEST_LINE: Final = 8 << 20
LONGEST_REPLY: Final = 100_000
# If memory is short the kernel kills a child before the daemon.
_OUT_OF_MEMORY_SCORE: Final = b"800"

Json: TypeAlias = Any
# A question, or what may answer it; some models encode the two in different ways.
TextRole: TypeAlias = Literal["query", "passage"]


class Setup(msgspec.Struct, frozen=True):
    """The keys and addresses for models. Never shown."""

    # The key of each provider, or an object of arguments for litellm.
    keys: dict[str, str | dict[str, str]] = {}
    main: str | None = None  # the model whose provider the key under `""` belongs to
    base: str | None = None  # the URL of the models' server, unless `bases` has the provider
    bases: dict[str, str] = {}  # the URLs of servers by provider

    def __repr__(self) -> str:
        return "Setup(...)"


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Import litellm now; the answer is its version."""

    number: int = 0


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
    """A request to a model or an endpoint; the answer is an `Answered`."""

    model: str  # its name in litellm; "" for an endpoint
    messages: tuple[ChatMessage, ...]
    form: ReplyForm
    max_tokens: int
    temperature: float
    seconds: float
    endpoint: str | None = None  # the URL to ask instead, without a key
    anywhere: bool = False  # whether the endpoint may be on another device
    setup: Setup | None = None  # the keys; None for an endpoint
    number: int = 0  # chosen when it is sent


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Texts to encode as vectors; the answer is an `Embedded`."""

    model: str  # its name in litellm, or `static:` and a folder
    texts: tuple[str, ...]
    role: TextRole  # what the texts are to be compared as
    seconds: float = 0.0
    setup: Setup | None = None  # the keys; None for a static model
    number: int = 0  # chosen when it is sent


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Cancel a request; a failure with the code `cancelled` follows."""

    number: int


class Answered(msgspec.Struct, frozen=True):
    """The answer of a model."""

    text: str  # at most `LONGEST_REPLY` characters
    finish: str  # `stop`, or `length` if it was cut off
    # None if the server did not say.
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None  # None if the price is unknown


class Embedded(msgspec.Struct, frozen=True):
    """The vectors of some texts."""

    # One for each text, of eight bits a dimension; None if the model gave one without a direction.
    vectors: tuple[bytes | None, ...]
    dimensions: int
    revision: str = ""  # the digest of the files of a static model; "" if it is unknown
    tokens: int | None = None  # None if the server did not say
    cost: float | None = None  # None if the price is unknown


class Failure(msgspec.Struct, frozen=True):
    """Why a request got no answer: the arguments of a `CallFailed`, without keys."""

    code: str
    message: str
    retry_after: float | None = None


class Reply(msgspec.Struct, frozen=True):
    """The answer to a request: its value, or why it failed."""

    number: int
    value: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None


Request: TypeAlias = Load | Ask | Embed | Cancel


def line(message: msgspec.Struct) -> bytes:
    """A message as a line of the pipe."""
    return msgspec.json.encode(message) + b"\n"


# What a child process does, whatever it answers.


def own_pipes() -> tuple[int, int]:
    """Private copies of standard input and output, which no library can use."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def serve(requests: int, handle: Callable[[bytes], object]) -> None:
    """Pass each line to `handle` on a thread of its own, and exit at the end of the input.

    A line that `handle` refuses ends the process too. The thread notices the end, when the daemon
    closed the pipe or died, even while the others are busy.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:  # noqa: PTH123
        file.write(_OUT_OF_MEMORY_SCORE)

    def read() -> None:
        with os.fdopen(requests, "rb") as lines, contextlib.suppress(Exception):
            for data in lines:
                handle(data)
        os._exit(0)

    threading.Thread(target=read, name="requests", daemon=True).start()


def send(answers: int, reply: Reply) -> None:
    """Write an answer; ends the process if nobody reads it."""
    data = memoryview(line(reply))
    try:
        while data:
            data = data[os.write(answers, data) :]
    except OSError:
        os._exit(0)
