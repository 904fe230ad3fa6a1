"""What could be better in a category tree, as a report.

It names categories and counts, never the text of a memory or of a description.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..memory.scoring import DAY
from ..memory.tree_nodes import Tree, TreeLimits, children, depth, said_of, size

FILE: Final = "tree-report.md"
# From this number of memories on a category may be too full.
_OVERFULL: Final = 40
_LARGEST: Final = 5
_NAMED: Final = 10
# The share of a limit from which a report warns of it.
_NEARLY: Final = 0.9


def analyse(tree: Tree, totals: tuple[int, int], limits: TreeLimits, now: float) -> list[str]:
    """The findings, a line each, the sizes first.

    `totals` are the numbers of warm and cold memories, in the root too.
    """
    inner = children(tree)
    counts = {path: node.warm_count + node.cold_count for path, node in tree.items()}
    warm, cold = totals
    filed = sum(counts.values())
    largest = sorted((path for path in counts if counts[path]), key=lambda path: -counts[path])
    nodes, levels = f"{len(tree) + 1} of {limits.max_nodes}", f"{depth(tree)} of {limits.max_depth}"
    taken = f"{size(tree, limits):,} of {limits.max_size_bytes:,}"
    memories = f"{warm + cold:,} memories: {warm:,} warm, {cold:,} cold"
    findings = [
        f"{nodes} categories, {levels} levels, {taken} bytes",
        f"{memories}; {warm + cold - filed:,} in no category",
    ]
    groups = {
        "largest": [f"{path} ({counts[path]})" for path in largest[:_LARGEST]],
        f"with {_OVERFULL} memories or more": [path for path in tree if counts[path] >= _OVERFULL],
        "empty": [path for path in tree if not counts[path] and path not in inner],
        f"not used for {limits.prune_idle_days:g} days": [
            path
            for path, node in tree.items()
            if counts[path] and now - node.last_access > limits.prune_idle_days * DAY
        ],
        "without a description": [path for path, node in tree.items() if not said_of(path, node)],
        "of the same name": list(_namesakes(tree)),
        "nearly full": [
            f"{path} ({len(below)} of {limits.max_children} below it)"
            for path, below in inner.items()
            if len(below) >= _NEARLY * limits.max_children
        ],
    }
    return findings + [f"{title}: {_listed(paths)}" for title, paths in groups.items() if paths]


def markdown(agent: str, at: str, findings: Sequence[str], done: Sequence[str]) -> str:
    """The report as a file.

    `at` is the time in ISO 8601; `findings` are those of `analyse`; `done` is what the run did, a
    line each.
    """
    lines = [f"# The tree of '{agent}', {at}", "", *(f"- {line}" for line in findings)]
    if done:
        lines += ["", "## Changed by this run", "", *(f"- {line}" for line in done)]
    return "\n".join(lines) + "\n"


def _namesakes(tree: Tree) -> Iterator[str]:
    paths: dict[str, list[str]] = {}
    for path in tree:
        paths.setdefault(path.rpartition("/")[2].casefold(), []).append(path)
    return (" and ".join(several) for several in paths.values() if len(several) > 1)


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
