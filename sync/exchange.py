"""One round of replication: receive new rows, then send new rows.

An interruption at any point is repaired by the next round: the link moves with the rows that were
applied, in one transaction, and a push that was applied without an answer comes back as received
rows, which are then no longer pending.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from .failures import Refused, RowTooLarge, SchemaMissing, TryLater
from .local import Link, Local, Pending, Received
from .replica import MOST_BYTES, MOST_ROWS, Device, Page, Poll, Replica, Unreadable, size_of

PAGE_ROWS: Final = 2000
_PAGES_AHEAD: Final = 4
_LEAST_BYTES: Final = 20_000
# A round ends even if rows keep changing while they are sent.
_MOST_SMALL_PUSHES: Final = 20
_MOST_NOTES: Final = 10
_DAY: Final = 86_400.0


class Tally(msgspec.Struct):
    """What one round did.

    Attributes:
        sent, received: rows that the remote took, and received ones that said something new.
        refused: received rows that are unreadable or too large.
        set_aside: rows that the remote cannot take.
        notes: the first of the refused and set aside rows, with the reason.
        conflicts, copied: as in `Applied`.
        signed: whether the remote knows the position of this device, if it has one.
        away: devices in use that were not seen for 90 days; None: not asked for.
    """

    sent: int = 0
    received: int = 0
    refused: int = 0
    conflicts: int = 0
    set_aside: int = 0
    notes: list[str] = []
    copied: bool = False
    signed: bool = False
    away: tuple[str, ...] | None = None

    def note(self, kind: str, key: str, reason: str) -> None:
        """Record a row that was left out."""
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"{kind} {key[:100]}: {reason}")


class Exchange:
    """One agent's rounds of replication. Not to be run twice at once.

    `urgent` are the kinds of rows that `urgent_only` sends; `now` is in seconds since the epoch.
    """

    def __init__(
        self,
        local: Local,
        replica: Replica,
        device: Device,
        urgent: frozenset[str],
        now: Callable[[], float],
    ) -> None:
        self._local = local
        self._replica = replica
        self._device = device
        self._urgent = urgent
        self._now = now
        self._room = self._most_room = MOST_BYTES
        self._width = PAGE_ROWS
        self._pruned_at = float("-inf")

    async def run(
        self, *, urgent_only: bool = False, sign: bool = False, poll: Poll | None = None
    ) -> Tally:
        """Receive everything, then send everything, or only the urgent kinds.

        With `sign` the remote records this device's contact, even if there is nothing to send.
        `poll` is the recent end of the order; without it the remote is asked.
        """
        try:
            return await self._run(urgent_only, sign, poll)
        except SchemaMissing:
            await self._replica.prepare(self._now())
            return await self._run(urgent_only, sign, None)

    async def receive(self) -> Tally:
        """Receive everything and write nothing on the remote, as for joining a new device.

        A token that allows reading is enough. Repeated, it continues where it was interrupted.
        """
        tally = Tally()
        poll = await self._replica.poll()
        link = await self._relink(poll, await self._local.link())
        await self._pull(link, poll.seq, tally)
        return tally

    async def _run(self, urgent_only: bool, sign: bool, poll: Poll | None) -> Tally:
        tally = Tally()
        kinds = self._urgent if urgent_only else None
        link = await self._local.link()
        poll = poll or await self._replica.poll()
        waiting = bool(await self._local.pending(kinds, 1, 1))
        # If there is nothing to receive, a push signs too.
        moved = sign or poll != Poll(link.seq, link.epoch)
        if not waiting and not moved:
            return tally
        while True:
            if moved or not link.epoch:
                poll, link = await self._follow(poll, link, waiting, tally)
            if not link.epoch or await self._exchange(poll, link, kinds, tally):
                break
            poll, link, moved = await self._replica.poll(), await self._local.link(), True
        if sign:
            await self._tidy(tally)
        return tally

    async def _follow(
        self, poll: Poll, link: Link, waiting: bool, tally: Tally
    ) -> tuple[Poll, Link]:
        """Make sure that the link is to this remote in its present state, and sign."""
        if poll.epoch != link.epoch or poll.seq < link.seq:
            # The poll may be older than the link.
            poll = await self._replica.poll()
        if not poll.epoch:
            if not (waiting or link.epoch):
                # Neither side has any rows: the agent is not created on the remote.
                await self._replica.prepare(self._now())
                tally.signed = True
                return poll, Link()
            poll = await self._replica.begin()
        if poll.epoch == link.epoch and poll.seq < link.seq:
            # It was set back. Once it has grown again the number would not show that.
            poll = await self._replica.renew(poll.epoch)
        link = await self._relink(poll, link)
        tally.signed, retired = await self._replica.sign(self._device, link.seq, self._now())
        if not tally.signed:
            poll = await self._replica.renew(poll.epoch)
            link = await self._relink(poll, link)
            tally.signed, retired = await self._replica.sign(self._device, link.seq, self._now())
        if retired:
            raise Refused(
                "retired",
                "cannot replicate: this device was retired from the replica",
                hint="take it in again; what it holds is kept",
            )
        return poll, link

    async def _relink(self, poll: Poll, link: Link) -> Link:
        if poll.epoch == link.epoch:
            return link
        link = Link(poll.epoch)
        await self._local.offer_all(link)
        return link

    async def _exchange(
        self, poll: Poll, link: Link, kinds: frozenset[str] | None, tally: Tally
    ) -> bool:
        """Receive, send, and receive again, until nothing is left.

        Returns:
            False: the remote was replaced by another meanwhile.
        """
        small = 0
        while True:
            link = await self._pull(link, poll.seq, tally)
            # Two devices with the same id cannot be told apart: this one takes another first.
            if tally.copied or small > _MOST_SMALL_PUSHES:
                return True
            pending = await self._local.pending(kinds, MOST_ROWS, self._room)
            if not pending:
                return True
            small += len(pending) < MOST_ROWS
            if batch := await self._sendable(pending, tally):
                poll = await self._push(batch, link, tally)
                if poll.epoch != link.epoch:
                    return False
                link = await self._local.link()

    async def _pull(self, link: Link, until: int, tally: Tally) -> Link:
        """Apply everything after the link, in order, with some pages requested ahead."""
        asked: deque[tuple[int, asyncio.Task[Page]]] = deque()
        begin = link.seq
        try:
            while begin < until or asked:
                while begin < until and len(asked) < _PAGES_AHEAD:
                    end = min(begin + self._width, until)
                    asked.append((end, self._ask(begin, end)))
                    begin = end
                end, task = asked[0]
                page = await task
                asked.popleft()
                if page.until < end:
                    # The answer could not hold all rows: the rest comes first.
                    asked.appendleft((end, self._ask(page.until, end)))
                    self._width = max(1, page.until - link.seq)
                else:
                    self._width = min(PAGE_ROWS, 2 * self._width)
                link = Link(link.epoch, page.until)
                if page.rows or page.unreadable or link.seq == until:
                    await self._apply(page, link, tally)
        finally:
            for _, task in asked:
                task.cancel()
            await asyncio.gather(*(task for _, task in asked), return_exceptions=True)
        return link

    def _ask(self, after: int, until: int) -> asyncio.Task[Page]:
        return asyncio.create_task(self._replica.page(after, until))

    async def _apply(self, page: Page, link: Link, tally: Tally) -> None:
        applied = await self._local.apply(page.rows, link)
        tally.received += applied.changed
        tally.refused += applied.refused + len(page.unreadable)
        tally.conflicts += applied.conflicts
        tally.copied |= applied.copied
        for device in applied.ahead:
            tally.note("device", device, "its clock is more than a day ahead")
        for one in page.unreadable:
            tally.note(one.kind, one.id, one.reason)

    async def _sendable(self, batch: Sequence[Pending], tally: Tally) -> list[Pending]:
        """The beginning of a batch that one push can carry, without rows that cannot be sent."""
        fit: list[Pending] = []
        room = self._room
        for one in batch:
            try:
                room -= size_of(one)
            except ValueError as error:
                await self._set_aside(one, str(error), tally)
                continue
            if fit and room < 0:
                break
            fit.append(one)
        return fit

    async def _push(self, batch: Sequence[Pending], link: Link, tally: Tally) -> Poll:
        """Send rows; rows that were not taken are merged with the remote's version."""
        try:
            pushed = await self._replica.push(batch, self._device, link.seq, self._now())
        except RowTooLarge as error:
            if len(batch) == 1:
                await self._set_aside(batch[0], error.message, tally)
                return Poll(link.seq, link.epoch)
            # Something in between refuses this size, and would again the next time.
            self._room = self._most_room = max(_LEAST_BYTES, sum(map(size_of, batch)) // 2)
            return await self._push(batch[: len(batch) // 2], link, tally)
        except TryLater as error:
            if error.code == "timeout":
                # On a line that is too slow for this size the next try sends less.
                self._room = max(_LEAST_BYTES, self._room // 2)
            raise
        self._room = min(self._most_room, 2 * self._room)
        if not pushed.signed:
            return await self._replica.renew(pushed.poll.epoch)
        if pushed.poll == Poll(link.seq + len(batch), link.epoch):
            # No other device has sent anything meanwhile: these rows need not be received again.
            link = Link(link.epoch, pushed.poll.seq)
            await self._settle(batch, () if pushed.complete else batch, link, tally)
        elif pushed.complete:
            # They come back with the rows of other devices, and are then no longer pending.
            tally.sent += len(batch)
        return pushed.poll

    async def _settle(
        self, batch: Sequence[Pending], unsure: Sequence[Pending], link: Link, tally: Tally
    ) -> None:
        """Record the rows that were taken, and merge those that were not."""
        differing = await self._standing(unsure)
        left = {one.row.key for one, _ in differing}
        taken = [one for one in batch if one.row.key not in left]
        await self._local.taken(taken, link)
        tally.sent += len(taken)
        if received := tuple(found for _, found in differing if isinstance(found, Received)):
            await self._apply(Page(received, (), link.seq), link, tally)
        over: list[Pending] = []
        for one, found in differing:
            if isinstance(found, Unreadable) and found.version in (None, one.seen):
                reason = f"what the replica has cannot be merged: {found.reason}"
                await self._set_aside(one, reason, tally)
            elif not isinstance(found, Received):
                version = None if found is None else found.version
                over.append(msgspec.structs.replace(one, seen=version))
        await self._local.over(over)

    async def _standing(
        self, batch: Sequence[Pending]
    ) -> list[tuple[Pending, Received | Unreadable | None]]:
        if not batch:
            return []
        try:
            return await self._replica.standing(batch)
        except RowTooLarge as error:
            if len(batch) == 1:
                return [(batch[0], Unreadable(*batch[0].row.key, None, error.message))]
        middle = len(batch) // 2
        return await self._standing(batch[:middle]) + await self._standing(batch[middle:])

    async def _set_aside(self, one: Pending, reason: str, tally: Tally) -> None:
        await self._local.set_aside(one, reason)
        tally.set_aside += 1
        tally.note(*one.row.key, reason)

    async def _tidy(self, tally: Tally) -> None:
        """Once a day: prune old tombstones, and find devices that were not seen for long."""
        if not 0 <= self._now() - self._pruned_at < _DAY:
            await self._replica.prune(self._now())
            tally.away = tuple(await self._replica.away(self._now()))
            self._pruned_at = self._now()
