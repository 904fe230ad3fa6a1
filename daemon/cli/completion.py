"""`thermocline completion`: scripts for bash, zsh and fish, made from the verbs' own parsers.

A script holds all verbs and options, so that the shell completes without starting Python.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Final, NamedTuple

from ..client import Client
from .arguments import Parser, add_common
from .verbs import VERBS, module_of

SHELLS: Final = ("bash", "zsh", "fish")
_FILE_LIKE: Final = {"FILE", "DIR", "PATH", "SOCKET"}
# A category and the socket's path in a URL are no files.
_NO_FILES: Final = {"--category"}
_BEFORE: Final = ("--socket", "--agent-id", "--json", "--help", "--version")
_EXAMPLES: Final = (
    "examples:\n"
    '  eval "$(thermocline completion bash)"        # in ~/.bashrc\n'
    '  eval "$(thermocline completion zsh)"         # in ~/.zshrc, after compinit\n'
    "  thermocline completion fish > ~/.config/fish/completions/thermocline.fish"
)


class Option(NamedTuple):
    """An option of a verb, or its words without one.

    Attributes:
        flags: its names; none for the words.
        values: what may follow.
        files: whether a file may.
        takes: whether anything follows.
    """

    flags: tuple[str, ...]
    text: str
    values: tuple[str, ...]
    files: bool
    takes: bool


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    parser.epilog = _EXAMPLES


def run_completion(args: argparse.Namespace, _: Client) -> None:
    """Print the script."""
    verbs = {verb: list(_options(verb)) for verb in VERBS}
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](verbs))


def _options(verb: str) -> Iterable[Option]:
    module = import_module(module_of(verb), __package__)
    parser = Parser(verb, "")
    getattr(module, f"add_{verb.replace('-', '_')}", lambda _: None)(parser)
    add_common(parser)
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        flags = tuple(action.option_strings)
        values = tuple(map(str, action.choices or ()))
        name = action.metavar if isinstance(action.metavar, str) else ""
        files = name in _FILE_LIKE and not _NO_FILES & {*flags}
        text = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
        yield Option(flags, _plain(text), values, files, action.nargs != 0)


def _plain(text: str) -> str:
    """A help text without what is special to argparse or a shell."""
    return re.sub(r"[^\w ,.;/()=-]", "", text.replace("%%", "%"))


def _bash(verbs: dict[str, list[Option]]) -> str:
    lines = []
    for verb, options in verbs.items():
        flags = " ".join(flag for option in options for flag in option.flags)
        words = " ".join(value for option in options if not option.flags for value in option.values)
        files = "1" * any(option.files for option in options if not option.flags)
        lines.append(f'    {verb}) words="{words}"; flags="{flags}"; files={files};;')
    after = [
        f"    {verb}:{flag}) {_bash_value(option)};;"
        for verb, options in verbs.items()
        for option in options
        for flag in option.flags
        if option.takes
    ]
    return "\n".join(
        [
            "_thermocline() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" last="" verb="" words="" flags="" files=""',
            "  local index=1",
            "  COMPREPLY=()",
            "  while [ $index -lt $COMP_CWORD ]; do",
            '    case "${COMP_WORDS[index]}" in',
            "      --socket|--agent-id|--agent) index=$((index + 1));;",
            "      -*) ;;",
            '      *) verb="${COMP_WORDS[index]}"; break;;',
            "    esac",
            "    index=$((index + 1))",
            "  done",
            '  last="${COMP_WORDS[COMP_CWORD-1]}"',
            '  case "$verb:$last" in',
            '    :--socket) COMPREPLY=($(compgen -f -- "$word")); return;;',
            "    :--agent-id|:--agent) return;;",
            *after,
            "  esac",
            '  case "$verb" in',
            f'    "") words="{" ".join(verbs)}"; flags="{" ".join(_BEFORE)}";;',
            *lines,
            "  esac",
            '  case "$word" in',
            '    -*) COMPREPLY=($(compgen -W "$flags" -- "$word"));;',
            '    *) COMPREPLY=($(compgen -W "$words" -- "$word"))',
            '       [ -z "$files" ] || COMPREPLY+=($(compgen -f -- "$word"));;',
            "  esac",
            "}",
            "complete -o filenames -F _thermocline thermocline",
        ]
    )


def _bash_value(option: Option) -> str:
    if option.values:
        found = f'COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$word")); '
    elif option.files:
        found = 'COMPREPLY=($(compgen -f -- "$word")); '
    else:
        found = ""
    return f"{found}return"


def _zsh(verbs: dict[str, list[Option]]) -> str:
    names = "\n".join(f"    '{verb}:{_plain(VERBS[verb])}'" for verb in verbs)
    cases = "\n".join(
        f"      {verb}) _arguments -S {' '.join(_zsh_option(each) for each in options)};;"
        for verb, options in verbs.items()
    )
    return f"""#compdef thermocline
_thermocline() {{
  local context state line
  local -a verbs
  verbs=(
{names}
  )
  _arguments -C '--socket[the daemon]:path:_files' '--agent-id[whose memory]:agent: ' \\
    '--agent[whose memory]:agent: ' '--json[print JSON]' '--help[show help]' \\
    '--version[show the version]' '1:verb:->verb' '*::argument:->rest'
  case $state in
    verb) _describe verb verbs;;
    rest) case $words[1] in
{cases}
      esac;;
  esac
}}
compdef _thermocline thermocline"""


def _zsh_option(option: Option) -> str:
    value = "_files" if option.files else " "
    if option.values:
        value = f"({' '.join(option.values)})"
    if not option.flags:
        return f"'*:word:{value}'"
    takes = f":value:{value}" if option.takes else ""
    return " ".join(f"'*{flag}[{option.text}]{takes}'" for flag in option.flags)


def _fish(verbs: dict[str, list[Option]]) -> str:
    known = " ".join(verbs)
    first = f"not __fish_seen_subcommand_from {known}"
    lines = ["complete -c thermocline -f"]
    for verb, does in VERBS.items():
        lines.append(f"complete -c thermocline -n '{first}' -a {verb} -d '{_plain(does)}'")
    for verb, options in verbs.items():
        when = f"complete -c thermocline -n '__fish_seen_subcommand_from {verb}'"
        for option in options:
            values = f" -a '{' '.join(option.values)}'" if option.values else ""
            files = " -F" if option.files else " -f"
            names = [
                f"-l {flag[2:]}" if flag[:2] == "--" else f"-s {flag[1:]}" for flag in option.flags
            ]
            takes = " -r" if option.takes and option.flags else ""
            if option.flags or values or option.files:
                lines.append(
                    " ".join([when, *names, f"-d '{option.text}'"]) + takes + files + values
                )
    return "\n".join(lines)
