"""`thermocline tree`: the tree of categories."""

from __future__ import annotations

import argparse

from ..client import Client
from .terminal import number_of, show_json, visible


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tree`."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--show", action="store_true", help="show it, as without an option")
    one.add_argument("--add", nargs=2, metavar=("PATH", "DESC"), help="add a category")
    one.add_argument("--remove", metavar="PATH", help="remove a category without memories")
    one.add_argument("--prune", action="store_true", help="remove all empty and unused categories")
    one.add_argument("--undo", action="store_true", help="undo the last rebuild of the tree")


def run_tree(args: argparse.Namespace, client: Client) -> None:
    """Show it, or do what an option says."""
    if args.add is not None:
        added = client.tree_add(*args.add)
        told = f"{'added' if added['made'] else 'already there:'} {added['path']}"
        _show({"path": added["path"], "added": added["added"]}, told, args)
    elif args.remove is not None:
        removed = client.tree_remove(args.remove)
        told = f"{'removed' if removed['removed'] else 'not there:'} {removed['path']}"
        _show(removed, told, args)
    elif args.prune:
        pruned = client.tree_prune()
        _show(pruned, f"pruned {number_of(pruned['pruned'], 'category', 'categories')}", args)
    elif args.undo:
        undone = client.tree_undo()
        changes = number_of(len(undone["changes"]), "change", "changes")
        told = f"undid {changes} of the tree; memories filed as before: {undone['memories']:,}"
        _show(undone, told, args)
    elif args.json:
        show_json(client.tree())
    else:
        print(visible(client.tree_text(), keep="\n").rstrip("\n"))


def _show(answer: object, told: str, args: argparse.Namespace) -> None:
    if args.json:
        show_json(answer)
    else:
        print(visible(told))
