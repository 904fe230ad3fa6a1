"""Summarises a finished conversation as a line of the agent's episodes, exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, get_args

import msgspec
from msgspec.structs import replace

from ..errors import ModelUnavailable
from ..language.episodes import MAX_TAGS, Episode, summarise_episode
from ..language.secrets import clear
from ..llm.model import Part
from ..llm.replies import ends, one_line, one_of, short_list
from ..memory.own_files import EPISODES, EpisodeLine, EpisodeOutcome, stamp
from ..shapes.common import Way
from ..store import conversations, line_file
from ..store.agent_store import AgentStore
from ..store.conversations import Conversation, Heard
from ..store.transaction import Transaction
from .model_or_rules import AskOptions, ModelOrRules
from .observation import is_worth_reading, line_of, turn_of

_LONGEST_SUMMARY: Final = 600
_TAG_CHARS: Final = 40
_GIVEN_CHARS: Final = 24_000


class EpisodeReply(msgspec.Struct, frozen=True):
    """A model's reply about a conversation."""

    summary: str
    tags: tuple[str, ...] = ()
    outcome: str = "informational"


async def sum_up(
    store: AgentStore, conversation: Conversation, model: ModelOrRules, *, patient: bool
) -> bool:
    """Store the summary of a conversation as a line that is still to be written.

    All its turns must have been read. They are removed from the buffer in the same commit.

    Args:
        store: the agent's memory.
        conversation: the conversation in the buffer.
        model: the model.
        patient: raise if the model fails; otherwise use the rules.

    Returns:
        Whether it is done; False if the conversation continues.

    Raises:
        ModelUnavailable: the model failed, and may succeed later.
        ThermoclineError: the buffer cannot be read or written; it is unchanged.
    """
    turns = await store.read(partial(conversations.kept, key=conversation.id))
    if not any(map(is_worth_reading, turns)):
        await store.write(partial(conversations.forget, key=conversation.id))
        return True
    episode, way = await _episode(turns, model, patient=patient)
    episode = replace(
        episode,
        summary=clear(episode.summary).text,
        tags=tuple(clear(tag).text for tag in episode.tags),
    )
    if not episode.summary:
        await store.write(partial(conversations.forget, key=conversation.id))
        return True
    line = msgspec.json.encode(_entry(episode, turns, store.place.agent)).decode()
    told = partial(_kept, conversation=conversation, line=line, outcome=episode.outcome, way=way)
    return await store.write(told)


async def write_entry(store: AgentStore, conversation: Conversation) -> None:
    """Append the line of a conversation to the agent's `memory/episodes.jsonl`, once.

    Raises:
        ThermoclineError: the disk refuses; the line stays in the buffer.
    """
    assert conversation.entry is not None
    folder = store.place.workspace or store.place.folder
    await asyncio.to_thread(line_file.append, folder / EPISODES, conversation.entry)
    await store.write(partial(conversations.entry_written, key=conversation.id))


async def _episode(
    turns: Sequence[Heard], model: ModelOrRules, *, patient: bool
) -> tuple[Episode, Way]:
    options = AskOptions()
    if model.is_asked("episode", options):
        try:
            said = ends("\n".join(map(line_of, turns)), _GIVEN_CHARS)
            question = model.question("episode", Part("conversation", said))
            episode = _fit((await model.ask(question, EpisodeReply, options)).value)
        except ModelUnavailable:
            if patient:
                raise
        else:
            if episode is not None:
                return episode, "llm"
    plain = [turn_of(turn) for turn in turns]
    chars = sum(len(turn.text) for turn in plain)
    return await model.rules.run(chars, summarise_episode, plain), "rule"


def _fit(told: EpisodeReply) -> Episode | None:
    summary = one_line(told.summary, _LONGEST_SUMMARY)
    if not summary:
        return None
    tags = short_list((tag.lower().lstrip("#") for tag in told.tags), MAX_TAGS, _TAG_CHARS)
    return Episode(summary, tags, one_of(told.outcome, get_args(EpisodeOutcome), "informational"))


def _entry(episode: Episode, turns: Sequence[Heard], agent: str) -> EpisodeLine:
    users = (turn.actor for turn in turns if turn.role == "user" and turn.actor)
    return EpisodeLine(
        ts=stamp(turns[-1].at),
        user=next(users, "user"),
        agent=agent,
        summary=episode.summary,
        tags=episode.tags,
        outcome=episode.outcome,
    )


def _kept(
    tx: Transaction, conversation: Conversation, line: str, outcome: EpisodeOutcome, way: Way
) -> bool:
    key, seen_to = conversation.id, conversation.next_position
    if not conversations.keep_entry(tx, key, line, seen_to=seen_to):
        return False
    tx.tell("conversation.summed_up", conversation=key, outcome=outcome, way=way)
    return True
