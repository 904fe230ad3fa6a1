"""`thermocline tree`: the tree of categories."""

from __future__ import annotations

import argparse

from ..client import ApiError, Client
from ..client.wording import number_of
from .arguments import say
from .terminal import Shown, show_json, visible


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tree`."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--show", action="store_true", help="show it, as without an option")
    one.add_argument("--add", nargs=2, metavar=("PATH", "DESC"), help="add a category")
    one.add_argument("--remove", metavar="PATH", help="remove a category without memories")
    one.add_argument(
        "--rename",
        nargs=2,
        metavar=("PATH", "TO"),
        help="rename or move a category with its memories",
    )
    one.add_argument("--prune", action="store_true", help="remove all empty and unused categories")
    one.add_argument("--undo", action="store_true", help="undo the last rebuild or renaming")


def run_tree(args: argparse.Namespace, client: Client) -> Shown | None:
    """Show it, or do what an option says."""
    try:
        return _run(args, client)
    except ApiError as error:
        # EvoClaw answers so where it refuses a path, and ends with success.
        path, done = (args.add[0], "added") if args.add else (args.remove, "removed")
        if path is None or error.field != "path":
            raise
        say(visible(error.message))
        if args.json:
            show_json({"path": path, done: False})
        else:
            print(visible(f"not {done}: {path}"))
        return None


def _run(args: argparse.Namespace, client: Client) -> Shown | None:
    if args.add is not None:
        return _add(args, client)
    if args.remove is not None:
        return f"removed {client.tree_remove(args.remove).path}"
    if args.rename is not None:
        renamed = client.tree_rename(*args.rename)
        refiled = number_of(renamed.memories, "memory", "memories")
        told = f"renamed {renamed.path} to {renamed.to}; {refiled} refiled"
    elif args.prune:
        told = f"pruned {number_of(client.tree_prune().pruned, 'category', 'categories')}"
    elif args.undo:
        undone = client.tree_undo()
        changes = number_of(len(undone.changes), "change", "changes")
        told = f"undid {changes} of the tree; memories filed as before: {undone.memories:,}"
    elif args.json:
        client.tree()
        told = ""
    else:
        text = client.tree_text().rstrip("\n")
        return lambda: print(visible(text, keep="\n"))
    return told


def _add(args: argparse.Namespace, client: Client) -> Shown | None:
    added = client.tree_add(*args.add)
    if args.json:
        show_json({"path": added.path, "added": added.added})
        return None
    return f"{'added' if added.made else 'already there:'} {added.path}"
