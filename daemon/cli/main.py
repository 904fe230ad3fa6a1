"""The command `thermocline`: finds the verb, runs it, and turns failures into exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from ..client import AnswerLost, ApiError, ClientError, DaemonUnreachable
from ..errors import ConfigInvalid, ThermoclineError, Unavailable
from .arguments import VALUED, Parser, WrongUsage, add_common, say
from .terminal import visible
from .verbs import VERBS, module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

DONE: Final = 0
REFUSED: Final = 1
WRONG: Final = 2
UNREACHABLE: Final = 3
UNAVAILABLE: Final = 4
INTERRUPTED: Final = 130

_EXIT_CODES: Final = """exit codes:
  0    done
  1    refused or not found: the daemon, or the disk, said no
  2    wrong usage or configuration
  3    no daemon answers
  4    not possible at the moment, such as with a full disk: try again later
  130  interrupted

`-` in place of a text, a file or a value reads standard input.
`thermocline VERB --help` shows the options of a verb."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; only the result goes to standard output.

    Args:
        argv: the words after the program's name; those of this process when left out.
    """
    words = sys.argv[1:] if argv is None else [*argv]
    try:
        _print_anything()
        code = _run(words)
        _flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return DONE
    except (ClientError, ThermoclineError, WrongUsage, OSError) as error:
        return _failed(error)
    return code


def _run(words: Sequence[str]) -> int:
    verb, rest = split(words)
    if verb is None:
        return _without_verb(rest)
    if verb not in VERBS:
        raise WrongUsage(_unknown(verb))
    module = import_module(module_of(verb), __package__)
    parser = Parser(f"thermocline {verb}", VERBS[verb].capitalize() + ".")
    module.add_arguments(parser)
    add_common(parser)
    # Intermixed lets options stand between the words, but overlooks the mark that ends them.
    parse = parser.parse_args if "--" in rest else parser.parse_intermixed_args
    try:
        args = parse(rest)
    except SystemExit:  # after --help
        return DONE
    code: int = module.run(args)
    return code


def split(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The verb, and everything before and after it.

    Options of every verb may stand before it; nothing else can, so the first word that is
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
    parser.add_argument("--version", action="store_true", help="show the version and leave")
    add_common(parser)
    try:
        args = parser.parse_args(words)
    except SystemExit:  # after --help
        return DONE
    if args.version:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely wanted

        print("thermocline", version("thermocline"))
        return DONE
    parser.print_help(sys.stderr)
    return WRONG


def _unknown(verb: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only on a mistake

    near = get_close_matches(verb, VERBS, n=1)
    meant = f"did you mean {near[0]}?" if near else "see thermocline --help"
    return f"unknown verb {verb!r}; {meant}"


def _failed(error: Exception) -> int:
    say(visible(_explained(error), keep="\n"))
    if isinstance(error, OSError) and error.filename is None:
        _abandon_output()
    if isinstance(error, ApiError):
        return UNAVAILABLE if error.status in (503, 507) else REFUSED
    if isinstance(error, DaemonUnreachable):
        return UNREACHABLE
    if isinstance(error, Unavailable):
        return UNAVAILABLE
    return WRONG if isinstance(error, (WrongUsage, ConfigInvalid)) else REFUSED


def _explained(error: Exception) -> str:
    if isinstance(error, AnswerLost):
        return f"{error}; if it was to change something, look whether it did"
    if isinstance(error, DaemonUnreachable):
        return f"{error}; {_way_in(error)}"
    if isinstance(error, (ApiError, ThermoclineError)):
        field = f"{error.field}: " if error.field and error.field not in str(error) else ""
        return f"{field}{error}" + (f"\n  {error.hint}" if error.hint else "")
    if isinstance(error, OSError):
        where = f"open {error.filename}" if error.filename else "write the result"
        return f"cannot {where}: {error.strerror or error}"
    return str(error)


def _way_in(error: DaemonUnreachable) -> str:
    if isinstance(error.__cause__, PermissionError):
        return "its owner can let your user or group in"
    return 'start it with "thermocline daemon", or "make run" in a checkout'


def _print_anything() -> None:
    """Let no character that the terminal's encoding lacks end a command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _flush() -> None:
    stream: Any = sys.stdout
    if stream is not None:
        stream.flush()


def _abandon_output() -> None:
    """Drop what could not be written, or the interpreter would try again as it leaves."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
