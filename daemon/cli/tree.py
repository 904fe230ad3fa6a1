"""`thermocline tree`: the tree of categories."""

from __future__ import annotations

from ..client import Client
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..upkeep_answers import Undone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--show", action="store_true", help="show it, as without an option")
    one.add_argument("--add", nargs=2, metavar=("PATH", "DESC"), help="add a category")
    one.add_argument("--remove", metavar="PATH", help="remove one that holds no memory")
    one.add_argument("--prune", action="store_true", help="remove all that are empty and unused")
    one.add_argument("--undo", action="store_true", help="take the last rebuild of the tree back")


def run(args: argparse.Namespace) -> int:
    """Show it, or do what an option says."""
    with Client(args.socket, args.agent) as client:
        if args.add is not None:
            added = client.tree_add(*args.add)
            done = "added" if added["made"] else "already there:"
            answer = {"path": added["path"], "added": added["added"]}
            _show(answer, done, added["path"], args)
        elif args.remove is not None:
            removed = client.tree_remove(args.remove)
            _show(removed, "removed" if removed["removed"] else "not there:", removed["path"], args)
        elif args.prune:
            pruned = client.tree_prune()
            _show(pruned, "pruned", f"{pruned['pruned']} categories", args)
        elif args.undo:
            undone: Undone = client.request("POST", "/api/tree/undo")
            changes = len(undone["changes"])
            told = f"{changes} {'change' if changes == 1 else 'changes'} of the tree"
            _show(undone, "took back", f"{told}; filed as before: {undone['memories']:,}", args)
        elif args.json:
            show_json(client.tree())
        else:
            print(visible(client.tree_text(), keep="\n").rstrip("\n"))
    return 0


def _show(answer: object, done: str, what: str, args: argparse.Namespace) -> None:
    if args.json:
        show_json(answer)
    else:
        print(done, visible(what))
