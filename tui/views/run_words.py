"""What a run of the upkeep did, and what the model may still cost, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.status import ModelStatus
from thermocline.daemon.shapes.upkeep import Consolidated

from ..text import plain, span

# What is worth saying of a run, in this order: a number's field and words for one and several.
_DONE: Final = (
    ("ingested_facts", "fact read", "facts read"),
    ("evicted_warm", "archived", "archived"),
    ("merged", "merged", "merged"),
    ("superseded", "contradicted", "contradicted"),
    ("expired", "expired", "expired"),
    ("forgotten", "forgotten", "forgotten"),
    ("pruned_nodes", "category removed", "categories removed"),
)


def told(done: Consolidated) -> str:
    """What a run did, in words."""
    found = []
    for name, one, several in _DONE:
        number = getattr(done, name)
        if number is not UNSET and number:
            found.append(number_of(number, one, several))
    if done.tree_rebuilt not in (UNSET, "", "counts-only"):
        found.append(f"tree rebuilt by {plain(str(done.tree_rebuilt))}")
    return ", ".join(found) or "nothing to do"


def facts_of(done: Consolidated) -> Iterator[tuple[str, str]]:
    """All facts of a run, as names and values."""
    yield ("would do" if done.dry_run else "did"), told(done)
    if done.scores is not UNSET:
        scores = done.scores
        yield (
            "scores",
            f"{scores.hot} hot, {scores.warm} warm, {scores.cold} cold, {scores.frozen} frozen",
        )
    if done.hot_size_bytes is not UNSET:
        promoted = f", {done.promoted} promoted" if done.promoted is not UNSET else ""
        yield "hot state", f"{done.hot_size_bytes:,} B{promoted}"
    if done.notes_read:
        skipped = f", {done.ingest_skipped} known facts" if done.ingest_skipped else ""
        yield "notes", f"{done.notes_read} read{skipped}"
    if done.ingest_error:
        yield "unread", plain(str(done.ingest_error))
    if done.model_error:
        yield "model", plain(str(done.model_error))
    yield "took", seconds_of(done.took_ms / 1000)


def budget_of(model: ModelStatus) -> tuple[float | None, str]:
    """The share of today's budget that is spent (None: there is no limit), and in words."""
    spent, limits = model.today, model.limits
    if limits.cost:
        return spent.cost / limits.cost, f"${spent.cost:.2f} of ${limits.cost:.2f} today"
    if limits.tokens:
        return spent.tokens / limits.tokens, f"{spent.tokens:,} of {limits.tokens:,} tokens today"
    return None, f"${spent.cost:.2f} today, no limit"


def seconds_of(seconds: float | None) -> str:
    """A length of time, however short; `-` for none."""
    if not seconds:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else span(seconds)
