"""Summaries by a model or by rules: of finished conversations, and of messages that are removed.

A finished conversation becomes a line of the agent's episodes, exactly once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, get_args

import msgspec
from msgspec.structs import replace

from ..language.extraction.distilling import MAX_TAGS, Episode, summarise_episode
from ..language.secrets import clear
from ..llm.model import Part
from ..llm.replies import ends, one_line, one_of, short_list
from ..memory.agent_files import EPISODES, EpisodeLine, EpisodeOutcome, stamp
from ..memory.messages import Message, estimated_tokens
from ..runtime import line_file
from ..store.agent_store import AgentStore
from ..store.database.transaction import Transaction
from ..store.records import conversations
from ..store.records.conversations import BufferedTurn, Conversation
from .compaction import TIERS, Compacted, CompactionLimits, compact
from .model_or_rules import AskOptions, Derived, ModelOrRules
from .observation import is_worth_reading, line_of, own_turn

_LONGEST_SUMMARY: Final = 600
_TAG_CHARS: Final = 40
_TRANSCRIPT_CHARS: Final = 24_000


class EpisodeReply(msgspec.Struct, frozen=True):
    """A model's reply about a conversation."""

    summary: str
    tags: tuple[str, ...] = ()
    outcome: str = "informational"


async def sum_up(
    store: AgentStore,
    conversation: Conversation,
    model: ModelOrRules,
    options: AskOptions,
    *,
    patient: bool,
) -> None:
    """Store the summary of a conversation, unless it continues, as a line still to be written.

    All its turns must have been read. They are removed from the buffer in the same commit. If the
    model fails, `patient` raises; otherwise the rules do it.

    Raises:
        ModelUnavailable: the model failed, and may succeed later.
        ThermoclineError: the buffer cannot be read or written; it is unchanged.
    """
    while not await _sum_up_turns(store, conversation, model, options, patient=patient):
        pass  # A part of them was forgotten meanwhile, and must not be in the summary.


async def _sum_up_turns(
    store: AgentStore,
    conversation: Conversation,
    model: ModelOrRules,
    options: AskOptions,
    *,
    patient: bool,
) -> bool:
    """False: the buffered turns have changed while they were summed up."""
    read_turns = partial(conversations.buffered, key=conversation.id)
    turns = await store.read(read_turns)
    if not any(map(is_worth_reading, turns)):
        await store.write(partial(conversations.forget, key=conversation.id))
        return True
    derived = await _episode(turns, model, options, patient=patient)
    tags = tuple(clear(tag).text for tag in derived.value.tags)
    episode = replace(derived.value, summary=clear(derived.value.summary).text, tags=tags)
    if not episode.summary:
        await store.write(partial(conversations.forget, key=conversation.id))
        return True
    line = msgspec.json.encode(_entry(episode, turns, store.place.agent)).decode()

    def store_entry(tx: Transaction) -> bool:
        if read_turns(tx.db)[: len(turns)] != turns:
            return False
        key, seen_to = conversation.id, conversation.next_position
        if conversations.keep_entry(tx, key, line, seen_to=seen_to):
            outcome, method = episode.outcome, derived.method
            tx.emit("conversation.summed_up", conversation=key, outcome=outcome, method=method)
        return True

    return await store.write(store_entry)


async def write_entry(store: AgentStore, conversation: Conversation) -> None:
    """Append the line of a conversation to the agent's `memory/episodes.jsonl`, once.

    If the disk refuses, the line stays in the buffer.
    """
    assert conversation.entry is not None
    folder = store.place.workspace or store.place.folder
    await asyncio.to_thread(line_file.append, folder / EPISODES, conversation.entry)
    await store.write(partial(conversations.entry_written, key=conversation.id))


async def _episode(
    turns: Sequence[BufferedTurn], model: ModelOrRules, options: AskOptions, *, patient: bool
) -> Derived[Episode]:
    plain = [own for turn in turns if (own := own_turn(turn)).text.strip()]
    chars = sum(len(turn.text) for turn in plain)
    text = ends("\n".join(map(line_of, plain)), _TRANSCRIPT_CHARS)
    return await model.think(
        model.for_text(options, chars),
        model.question("episode", Part("conversation", text)),
        EpisodeReply,
        _fit,
        lambda: model.rules.run(chars, summarise_episode, plain),
        patient=patient,
    )


def _fit(reply: EpisodeReply) -> Episode | None:
    summary = one_line(reply.summary, _LONGEST_SUMMARY)
    if not summary:
        return None
    tags = short_list((tag.lower().lstrip("#") for tag in reply.tags), MAX_TAGS, _TAG_CHARS)
    return Episode(summary, tags, one_of(reply.outcome, get_args(EpisodeOutcome), "informational"))


def _entry(episode: Episode, turns: Sequence[BufferedTurn], agent: str) -> EpisodeLine:
    users = (turn.actor for turn in turns if turn.role == "user" and turn.actor)
    return EpisodeLine(
        ts=stamp(turns[-1].at),
        user=next(users, "user"),
        agent=agent,
        summary=episode.summary,
        tags=episode.tags,
        outcome=episode.outcome,
    )


_MESSAGE_CHARS: Final = 4_000


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
    # Only beginning and end of long messages, and of long conversations.
    texts = (f"{message.role}: {ends(message.content, _MESSAGE_CHARS)}" for message in gone)
    part = Part("messages", ends("\n\n".join(texts), _TRANSCRIPT_CHARS))
    question = model.question("compact", part, max_tokens=room)

    async def by_rules() -> Compacted:
        return made

    return await model.think(
        options,
        question,
        SummaryReply,
        lambda reply: _summed_up(made, reply.summary, room),
        by_rules,
    )


def _summed_up(made: Compacted, text: str, room: int) -> Compacted | None:
    assert made.summary is not None
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    summary = "\n".join((made.summary.partition("\n")[0], *lines))
    if not lines or estimated_tokens(summary) > room:
        return None
    messages = tuple(
        Message("system", summary) if origin is None else message
        for message, origin in zip(made.messages, made.origins, strict=True)
    )
    reduced = made.tokens_reduced + estimated_tokens(made.summary) - estimated_tokens(summary)
    return replace(made, messages=messages, summary=summary, tokens_reduced=reduced)
