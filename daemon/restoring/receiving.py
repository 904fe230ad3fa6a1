"""Filling a database with an agent's rows from a replica: page after page, until it has all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec

from thermocline.sync import Extent, Page, Poll, Source, TooLarge, TryLater

from ..errors import Unavailable
from ..store import received
from .staging import OnThread, Staging, State
from .watching import Patience, Watch

P = TypeVar("P")
_MOST_ROWS: Final = 500
# Others go on writing meanwhile: what they have written is fetched, but not for ever.
_MOST_TURNS: Final = 20
_MOST_BEGINNINGS: Final = 3
# What EvoClaw writes moves no place in the order; it shows in the counts alone.
_MOST_RECOUNTS: Final = 3


class Receiver:
    """Fetches a page while the one before it is written.

    Args:
        source: the rows.
        url: where they come from.
        staging: where they go.
        thread: the thread that writes.
        patience: waits where the replica cannot be reached.
        watch: told of each page.

    Attributes:
        earlier: how many seconds earlier runs took.
        resumed: how many rows they had brought.
    """

    def __init__(
        self,
        source: Source,
        url: str,
        staging: Staging,
        thread: OnThread,
        patience: Patience,
        watch: Watch,
    ) -> None:
        self._source = source
        self._url = url
        self._staging = staging
        self._thread = thread
        self._patience = patience
        self._watch = watch
        self._state = State(url, "", 0)
        self._limit = self._most = _MOST_ROWS
        self._began = time.monotonic()
        self.earlier = 0.0
        self.resumed = 0

    async def run(self, agent: str) -> Extent:
        """Go on with what an earlier run has left, if it is of this replica, and fetch the rest.

        Returns:
            How much the replica says that there is, at the moment when all of it had come.

        Raises:
            SyncError: the replica refuses.
            ThermoclineError: the disk refuses.
        """
        found = await self._thread(self._staging.resume)
        for _ in range(_MOST_BEGINNINGS):
            extent = await self._patience(self._source.extent)
            if found is None or not self._continues(found, extent.poll):
                found = await self._thread(self._staging.begin, self._url, extent.poll)
            self._state, self.earlier = found, found.seconds
            self._watch.stage("begun", agent)
            self.resumed = await self._thread(self._staging.count)
            self._watch.expect(agent, extent.rows, self.resumed)
            if complete := await self._all(extent):
                return complete
            found = None
        raise Unavailable(
            f"cannot restore '{agent}' now: the replica is being replaced or pruned",
            hint="try again when the other devices are quiet",
        )

    def _continues(self, state: State, poll: Poll) -> bool:
        """Whether the replica is the same, and still has the traces of all deletions since."""
        same = (state.url, state.epoch) == (self._url, poll.epoch)
        known = max(state.begun, state.link.seen)
        return same and state.link.seen <= poll.seq and poll.pruned <= known

    async def _all(self, extent: Extent) -> Extent | None:
        """Fetch until nothing is new; None: this has to begin anew."""
        recounts = 0
        after = self._state.foreign
        for _ in range(_MOST_TURNS):
            await self._turn(extent.poll, after)
            # What other tools write may stand anywhere.
            after = ""
            poll = extent.poll
            extent = await self._patience(self._source.extent)
            if not self._continues(self._state, extent.poll):
                return None
            if extent.poll.seq == poll.seq:
                living = await self._thread(self._living)
                if living == extent.counts or recounts == _MOST_RECOUNTS:
                    return extent
                recounts += 1
        return extent

    def _living(self) -> dict[str, int]:
        return received.living(self._staging.db)

    async def _turn(self, poll: Poll, foreign_after: str) -> None:
        """Take over all that there is up to a place in the order."""
        # Categories come before the statements that are filed in them.
        await self._objects()
        # What another tool says of a category goes before what is made of its name alone.
        await self._critical()
        await self._statements()
        await self._foreign(foreign_after)
        await self._displaced()
        await self._again()
        if not self._state.epoch and not self._state.others:
            await self._left_by_others()
        self._move(seen=poll.seq)
        await self._thread(self._staging.complete, self._state)

    async def _objects(self) -> None:
        start = self._state.link.objects
        async with aclosing(self._pages(self._source.objects, start)) as pages:
            async for page, last in pages:
                self._move(objects=last)
                await self._take(page)

    async def _statements(self) -> None:
        start = self._state.link.statements
        async with aclosing(self._pages(self._source.statements, start)) as pages:
            async for page, last in pages:
                self._move(statements=last)
                await self._take(page)

    async def _foreign(self, after: str) -> None:
        async with aclosing(self._pages(self._source.foreign, after)) as pages:
            async for page, last in pages:
                self._state = msgspec.structs.replace(self._state, foreign=last)
                await self._take(page)

    async def _displaced(self) -> None:
        """What came with none of the pages, though it is there."""
        names = await self._patience(self._source.displaced)
        if names:
            await self._take(Page((), len(names), None, full=False, unread=names))

    async def _again(self) -> None:
        """Ask once more for what was damaged: it may have been so on its way alone."""
        names = await self._thread(lambda: received.damaged(self._staging.db, _MOST_ROWS))
        if names:
            rows = await self._patience(lambda: self._source.again(names))
            await self._thread(self._staging.take, rows, (), self._state)

    async def _left_by_others(self) -> None:
        """There is so little of it that it is read at once."""

        async def read() -> list[Any]:
            return [row async for rows in self._source.left_by_others() for row in rows]

        rows = await self._patience(read)
        self._state = msgspec.structs.replace(self._state, others=True)
        await self._thread(self._staging.take_left, rows, self._state)

    async def _critical(self) -> None:
        """Of the critical state only the version counts, unless another tool wrote it."""
        found = await self._patience(self._source.critical)
        if found is None:
            return
        data, version = found
        if version > 0:
            self._move(critical=version)
        elif not self._state.adopted:
            self._state = msgspec.structs.replace(self._state, adopted=True)
            await self._thread(self._staging.adopt, data, self._state)

    def _move(self, **places: Any) -> None:
        link = msgspec.structs.replace(self._state.link, **places)
        seconds = self.earlier + time.monotonic() - self._began
        self._state = msgspec.structs.replace(self._state, link=link, seconds=seconds)

    async def _take(self, page: Page[Any]) -> None:
        await self._thread(self._staging.take, page.rows, page.unread, self._state)
        self._watch.came(len(page.rows) + page.damaged)

    async def _pages(
        self, ask: Callable[[P, int], Awaitable[Page[P]]], after: P
    ) -> AsyncGenerator[tuple[Page[P], P], None]:
        """Page after page; while one is worked on, the next is under way."""
        fetching = asyncio.ensure_future(self._page(ask, after))
        try:
            while True:
                page = await fetching
                if page.last is None:
                    return
                last = page.last
                if page.full:
                    fetching = asyncio.ensure_future(self._page(ask, last))
                yield page, last
                if not page.full:
                    return
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    async def _page(self, ask: Callable[[P, int], Awaitable[Page[P]]], after: P) -> Page[P]:
        """One page. What is too much for one answer is asked for in halves."""
        while True:
            try:
                page = await self._patience(lambda: ask(after, self._limit), self._slow)
            except TooLarge:
                if self._limit == 1:
                    raise
                self._limit //= 2
            else:
                self._limit = min(self._most, self._limit * 2)
                return page

    def _slow(self, error: TryLater) -> None:
        """Over a line that is too slow for so many rows, ask for fewer from now on."""
        if error.code == "timeout":
            self._limit = self._most = max(1, self._limit // 2)
