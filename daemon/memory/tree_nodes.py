"""The nodes of the category tree, its limits, functions on paths, and the tree as text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

# The name of the root, which is not in a `Tree`.
ROOT: Final = "root"
DESC_CHARS: Final = 100


class Node(msgspec.Struct, frozen=True):
    """One category."""

    desc: str  # one line of at most 100 characters; see `one_line`
    # The memories filed exactly here, not below.
    warm_count: int = 0
    cold_count: int = 0
    last_access: float = 0.0  # seconds since the epoch, 0 for never


class NamedCategory(msgspec.Struct, frozen=True):
    """A category in which something may be filed or found, and why."""

    path: str
    relevance: float  # the estimate that it is there, 0 to 1
    reason: str = ""


# Path -> node, without the root; always contains all parents of a node.
Tree: TypeAlias = Mapping[str, Node]


class TreeLimits(msgspec.Struct, frozen=True):
    """The limits of a tree, and how long an empty branch stays; section `tree`.

    `max_nodes` counts the root; the size is that of `prompt`.
    """

    max_nodes: Annotated[int, Meta(ge=1, le=10_000)] = 50
    max_depth: Annotated[int, Meta(ge=1, le=16)] = 4
    max_size_bytes: Annotated[int, Meta(ge=256, le=1_048_576)] = 2_048
    max_children: Annotated[int, Meta(ge=1, le=10_000)] = 10
    prune_idle_days: Annotated[float, Meta(ge=0, le=36_500)] = 60.0


def title(path: str) -> str:
    """The default description of a category: its last level as a title."""
    return one_line(path.rpartition("/")[2].replace("_", " ").title())


def one_line(text: str) -> str:
    """`text` as a description: one line of printable characters, at most 100 of them."""
    words = " ".join(text[: 8 * DESC_CHARS].split())
    printable = (char for char in words if unicodedata.category(char) not in {"Cc", "Cs"})
    return "".join(printable)[:DESC_CHARS].strip()


def parent(path: str) -> str:
    """The path above, `root` for a top-level category."""
    return path.rpartition("/")[0] or ROOT


def ancestors(path: str) -> tuple[str, ...]:
    """The paths above `path` from the top down, neither the root nor `path` itself among them."""
    segments = path.split("/")
    return tuple("/".join(segments[:length]) for length in range(1, len(segments)))


def trace_of(path: str) -> tuple[str, ...]:
    """The paths from the root to `path`, both included."""
    return (ROOT, *ancestors(path), path)


def is_within(path: str, branch: str) -> bool:
    """Whether `path` is `branch` or lies below it."""
    return path == branch or path.startswith(f"{branch}/")


def level(path: str) -> int:
    """The number of levels of `path` below the root."""
    return path.count("/") + 1


def depth(tree: Tree) -> int:
    """The number of levels of the tree below the root; 0 if it is empty."""
    return max(map(level, tree), default=0)


def joined(node: Node, other: Node) -> Node:
    """`node` with the memories of `other`, and the later access of both."""
    return msgspec.structs.replace(
        node,
        warm_count=node.warm_count + other.warm_count,
        cold_count=node.cold_count + other.cold_count,
        last_access=max(node.last_access, other.last_access),
    )


def grow(nodes: dict[str, Node], path: str, desc: str, now: float) -> None:
    """Add `path` and its missing parents, used `now`; a non-blank `desc` replaces the old one."""
    for step in (*ancestors(path), path):
        nodes.setdefault(step, Node(desc=title(step), last_access=now))
    if described := one_line(desc):
        nodes[path] = msgspec.structs.replace(nodes[path], desc=described)


def branch(paths: Iterable[str], path: str) -> list[str]:
    """`path` and everything below it."""
    return [item for item in paths if is_within(item, path)]


def children(paths: Iterable[str]) -> dict[str, list[str]]:
    """The sorted children of every path that has any; the top level is under `root`."""
    children: dict[str, list[str]] = {}
    for path in sorted(paths):
        children.setdefault(parent(path), []).append(path)
    return children


def with_parents(tree: Tree) -> dict[str, Node]:
    """A copy of `tree` with all missing parents."""
    complete = dict(tree)
    for path in tree:
        above = parent(path)
        while above != ROOT and above not in complete:
            complete[above] = Node(desc=title(above))
            above = parent(above)
    return complete


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
    described = [desc_of(path, tree[path]) for path in paths]
    for most in range(DESC_CHARS, _LEAST_CHARS - 1, -_STEP):
        cut = (d if len(d) <= most else f"{d[: most - 1].rstrip()}…" for d in described)
        text = "\n".join(map(_line, names, cut))
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


def desc_of(path: str, node: Node) -> str:
    """The description, or "" if it only repeats the name as a title."""
    return "" if node.desc.casefold() == title(path).casefold() else node.desc


def _line(name: str, desc: str) -> str:
    return f"{name}: {desc}" if desc else name


def _in_order(tree: Tree) -> list[str]:
    return sorted(tree, key=lambda path: path.split("/"))
