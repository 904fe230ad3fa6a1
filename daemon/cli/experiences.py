"""`thermocline experiences`: what worked for an intent, and what users prefer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from .. import shapes
from ..client import Client
from ..client.wording import ago, number_of
from .arguments import WrongUsage, json_of, number, say, text_in, text_of, whole
from .list import tell_rest
from .observe import said_in, say_skipped
from .options import given, refuse
from .terminal import Shown, show_answer, show_rows, visible

_TYPES: Final = ("tool_chain", "user_preference", "task_solution", "error_recovery")


def add_experiences(parser: argparse.ArgumentParser) -> None:
    """Add the options of `experiences`."""
    add = parser.add_argument
    add("action", nargs="?", default="list", choices=[*_ACTIONS], help="default: list")
    add("words", nargs="*", metavar="WORD", help="what the action is about; see above")
    add("--type", choices=_TYPES, help="with add required; narrows a list")
    add("--solution", metavar="JSON", help="what was done: JSON or plain text; - reads stdin")
    add("--tag", action="append", metavar="TAG", help="of add and search; may be repeated")
    add("--user", metavar="NAME", help="whose it is")
    add("--success", type=number, metavar="0-1", help="how well it worked (default 1)")
    add("--weight", type=number, metavar="0-1", help="what it is worth when used (default 1)")
    add("--min-weight", type=number, metavar="0-1", help="prune below it (default 0.05); list from")
    add("--conversation", metavar="NAME", help="required with observe")
    add("--dry-run", action="store_true", default=None, help="only show what prune would take")
    add("--limit", type=whole, metavar="N", help="maximum number of results")
    add("--offset", type=whole, metavar="N", help="number of results to skip")
    parser.usage = (
        "thermocline experiences [list [--type TYPE] [--user NAME] [--min-weight 0-1]]"
        " | search TEXT [--tag TAG]... | add INTENT --type TYPE --solution JSON [--tag TAG]..."
        " | show ID | use ID | delete ID | prune [--min-weight 0-1] [--dry-run] | stats"
        " | observe FILE --conversation NAME | prefer CATEGORY VALUE [--user NAME]"
        " | preferences [--user NAME]"
    )
    parser.epilog = (
        "The weight of an experience halves every 30 days without a use. `thermocline undo ID\n"
        "--kind experience` brings back what was pruned.\n\n"
        "examples:\n"
        "  thermocline experiences add 'the deploy hangs' --type error_recovery"
        " --solution 'restart the queue first' --tag deploy\n"
        "  thermocline experiences search 'deploy does not finish' --tag deploy"
    )


def run_experiences(args: argparse.Namespace, client: Client) -> Shown:
    """Do what the first word says."""
    names, options, do = _ACTIONS[args.action]
    words = args.words
    refuse(len(words) < len(names), f"{args.action} needs {' and '.join(names)}")
    more = words[len(names) : len(names) + 1]
    refuse(bool(more), f"{args.action} takes no word {more[0]!r:.40}" if more else "")
    fields = given(args, frozenset[str]().union(*(one[1] for one in _ACTIONS.values())))
    for name in fields.keys() - options:
        refuse(True, f"{args.action} takes no --{name.replace('_', '-')}")
    return do(client, [text_of(word) for word in words], fields)


_Given = dict[str, Any]
_Do = Callable[[Client, list[str], _Given], Shown]


def _list(client: Client, _: list[str], given: _Given) -> Shown:
    page = client.experiences(**given)

    def show() -> None:
        _show_rows(page.experiences)
        tell_rest(len(page.experiences), page.total, given.get("offset", 0))

    return show


def _search(client: Client, words: list[str], given: _Given) -> Shown:
    found = client.similar_experiences(words[0], given.get("tag", ()), given.get("limit", 5))

    def show() -> None:
        _show_rows(found.experiences)
        if found.why:
            say(visible(found.why))

    return show


def _add(client: Client, words: list[str], given: _Given) -> Shown:
    for name in ("type", "solution"):
        refuse(name not in given, f"add needs --{name}")
    fields = {"tag": "tags", "success": "success_score"}
    body = {fields.get(name, name): value for name, value in given.items()}
    made = client.add_experience(
        **body | {"intent": words[0], "solution": _solution(given["solution"])}
    )

    def show() -> None:
        print("added", made.id)
        if made.warning:
            say(made.warning)

    return show


def _show_one(client: Client, words: list[str], _: _Given) -> Shown:
    client.experience(words[0])
    return lambda: show_answer(client.answered)


def _use(client: Client, words: list[str], _: _Given) -> Shown:
    used = client.use_experience(words[0])
    return f"used {used.use_count} times, weight {used.weight:.2f}"


def _delete(client: Client, words: list[str], _: _Given) -> Shown:
    return f"deleted {client.delete_experience(words[0]).deleted}"


def _prune(client: Client, _: list[str], given: _Given) -> Shown:
    report = client.prune_experiences(**given)

    def show() -> None:
        _show_rows(report.pruned)
        what = "pruned" if report.done else "would prune"
        many = number_of(len(report.pruned), "experience", "experiences")
        print(f"{what} {many}, {report.kept} left")

    return show


def _stats(client: Client, _: list[str], __: _Given) -> Shown:
    found = client.experience_stats()

    def show() -> None:
        print(number_of(found.total, "experience", "experiences"), end="")
        print(f", {found.avg_age:.1f} days old on average, {found.faded} faded")
        show_rows((name, str(count)) for name, count in found.by_type.items())

    return show


def _observe(client: Client, words: list[str], given: _Given) -> Shown:
    refuse("conversation" not in given, "observe needs --conversation")
    user = {"userId": given["user"]} if "user" in given else {}
    told = client.observe_experiences(given["conversation"], **said_in(text_in(words[0])), **user)

    def show() -> None:
        _show_rows(told.stored)
        print(f"stored {len(told.stored)}, told again {len(told.known)}")
        say_skipped(told.skipped)

    return show


def _prefer(client: Client, words: list[str], given: _Given) -> Shown:
    made = client.prefer(words[0], words[1], given.get("user", ""))
    return f"{made.category}: {made.value} (confidence {made.confidence:.2f})"


def _preferences(client: Client, _: list[str], given: _Given) -> Shown:
    page = client.preferences(**given)

    def show() -> None:
        show_rows(
            (one.user or "-", one.category, one.value, f"{one.confidence:.2f}", f"{one.repeats}x")
            for one in page.preferences
        )
        tell_rest(len(page.preferences), page.total, given.get("offset", 0))

    return show


# Of each action: its words, the options it takes, and what does it.
_ACTIONS: Final[Mapping[str, tuple[tuple[str, ...], frozenset[str], _Do]]] = {
    "list": ((), frozenset({"type", "user", "min_weight", "limit", "offset"}), _list),
    "search": (("TEXT",), frozenset({"tag", "limit"}), _search),
    "add": (("INTENT",), frozenset({"type", "solution", "tag", "user", "success", "weight"}), _add),
    "show": (("ID",), frozenset(), _show_one),
    "use": (("ID",), frozenset(), _use),
    "delete": (("ID",), frozenset(), _delete),
    "prune": ((), frozenset({"min_weight", "dry_run"}), _prune),
    "stats": ((), frozenset(), _stats),
    "observe": (("FILE",), frozenset({"conversation", "user"}), _observe),
    "prefer": (("CATEGORY", "VALUE"), frozenset({"user"}), _prefer),
    "preferences": ((), frozenset({"user", "limit", "offset"}), _preferences),
}


def _show_rows(found: Iterable[shapes.experiences.ExperienceView]) -> None:
    show_rows(
        (one.id, f"{one.weight:.2f}", one.type, ago(one.last_used_at), one.intent) for one in found
    )


def _solution(text: str) -> Any:
    """The value of JSON, else the text itself."""
    said = text_of(text)
    try:
        return json_of(said, "--solution")
    except WrongUsage:
        if said.lstrip()[:1] in {"{", "["}:
            raise
        return said
