"""Two memories made one, one memory superseded by another, and the way back from either.

Nothing is lost: the older memory stays as it was, out of the search, and the record of the merge
holds what the newer one was before. The store keeps the record beside the retired memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from ..errors import Conflict
from .checks import REFERENCES, TAGS
from .records import Json, Memory, Metadata

# Tiny Claw's: what is told twice matters more.
SHARE_OF_OLDER: Final = 0.2

Value = TypeVar("Value")


class State(msgspec.Struct, frozen=True):
    """The fields of a kept memory that a merge may change, at one moment."""

    subject: str
    outcome: str
    tags: tuple[str, ...]
    importance: float
    metadata: Metadata
    data: Json
    last_accessed_at: float | None
    access_count: int
    expires_at: float | None


class MergeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What undoing a merge needs; JSON as it stands.

    Attributes:
        kept, retired: the ids of the two.
        merged_at: seconds since the epoch.
        before, after: the kept memory at the merge.
        archived_at: that of the retired memory before.
        share: how much of the retired memory's importance the kept one gained.
    """

    kept: str
    retired: str
    merged_at: float
    before: State
    after: State
    archived_at: float | None
    share: float = SHARE_OF_OLDER


class Retirement(msgspec.Struct, frozen=True):
    """A memory that was merged into another, and the record of it."""

    retired: Memory
    record: MergeRecord


class Merged(msgspec.Struct, frozen=True):
    """Both memories after a merge, and the record of it."""

    kept: Memory
    retired: Memory
    record: MergeRecord


class Unmerged(msgspec.Struct, frozen=True):
    """Both memories after a merge was undone, and the records of the later merges, brought in line.

    `later` is in the order in which the later merges were given.
    """

    kept: Memory
    retired: Memory
    later: tuple[MergeRecord, ...] = ()


class Followed(msgspec.Struct, frozen=True):
    """A kept memory after one that is merged into it has changed, and the records in line."""

    kept: Memory
    record: MergeRecord
    later: tuple[MergeRecord, ...] = ()


class Supersession(msgspec.Struct, frozen=True):
    """That the memory `older` holds no longer, since `newer` says otherwise; both stay."""

    older: str
    newer: str


def merge(older: Memory, newer: Memory, now: float, share: float = SHARE_OF_OLDER) -> Merged:
    """Keep `newer`, enriched by what `older` had, and retire `older` into it.

    The kept memory has the text and the times of the newer one, both access counts, the newer
    importance and a `share` of the older's (1 at most), the tags and references of both up to
    their limits, the later expiry (never, where one never expires), and the older's subject,
    outcome and data where its own are empty.

    Raises:
        Conflict: they are the same memory, or one of them is already retired.
    """
    _check_apart(older, newer, "merge")
    before = state_of(newer)
    after = _combined(before, state_of(older), share)
    return Merged(
        kept=_with_state(newer, after),
        retired=msgspec.structs.replace(
            older, merged_into=newer.id, archived_at=_first(older.archived_at, now)
        ),
        record=MergeRecord(newer.id, older.id, now, before, after, older.archived_at, share),
    )


def unmerge(
    kept: Memory, retired: Memory, record: MergeRecord, later: Sequence[Retirement] = ()
) -> Unmerged:
    """Undo a merge: exactly, but for what has happened to `kept` since then, which stays.

    A field that was edited since keeps its edit. Uses since then stay counted, and of tags,
    references, importance and access count only what the merge added is taken off again: so
    that of several memories merged into one, any can be taken out first. The merges into the
    same memory since are given as `later`, in their order; they are as if this one had never
    been, and nothing of `retired` is left in their records.

    Raises:
        Conflict: the record is not of these two, or `retired` is not merged into `kept`.
    """
    if (record.kept, record.retired, retired.merged_into) != (kept.id, retired.id, kept.id):
        raise Conflict(
            f"cannot undo the merge of '{retired.id}' into '{kept.id}': it is not the one recorded"
        )
    state, records = _replayed(state_of(kept), record.before, record.after, later)
    return Unmerged(
        kept=_with_state(kept, state),
        retired=msgspec.structs.replace(retired, merged_into=None, archived_at=record.archived_at),
        later=records,
    )


def follow(
    kept: Memory, retired: Memory, record: MergeRecord, later: Sequence[Retirement] = ()
) -> Followed:
    """Let `kept` be as if `retired` had been as it is now when it was merged.

    So a merge into a memory that was itself retired since can be undone: what that one loses,
    the memory that took it up loses as well. `later` is as for `unmerge`.
    """
    after = _combined(record.before, state_of(retired), record.share)
    state, records = _replayed(state_of(kept), after, record.after, later)
    revised = msgspec.structs.replace(record, after=after)
    return Followed(_with_state(kept, state), revised, records)


def supersede(older: Memory, newer: Memory) -> Supersession:
    """Say that `newer` holds instead of `older`.

    Raises:
        Conflict: they are the same memory, or one of them is retired by a merge.
    """
    _check_apart(older, newer, "supersede")
    return Supersession(older.id, newer.id)


def stranded(merged: Mapping[str, str], living: Container[str]) -> list[str]:
    """Which memories to free so that every merge ends at a memory that stays.

    Args:
        merged: what each memory that is merged into another points to.
        living: the ids of those that are merged into none.
    """
    free: list[str] = []
    sound: set[str] = set()
    for start in sorted(merged):
        path: dict[str, None] = {}
        key = start
        while key in merged and key not in sound and key not in path:
            path[key] = None
            key = merged[key]
        if key in path:
            free.append(key)
        elif path and key not in sound and key not in living:
            free.append(next(reversed(path)))
        sound.update(path)
    return free


def state_of(memory: Memory) -> State:
    """The fields of `memory` that a merge may change."""
    return State(*(getattr(memory, name) for name in State.__struct_fields__))


def _combined(newer: State, older: State, share: float) -> State:
    return State(
        subject=newer.subject or older.subject,
        outcome=newer.outcome or older.outcome,
        tags=_union(newer.tags, older.tags, TAGS),
        importance=min(1.0, newer.importance + share * older.importance),
        metadata=Metadata(
            urls=_union(newer.metadata.urls, older.metadata.urls, REFERENCES),
            commands=_union(newer.metadata.commands, older.metadata.commands, REFERENCES),
            paths=_union(newer.metadata.paths, older.metadata.paths, REFERENCES),
        ),
        data=_first(newer.data, older.data),
        last_accessed_at=_later(newer.last_accessed_at, older.last_accessed_at),
        access_count=newer.access_count + older.access_count,
        expires_at=_later_expiry(newer.expires_at, older.expires_at),
    )


def _replayed(
    current: State, before: State, after: State, later: Sequence[Retirement]
) -> tuple[State, tuple[MergeRecord, ...]]:
    """`current` as if `before` had stood where `after` stood when the `later` merges came."""
    records: list[MergeRecord] = []
    for retirement in later:
        record = retirement.record
        anew = _parted(record.before, before, after)
        combined = _combined(anew, state_of(retirement.retired), record.share)
        before, after = combined, record.after
        records.append(msgspec.structs.replace(record, before=anew, after=before))
    return _parted(current, before, after), tuple(records)


def _parted(current: State, before: State, after: State) -> State:
    if current == after:
        return before
    metadata = Metadata(
        urls=_without(current.metadata.urls, before.metadata.urls, after.metadata.urls),
        commands=_without(
            current.metadata.commands, before.metadata.commands, after.metadata.commands
        ),
        paths=_without(current.metadata.paths, before.metadata.paths, after.metadata.paths),
    )
    return State(
        subject=_restored(current.subject, before.subject, after.subject),
        outcome=_restored(current.outcome, before.outcome, after.outcome),
        tags=_without(current.tags, before.tags, after.tags),
        importance=_lowered(current.importance, before.importance, after.importance),
        metadata=metadata,
        data=_restored(current.data, before.data, after.data),
        last_accessed_at=_restored(
            current.last_accessed_at, before.last_accessed_at, after.last_accessed_at
        ),
        access_count=max(0, current.access_count - after.access_count + before.access_count),
        expires_at=_restored(current.expires_at, before.expires_at, after.expires_at),
    )


def _with_state(memory: Memory, state: State) -> Memory:
    return msgspec.structs.replace(memory, **msgspec.structs.asdict(state))


def _check_apart(older: Memory, newer: Memory, verb: str) -> None:
    if older.id == newer.id:
        raise Conflict(f"cannot {verb} '{older.id}' by itself: give two memories")
    for memory in (older, newer):
        if memory.merged_into is not None:
            raise Conflict(
                f"cannot {verb} '{memory.id}': it is merged into '{memory.merged_into}'",
                hint="undo that merge first, or use the memory it was merged into",
            )


def _union(first: Iterable[str], second: Iterable[str], limit: int) -> tuple[str, ...]:
    """Both in order, without repeats; beyond `limit` no more of the second is taken."""
    kept = tuple(first)
    return tuple(dict.fromkeys((*kept, *second)))[: max(limit, len(kept))]


def _without(
    current: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[str, ...]:
    added = set(after) - set(before)
    return tuple(item for item in current if item not in added)


def _lowered(current: float, before: float, after: float) -> float:
    if current == after:
        return before
    return max(0.0, current - (after - before))


def _restored(current: Value, before: Value, after: Value) -> Value:
    return before if current == after else current


def _first(value: Value | None, otherwise: Value | None) -> Value | None:
    return otherwise if value is None else value


def _later(one: float | None, other: float | None) -> float | None:
    return max((time for time in (one, other) if time is not None), default=None)


def _later_expiry(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)
