"""`thermocline forget`: delete memories, or an agent, for good."""

from __future__ import annotations

from ..client import ApiError, Client
from .arguments import WrongUsage, say, stdin_once, text_of
from .database import PATIENCE_SECONDS
from .memories import headline, short
from .terminal import show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add(
        "ids",
        nargs="*",
        metavar="ID",
        help="an id, or the first 4 or more characters of it; nothing is asked",
    )
    add("--category", metavar="PATH", help="all memories of this category and below it")
    add("--query", metavar="TEXT", help="all memories that contain these words; - reads stdin")
    add("--yes", action="store_true", help="do it; without this it only shows what it would do")
    parser.epilog = (
        "With --agent NAME alone the whole agent is forgotten: its memories, key-value pairs and\n"
        "hot state, and its folder with the notes in it. A workspace elsewhere is left as it is.\n"
        "The replica is told once; where it cannot be reached, other devices keep the agent, and\n"
        "give it back. Notes that were replicated stay on the replica.\n\n"
        "examples:\n"
        "  thermocline forget 8019fd10\n"
        "  thermocline forget --category projects/old --yes\n"
        "  thermocline forget --agent assistant --yes"
    )


def run(args: argparse.Namespace) -> int:
    """Delete what is named; 1 when an id was not there, after the others are deleted.

    Raises:
        WrongUsage: it is not said what to forget, or in two ways.
    """
    filtered = args.category is not None or args.query is not None
    if args.ids:
        if filtered:
            raise WrongUsage("give either IDs, or --category and --query")
        return _forget_each(args)
    if filtered:
        return _forget_matching(args)
    if args.agent is None:
        raise WrongUsage("say what to forget: IDs, --category, --query, or a whole --agent")
    return _forget_agent(args)


def _forget_each(args: argparse.Namespace) -> int:
    code = 0
    with Client(args.socket, args.agent) as client:
        for memory_id in args.ids:
            try:
                deleted = client.forget(memory_id)
            except ApiError as error:
                if error.status >= 500:
                    raise
                say(visible(str(error)))
                code = 1
                continue
            if args.json:
                show_json(deleted, one_line=True)
            else:
                print("forgot", short(visible(deleted.get("id", memory_id))))
                for back in deleted.get("unmerged", ()):
                    print(short(visible(back)), "was merged into it, and is back")
    return code


def _forget_matching(args: argparse.Namespace) -> int:
    stdin_once(args.query)
    query = None if args.query is None else text_of(args.query)
    with Client(args.socket, args.agent, PATIENCE_SECONDS) as client:
        found = client.forget_matching(category=args.category, query=query, dry_run=not args.yes)
    if args.json:
        show_json(found)
        return 0
    count = _counted(found["total"])
    if found["forgotten"]:
        print(f"forgot {count}")
        return 0
    print(f"would forget {count}")
    show_rows(
        (short(memory["id"]), memory["category"], headline(memory)) for memory in found["results"]
    )
    if (more := found["total"] - len(found["results"])) > 0:
        print(f"and {more} more")
    if found["total"]:
        say("nothing is forgotten yet: add --yes")
    return 0


def _forget_agent(args: argparse.Namespace) -> int:
    with Client(args.socket, None, PATIENCE_SECONDS) as client:
        told = client.forget_agent(args.agent, dry_run=not args.yes)
    if args.json:
        show_json(told)
        return 0
    pairs = f"{told['key_values']} key-value pair{'' if told['key_values'] == 1 else 's'}"
    what = f"the agent '{visible(told['id'])}': {_counted(told['memories'])}, {pairs}, its folder"
    print(f"{'forgot' if told['forgotten'] else 'would forget'} {what}")
    if told["workspace"] is not None:
        print(f"its workspace stays: {visible(told['workspace'])}")
    if not told["forgotten"]:
        say("nothing is forgotten yet: add --yes")
    elif told["replica"] == "behind":
        say(visible(f"the replica was not told, and still has the agent: {told['why']}"))
    return 0


def _counted(memories: int) -> str:
    return f"{memories} memor{'y' if memories == 1 else 'ies'}"
