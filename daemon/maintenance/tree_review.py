"""What could be better in a category tree: proposals of changes by rules, and a report.

Overfull categories are split and idle ones merged, both sparingly, so that the tree stays stable: a
category is split only by a topic of many of its memories, and only if the tree keeps room for new
categories; only small, cold and long unused categories are merged into their parents. The report
names categories and counts, never the text of a memory or of a description.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ..language.vocabulary import not_topics
from ..memory.scoring import DAY
from ..memory.similarity import fold, words
from ..memory.tree import IDLE_DAYS
from ..memory.tree_nodes import (
    ROOT,
    Node,
    Tree,
    TreeLimits,
    children,
    depth,
    level,
    parent,
    said_of,
    size,
    title,
)
from ..memory.tree_rebuild import MOST_OPERATIONS, Placed, TreeChange, apply, fits

# A category with fewer memories is not split.
OVERFULL: Final = 40
# The minimum number and share of memories of a part, and the maximum share.
_PART_AT_LEAST: Final = 8
_LEAST_SHARE: Final = 0.1
_MOST_SHARE: Final = 0.7
_PARTS: Final = 4
# The share of each limit that splitting may use; the rest is for categories that people create.
_ROOM: Final = 0.8
_FEW: Final = 3
# The weight of a subject or tag, which was given deliberately, relative to a word.
_GIVEN: Final = 3
_WORD_LETTERS: Final = 4
_NAMELESS: Final = re.compile(r"[^\w-]+")
_NAME_CHARS: Final = 40


class Member(msgspec.Struct, frozen=True):
    """The fields of a memory in an overfull category."""

    id: str
    text: str
    subject: str = ""
    tags: tuple[str, ...] = ()
    archived: bool = False


def propose(
    tree: Tree,
    members: Mapping[str, Sequence[Member]],
    limits: TreeLimits,
    now: float,
    idle_days: float = IDLE_DAYS,
) -> list[TreeChange]:
    """The operations that would improve the tree, in an order in which `apply` accepts them.

    `members` are the memories directly in each category with at least `OVERFULL` of them, or the
    latest of very many; it may include `root`. A category is idle after `idle_days` without use.
    """
    wanted = [*_merges(tree, now, idle_days), *_splits(tree, members, limits)]
    placed = {
        member.id: Placed(category, member.archived)
        for category, memories in members.items()
        for member in memories
    }
    accepted: list[TreeChange] = []
    for operation in wanted:
        after = apply(tree, [*accepted, operation], limits, now, placed)
        grown = operation.type == "move" and fits(after.tree, _with_room(limits)) is not None
        if not after.refused and not grown:
            accepted.append(operation)
        if len(accepted) == MOST_OPERATIONS:
            break
    return accepted


def _with_room(limits: TreeLimits) -> TreeLimits:
    return msgspec.structs.replace(
        limits,
        max_nodes=int(limits.max_nodes * _ROOM),
        max_size_bytes=int(limits.max_size_bytes * _ROOM),
    )


def _merges(tree: Tree, now: float, idle_days: float) -> Iterator[TreeChange]:
    """Merges of small leaves below the top level, longest unused first."""
    inner = children(tree)
    idle = [path for path in tree if path not in inner and _is_idle(tree[path], now, idle_days)]
    for path in sorted(idle, key=lambda path: (tree[path].last_access, path)):
        above = parent(path)
        if above != ROOT:
            reason = f"{tree[path].cold_count} archived, and unused for {idle_days:g} days"
            yield TreeChange(type="merge", path=path, new_path=above, reason=reason)


def _is_idle(node: Node, now: float, idle_days: float) -> bool:
    if node.warm_count or not 0 < node.cold_count <= _FEW:
        return False
    return now - node.last_access > idle_days * DAY


def _splits(
    tree: Tree, members: Mapping[str, Sequence[Member]], limits: TreeLimits
) -> Iterator[TreeChange]:
    """Splits of overfull categories by common topics, largest category first."""
    overfull = [path for path in members if len(members[path]) >= OVERFULL]
    for path in sorted(overfull, key=lambda path: (-_filed(tree, path, members), path)):
        above = 0 if path == ROOT else level(path)
        if (above and path not in tree) or above >= limits.max_depth:
            continue
        for topic, ids in _parts(path, members[path]):
            new = topic if path == ROOT else f"{path}/{topic}"
            yield TreeChange(
                type="move",
                path=path,
                new_path=new,
                summary=title(new),
                reason=f"{len(ids)} of {len(members[path])} have it in common",
                ids=ids,
            )


def _filed(tree: Tree, path: str, members: Mapping[str, Sequence[Member]]) -> int:
    """The number of memories in a category; `members` may have only some of them."""
    if path not in tree:
        return len(members[path])
    return tree[path].warm_count + tree[path].cold_count


def _parts(path: str, members: Sequence[Member]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names and members of possible parts of a category; the parts do not overlap."""
    left = {member.id: _topics(path, member) for member in members}
    least = max(_PART_AT_LEAST, _LEAST_SHARE * len(members))
    most = _MOST_SHARE * len(members)
    for _ in range(_PARTS):
        number: Counter[str] = Counter()
        worth: Counter[str] = Counter()
        for topics in left.values():
            number.update(topics.keys())
            worth.update(topics)
        fitting = [topic for topic, held in number.items() if least <= held <= most]
        if not fitting:
            return
        best = min(fitting, key=lambda topic: (-worth[topic], topic))
        ids = tuple(key for key, topics in left.items() if best in topics)
        yield best, ids
        for key in ids:
            del left[key]


def _topics(path: str, member: Member) -> dict[str, int]:
    topics = {
        word: 1
        for word in words(member.text)
        if len(word) >= _WORD_LETTERS and word.isalpha() and word not in not_topics()
    }
    topics |= {fold(label): _GIVEN for label in (member.subject, *member.tags) if label.strip()}
    known = set(path.split("/"))
    named = {_topic_name(topic): worth for topic, worth in topics.items()}
    return {name: worth for name, worth in named.items() if name and name not in known}


def _topic_name(topic: str) -> str:
    name = _NAMELESS.sub("_", topic).strip("_-")
    return name if len(name) <= _NAME_CHARS and not name.isdigit() else ""


FILE: Final = "tree-report.md"
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
        f"with {OVERFULL} memories or more, which a rebuild may split": [
            path for path in tree if counts[path] >= OVERFULL
        ],
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
