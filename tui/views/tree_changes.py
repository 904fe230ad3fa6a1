"""Changes of the tree, each with what takes it back; they run on a thread."""

from __future__ import annotations

from collections.abc import Sequence

from thermocline.daemon.client import Client
from thermocline.daemon.shapes.tree import TreeView

from .memory_changes import Undo

# Paths with their descriptions.
Described = Sequence[tuple[str, str]]


def described(tree: TreeView, paths: Sequence[str]) -> Described:
    """The categories with their descriptions, parents first."""
    return [(path, str(tree.tree[path]["desc"])) for path in sorted(paths) if path in tree.tree]


def add(client: Client, path: str, desc: str) -> Undo:
    """Add a category; undoing removes it, with the parents that came with it."""
    known = client.tree().tree
    before = str(known[path]["desc"]) if path in known else ""
    added = client.tree_add(path, desc)
    if not added.made:
        return lambda again: again.tree_add(path, before)
    steps = added.path.split("/")
    paths = ["/".join(steps[:end]) for end in range(1, len(steps) + 1)]
    first = next((one for one in paths if one not in known), added.path)
    return lambda again: again.tree_remove(first)


def describe(client: Client, path: str, desc: str, before: str) -> Undo:
    """Describe a category otherwise."""
    client.tree_add(path, desc)
    return lambda again: again.tree_add(path, before)


def rename(client: Client, path: str, to: str) -> Undo:
    """Rename or move a category with all below it."""
    client.tree_rename(path, to)
    return Client.tree_undo


def remove(client: Client, path: str, gone: Described) -> Undo:
    """Remove a category and those below it, all empty; undoing adds them again."""
    client.tree_remove(path)
    return lambda again: restore(again, gone)


def prune(client: Client, tree: TreeView) -> tuple[list[str], Undo]:
    """Remove what is empty and long unused; undoing adds it again."""
    pruned = client.tree_prune()
    gone = described(tree, pruned.paths)
    return pruned.paths, lambda again: restore(again, gone)


def restore(client: Client, gone: Described) -> None:
    """Add categories with their descriptions."""
    for path, desc in gone:
        client.tree_add(path, desc)
