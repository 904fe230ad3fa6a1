"""The tree as people read it: the text of `tree --show`."""

from __future__ import annotations

from typing import Any

from .tree_document import size
from .tree_nodes import ROOT, TreeLimits, children, level


def show(document: dict[str, Any], limits: TreeLimits) -> str:
    """The text of a tree document, in EvoClaw's layout; it has no newline at its end.

    `Nodes` counts the root, as the limit does; `Size` is that of the compact document.
    """
    nodes = {path: node for path, node in document.items() if isinstance(node, dict)}
    root = nodes.pop(ROOT)
    lines = [
        "Memory Tree Index",
        "=" * 50,
        f"📂 Root (warm:{root['warm_count']}, cold:{root['cold_count']})",
    ]
    for path in _in_order(nodes):
        node = nodes[path]
        indent = "  " * level(path)
        lines.append(f"{indent}📁 {path} — {node['desc']}")
        counts = f"warm={node['warm_count']}, cold={node['cold_count']}"
        lines.append(f"{indent}   Memories: {counts}")
    lines += [
        "",
        f"Nodes: {len(nodes) + 1}/{limits.max_nodes}",
        f"Size: {size(document)} / {limits.max_size_bytes} bytes",
    ]
    return "\n".join(lines)


def _in_order(nodes: dict[str, Any]) -> list[str]:
    """Every path before its children, siblings sorted."""
    below = children(nodes)
    ordered: list[str] = []
    waiting = below.get(ROOT, [])[::-1]
    while waiting:
        path = waiting.pop()
        ordered.append(path)
        waiting.extend(reversed(below.get(path, [])))
    return ordered
