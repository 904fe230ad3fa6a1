"""`thermocline reflect`, `episode`, `skill` and `knowledge`: the agent's own files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import UnsetType

from .. import shapes
from ..client import Client
from ..client.wording import number_of
from .arguments import say, text_in, text_of
from .list import tell_rest
from .options import add_page, given, refuse
from .terminal import Shown, show_rows, show_text, visible

_TYPES: Final = ("failure", "success", "insight")
# Options by another name than that of the field that they fill.
_NAMES: Final = {"what": "action", "tags": "tag"}
_OUTCOMES: Final = ("resolved", "unresolved", "informational")


def add_reflect(parser: argparse.ArgumentParser) -> None:
    """Add the options of `reflect`."""
    _add_words(parser, ("list", "add"), "TEXT", "what was learned; - reads it from stdin")
    add = parser.add_argument
    add("--type", choices=_TYPES, help="required with add; narrows a list")
    add("--context", metavar="TEXT", help="where it was learned; required with add")
    add("--action", metavar="TEXT", dest="what", help="what to do about it")
    parser.usage = (
        "thermocline reflect [list [--type TYPE] [--limit N] [--offset N]] |"
        " add TEXT --type TYPE --context TEXT [--action TEXT]"
    )
    parser.epilog = (
        "example:\n  thermocline reflect add 'run the migration before the restart' --type failure"
        " --context 'deploy of the API' --action 'put it into the script'"
    )


def run_reflect(args: argparse.Namespace, client: Client) -> Shown:
    """List reflections, or add one."""
    if args.do == "list":
        _no_words(args, "context", "what")
        page = client.reflections(type=args.type, limit=args.limit, offset=args.offset)
        rows = ((_day(one.ts), one.type, one.text) for one in page.results)
        return _page(rows, len(page.results), page.total, args.offset)
    _needs(args, "type", "context")
    lesson = text_of(args.text)
    made = client.reflect(type=args.type, context=args.context, lesson=lesson, action=args.what)
    _warn(made.warning)
    return f"added: {made.context}: {made.lesson}" + (f" → {made.action}" if made.action else "")


def add_episode(parser: argparse.ArgumentParser) -> None:
    """Add the options of `episode`."""
    _add_words(parser, ("list", "add"), "TEXT", "what it came to; - reads it from stdin")
    add = parser.add_argument
    add("--outcome", choices=_OUTCOMES, help="with add informational if left out")
    add("--tag", dest="tags", action="append", metavar="TAG", help="may be repeated")
    add("--user", metavar="NAME", help="with whom it was")
    parser.usage = (
        "thermocline episode [list [--outcome OUTCOME] [--limit N] [--offset N]] |"
        " add TEXT [--outcome OUTCOME] [--tag TAG]... [--user NAME]"
    )
    parser.epilog = (
        "example:\n  thermocline episode add 'Ana could not log in; her token was renewed.'"
        " --outcome resolved --tag login"
    )


def run_episode(args: argparse.Namespace, client: Client) -> Shown:
    """List episodes, or add one."""
    if args.do == "list":
        _no_words(args, "tags", "user")
        page = client.episodes(outcome=args.outcome, limit=args.limit, offset=args.offset)
        rows = ((_day(one.ts), one.outcome, one.text) for one in page.results)
        return _page(rows, len(page.results), page.total, args.offset)
    _needs(args)
    fields = given(args, ("outcome", "tags", "user"))
    made = client.add_episode(summary=text_of(args.text), **fields)
    _warn(made.warning)
    return f"added: {made.summary}"


def add_skill(parser: argparse.ArgumentParser) -> None:
    """Add the options of `skill`."""
    _add_words(parser, ("list", "show", "add"), "ID", "the name of its file, without .md")
    add = parser.add_argument
    add("--description", metavar="TEXT", help="when to use it; required with add")
    add("--file", metavar="FILE", help="its text in Markdown; - reads standard input")
    parser.usage = (
        "thermocline skill [list [--limit N] [--offset N]] | show ID |"
        " add ID --description TEXT [--file FILE]"
    )
    parser.epilog = (
        "example:\n  thermocline skill add deploy --description 'how to deploy the API'"
        " --file deploy.md"
    )


def run_skill(args: argparse.Namespace, client: Client) -> Shown:
    """List skills, show or add one."""
    if args.do == "list":
        _no_words(args, "description", "file")
        page = client.skills(args.limit, args.offset)
        rows = ((one.id, one.description) for one in page.results)
        return _page(rows, len(page.results), page.total, args.offset)
    if args.do == "show":
        refuse(args.text is None, "show needs an ID")
        found = client.skill(args.text)
        return lambda: show_text((found.text or "").rstrip("\n"))
    _needs(args, "description", name="an ID")
    text = "" if args.file is None else text_in(args.file)
    made = client.add_skill(id=args.text, description=args.description, text=text)
    return f"{'added' if made.added else 'replaced'} {made.path}"


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    """Add the options of `knowledge`."""
    parser.add_argument("--fold", action="store_true", help="propose what could go, line by line")


def run_knowledge(args: argparse.Namespace, client: Client) -> Shown:
    """Show it, or propose lines to drop."""
    client.timeout = max(client.timeout, 60.0) if args.fold else client.timeout
    found = client.knowledge(fold=args.fold)
    return lambda: _show(found, fold=args.fold)


def _show(found: shapes.own_files.KnowledgeView, *, fold: bool) -> None:
    if not fold:
        show_text(found.text.rstrip("\n"))
    for one in found.folds or ():
        print(visible(f"{found.path}:{one.line}: {one.text} ({one.why})"))
    if found.folded:
        print("in fewer words:")
        for line in found.folded:
            print(visible(f"- {line}"))
    if found.warning:
        say(visible(found.warning))
    elif fold:
        lines = number_of(found.lines, "line", "lines")
        say(f"nothing to fold: {lines} of {found.max_lines}")


def _add_words(
    parser: argparse.ArgumentParser, actions: Sequence[str], name: str, told: str
) -> None:
    parser.add_argument("do", nargs="?", default="list", choices=actions, help="default: list")
    parser.add_argument("text", nargs="?", metavar=name, help=told)
    add_page(parser, 50)


def _needs(args: argparse.Namespace, *options: str, name: str = "a TEXT") -> None:
    refuse(args.text is None, f"add needs {name}")
    for option in options:
        refuse(getattr(args, option) is None, f"add needs --{option}")


def _no_words(args: argparse.Namespace, *options: str) -> None:
    refuse(args.text is not None, f"list takes no word, got {args.text!r:.40}")
    for option in options:
        refuse(getattr(args, option) is not None, f"list takes no --{_NAMES.get(option, option)}")


def _page(rows: Iterable[Sequence[str]], count: int, total: int, offset: int) -> Shown:
    def show() -> None:
        show_rows(rows)
        tell_rest(count, total, offset)

    return show


def _warn(warning: str | UnsetType) -> None:
    if warning:
        say(visible(warning))


def _day(ts: str) -> str:
    return ts[:10]
