"""Applies imported memories, entries and rows to a memory, through `apply`.

A second run adds nothing: everything has an id in its source or one derived from its content, and a
stamp derived from its times. Deleted items stay deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from thermocline.sync import Clocks, Fields, Row, Stamp, changed, restamped, stamp_at

from ..language.secrets import cleared
from ..memory import hot
from ..memory.experiences import Experience
from ..memory.records import Memory
from ..memory.tree_nodes import Node, title
from ..store import apply
from ..store.database import meta, rows
from ..store.database.connection import batches
from ..store.database.rows import Kind
from ..store.database.transaction import Transaction
from ..store.kinds import kind_of
from ..store.records import experiences, history, hot_rows, memory_rows, tree_rows, uses
from ..store.records.memory_rows import to_row
from ..store.records.similar import same_words

T = TypeVar("T")
THERE: Final = "already there"
FORGOTTEN: Final = "forgotten since"
# Entries of a full hot state and categories of a full tree leave by themselves.
REMOVED: Final = "removed since"
DELETED: Final = "deleted where they come from"
EXPIRED: Final = "expired"
STALE: Final = "an earlier version of what is there"
LATER: Final = "changed here later"
_LINES: Final = 200
_MORE: Final = "and more, beyond the limit of this report"
_AT_ONCE: Final = 500
# The fields of a memory that people edit; other differences are derived, or damage.
EDITABLE: Final = frozenset(
    (
        *("text", "category", "importance", "metadata", "type", "event", "subject", "outcome"),
        *("tags", "pinned", "standing", "source", "actor", "group", "position", "data"),
        "expires_at",
    )
)


class ImportReport(msgspec.Struct):
    """What an import did."""

    read: list[dict[str, Any]] = []  # each file or table, and its number of entries
    stored: dict[str, int] = {}  # the number of new rows, by kind
    skipped: dict[str, int] = {}  # the number of rows that were not new, by reason
    left_out: list[str] = []  # what could not be used, one line each

    def add(self, other: ImportReport) -> None:
        self.read += other.read
        for mine, others in ((self.stored, other.stored), (self.skipped, other.skipped)):
            for name, number in others.items():
                _count(mine, name, number)
        self._leave_out(other.left_out)

    def note(self, name: str, *lines: str) -> None:
        """Record what was left out of a file or table."""
        self._leave_out([f"{name}: {line}" for line in lines])

    def _leave_out(self, lines: Sequence[str]) -> None:
        """Add lines, each once, as long as there is room."""
        new = dict.fromkeys([*self.left_out, *lines])
        self.left_out = [*new] if len(new) <= _LINES else [*[*new][:_LINES], _MORE]


class Intake:
    """Applies read data to one memory.

    A difference to the memory counts as an edit at `edited_at`, when the files were last changed;
    if that is None they only fill what is missing, as the remains of a memory do. `writer` is the
    writer of the memories; None: as the files say. With `clears`, marks replace the secrets in what
    is new here.
    """

    def __init__(
        self,
        tx: Transaction,
        *,
        edited_at: float | None = None,
        writer: str | None = None,
        clears: bool = False,
    ) -> None:
        self.tx = tx
        self.report = ImportReport()
        self._edited_at = edited_at
        self._writer = writer
        self._clears = clears

    def rows(self, rows: Iterable[Row], *, is_export: bool = False) -> int:
        """Apply rows with their own stamps; return their number.

        `is_export`: they may be of any agent and device. A device whose own stamps came back to an
        agent that never had them would take its folder for a copy.
        """
        number = 0
        for some in batches(rows, _AT_ONCE):
            number += len(some)
            for name in dict.fromkeys(row.kind for row in some):
                of_kind = [row for row in some if row.kind == name]
                self._apply(self._restamped(kind_of(name), of_kind) if is_export else of_kind)
        return number

    def _restamped(self, kind: Kind, some: Sequence[Row]) -> list[Row]:
        known = kind.table.load_all(self.tx.db, kind.name, [row.id for row in some])
        issued = {key: row.clocks.stamps for key, row in known.items()}
        return [restamped(row, apply.IMPORT, issued.get(row.id, ()), kind.sets) for row in some]

    def memories(
        self,
        offered: Iterable[Memory],
        *,
        editable: frozenset[str] = EDITABLE,
        dated: bool = False,
    ) -> None:
        """Import memories without stamps, oldest first.

        A difference in an `editable` field counts as an edit; if `dated`, at the time when the
        memory itself was changed.
        """
        memories = sorted(offered, key=lambda memory: memory.created_at)
        ids = {memory.id for memory in memories}
        for some in batches(memories, _AT_ONCE):
            self._apply([self._memory(memory, ids, editable, dated=dated) for memory in some])

    def entries(self, memories: Sequence[Memory]) -> None:
        """Import the entries of another system, but none that are known here or have expired."""
        now = self.tx.now
        valid = [each for each in memories if each.expires_at is None or each.expires_at > now]
        new = [memory for memory in valid if not self._has_equal(memory)]
        self.skip(EXPIRED, len(memories) - len(valid))
        self.skip(THERE, len(valid) - len(new))
        self.memories(new, dated=True)

    def experiences(self, imported: Iterable[Experience]) -> None:
        """Import experiences of another system."""
        offered = []
        for experience in imported:
            data = {
                name: v for name, v in msgspec.structs.asdict(experience).items() if v is not None
            }
            key, data["tags"] = data.pop("id"), sorted(experience.tags)
            at = stamp_at(min(experience.created_at, self.tx.now)), apply.IMPORT
            edits = frozenset({"intent", "solution", "tags"})
            kind, now = experiences.EXPERIENCES.kind, self._now()
            offered.append(self._offer(kind, key, data, edits, unedited=at, at=now))
        self._apply(offered)

    def _has_equal(self, memory: Memory) -> bool:
        """Whether another memory has the same words; see `same_words`."""
        if memory_rows.KIND.load(self.tx.db, memory.id) is not None:
            return False
        return next(same_words(self.tx.db, memory, self.tx.now), None) is not None

    def hot(self, state: hot.HotState) -> None:
        offered = [
            self._offer(
                hot_rows.KIND,
                "/".join(key),
                {"value": entry.value, "position": entry.position},
                frozenset({"value"}),
            )
            for key, entry in hot.entries(state).items()
        ]
        self._apply(offered)

    def categories(self, tree: Mapping[str, Node]) -> None:
        """Import the categories of a tree."""
        offered = []
        known = tree_rows.load(self.tx.db)
        for path, node in tree.items():
            at = None
            if path in known and known[path].desc == title(path) != node.desc:
                # It has no description yet.
                at = self.tx.stamp()
            data = {"desc": node.desc}
            offered.append(self._offer(tree_rows.KIND, path, data, frozenset(data), at=at))
        self._apply(offered)
        for path in tree.keys() - known.keys():
            last = tree[path].last_access
            self.tx.db.execute("UPDATE tree SET last_access = ? WHERE path = ?", (last, path))

    def counters(self, values: Mapping[str, float]) -> None:
        """Import counters that have no value here."""
        counters = {name: value for name, value in values.items() if not name.endswith("_today")}
        if meta.counter_totals(self.tx.db, self.tx.now):
            self.skip(THERE, len(counters))
        elif counters:
            meta.import_counters(self.tx, counters)
            _count(self.report.stored, meta.COUNTERS.name, len(counters))

    def _memory(
        self, memory: Memory, ids: set[str], editable: frozenset[str], *, dated: bool
    ) -> Row | None:
        writer = self._writer or memory.writer or apply.IMPORT
        memory = msgspec.structs.replace(
            memory,
            writer=writer,
            merged_into=self._link(memory.merged_into, ids),
            superseded_by=self._link(memory.superseded_by, ids),
        )
        data = to_row(memory)
        known = memory_rows.fetch(self.tx.db, memory.id)
        # Those that it has, or will have with the uses that are counted already.
        uses_here = uses.counted(self.tx.db, memory.id) if known is None else known.access_count
        missing = memory.access_count - uses_here
        before = rows.load(self.tx.db, memory_rows.KIND, memory.id)
        brought = before.data.get("access_count", 0) if before is not None else 0
        at = stamp_at(min(memory.updated_at, self.tx.now)), apply.IMPORT
        if missing > 0:
            counted: Fields = {"access_count": brought + missing}
            if memory.last_accessed_at is not None:
                counted["last_accessed_at"] = memory.last_accessed_at
            if before is not None:
                sets = memory_rows.KIND.sets
                used = changed(before, before.key, before.data | counted, self._now(), sets)
                self._apply([used])
            else:
                data |= counted
        edited = at if dated else None
        if dated and known is not None and known.updated_at == memory.updated_at:
            # The source does not say when it changed: since it was imported.
            edited = self._now()
        if "merged_into" in data:
            editable |= {"merged_into"}
        return self._offer(memory_rows.KIND, memory.id, data, editable, unedited=at, at=edited)

    def _now(self) -> Stamp:
        return self.tx.stamp()[0], apply.IMPORT

    def _link(self, target: str | None, ids: set[str]) -> str | None:
        """A link to another memory, if that exists: a dangling link would hide this one."""
        if target is None or target in ids or memory_rows.fetch(self.tx.db, target):
            return target
        return None

    def _offer(
        self,
        kind: Kind,
        key: str,
        data: Fields,
        editable: frozenset[str],
        *,
        unedited: Stamp = (0, apply.IMPORT),
        at: Stamp | None = None,
    ) -> Row | None:
        """The version of a row to apply; None: the memory has it already.

        The given content has the stamp `unedited`. A difference in one of the fields `editable`
        counts as an edit, with the stamp `at`.
        """
        ours = kind.load(self.tx.db, key)
        if ours is not None and not kind.lives(ours):
            self.skip(REMOVED if kind in (hot_rows.KIND, tree_rows.KIND) else FORGOTTEN)
            return None
        if at is None and self._edited_at is not None:
            at = stamp_at(min(self._edited_at, self.tx.now)), apply.IMPORT
        if self._clears:
            data = _cleared(kind, key, data, {} if ours is None else ours.data)
        row = Row(kind=kind.name, id=key, data=data, clocks=Clocks(at=unedited))
        if ours is None:
            return row
        differing = {name for name in editable if ours.data.get(name) != data.get(name)}
        if ours.data.get("original_category") == data.get("category"):
            # The tree has merged its category since.
            differing.discard("category")
        if not differing:
            self.skip(THERE)
            return None
        if at is None:
            return row
        before = [version.row.data for version in history.versions(self.tx.db, kind, key)]
        edits = {name for name in differing if data.get(name) not in [v.get(name) for v in before]}
        if not edits:
            self.skip(STALE)
            return None
        target = {name: value for name, value in ours.data.items() if name not in edits}
        target |= {name: data[name] for name in edits if name in data}
        if "updated_at" in ours.data:
            edited_at = data["updated_at"] if self._edited_at is None else self._edited_at
            target["updated_at"] = max(ours.data["updated_at"], min(edited_at, self.tx.now))
        return changed(ours, ours.key, target, at, kind.sets)

    def _apply(self, some: Sequence[Row | None]) -> None:
        rows = [row for row in some if row is not None]
        deletions = [row for row in rows if not row.data]
        for offered in ([row for row in rows if row.data], deletions):
            if not offered:
                continue
            kind = offered[0].kind
            there = sum(map(self._is_there, offered))
            self._note_author(offered)
            done = apply.apply(self.tx, offered, why="import")
            if offered is deletions:
                self.skip(DELETED, done.changed)
            else:
                _count(self.report.stored, kind, done.changed)
            unchanged = len(offered) - done.changed - done.refused
            there = min(there, unchanged)
            self.skip(THERE, there)
            self.skip(LATER, unchanged - there)
            if done.refused:
                self.report.note(kind, f"{done.refused} invalid rows")

    def _note_author(self, offered: Sequence[Row]) -> None:
        """Record who makes rows that are new here, for undoing; a memory says so itself."""
        kind = kind_of(offered[0].kind)
        if kind.history and kind is not memory_rows.KIND:
            for row in offered:
                if rows.load(self.tx.db, kind, row.id) is None:
                    rows.note_mark(self.tx, *row.key, rows.CREATED)

    def _is_there(self, row: Row) -> bool:
        ours = kind_of(row.kind).load(self.tx.db, row.id)
        return ours is not None and ours.data == row.data

    def skip(self, reason: str, number: int = 1) -> None:
        """Count rows that are not new."""
        _count(self.report.skipped, reason, number)


def _cleared(kind: Kind, key: str, data: Fields, known: Fields) -> Fields:
    """The fields of a row with marks in place of secrets, but for values that are `known`."""
    fields = dict(data)
    for field, value in data.items():
        if field not in known or known[field] != value:
            # The name of an entry of the hot state may say that it is a secret.
            name = key.rpartition("/")[2] if kind is hot_rows.KIND else field
            [fields[field]] = cleared({name: value}).values()
    return fields | {name: sorted({*fields[name]}) for name in kind.sets & fields.keys()}


def _count(counts: dict[str, int], name: str, number: int) -> None:
    if number:
        counts[name] = counts.get(name, 0) + number
