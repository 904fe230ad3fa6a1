"""The categories as they are shown, and their changes.

They are shown in the order of the tree, with the counts of all below each. A change runs on a
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.tree import TreeView

from ..calls import Done

ROOT: Final = "root"
# Paths with their descriptions.
Described = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Category:
    """One category for display.

    Attributes:
        path: "root" for all.
        desc: what belongs there.
        guide: the lines before its name.
        warm, cold: the memories filed in it or below it.
        own: those filed in it.
        children: the number of categories directly below it.
        last_access: seconds since the epoch; 0 for never.
    """

    path: str
    desc: str
    guide: str
    warm: int
    cold: int
    own: int
    children: int
    last_access: float

    @property
    def name(self) -> str:
        """The last part of the path."""
        return "all memories" if self.path == ROOT else self.path.rpartition("/")[2]

    @property
    def count(self) -> int:
        """All memories in it and below it."""
        return self.warm + self.cold


def categories_of(tree: dict[str, Any]) -> list[Category]:
    """The categories of EvoClaw's document, each before those below it."""
    found: list[Category] = []

    def totals(path: str) -> tuple[int, int]:
        node = tree[path]
        below = [totals(child) for child in node["children"] if child in tree]
        warm = node["warm_count"] + sum(one for one, _ in below)
        return warm, node["cold_count"] + sum(one for _, one in below)

    def walk(path: str, before: str, branch: str) -> None:
        node = tree[path]
        own = node["warm_count"] + node["cold_count"]
        root = path == ROOT
        warm, cold = (node["warm_count"], node["cold_count"]) if root else totals(path)
        children = [child for child in node["children"] if child in tree]
        found.append(
            Category(
                path, node["desc"], before + branch, warm, cold,
                0 if root else own, len(children), float(node["last_access"]),
            )
        )  # fmt: skip
        deeper = before + ("" if not branch else "   " if branch == "└─ " else "│  ")
        for number, child in enumerate(children, 1):
            walk(child, deeper, "└─ " if number == len(children) else "├─ ")

    if ROOT in tree:
        walk(ROOT, "", "")
    return found


def described(tree: TreeView, paths: Sequence[str]) -> Described:
    """The categories with their descriptions, parents first."""
    return [(path, str(tree.tree[path]["desc"])) for path in sorted(paths) if path in tree.tree]


def add_category(client: Client, path: str, desc: str) -> Done:
    """Add a category; undoing removes it, with the parents that came with it."""
    known = client.tree().tree
    added = client.tree_add(path, desc)
    told = f"added {path}"
    if not added.made:
        before = str(known[path]["desc"]) if path in known else ""
        return Done(told, lambda again: again.tree_add(path, before))
    steps = added.path.split("/")
    paths = ["/".join(steps[:end]) for end in range(1, len(steps) + 1)]
    first = next((one for one in paths if one not in known), added.path)
    return Done(told, lambda again: again.tree_remove(first))


def describe_category(client: Client, path: str, desc: str, before: str) -> Done:
    """Change the description of a category."""
    client.tree_add(path, desc)
    return Done(f"described {path}", lambda again: again.tree_add(path, before))


def rename_category(client: Client, path: str, to: str) -> Done:
    """Rename or move a category with all below it."""
    client.tree_rename(path, to)
    return Done(f"renamed it {to}", Client.tree_undo)


def remove_categories(client: Client, path: str, gone: Described) -> Done:
    """Remove a category and those below it, all empty; undoing adds them again."""
    client.tree_remove(path)
    return Done(f"removed {path}", lambda again: _restore(again, gone))


def prune_categories(client: Client, tree: TreeView) -> Done:
    """Remove what is empty and long unused; undoing adds it again."""
    paths = client.tree_prune().paths
    if not paths:
        return Done("no category is empty and long unused")
    gone = described(tree, paths)
    told = f"pruned {number_of(len(paths), 'category', 'categories')}"
    return Done(told, lambda again: _restore(again, gone))


def _restore(client: Client, gone: Described) -> None:
    for path, desc in gone:
        client.tree_add(path, desc)
