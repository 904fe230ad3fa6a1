"""The command `thermocline`: finds the verb, runs it, and turns failures into exit codes."""

from __future__ import annotations

import os
import sys

from ..client.caller import Caller
from ..client.errors import (
    AnswerUnreadable,
    ApiError,
    ClientError,
    DaemonUnreachable,
    explained,
)
from ..errors import ConfigInvalid, ThermoclineError, Unavailable
from ..runtime import VERSION
from .terminal import show_json, show_result, visible, warn, worded
from .usage import COMMON, VALUED, Form, Verb, help_lines, help_of, parse, parsed
from .values import PROGRAM, WrongUsage, say, wants_json
from .verbs import MEANT, VERBS, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from .usage import Args, Shown

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
    """Run one command and return its exit code; only the result goes to standard output."""
    words = sys.argv[1:] if argv is None else [*argv]
    as_json = "--json" in words
    code = DONE
    if sys.stdout is None:
        # Closed by the caller: what is printed fails, as on a full disk.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    try:
        _escape_unprintable()
        as_json = wants_json(words)
        code = _run(words, as_json=as_json)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has what it wanted.
        _abandon_output()
    except (ClientError, ThermoclineError, WrongUsage, OSError) as error:
        return failed(error, words, as_json=as_json)
    return code


def _run(words: list[str], *, as_json: bool) -> int:
    verb, rest = split(words)
    if verb is None:
        return _without_verb(rest)
    if verb == "help":
        return _run([*rest, "--help"], as_json=as_json)
    if verb not in VERBS:
        raise WrongUsage(_unknown(verb))
    declared = load(verb)
    if _wants_help(rest):
        print(help_of(verb, declared, VERBS[verb][1]))
        return DONE
    form, args = parse(verb, declared, rest)
    args.json = as_json
    with Caller(args.socket, args.agent, form.seconds, PROGRAM) as client:
        shown = (
            _answered(form, args, client) if isinstance(form.call, str) else form.call(args, client)
        )
        if shown is None or isinstance(shown, int):
            return shown or DONE
        try:
            show_result(shown, client.answer, as_json=as_json)
        except KeyError as error:
            raise AnswerUnreadable(client.socket_path, f"it lacks {error}") from error
        return DONE


def _answered(form: Form, args: Args, client: Caller) -> Shown:
    fields = args.present(*(name for name in vars(args) if name not in ("socket", "agent", "json")))
    answer = client.call(str(form.call), **fields)
    if not args.json and isinstance(answer, dict):
        warn(answer)
    show = form.show
    if isinstance(show, str):
        return worded(show, {**fields, **answer})
    return lambda: show(answer, fields)


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


def _wants_help(words: list[str]) -> bool:
    before = words[: words.index("--") if "--" in words else None]
    return "--help" in before or "-h" in before


def _without_verb(words: list[str]) -> int:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {does}" for verb, (_, does) in VERBS.items())
    options = "\n".join(help_lines(parsed(COMMON)))
    text = (
        "usage: thermocline [--socket PATH] [--agent-id ID] [--json] VERB ...\n\n"
        f"A memory for AI agents, behind a socket.\n\nverbs:\n{verbs}\n"
        f"{options}\n  --version               show the version and exit\n\n{_EXIT_CODES}"
    )
    if _wants_help(words):
        print(text)
        return DONE
    if words == ["--version"]:
        print("thermocline", VERSION)
        return DONE
    parse("", Verb(Form("", "")), words)
    print(text, file=sys.stderr)
    return WRONG


def _unknown(verb: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only on a mistake

    near = next(iter(get_close_matches(verb, [*MEANT, *VERBS], n=1)), None)
    if near in MEANT:
        return f"there is no {verb!r}; {MEANT[near]}"
    meant = "see thermocline --help" if near is None else f"did you mean {near}?"
    return f"unknown verb {verb!r}; {meant}"


def failed(error: Exception, words: Sequence[str], *, as_json: bool) -> int:
    """Show why a command failed, and return its exit code."""
    lost_output = isinstance(error, OSError) and error.filename is None
    fields = explained(error)
    if as_json and not lost_output:
        show_json({"error": fields})
    else:
        field, message, hint = (fields.get(name, "") for name in ("field", "message", "hint"))
        option = f"--{field.replace('_', '-')}"
        if any(word.partition("=")[0] == option for word in words):
            message = message.replace(f"'{field}': ", f"{option}: ", 1)
        gap = "; " if isinstance(error, DaemonUnreachable) else "\n  "
        say(visible(message + (gap + hint if hint else ""), keep="\n"))
    if lost_output:
        _abandon_output()
    if isinstance(error, ApiError):
        return UNAVAILABLE if error.status in (429, 503, 507) else REFUSED
    if isinstance(error, DaemonUnreachable):
        return UNREACHABLE
    if isinstance(error, Unavailable):
        return UNAVAILABLE
    return WRONG if isinstance(error, (WrongUsage, ConfigInvalid)) else REFUSED


def _escape_unprintable() -> None:
    """Escape characters that the terminal's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _abandon_output() -> None:
    """Drop what could not be written, or the interpreter would try again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
