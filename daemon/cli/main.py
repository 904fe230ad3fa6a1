"""The command `thermocline`: finds the verb, runs it, and turns failures into exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from ..client import ApiError, Client, ClientError, DaemonUnreachable
from ..errors import ConfigInvalid, ThermoclineError, Unavailable
from ..runtime.version import VERSION
from .arguments import VALUED, Parser, WrongUsage, add_common, say, wants_json
from .failures import explained
from .terminal import show_json, show_result, visible
from .verbs import MEANT, VERBS, module_of

DONE: Final = 0
REFUSED: Final = 1
WRONG: Final = 2
UNREACHABLE: Final = 3
UNAVAILABLE: Final = 4
INTERRUPTED: Final = 130

_EXIT_CODES: Final = """exit codes:
  0    done
  1    refused or not found
  2    wrong usage or configuration
  3    no daemon answers
  4    not possible at the moment, such as with a full disk: try again later
  130  interrupted

`-` in place of a text, a file or a value reads standard input.
With --json an error is printed on standard output, as {"error": {"code", "message"}}.
`thermocline VERB --help` shows the options of a verb."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; only the result goes to standard output.

    Args:
        argv: the words after the program's name; default: those of this process.
    """
    words = sys.argv[1:] if argv is None else [*argv]
    as_json = "--json" in words
    try:
        _print_anything()
        as_json = wants_json(words)
        code = _run(words, as_json=as_json)
        _flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return DONE
    except (ClientError, ThermoclineError, WrongUsage, OSError) as error:
        return _failed(error, as_json=as_json)
    return code


def _run(words: Sequence[str], *, as_json: bool) -> int:
    verb, rest = split(words)
    if verb is None:
        return _without_verb(rest)
    if verb not in VERBS:
        raise WrongUsage(_unknown(verb))
    module, name = import_module(module_of(verb), __package__), verb.replace("-", "_")
    parser = Parser(f"thermocline {verb}", f"{sentence(VERBS[verb])}.")
    getattr(module, f"add_{name}", _no_options)(parser)
    add_common(parser)
    try:
        args = parser.parse(rest)
    except SystemExit:  # after --help
        return DONE
    args.json = as_json
    with Client(args.socket, args.agent) as client:
        result = getattr(module, f"run_{name}")(args, client)
        if result is None or isinstance(result, int):
            return result or DONE
        show_result(result, client.answered, as_json=as_json)
        return DONE


def _no_options(_: Parser) -> None:
    """Add no options."""


def sentence(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def split(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The verb, and everything before and after it.

    Options of every verb may precede it; nothing else can, so the first word that is
    neither an option nor the value of one is the verb.
    """
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in VALUED else 1
    if index >= len(words):
        return None, [*words]
    return words[index], [*words[:index], *words[index + 1 :]]


def _without_verb(words: list[str]) -> int:
    parser = Parser("thermocline", "A memory for AI agents, behind a socket.")
    parser.usage = "thermocline [--socket PATH] [--agent-id ID] [--json] VERB ..."
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {does}" for verb, does in VERBS.items())
    parser.epilog = f"verbs:\n{verbs}\n\n{_EXIT_CODES}"
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    add_common(parser)
    try:
        args = parser.parse_args(words)
    except SystemExit:  # after --help
        return DONE
    if args.version:
        print("thermocline", VERSION)
        return DONE
    parser.print_help(sys.stderr)
    return WRONG


def _unknown(verb: str) -> str:
    if verb in MEANT:
        return f"there is no {verb!r}; {MEANT[verb]}"
    from difflib import get_close_matches  # noqa: PLC0415 - only on a mistake

    near = get_close_matches(verb, VERBS, n=1)
    meant = f"did you mean {near[0]}?" if near else "see thermocline --help"
    return f"unknown verb {verb!r}; {meant}"


def _failed(error: Exception, *, as_json: bool) -> int:
    lost_output = isinstance(error, OSError) and error.filename is None
    told = explained(error)
    if as_json and not lost_output:
        show_json({"error": told})
    else:
        field, message, hint = (told.get(name, "") for name in ("field", "message", "hint"))
        start = f"{field}: " if field and field not in message else ""
        gap = "; " if isinstance(error, DaemonUnreachable) else "\n  "
        say(visible(start + message + (gap + hint if hint else ""), keep="\n"))
    if lost_output:
        _abandon_output()
    if isinstance(error, ApiError):
        return UNAVAILABLE if error.status in (429, 503, 507) else REFUSED
    if isinstance(error, DaemonUnreachable):
        return UNREACHABLE
    if isinstance(error, Unavailable):
        return UNAVAILABLE
    return WRONG if isinstance(error, (WrongUsage, ConfigInvalid)) else REFUSED


def _print_anything() -> None:
    """Escape characters that the terminal's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _flush() -> None:
    stream: Any = sys.stdout
    if stream is not None:
        stream.flush()


def _abandon_output() -> None:
    """Drop what could not be written, or the interpreter would try again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
