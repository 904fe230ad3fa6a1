"""Merging what somebody wrote into a state file by hand.

A file shows the database as it stood at one version, its clock. An entry that the database has
changed since is newer than the file and stays; every other difference is the editor's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..memory import hot
from ..memory import tree as trees
from ..memory.checks import shown
from ..memory.hot import EntryKey
from ..memory.records import Memory
from ..memory.variants import hot_file, tree_file, warm_file
from ..memory.variants.values import kind, moment, storable
from . import hot_rows, key_values, memories, tree_rows
from .faces import HOT_FILE, KV_FILE, TREE_FILE, WARM_FILE
from .rows import SELECT, from_row
from .transaction import Transaction

# What a person can mean to change in a record. Score, tier and counts follow from the rest,
# and a time that differs is more likely damage than meant.
_EDITABLE: Final = (
    "text",
    "category",
    "importance",
    "metadata",
    "type",
    "event",
    "subject",
    "outcome",
    "tags",
    "source",
    "actor",
    "group",
    "position",
    "data",
    "expires_at",
)
MERGED: Final = (HOT_FILE, WARM_FILE, TREE_FILE, KV_FILE)


def merge(tx: Transaction, name: str, content: bytes, clock: int) -> int:
    """Apply the differences that `content` makes; return how many there are.

    Args:
        tx: the transaction.
        name: one of `MERGED`.
        content: the file as it stands.
        clock: the version that the file showed when the daemon wrote it.

    Raises:
        InvalidInput: it cannot be read, has a fault, or has lost everything; nothing is done.
    """
    document = _parse(name, content)
    return _MERGERS[name](tx, document, clock)


def _parse(name: str, content: bytes) -> Any:
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot read {name}: {error}") from error


def _refuse_faults(name: str, faults: tuple[str, ...]) -> None:
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InvalidInput(f"cannot use {name}: {faults[0]}{more}")


def _refuse_emptied(name: str, before: int, after: int) -> None:
    if before and not after:
        raise InvalidInput(
            f"cannot use {name}: all of its {before} entries are gone",
            hint="remove entries with the command line, or a few at a time",
        )


def _merge_warm(tx: Transaction, document: Any, clock: int) -> int:
    parsed = warm_file.parse(document, tx.now)
    _refuse_faults(WARM_FILE, parsed.faults)
    rows = tx.db.execute(f"{SELECT} WHERE archived_at IS NULL").fetchall()
    warm = {memory.id: memory for memory in map(from_row, rows)}
    _refuse_emptied(WARM_FILE, len(warm), len(parsed.memories))
    changes = 0
    for edited in parsed.memories:
        changes += _merge_record(tx, edited, clock)
    kept = {memory.id for memory in parsed.memories}
    # Taken out of the file is not forgotten: an older tool drops what it has no room for.
    gone = [key for key, old in warm.items() if key not in kept and _version(old) <= clock]
    return changes + memories.archive(tx, gone)


def _merge_record(tx: Transaction, edited: Memory, clock: int) -> int:
    found = tx.db.execute(f"{SELECT} WHERE id = ?", (edited.id,)).fetchone()
    if found is None:
        if _deleted_since(tx, memories.KIND, edited.id, clock):
            return 0
        # Links between memories are made by operations alone, which keep both ends true.
        fresh = msgspec.structs.replace(
            edited,
            clock=0,
            filed_clock=0,
            writer="hand",
            updated_at=tx.now,
            merged_into=None,
            superseded_by=None,
        )
        memories.insert(tx, fresh)
        return 1
    old = from_row(found)
    wanted = {field: getattr(edited, field) for field in _EDITABLE}
    if _version(old) > clock or all(getattr(old, f) == value for f, value in wanted.items()):
        return 0
    memories.replace(tx, old, msgspec.structs.replace(old, **wanted, updated_at=tx.now))
    return 1


def _version(memory: Memory) -> int:
    """The later of the versions of what it says and of where it is filed."""
    return max(memory.clock, memory.filed_clock)


def _merge_hot(tx: Transaction, document: Any, clock: int) -> int:
    parsed = hot_file.parse(document, tx.now)
    _refuse_faults(HOT_FILE, parsed.faults)
    old = hot_rows.entries(tx.db)
    edited = hot.entries(parsed.state)
    _refuse_emptied(HOT_FILE, len(old), len(edited))
    versions = hot_rows.clocks(tx.db)
    # The file shows the state within its limits, which may have been narrowed since.
    fitted = hot.entries(hot.fit(hot_rows.load(tx.db), tx.rules.hot).state)
    merged = dict(old)
    for key, entry in edited.items():
        if _is_newer(tx, key, versions, clock):
            untouched = key in fitted and _same(fitted[key].value, entry.value)
            value = old[key].value if untouched else entry.value
            merged[key] = hot.Entry(value, entry.position)
    for key in (old.keys() & fitted.keys()) - edited.keys():
        if versions[key] <= clock:
            del merged[key]
    changes = hot.diff(old, merged)
    if changes.changed or changes.removed:
        hot_rows.save(tx, hot.from_entries(merged))
    return len(changes.changed) + len(changes.removed)


def _same(one: Any, other: Any) -> bool:
    # Encoded, since Python takes True for 1.
    return msgspec.json.encode(one) == msgspec.json.encode(other)


def _is_newer(tx: Transaction, key: EntryKey, versions: dict[EntryKey, int], clock: int) -> bool:
    if key in versions:
        return versions[key] <= clock
    return not _deleted_since(tx, hot_rows.KIND, "/".join(key), clock)


def _merge_tree(tx: Transaction, document: Any, clock: int) -> int:
    parsed = tree_file.parse(document, tx.now)
    _refuse_faults(TREE_FILE, parsed.faults)
    old = tree_rows.load(tx.db)
    _refuse_emptied(TREE_FILE, len(old), len(parsed.tree))
    versions = dict(tx.db.execute("SELECT path, clock FROM tree").fetchall())
    new: dict[str, trees.Node] = dict(old)
    for path, node in parsed.tree.items():
        if path not in old and not _deleted_since(tx, tree_rows.KIND, path, clock):
            new = dict(trees.add(new, path, node.desc, tx.now, tx.rules.tree))
        elif path in old and versions[path] <= clock and node.desc != old[path].desc:
            new[path] = msgspec.structs.replace(old[path], desc=node.desc)
    for path in sorted(old.keys() - parsed.tree.keys(), reverse=True):
        # A category with memories stays, whatever the file says.
        if versions[path] <= clock and _is_empty(new, path):
            new = dict(trees.remove(new, path))
    changes = sum(old.get(path) != node for path, node in new.items())
    changes += len(old.keys() - new.keys())
    if changes:
        tree_rows.save(tx, old, new)
    return changes


def _is_empty(tree: trees.Tree, path: str) -> bool:
    return not any(
        node.warm_count + node.cold_count
        for below, node in tree.items()
        if below == path or below.startswith(f"{path}/")
    )


def _merge_kv(tx: Transaction, document: Any, clock: int) -> int:
    parsed, faults = parse_pairs(document)
    _refuse_faults(KV_FILE, faults)
    pairs = {key: value for key, (value, _) in parsed.items()}
    rows = tx.db.execute("SELECT key, value, clock FROM kv").fetchall()
    old = {key: (value, version) for key, value, version in rows}
    _refuse_emptied(KV_FILE, len(old), len(pairs))
    changes = 0
    for key, value in pairs.items():
        before, version = old.get(key, (None, 0))
        deleted = before is None and _deleted_since(tx, key_values.KIND, key, clock)
        if before != value and version <= clock and not deleted:
            key_values.put(tx, key, value)
            changes += 1
    for key, (_, version) in old.items():
        if key not in pairs and version <= clock:
            key_values.delete(tx, key)
            changes += 1
    return changes


def parse_pairs(document: Any) -> tuple[dict[str, tuple[str, float | None]], tuple[str, ...]]:
    """The pairs of `key-values.json`, each as an object with a value or as a plain text.

    Returns:
        The values with the times at which they were first set, by key; and what could not be
        read, a line each.
    """
    if not isinstance(document, dict):
        return {}, (f"expected an object, got {kind(document)}",)
    pairs: dict[str, tuple[str, float | None]] = {}
    faults: list[str] = []
    for key, found in document.items():
        fields = found if isinstance(found, dict) else {"value": found}
        value = fields.get("value")
        if key and storable(key) and isinstance(value, str) and storable(value):
            pairs[key] = (value, moment(fields.get("created_at")))
        else:
            faults.append(f"{shown(key)}: expected a text that can be stored, got {kind(value)}")
    return pairs, tuple(faults)


def _deleted_since(tx: Transaction, of: str, key: str, clock: int) -> bool:
    found = tx.db.execute(
        "SELECT clock FROM tombstones WHERE kind = ? AND id = ?", (of, key)
    ).fetchone()
    return found is not None and found[0] > clock


_MERGERS: Final[dict[str, Callable[[Transaction, Any, int], int]]] = {
    WARM_FILE: _merge_warm,
    HOT_FILE: _merge_hot,
    TREE_FILE: _merge_tree,
    KV_FILE: _merge_kv,
}
