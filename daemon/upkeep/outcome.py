"""What a run of upkeep tells: EvoClaw's fields, and what else was done."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from .steps import Step

Count: TypeAlias = int | UnsetType


class Scores(msgspec.Struct, frozen=True):
    """How many of the warm memories stand where, by their scores."""

    hot: int
    warm: int
    cold: int
    frozen: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did, or would do; a field is there if its step was a part of the run.

    Attributes:
        mode, agent_id, timestamp, evicted_warm, archived_cold, hot_size_bytes, ingested_facts,
            ingest_skipped, ingest_error, pruned_nodes, tree_rebuilt: EvoClaw's. The tree was
            rebuilt by "llm" or by "rule"; "counts-only" says that nothing had to be changed.
        dry_run: nothing was changed.
        resumed: the steps that a run which was broken off had done before.
        took_ms: of this run alone.
        expired: forgotten, since their time had passed.
        scores: of the warm memories.
        promoted: how many of them the hot state shows.
        merged, superseded, faded: duplicates, contradictions, and what was archived unused.
        forgotten: frozen longer than the archive keeps it.
        tombstones: of memories that were forgotten long ago, dropped.
        tree_changes: the operations in words.
        model_error: why a model had no part in it, where one was meant to.
        report: the file that tells it all to a person.
    """

    mode: str
    agent_id: str
    timestamp: str
    dry_run: bool = False
    steps: tuple[Step, ...] = ()
    resumed: tuple[Step, ...] | UnsetType = UNSET
    took_ms: float = 0.0
    evicted_warm: Count = UNSET
    archived_cold: Count = UNSET
    hot_size_bytes: Count = UNSET
    ingested_facts: Count = UNSET
    ingest_skipped: Count = UNSET
    ingest_error: str | UnsetType = UNSET
    notes_read: Count = UNSET
    pruned_nodes: Count = UNSET
    tree_rebuilt: str | UnsetType = UNSET
    tree_changes: tuple[str, ...] | UnsetType = UNSET
    expired: Count = UNSET
    scores: Scores | UnsetType = UNSET
    promoted: Count = UNSET
    merged: Count = UNSET
    superseded: Count = UNSET
    faded: Count = UNSET
    forgotten: Count = UNSET
    tombstones: Count = UNSET
    model_error: str | UnsetType = UNSET
    report: str | UnsetType = UNSET


def outcome_of(facts: dict[str, Any], **fixed: Any) -> Outcome:
    """The outcome that some facts make, and what is fixed."""
    return msgspec.convert(facts | fixed, Outcome)
