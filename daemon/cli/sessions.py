"""`thermocline sessions`: sessions of work, and what has changed since their answers."""

from __future__ import annotations

import argparse
from typing import Final

from .. import shapes
from ..client import Client
from ..client.wording import moment, number_of
from .list import tell_rest
from .options import add_page, refuse
from .terminal import Shown, show_answer, show_rows

_ACTIONS: Final = ("list", "start", "show", "archive", "reopen", "used", "replay")
_OF_START: Final = ("category", "path", "conversation", "user")


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sessions`."""
    add = parser.add_argument
    add("action", nargs="?", default="list", choices=_ACTIONS, help="default: list")
    add("what", nargs="?", metavar="ID|NAME", help="the session; for start its name, if any")
    add("--category", metavar="PATH", help="start: it sees the memories below this category")
    add("--path", action="append", metavar="PATH", help="start: it sees the files below this path")
    add("--conversation", metavar="NAME", help="start: the conversation that it belongs to")
    add("--user", metavar="NAME", help="start: whose it is")
    add("--status", choices=("active", "archived"), help="list only these")
    add("--answer", metavar="ID", help="used, replay: this answer alone")
    add_page(parser, 50)
    parser.usage = (
        "thermocline sessions [list [--status active|archived]]"
        " | start [NAME] [--category PATH] [--path PATH]..."
        " | show ID | archive ID | reopen ID | used ID [--answer ID] | replay ID [--answer ID]"
    )
    parser.epilog = (
        "With a category or paths a session sees these, and nothing else.\n\n"
        "example:\n"
        "  S=$(thermocline sessions start release --category projects/site)\n"
        "  thermocline retrieve 'which server?' --session $S\n"
        "  thermocline sessions replay $S"
    )


def run_sessions(args: argparse.Namespace, client: Client) -> Shown:
    """Do what the first word says."""
    action, what = args.action, args.what
    refuse(action == "list" and what is not None, f"list takes no word {what!r:.40}")
    refuse(action not in {"list", "start"} and what is None, f"{action} needs an ID")
    for name in _OF_START:
        refuse(getattr(args, name) is not None and action != "start", f"{action} takes no --{name}")
    refuse(args.status is not None and action != "list", f"{action} takes no --status")
    answers = action in {"used", "replay"}
    refuse(args.answer is not None and not answers, f"{action} takes no --answer")
    paged = {"limit": args.limit, "offset": args.offset}
    if action == "list":
        page = client.sessions(status=args.status, **paged)
        return lambda: _show_page(page, args.offset)
    if action == "used":
        used = client.session_used(what, answer=args.answer, **paged)
        return lambda: _show_used(used, args.offset)
    if action == "replay":
        replayed = client.replay_session(what, answer=args.answer, **paged)
        return lambda: _show_replayed(replayed)
    if action == "start":
        fields = {"name": what, "category": args.category, "paths": args.path}
        fields |= {"conversation": args.conversation, "user": args.user}
        return client.start_session(**{k: v for k, v in fields.items() if v is not None}).id
    if action == "show":
        client.session(what)
        return lambda: show_answer(client.answered)
    change = client.archive_session if action == "archive" else client.reopen_session
    found = change(what)
    return f"{found.status} {found.id}"


def _show_page(page: shapes.sessions.SessionPage, offset: int) -> None:
    show_rows(
        (
            *(one.id, one.status, moment(one.last_active_at)),
            *(number_of(one.answers, "answer", "answers"), one.name or one.category),
        )
        for one in page.sessions
    )
    tell_rest(len(page.sessions), page.total, offset)


def _show_used(page: shapes.sessions.UsedPage, offset: int) -> None:
    for one in page.answers:
        show_rows([(one.id, moment(one.at), one.via, one.query)])
        show_rows(("", item.source, item.id, item.hash) for item in one.used)
    tell_rest(len(page.answers), page.total, offset)


def _show_replayed(replayed: shapes.sessions.Replayed) -> None:
    for one in replayed.answers:
        show_rows([(one.id, moment(one.at), one.via, one.query)])
        show_rows(("", item.change, item.source, item.id) for item in one.used)
    print(f"{replayed.changed} of {number_of(replayed.total, 'thing', 'things')} changed since")
