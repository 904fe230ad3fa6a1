"""What the arguments of all verbs have in common: parsing, values, standard input, refusals."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Final, NoReturn

# The options that take a value and may precede the verb.
VALUED: Final = ("--socket", "--agent-id", "--agent")
OUTPUT_VARIABLE: Final = "THERMOCLINE_OUTPUT"
# No argument of a process can contain it.
_MARK: Final = "\0"


class WrongUsage(Exception):
    """The command line is wrong; the message says how to correct it."""


class Parser(argparse.ArgumentParser):
    """Reports a mistake as `WrongUsage` instead of exiting; accepts no abbreviated option."""

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
        raise WrongUsage(f"{message.replace(repr(_MARK)[1:-1], '')}; see {self.prog} --help")

    def parse(self, words: list[str]) -> argparse.Namespace:
        """The arguments; options may stand anywhere, and `-gate` is a text: options have `--`.

        Raises:
            WrongUsage: they are wrong, or `-` stands for more than one value.
            SystemExit: after `--help`.
        """
        end = words.index("--") if "--" in words else len(words)
        marked = [_MARK + word if _is_text(word) else word for word in words[:end]]
        # Intermixed parsing accepts options between words, but ignores the `--` that ends them.
        parse = self.parse_args if end < len(words) else self.parse_intermixed_args
        args = parse([*marked, *words[end:]])
        for name, value in vars(args).items():
            setattr(args, name, _unmarked(value))
        given = [one for value in vars(args).values() for one in _listed(value)]
        if given.count("-") > 1:
            raise WrongUsage("only one value can be read from standard input")
        return args


def _is_text(word: str) -> bool:
    """Whether a word that begins with a dash is a text; argparse accepts numbers by itself."""
    return word[:1] == "-" and word[1:2] not in "-.0123456789" and word != "-h"


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    return value.removeprefix(_MARK) if isinstance(value, str) else value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def wants_json(words: list[str]) -> bool:
    """Whether the answer, an error included, is to be JSON.

    Raises:
        WrongUsage: the environment asks for an unknown format.
    """
    chosen = os.environ.get(OUTPUT_VARIABLE, "")
    if "--json" in words[: words.index("--") if "--" in words else None]:
        return True
    if chosen not in ("", "text", "json"):
        raise WrongUsage(f"{OUTPUT_VARIABLE}: expected json or text, got {chosen[:40]!r}")
    return chosen == "json"


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every verb takes."""
    group = parser.add_argument_group("options of every verb")
    group.add_argument("--socket", metavar="PATH", help="the daemon's socket")
    group.add_argument("--agent-id", "--agent", dest="agent", metavar="ID", help="whose memory")
    group.add_argument(
        "--json",
        action="store_true",
        help=f"print JSON, errors too; {OUTPUT_VARIABLE}=json does so for every command",
    )


def say(message: str) -> None:
    """Print a remark that is not part of the result, on standard error."""
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


def one_text(word: str | None, option: str | None, name: str) -> str:
    """The text, given as a word or with an option.

    Raises:
        WrongUsage: it was given in neither way, or in both.
    """
    if word is not None and option is not None:
        raise WrongUsage(f"give the text once: as a word, or with {name}")
    given = option if word is None else word
    if given is None:
        raise WrongUsage(f"a text is missing: give it as a word, or with {name}")
    return given


def text_of(value: str) -> str:
    """The value itself, or standard input where it is `-`, without its last line break.

    Raises:
        WrongUsage: standard input is closed, or not UTF-8.
    """
    if value != "-":
        return value
    return decoded(read_stdin(), "standard input").removesuffix("\n").removesuffix("\r")


def text_in(name: str) -> str:
    """The text of a file, or standard input where the name is `-`.

    Raises:
        WrongUsage: it is not UTF-8.
        OSError: the file cannot be read.
    """
    if name == "-":
        return decoded(read_stdin(), "standard input")
    with open(name, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a command's time
        return decoded(file.read(), name)


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
        WrongUsage: it is not valid UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"cannot read {name}: it is not UTF-8 (byte 0x{data[error.start]:02x} "
            f"at position {error.start})"
        ) from None


def json_of(text: str, name: str) -> Any:
    """The JSON in `text`, strictly: no NaN, no repeated key, no endless nesting.

    Args:
        text: the JSON.
        name: the option that it is the value of, for the message.

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
        raise ValueError(f"the key {twice!r} is repeated")
    return fields
