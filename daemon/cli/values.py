"""Values of the command line: numbers, texts, JSON, standard input; and remarks."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, Final, NoReturn

OUTPUT_VARIABLE: Final = "THERMOCLINE_OUTPUT"
# The author of what is written by hand.
PROGRAM: Final = "cli"
# No daemon takes more in a request: the most that socket.max_body_bytes may be.
_MOST_BYTES: Final = 67_108_864
WEIGHTS: Final = ("match", "recency", "importance", "semantic")


class WrongUsage(Exception):
    """The command line is wrong; the message says how to correct it."""


def say(message: str) -> None:
    """Print a remark that is not part of the result, on standard error."""
    print(f"thermocline: {message}", file=sys.stderr)


def refuse(condition: object, message: str) -> None:
    """Refuse options that contradict each other. Raises `WrongUsage`: the condition holds."""
    if condition:
        raise WrongUsage(message)


def converted(flag: str, kind: str, text: str) -> Any:
    """The value of an option or word with the metavariable `kind`; else `WrongUsage`."""
    convert = _KINDS.get(kind)
    return text if convert is None else convert(flag, text)


def number(flag: str, text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0.0:
        raise WrongUsage(f"{flag}: expected a number, got {text[:40]!r}")
    return value


def whole(flag: str, text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise WrongUsage(f"{flag}: expected a whole number, got {text[:40]!r}") from None


def json_of(flag: str, text: str) -> Any:
    """The JSON in `text`, strictly: no NaN, no repeated key, no endless nesting."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError:
        raise WrongUsage(f"{flag}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise WrongUsage(f"{flag}: expected JSON, got {text[:40]!r} ({error})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is repeated")
    return fields


def _json_or_text(flag: str, text: str) -> Any:
    try:
        return json_of(flag, text)
    except WrongUsage:
        if text.lstrip()[:1] in {"{", "["}:
            raise
        return text


def _weights(flag: str, text: str) -> dict[str, float]:
    """`match=2,recency=0.5`, or the same as a JSON object."""
    parts = text.split(",")
    if text.lstrip().startswith("{"):
        parts = [f"{name}={value}" for name, value in json_of(flag, text).items()]
    weights: dict[str, float] = {}
    for part in parts:
        name, equals, value = part.strip().partition("=")
        if name not in WEIGHTS or not equals or name in weights:
            names = ", ".join(WEIGHTS)
            raise WrongUsage(
                f"{flag}: expected NAME=N with each of {names} at most once, got {part[:40]!r}"
            )
        weights[name] = number(flag, value)
    return weights


_KINDS: Final[dict[str, Callable[[str, str], Any]]] = {
    "N": whole,
    # Importance has a scale of whole numbers, too.
    "0-1": lambda flag, text: int(text) if text.isdecimal() else number(flag, text),
    "DAYS": number,
    "SECONDS": number,
    "JSON": json_of,
    "JSON|TEXT": _json_or_text,
    "NAME=N,…": _weights,
}


def text_of(value: str) -> str:
    """The value itself, or standard input where it is `-`, without its last line break."""
    if value != "-":
        return value
    return decoded(read_stdin(), "standard input").removesuffix("\n").removesuffix("\r")


def text_in(name: str) -> str:
    """The text of a file, or standard input where the name is `-`."""
    if name == "-":
        return decoded(read_stdin(), "standard input")
    with open(name, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a command's time
        return decoded(_whole(file, name), name)


def read_stdin() -> bytes:
    """All of standard input. Raises `WrongUsage`: it is closed."""
    # The type checkers' view of sys.stdin leaves out that a closed one is None.
    stream: Any = sys.stdin
    if stream is None:
        raise WrongUsage("cannot read standard input: it is closed")
    return _whole(stream.buffer, "standard input")


def _whole(stream: BinaryIO, name: str) -> bytes:
    data = stream.read(_MOST_BYTES + 1)
    refuse(len(data) > _MOST_BYTES, f"cannot read {name}: it has more than {_MOST_BYTES} bytes")
    return data


def decoded(data: bytes, name: str) -> str:
    """`data` as UTF-8 text, without its byte order mark. Raises `WrongUsage`: it is not UTF-8."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"cannot read {name}: it is not UTF-8 (byte 0x{data[error.start]:02x} "
            f"at position {error.start})"
        ) from None


def wants_json(words: list[str]) -> bool:
    """Whether the answer, an error included, is to be JSON."""
    if "--json" in words[: words.index("--") if "--" in words else None]:
        return True
    chosen = os.environ.get(OUTPUT_VARIABLE, "")
    if chosen not in ("", "text", "json"):
        raise WrongUsage(f"{OUTPUT_VARIABLE}: expected json or text, got {chosen[:40]!r}")
    return chosen == "json"
