"""The categories in the order of the tree, with the counts of all below each; and adding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from thermocline.daemon.client import Client
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


def restore(client: Client, gone: Described) -> None:
    """Add categories again that were removed."""
    for path, desc in gone:
        client.tree_add(path, desc)
