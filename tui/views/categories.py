"""The categories as they are shown: in the order of the tree, with the counts of all below each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

ROOT: Final = "root"


@dataclass(frozen=True, slots=True)
class Category:
    """One category as it is shown.

    Attributes:
        path: "root" for all.
        desc: what belongs there.
        guide: the lines before its name.
        warm, cold: the memories filed in it or below it.
        own: those filed in it.
        children: how many categories stand directly below it.
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
