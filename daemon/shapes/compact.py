"""Shortening a conversation to a model's window."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .common import Endpoint, Json, Way
from .recall import Expense

Part = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class CompactBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The messages, oldest first, each with a `role`, a text as `content`, and any other fields.

    `window` is the model's window in tokens; default: that of `model` by litellm's table, or
    128,000 if unknown. A token is four characters, or one and a half of a script without blanks.
    Beyond `threshold` of the window the messages are reduced to `target`, which is not higher;
    fewer than `min_messages` are never reduced, the last `preserve_recent` always stay, and results
    of tools are cut to `max_tool_result_tokens`. `check` only reports whether a reduction is due.

    The removed messages are summarized by a model if one is configured, else by rules; `llm` false
    uses only the rules, true reports why a model did not answer, and `llm_endpoint`, which needs
    the role `write`, asks another server.
    """

    messages: Annotated[tuple[dict[str, Json], ...], Meta(min_length=1, max_length=10_000)]
    window: Annotated[int, Meta(ge=100, le=100_000_000)] | None = None
    model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    threshold: Part = 0.7
    target: Part = 0.5
    preserve_recent: Count = 6
    min_messages: Count = 10
    max_tool_result_tokens: Annotated[int, Meta(ge=50, le=1_000_000)] = 2000
    check: bool = False
    llm: bool | None = None
    llm_endpoint: Endpoint | None = None


class CompactedMessages(Struct, kw_only=True, rename="camel"):
    """The resulting messages, under profClaw's names.

    `needs_compaction` (spelt so) is the state before; `tokens` and `share` are their size before,
    in tokens and as a fraction of the window; `summary` is that of the removed messages, and `mode`
    how it was made.
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
    share: float
    mode: Way | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: Expense | UnsetType = UNSET
