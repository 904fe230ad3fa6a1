"""Shortening a conversation to a model's window."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .common import Json

Part = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class CompactBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The messages, the oldest first, each with a `role`, a text as `content`, and whatever else.

    `window` is what the model can read, in tokens (four characters each, or two thirds of one of
    a script without blanks). Beyond `threshold` of it the messages are brought down to `target`,
    which is no more than that;
    fewer than `min_messages` never are, the last `preserve_recent` always stay, and results of
    tools are cut to `max_tool_result_tokens`. `check` only tells whether it is time.
    """

    messages: Annotated[tuple[dict[str, Json], ...], Meta(min_length=1, max_length=10_000)]
    window: Annotated[int, Meta(ge=100, le=100_000_000)] = 128_000
    threshold: Part = 0.7
    target: Part = 0.5
    preserve_recent: Count = 6
    min_messages: Count = 10
    max_tool_result_tokens: Annotated[int, Meta(ge=50, le=1_000_000)] = 2000
    check: bool = False


class CompactedMessages(Struct, kw_only=True, rename="camel"):
    """The messages as they should go on, under profClaw's names.

    `needs_compaction`, which is spelt so, tells how it was before; `tokens` is how many there
    were, `summary` what is said of the messages that are gone.
    """

    messages: list[dict[str, Json]] | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    original_count: int
    compacted_count: int
    tokens_reduced: int
    was_compacted: bool
    tool_results_truncated: int | UnsetType = UNSET
    needs_compaction: bool = field(name="needs_compaction")
    tokens: int
    window: int
