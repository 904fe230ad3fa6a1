"""`thermocline forget`: delete memories, or an agent, for good."""

from __future__ import annotations

import argparse

from ..client import ApiError, Client
from ..client.wording import number_of
from .arguments import WrongUsage, say, text_of
from .database import PATIENCE_SECONDS
from .memories import headline, short
from .terminal import show_answer, show_json, show_rows, visible


def add_forget(parser: argparse.ArgumentParser) -> None:
    """Add the options of `forget`."""
    add = parser.add_argument
    add("ids", nargs="*", metavar="ID", help="an id, or at least its first 4 characters")
    add("--category", metavar="PATH", help="all memories of this category and those below it")
    add("--query", metavar="TEXT", help="all memories that contain these words; - reads stdin")
    add("--secrets", action="store_true", help="everything that holds a key, token or password")
    add("--yes", action="store_true", help="do it; default: show what would be deleted")
    parser.epilog = (
        "Memories named by ID are deleted at once.\n"
        "With --agent NAME alone the whole agent is deleted: its memories, key-value pairs and\n"
        "hot state, and its folder with the notes in it. A workspace elsewhere is kept. If the\n"
        "replica cannot be reached, other devices keep the agent and send it back. Notes that\n"
        "were replicated stay on the replica.\n\n"
        "examples:\n"
        "  thermocline forget 8019fd10\n"
        "  thermocline forget --category projects/old --yes\n"
        "  thermocline forget --agent assistant --yes"
    )


def run_forget(args: argparse.Namespace, client: Client) -> int:
    """Delete what is named; 1 when an id was not found, after the others are deleted.

    Raises:
        WrongUsage: nothing is named, or in two ways.
    """
    filtered = args.category is not None or args.query is not None or args.secrets
    if args.ids:
        if filtered:
            raise WrongUsage("give either IDs, or --category, --query and --secrets")
        return _forget_each(args, client)
    client.timeout = PATIENCE_SECONDS
    if filtered:
        _forget_matching(args, client)
    elif args.agent is not None:
        _forget_agent(args)
    else:
        raise WrongUsage(
            "say what to forget: IDs, --category, --query, --secrets, or a whole --agent"
        )
    return 0


def _forget_each(args: argparse.Namespace, client: Client) -> int:
    code = 0
    for memory_id in args.ids:
        try:
            deleted = client.forget(memory_id)
        except ApiError as error:
            if error.status >= 500:
                raise
            code = 1
            if args.json:
                show_json({"error": error.as_dict()}, one_line=True)
            else:
                say(visible(str(error)))
            continue
        if args.json:
            show_answer(client.answered, one_line=True)
            continue
        print("forgot", short(visible(deleted.id)))
        for back in deleted.unmerged or ():
            print(short(visible(back)), "was merged into it, and is restored")
    return code


def _forget_matching(args: argparse.Namespace, client: Client) -> None:
    query = None if args.query is None else text_of(args.query)
    found = client.forget_matching(
        category=args.category, query=query, secrets=args.secrets, dry_run=not args.yes
    )
    if args.json:
        show_answer(client.answered)
        return
    count = number_of(found.total, "memory", "memories")
    if found.forgotten:
        print(f"forgot {count}")
        for place in found.elsewhere or ():
            print("removed a secret from", visible(place))
        return
    print(f"would forget {count}")
    show_rows((short(memory.id), memory.category, headline(memory)) for memory in found.results)
    if (more := found.total - len(found.results)) > 0:
        print(f"and {more} more")
    for place in found.elsewhere or ():
        print("holds a secret:", visible(place))
    if found.total or found.elsewhere:
        say("nothing is deleted yet: add --yes")


def _forget_agent(args: argparse.Namespace) -> None:
    with Client(args.socket, None, PATIENCE_SECONDS) as client:
        told = client.forget_agent(args.agent, dry_run=not args.yes)
    if args.json:
        show_answer(client.answered)
        return
    memories = number_of(told.memories, "memory", "memories")
    pairs = number_of(told.key_values, "key-value pair", "key-value pairs")
    verb = "forgot" if told.forgotten else "would forget"
    print(f"{verb} the agent '{visible(told.id)}': {memories}, {pairs}, its folder")
    if told.workspace is not None:
        print(f"its workspace is kept: {visible(told.workspace)}")
    if not told.forgotten:
        say("nothing is deleted yet: add --yes")
    elif told.replica == "behind":
        say(visible(f"the agent is still on the replica, which was not reached: {told.why}"))
