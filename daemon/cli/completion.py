"""`thermocline completion`: scripts for bash, zsh and fish, made from the verbs' declarations.

A script holds all verbs and options, so that the shell completes without starting Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .usage import FILES, Form, Verb
from .verbs import VERBS as ALL
from .verbs import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..client.caller import Caller
    from .usage import Args, Option

_BEFORE: Final = ("--socket", "--agent-id", "--json", "--help", "--version")


def _completion(args: Args, _: Caller) -> None:
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    verbs = {verb: load(verb) for verb in ALL}
    print(scripts[args.shell](verbs))


def _words(verb: Verb) -> list[str]:
    choices = [word for option in verb.options() if not option.flags for word in option.choices]
    return [form.action for form in verb.forms if form.action] or choices


def _plain(text: str) -> str:
    return re.sub(r"[^\w ,.;/()=-]", "", text)


def _flags(verb: Verb) -> list[Option]:
    return [option for option in verb.options() if option.flags]


def _takes_file(verb: Verb) -> bool:
    words = [word.strip("[].") for form in verb.forms for word in form.words]
    return not FILES.isdisjoint(words)


def _bash(verbs: dict[str, Verb]) -> str:
    lines = []
    for name, verb in verbs.items():
        flags = " ".join(flag for option in _flags(verb) for flag in option.flags)
        words, files = " ".join(_words(verb)), "1" * _takes_file(verb)
        lines.append(f'    {name}) words="{words}"; flags="{flags}"; files={files};;')
    after = []
    for name, verb in verbs.items():
        for option in filter(lambda option: option.values, _flags(verb)):
            values = f'-W "{" ".join(option.choices)}"' if option.choices else "-f" * option.files
            reply = f'COMPREPLY=($(compgen {values} -- "$word")); ' if values else ""
            after += [f"    {name}:{flag}) {reply}return;;" for flag in option.flags]
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


def _zsh(verbs: dict[str, Verb]) -> str:
    names = "\n".join(f"    '{verb}:{_plain(does)}'" for verb, (_, does) in ALL.items())
    cases = "\n".join(
        f"      {name}) _arguments -S {' '.join(_zsh_options(verb))};;"
        for name, verb in verbs.items()
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


def _zsh_options(verb: Verb) -> Iterator[str]:
    words = _words(verb)
    if words or any(form.words for form in verb.forms):
        value = f"({' '.join(words)})" if words else "_files" if _takes_file(verb) else " "
        yield f"'*:word:{value}'"
    for option in _flags(verb):
        value = f"({' '.join(option.choices)})" if option.choices else " "
        takes = f":value:{'_files' if option.files else value}" if option.values else ""
        for flag in option.flags:
            yield f"'*{flag}[{_plain(option.help)}]{takes}'"


def _fish(verbs: dict[str, Verb]) -> str:
    first = f"not __fish_seen_subcommand_from {' '.join(verbs)}"
    lines = ["complete -c thermocline -f"]
    for name, (_, does) in ALL.items():
        lines.append(f"complete -c thermocline -n '{first}' -a {name} -d '{_plain(does)}'")
    for name, verb in verbs.items():
        when = f"complete -c thermocline -n '__fish_seen_subcommand_from {name}'"
        if words := _words(verb):
            lines.append(f"{when} -f -a '{' '.join(words)}'")
        if _takes_file(verb):
            lines.append(f"{when} -F")
        for option in _flags(verb):
            names = " ".join(f"-l {flag[2:]}" for flag in option.flags)
            takes = (" -r" if option.values else "") + (" -F" if option.files else " -f")
            values = f" -a '{' '.join(option.choices)}'" if option.choices else ""
            lines.append(f"{when} {names} -d '{_plain(option.help)}'{takes}{values}")
    return "\n".join(lines)


VERBS: Final = {
    "completion": Verb(
        Form("bash|zsh|fish", _completion),
        options="bash|zsh|fish = shell  the shell that reads the script",
        note=(
            "examples:\n"
            '  eval "$(thermocline completion bash)"        # in ~/.bashrc\n'
            '  eval "$(thermocline completion zsh)"         # in ~/.zshrc, after compinit\n'
            "  thermocline completion fish > ~/.config/fish/completions/thermocline.fish"
        ),
    )
}
