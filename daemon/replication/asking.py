"""Asking an agent's replica for what is nowhere else, while somebody waits for the answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from thermocline.sync import Replica, Row, State, SyncError, TooLarge

from ..errors import ThermoclineError
from .replicas import Replicas

# Each further word costs the replica a look through all of the archive.
_MOST_WORDS: Final = 12
# So many ids are told, most of which are of memories that this device has itself.
_MATCHES: Final = 2000
# What is left of a word is looked for as a part of the text, so that other forms are found too.
_ENDINGS: Final = ("ings", "ing", "ies", "ed", "es", "s", "ly", "y", "e")
_LEAST_STEM: Final = 4


class Asked(msgspec.Struct, frozen=True):
    """What came of asking.

    Attributes:
        rows: the answer; where it is none, there are none.
        asked: whether the question was sent; it is not while the replica is known to be away.
        why: why there is no answer, as the end of a sentence.
    """

    rows: tuple[Row, ...] = ()
    asked: bool = False
    answered: bool = False
    took_ms: float = 0.0
    why: str = ""


class Asking:
    """Questions about one agent, none of which takes longer than it may; none raises an error.

    Args:
        replicas: the replicas of all agents.
        agent: whose is asked.
        seconds: how long each question may take.
    """

    def __init__(self, replicas: Replicas, agent: str, seconds: float) -> None:
        self._replicas = replicas
        self._agent = agent
        self._seconds = seconds

    async def fetch(self, ids: Sequence[str]) -> Asked:
        """The statements with these ids, as far as they are there."""
        return await self._ask(lambda replica: fetched(replica, ids))

    async def search(
        self,
        words: Sequence[str],
        until: float,
        choose: Callable[[Sequence[str]], Awaitable[Sequence[str]]],
    ) -> Asked:
        """The statements that hold some of `words`.

        Args:
            words: in lower case; the first twelve are looked for.
            until: nothing was created later, in seconds since the epoch.
            choose: takes the ids of all that match, the best first, and leaves those to fetch.
        """
        patterns = list(dict.fromkeys(p for word in words[:_MOST_WORDS] for p in _patterns(word)))

        async def found(replica: Replica) -> list[Row]:
            ids = await replica.matching(patterns, int(until), _MATCHES)
            return await fetched(replica, await choose(ids))

        return await self._ask(found)

    async def _ask(self, question: Callable[[Replica], Awaitable[list[Row]]]) -> Asked:
        started = time.perf_counter()
        asked = False
        try:
            async with asyncio.timeout(self._seconds):
                following = await self._replicas.following(self._agent)
                if why := _away(following.replicator.state):
                    return Asked(why=why)
                asked = True
                rows = tuple(await question(following.replica))
        except TimeoutError:
            why = f"it did not answer within {self._seconds * 1000:.0f} ms"
        except (SyncError, ThermoclineError) as error:
            why = error.message
        else:
            return Asked(rows, asked=True, answered=True, took_ms=_since(started))
        return Asked(asked=asked, took_ms=_since(started), why=why)


async def fetched(replica: Replica, ids: Sequence[str]) -> list[Row]:
    """The statements with these ids; in several answers, if one cannot carry them.

    Raises:
        SyncError: the replica cannot be reached, or refuses.
    """
    if not ids:
        return []
    try:
        return await replica.fetch(ids)
    except TooLarge:
        if len(ids) == 1:
            raise
    middle = len(ids) // 2
    return await fetched(replica, ids[:middle]) + await fetched(replica, ids[middle:])


def _away(state: State) -> str:
    """Why there is no use in asking; "": there may be."""
    return "" if state.error is None else state.error[1]


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _patterns(word: str) -> Iterable[str]:
    """What to look for in a text whose ASCII letters alone are in lower case."""
    stem = word
    if word.isascii():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
                stem = word.removesuffix(ending)
                break
        return (stem,)
    large = "".join(char if char.isascii() else char.upper() for char in word)
    return word, large[:1] + word[1:], large
