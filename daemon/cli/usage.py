"""The usage of a verb: its forms, words and options as a text that is also its help.

A line for each word and option, its help behind two blanks:

    TEXT                  the text
    --tag TAG... = tags   a tag; may be repeated
    --importance 0-1      how much it matters

`...` lets an option be repeated, `= tags` names the field of the request that it fills (else it is
the option's own name), `--[no-]pin` has an opposite. A line that ends with a colon is a heading.
The metavariable says what is accepted: `a|b` one of these words, the others are in `_VALUES`.
"""

from __future__ import annotations

from .values import OUTPUT_VARIABLE, WrongUsage, converted, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Final, TypeAlias

    from ..client.caller import Caller

    # The JSON that the daemon answers.
    Answer: TypeAlias = Mapping[str, Any]
    # What a person reads: a line, or a function that prints it.
    Shown: TypeAlias = str | Callable[[], object]
    Run: TypeAlias = Callable[["Args", Caller], Shown | int | None]
    Show: TypeAlias = str | Callable[[Any, dict[str, Any]], object]

# Seconds to wait for the daemon: of most calls, and of those that read or send a lot.
USUAL_SECONDS: Final = 30.0
PATIENT_SECONDS: Final = 600.0
# The options of every verb; the first two may precede it, with their values.
COMMON: Final = f"""
options of every verb:
--socket PATH                     the daemon's socket
--agent-id, --agent ID = agent    whose memory
--json                            print JSON, errors too; {OUTPUT_VARIABLE}=json does so always
--help, -h                        show this help
"""
VALUED: Final = ("--socket", "--agent-id", "--agent")
# Values that `-` does not take from standard input: the first name files, which the verbs read.
FILES: Final = {"FILE", "DIR", "PATH", "SOCKET"}
LITERAL: Final = {"KEY"}
_HELP_COLUMN: Final = 26


class Args:
    """The values of words and options, by field; None, or () of repeated ones, where left out."""

    json: bool

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no verb has an option '{name}' here")

    def present(self, *names: str) -> dict[str, Any]:
        values = self.__dict__
        return {name: values[name] for name in names if values.get(name) not in (None, ())}


class Option:
    """One option of a verb, or one of its words: the field of the request that it fills.

    `values` are the metavariables of its values; a switch has none.
    """

    def __init__(self, declared: str, text: str, heading: str) -> None:
        declared, _, field = declared.partition(" = ")
        self.repeated = declared.endswith("...")
        parts = declared.removesuffix("...").split(" ")
        flags = [part.rstrip(",") for part in parts if part.startswith("-")]
        self.opposite = ""
        if flags and "[no-]" in flags[0]:
            self.opposite = flags[0].replace("[no-]", "no-")
            flags[0] = flags[0].replace("[no-]", "")
        self.flags = (*flags, self.opposite) if self.opposite else tuple(flags)
        values = [part for part in parts if not part.startswith("-")]
        self.optional = bool(values) and values[0].startswith("[")
        self.values = tuple(value.strip("[]") for value in values)
        self.field = field or (flags[0].lstrip("-") if flags else parts[0].lower())
        self.field = self.field.replace("-", "_")
        self.declared = declared
        self.help = text
        self.heading = heading

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that are accepted; none: any."""
        first = self.values[0] if self.values else ""
        return tuple(first.split("|")) if "|" in first and first.islower() else ()

    @property
    def files(self) -> bool:
        """Whether it names a file or folder of this device."""
        return self.values[-1:] != () and self.values[-1] in FILES and self.field != "category"


class Form:
    """One form of a verb: its words, what it calls, and how the answer is shown.

    Args:
        usage: `list [PREFIX]`: the action, if the verb has several, and its words.
        call: `GET /api/kv/{key}`, or a function of the values and the client, which returns what
            a person reads, or has printed all, and returns nothing or an exit code.
        show: a template of `worded`, or a function of the answer and the fields that were sent.
        options: the fields whose options the form takes, with `!` if it needs one; default: all.
        seconds: how long to wait for the daemon at a time.
    """

    def __init__(
        self,
        usage: str,
        call: str | Run,
        show: Show = "",
        options: str | None = None,
        seconds: float = USUAL_SECONDS,
    ) -> None:
        self.usage, self.call, self.show, self.seconds = usage, call, show, seconds
        action, _, words = usage.partition(" ")
        self.action, words = (
            (action, words) if action.isalpha() and action.islower() else ("", usage)
        )
        self.words = words.split()
        named = None if options is None else options.split()
        self.options = None if named is None else {name.rstrip("!") for name in named}
        self.needed = [name[:-1] for name in named or () if name.endswith("!")]


class Verb:
    """A verb: its forms, its options, those that exclude each other, and a note below the help."""

    def __init__(
        self, *forms: Form, options: str = "", exclusive: str = "", note: str = ""
    ) -> None:
        self.forms = forms
        self._text = options
        self.exclusive = exclusive.split()
        self.note = note

    def options(self) -> list[Option]:
        """Words and options, in the order of the text."""
        return [*parsed(self._text), *parsed(COMMON)]


def parsed(text: str) -> Iterator[Option]:
    """The options and words that a text declares."""
    heading = ""
    waiting: list[str] = []
    for line in [*filter(str.strip, text.splitlines()), "end:"]:
        stripped = line.strip()
        first = stripped.split(" ")[0].rstrip(".")
        declares = first[:2] == "--" or first.isupper() or "|" in first
        if (declares or stripped.endswith(":")) and waiting:
            declared, _, help_text = " ".join(waiting).partition("  ")
            yield Option(declared, help_text.strip(), heading)
            waiting = []
        if declares or waiting:
            waiting.append(stripped)
        else:
            heading = stripped


def parse(name: str, verb: Verb, words: list[str]) -> tuple[Form, Args]:
    """The form of the verb that the words choose, and their values.

    Options may stand anywhere before `--`; they have two dashes, so that `-gate` is a text. A `-`
    in place of a text stands for standard input. `WrongUsage`: the words are wrong.
    """
    try:
        return _parse(name, verb, words)
    except WrongUsage as error:
        raise WrongUsage(f"{error}; see {f'thermocline {name}'.strip()} --help") from None


def _parse(name: str, verb: Verb, words: list[str]) -> tuple[Form, Args]:
    options = verb.options()
    plain, optional = _split(options, words)
    form, plain = _form(name, verb, plain)
    by_word = {option.values[-1]: option for option in options if not option.flags}
    values: list[tuple[Option, str, list[str]]] = optional
    for option, value in _matched(name, form, plain, by_word):
        values.append((option, "", [value]))
    texts = [text for option, _, some in values for text in some]
    if texts.count("-") > 1:
        raise WrongUsage("only one value can be read from standard input")
    args: dict[str, Any] = {
        option.field: () if option.repeated else None for option in options if option.flags
    }
    args |= {option.field: None for option in by_word.values() if option.field not in args}
    present: dict[str, str] = {}
    for option, flag, some in values:
        value = _value(option, flag or option.field.upper(), some)
        if option.repeated:
            args[option.field] = (*(args[option.field] or ()), value)
        elif not flag and option.field in present:
            ways = f"as a word, or with {present[option.field]}"
            raise WrongUsage(f"give the {option.field} once: {ways}")
        else:
            args[option.field] = value
        present.setdefault(option.field, flag or option.declared)
    _check(name, verb, form, present, options)
    return form, Args(**args)


def _split(
    options: Iterable[Option], words: list[str]
) -> tuple[list[str], list[tuple[Option, str, list[str]]]]:
    """The words that are no options; and each option with its flag and values."""
    by_flag = {flag: option for option in options for flag in option.flags}
    plain: list[str] = []
    chosen: list[tuple[Option, str, list[str]]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*plain, *rest], chosen
        flag, equals, value = word.partition("=")
        if word[:2] != "--" or (flag not in by_flag and " " in word):
            plain.append(word)
            continue
        option = by_flag.get(flag)
        if option is None:
            raise WrongUsage(_unknown(flag, by_flag))
        some = [value] if equals else []
        while len(some) < len(option.values) and rest and rest[0].partition("=")[0] not in by_flag:
            some.append(rest.pop(0))
        if len(some) > len(option.values):
            raise WrongUsage(f"{flag} takes no value, got {value[:40]!r}")
        if len(some) < len(option.values) and not option.optional:
            raise WrongUsage(f"{flag} needs {' and '.join(option.values)}")
        chosen.append((option, flag, some))
    return plain, chosen


def _unknown(flag: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only on a mistake

    names = [*known]
    near = [name for name in names if name.startswith(flag)] or get_close_matches(flag, names, n=1)
    return f"unknown option {flag[:40]}" + (f", perhaps {near[0]}" if near else "")


def _form(name: str, verb: Verb, words: list[str]) -> tuple[Form, list[str]]:
    actions = {form.action: form for form in verb.forms}
    if "" in actions or not words:
        return verb.forms[0], words
    if words[0] not in actions:
        raise WrongUsage(f"{name}: expected one of {', '.join(actions)}, got {words[0][:40]!r}")
    return actions[words[0]], words[1:]


def _matched(
    name: str, form: Form, words: list[str], by_word: dict[str, Option]
) -> Iterator[tuple[Option, str]]:
    title = f"{name} {form.action}".strip()
    needed = [word for word in form.words if not word.startswith("[")]
    if len(words) < len(needed):
        raise WrongUsage(f"{title} needs {' and '.join(needed)}")
    rest = list(words)
    for declared in form.words:
        word = declared.strip("[].")
        repeated = "..." in declared
        option = by_word.get(word) or Option(word + "..." * repeated, "", "")
        for text in rest if repeated else rest[:1]:
            yield option, text
        rest = [] if repeated else rest[1:]
    if rest:
        word = rest[0][:40]
        is_option = word[:1] == "-"
        raise WrongUsage(
            f"unknown option {word}" if is_option else f"{title} takes no word {word!r}"
        )


def _value(option: Option, flag: str, texts: list[str]) -> Any:
    if not option.values:
        return flag != option.opposite
    if not texts:
        return ""
    if option.choices and texts[0] not in option.choices:
        expected = ", ".join(option.choices)
        raise WrongUsage(f"{flag}: expected one of {expected}, got {texts[0][:40]!r}")
    values: list[Any] = []
    for kind, text in zip(option.values, texts, strict=True):
        name = f"{flag} {values[-1]}" if values else flag
        values.append(converted(name, kind, text if kind in FILES | LITERAL else text_of(text)))
    return values if len(option.values) > 1 else values[0]


def _check(
    name: str, verb: Verb, form: Form, present: dict[str, str], options: Iterable[Option]
) -> None:
    alone = [flag for field, flag in present.items() if field in verb.exclusive]
    if len(alone) > 1:
        raise WrongUsage(f"{alone[0]} and {alone[1]} exclude each other")
    title = f"{name} {form.action}".strip()
    for field, flag in present.items():
        if (
            form.options is not None
            and flag[:2] == "--"
            and field not in form.options | {"socket", "agent", "json", "help"}
        ):
            raise WrongUsage(f"{title} takes no {flag}")
    for needed in form.needed:
        if needed not in present:
            flag = next(option.flags[0] for option in options if option.field == needed)
            raise WrongUsage(f"{title} needs {flag}")


def help_of(name: str, verb: Verb, summary: str) -> str:
    """The help of a verb."""
    from textwrap import wrap  # noqa: PLC0415 - only help is wrapped

    options = verb.options()
    lines: list[str] = []
    for form in verb.forms:
        text = " ".join(
            filter(None, ["thermocline", name, form.usage, *_options_of(form, options)])
        )
        wrapped = wrap(text, _columns() - 7, subsequent_indent=" " * 4)
        starts = ["       " if lines else "usage: ", *["       "] * len(wrapped)]
        lines += [start + line for start, line in zip(starts, wrapped, strict=False)]
    lines += ["", f"{summary[:1].upper()}{summary[1:]}.", *help_lines(options)]
    return "\n".join([*lines, *(["", verb.note] if verb.note else [])])


def _columns() -> int:
    from shutil import get_terminal_size  # noqa: PLC0415 - likewise

    return min(get_terminal_size().columns, 100) - 2


def _options_of(form: Form, options: Iterable[Option]) -> Iterator[str]:
    if form.options is None:
        yield "[options]"
        return
    for option in options:
        if option.flags and option.field in form.options:
            # The choices stand below.
            values = [option.field.upper()] if option.choices else option.values
            text = " ".join([option.flags[0], *values])
            yield text if option.field in form.needed else f"[{text}]{'...' * option.repeated}"


def help_lines(options: Iterable[Option]) -> Iterator[str]:
    """The lines of words and options, by their headings."""
    from textwrap import wrap  # noqa: PLC0415 - likewise

    heading = None
    for option in options:
        if option.heading != heading:
            heading = option.heading
            yield ""
            yield heading or "words and options:"
        text = f"  {option.declared}"
        if len(text) + 2 > _HELP_COLUMN:
            yield text
            text = ""
        indent = " " * _HELP_COLUMN
        first, *rest = wrap(option.help, _columns() - _HELP_COLUMN) or [""]
        yield f"{text:<{_HELP_COLUMN}}{first}".rstrip()
        yield from (indent + line for line in rest)
