"""What the verbs' arguments have in common: parsing, values, standard input, refusals."""

from __future__ import annotations

import argparse
import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, NoReturn

# The options that take a value and may stand before the verb.
VALUED: Final = ("--socket", "--agent-id", "--agent")


class WrongUsage(Exception):
    """The command line asks for what makes no sense; the message is for its author."""


class Parser(argparse.ArgumentParser):
    """Reports a mistake as `WrongUsage` instead of leaving; abbreviates no option."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            WrongUsage: always.
        """
        raise WrongUsage(f"{message}; see {self.prog} --help")


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every verb takes."""
    group = parser.add_argument_group("options of every verb")
    group.add_argument("--socket", metavar="PATH", help="the daemon's socket")
    group.add_argument("--agent-id", "--agent", dest="agent", metavar="ID", help="whose memory")
    group.add_argument("--json", action="store_true", help="answer in JSON, for programs")


def say(message: str) -> None:
    """Tell people something that is not the result."""
    print(f"thermocline: {message}", file=sys.stderr)


def number(text: str) -> float:
    """A finite number, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0.0:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}")
    return value


def whole(text: str) -> int:
    """A whole number, for argparse."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text[:40]!r}") from None


def text_of(value: str) -> str:
    """The value itself, or standard input where it is `-`, without its last line break.

    Raises:
        WrongUsage: standard input is closed, or not UTF-8.
    """
    if value != "-":
        return value
    return decoded(read_stdin(), "standard input").removesuffix("\n").removesuffix("\r")


def stdin_once(*values: str | None) -> None:
    """Refuse to read standard input for two values.

    Raises:
        WrongUsage: more than one of them is `-`.
    """
    if values.count("-") > 1:
        raise WrongUsage("only one value can be read from standard input")


def read_stdin() -> bytes:
    """All of standard input.

    Raises:
        WrongUsage: it is closed.
    """
    # The type checkers' view of sys.stdin leaves out that a closed one is None.
    stream: Any = sys.stdin
    if stream is None:
        raise WrongUsage("cannot read standard input: it is closed")
    data: bytes = stream.buffer.read()
    return data


def decoded(data: bytes, name: str) -> str:
    """`data` as UTF-8 text.

    Raises:
        WrongUsage: it is something else.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"cannot read {name}: it is not UTF-8 (byte 0x{data[error.start]:02x} "
            f"at position {error.start})"
        ) from None


def json_of(text: str, name: str) -> Any:
    """The JSON in `text`, strictly: no NaN, no key twice, no endless nesting.

    Args:
        text: the JSON.
        name: what it is the value of, for the message.

    Raises:
        WrongUsage: it is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError:
        raise WrongUsage(f"{name}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise WrongUsage(f"{name}: expected JSON, got {text[:40]!r} ({error})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return fields
