"""Compaction with a summary by a model; rules choose the messages to remove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..llm.model import Part
from ..llm.replies import ends
from ..memory.messages import Message, estimated_tokens
from .compaction import Compacted, CompactionLimits, compact
from .model_or_rules import AskOptions, Derived, ModelOrRules
from .summing import TIERS

_MESSAGE_CHARS: Final = 4_000
_GIVEN_CHARS: Final = 24_000


class SummaryReply(msgspec.Struct, frozen=True):
    """A model's summary of the removed messages."""

    summary: str


async def shorten(
    messages: Sequence[Message],
    window: int,
    limits: CompactionLimits,
    model: ModelOrRules,
    options: AskOptions,
) -> Derived[Compacted]:
    """`compact`, with a summary by a model if one answers; the removed messages are the same."""
    chars = sum(len(message.content) for message in messages)
    made = await model.rules.run(chars, compact, messages, window, limits)
    if made.summary is None:
        return Derived(made, "rule")
    stays = {*made.origins}
    gone = [message for place, message in enumerate(messages) if place not in stays]
    room = min(made.room, TIERS[-1])
    question = model.question("compact", Part("messages", _given(gone)), max_tokens=room)

    async def by_rules() -> Compacted:
        return made

    return await model.think(
        options, question, SummaryReply, lambda told: _summed_up(made, told.summary, room), by_rules
    )


def _given(messages: Sequence[Message]) -> str:
    """The messages for a model; only beginning and end of long ones, and of long conversations."""
    said = (f"{one.role}: {ends(one.content, _MESSAGE_CHARS)}" for one in messages)
    return ends("\n\n".join(said), _GIVEN_CHARS)


def _summed_up(made: Compacted, told: str, room: int) -> Compacted | None:
    """The result with a model's summary; None if that is blank or too long."""
    assert made.summary is not None
    lines = [line for line in map(str.strip, told.splitlines()) if line]
    summary = "\n".join((made.summary.partition("\n")[0], *lines))
    if not lines or estimated_tokens(summary) > room:
        return None
    messages = tuple(
        Message("system", summary) if origin is None else message
        for message, origin in zip(made.messages, made.origins, strict=True)
    )
    reduced = made.tokens_reduced + estimated_tokens(made.summary) - estimated_tokens(summary)
    return replace(made, messages=messages, summary=summary, tokens_reduced=reduced)
