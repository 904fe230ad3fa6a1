"""The tree as the JSON document `memory-tree.json`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .tree_nodes import ROOT, Node, Tree, children

SCHEMA_VERSION: Final = "2.0"
ROOT_DESC: Final = "Memory root"


def document(tree: Tree, warm_total: int, cold_total: int) -> dict[str, Any]:
    """The document of EvoClaw's shape: the root first, then every node by its path, sorted.

    `warm_total` and `cold_total` are the root's counts: of all memories, wherever filed.
    """
    below = children(tree)
    root = Node(desc=ROOT_DESC, warm_count=warm_total, cold_count=cold_total)
    nodes = {ROOT: entry(root, below.get(ROOT, []))}
    nodes.update((path, entry(tree[path], below.get(path, []))) for path in sorted(tree))
    return {"_schema_version": SCHEMA_VERSION, **nodes}


def entry(node: Node, child_paths: list[str]) -> dict[str, Any]:
    """One node of the document. Whole seconds are enough for it, and save bytes."""
    return {
        "desc": node.desc,
        "warm_count": node.warm_count,
        "cold_count": node.cold_count,
        "last_access": int(node.last_access),
        "children": child_paths,
    }


def size(document: dict[str, Any]) -> int:
    """The bytes of a document as compact JSON in UTF-8."""
    return len(msgspec.json.encode(document))
