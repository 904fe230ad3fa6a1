"""The tree as text: a model's map, EvoClaw's text, and the document of its file."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .tree_nodes import DESC_CHARS, ROOT, Node, Tree, TreeLimits, children, level, title

SCHEMA_VERSION: Final = "2.0"
ROOT_DESC: Final = "Memory root"
# The minimum length of a cut description; less would say nothing.
_LEAST_CHARS: Final = 12
_STEP: Final = 4


def prompt(tree: Tree, max_bytes: int = TreeLimits().max_size_bytes) -> str:
    """The tree for a model: a line per category, indented by one blank per level.

    A line has the last part of the path and, unless it only repeats that, the description. Counts
    are left out, since they change daily and would defeat a provider's cache. The longest
    descriptions are cut until the text takes at most `max_bytes`; the names alone always fit in a
    tree within its limits.
    """
    paths = _in_order(tree)
    names = [" " * (level(path) - 1) + path.rpartition("/")[2] for path in paths]
    described = [said_of(path, tree[path]) for path in paths]
    for most in range(DESC_CHARS, _LEAST_CHARS - 1, -_STEP):
        text = "\n".join(map(_line, names, (_cut(desc, most) for desc in described)))
        if len(text.encode()) <= max_bytes:
            return text
    return "\n".join(names)


def name_bytes(path: str) -> int:
    """The bytes of a category in `prompt` without its description, line end included."""
    return level(path) + len(path.rpartition("/")[2].encode())


def show(tree: Tree, warm_total: int, cold_total: int, limits: TreeLimits) -> str:
    """The text of `tree --show` in EvoClaw's layout, without a final newline.

    `Nodes` counts the root, as the limit does; `Size` is that of `prompt`.
    """
    lines = ["Memory Tree Index", "=" * 50, f"📂 Root (warm:{warm_total}, cold:{cold_total})"]
    for path in _in_order(tree):
        node = tree[path]
        indent = "  " * level(path)
        lines.append(f"{indent}📁 {path} — {node.desc}")
        lines.append(f"{indent}   Memories: warm={node.warm_count}, cold={node.cold_count}")
    lines += [
        "",
        f"Nodes: {len(tree) + 1}/{limits.max_nodes}",
        f"Size: {size(tree, limits)} / {limits.max_size_bytes} bytes",
    ]
    return "\n".join(lines)


def size(tree: Tree, limits: TreeLimits) -> int:
    """The bytes of `prompt`, the measure of the limit."""
    return len(prompt(tree, limits.max_size_bytes).encode())


def document(tree: Tree, warm_total: int, cold_total: int) -> dict[str, Any]:
    """`memory-tree.json` in EvoClaw's format: the root first, then every node, sorted by path.

    `warm_total` and `cold_total` are the root's counts, of all memories.
    """
    below = children(tree)
    root = Node(desc=ROOT_DESC, warm_count=warm_total, cold_count=cold_total)
    nodes = {ROOT: _entry(root, below.get(ROOT, []))}
    nodes.update((path, _entry(tree[path], below.get(path, []))) for path in sorted(tree))
    return {"_schema_version": SCHEMA_VERSION, **nodes}


def _entry(node: Node, child_paths: list[str]) -> dict[str, Any]:
    whole = msgspec.structs.asdict(node)
    return whole | {"last_access": int(node.last_access), "children": child_paths}


def said_of(path: str, node: Node) -> str:
    """The description, or "" if it only repeats the name as a title."""
    return "" if node.desc.casefold() == title(path).casefold() else node.desc


def _line(name: str, desc: str) -> str:
    return f"{name}: {desc}" if desc else name


def _cut(desc: str, most: int) -> str:
    return desc if len(desc) <= most else f"{desc[: most - 1].rstrip()}…"


def _in_order(tree: Tree) -> list[str]:
    """Every path before its children, siblings sorted."""
    return sorted(tree, key=lambda path: path.split("/"))
