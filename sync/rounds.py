"""One round of replication: what is new here goes there, and what is new there comes here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from .failures import Refused, SchemaMissing, TooLarge, TryLater
from .local import Link, Local, Merged
from .replica import MOST_BYTES, MOST_ROWS, Page, Poll, Replica
from .rows import Outgoing, Row

P = TypeVar("P")
# What a row's names and versions weigh beside its data.
_ROW_BYTES: Final = 300
# A device that goes on changing rows while they are sent must not keep a round for ever.
_MOST_TURNS: Final = 20
_MOST_CONFLICTS: Final = 5
_LEAST_BYTES: Final = 20_000
_PRUNE_SECONDS: Final = 86_400.0
_SIGN_SECONDS: Final = 300.0


class Tally(msgspec.Struct):
    """What one round did: rows sent, received rows that were new, rows that make no sense."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    signed: bool = False
    critical: bool = False


class Round:
    """Knows the order in which things have to happen. Not to be run twice at once.

    Args:
        local, replica: the two sides.
        device, name: this device.
        urgent: the kinds of rows that make up the critical state.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        local: Local,
        replica: Replica,
        device: str,
        name: str,
        urgent: frozenset[str],
        now: Callable[[], float],
    ) -> None:
        self._local = local
        self._replica = replica
        self._device = device
        self._name = name
        self._urgent = urgent
        self._now = now
        self._prepared = False
        self._signed: tuple[int, float] = (-1, float("-inf"))
        self._pruned_at = float("-inf")
        self._room = self._most_room = MOST_BYTES

    async def run(self, *, urgent_only: bool, look: bool, sign: bool) -> Tally:
        """Send, receive, publish the critical state where it changed, and sign.

        Whatever is interrupted is done again by the next round, to the same effect.

        Raises:
            SyncError: the remote cannot be reached, or refuses.
        """
        try:
            return await self._run(urgent_only=urgent_only, look=look, sign=sign)
        except SchemaMissing:
            # Somebody has put another database in the place of the one that was prepared.
            self._prepared = False
            return await self._run(urgent_only=urgent_only, look=look, sign=sign)

    async def _run(self, *, urgent_only: bool, look: bool, sign: bool) -> Tally:
        tally = Tally()
        if not self._prepared:
            await self._replica.prepare(self._now())
            look = True
        poll = await self._replica.poll()
        link = await self._local.link()
        if look or poll.epoch != link.epoch:
            poll, link = await self._look(poll, link, tally)
        link = await self._follow(poll, link, tally)
        self._prepared = True
        link = await self._exchange(link, poll, self._urgent if urgent_only else None, tally)
        if tally.critical or link.unpublished or not link.critical:
            link = await self._publish(link, tally)
        if not urgent_only and (sign or self._moved_on(link)):
            await self._sign(link, tally)
        return tally

    async def _look(self, poll: Poll, link: Link, tally: Tally) -> tuple[Poll, Link]:
        """Take note of what other tools and people did."""
        look = await self._replica.look(self._device)
        if look.retired is not None:
            raise Refused(
                "retired",
                "cannot replicate: this device was retired from the replica",
                hint="take it in again; what it holds is kept",
            )
        if look.critical == -1:
            found = await self._replica.critical()
            if found is not None and not await self._local.adopt_critical(found[0]):
                tally.refused += 1
            link = msgspec.structs.replace(link, critical=look.critical)
            tally.critical = True
        if look.foreign:
            await self._replica.adopt()
        if not poll.epoch:
            await self._take_over(link, tally)
        if look.foreign or not poll.epoch:
            poll = await self._replica.begin()
        return poll, link

    async def _take_over(self, link: Link, tally: Tally) -> None:
        """Take in what EvoClaw's service left, before the agent has a place in the remote."""
        async for rows in self._replica.left_by_others():
            merged = await self._local.merge(rows, link)
            tally.received += merged.changed
            tally.refused += merged.refused

    async def _follow(self, poll: Poll, link: Link, tally: Tally) -> Link:
        """Make sure that the link is to this remote, and not too old to go on from."""
        if poll.epoch == link.epoch and poll.seq < link.seen:
            # It was set back to an earlier state. Once it has grown again nobody else could tell.
            poll = await self._replica.renew(poll.epoch)
        if poll.epoch != link.epoch:
            link = Link(epoch=poll.epoch)
            await self._local.relink(link)
            # What the remote has already need not be sent: that shows once it was received.
            return await self._receive(link, poll, tally)
        if poll.pruned > link.seen:
            return await self._resync(poll, tally)
        return link

    async def _resync(self, poll: Poll, tally: Tally) -> Link:
        """Traces of deletions that this device has missed are gone: compare everything."""
        return await self._receive(Link(epoch=poll.epoch), poll, tally, set())

    async def _exchange(
        self, link: Link, poll: Poll, kinds: frozenset[str] | None, tally: Tally
    ) -> Link:
        """Send and receive until neither has anything new that `poll`, or a later one, knows of."""
        for _ in range(_MOST_TURNS):
            link, place = await self._send(link, kinds, tally)
            if place > link.seen:
                # Others have sent something too.
                poll = await self._replica.poll()
            if poll.pruned > link.seen:
                # Only while this device was receiving can the others have gone on without it.
                link = await self._resync(poll, tally)
            elif poll.seq > link.seen:
                link = await self._receive(link, poll, tally)
            elif not place:
                return link
        return link

    async def _send(
        self, link: Link, kinds: frozenset[str] | None, tally: Tally
    ) -> tuple[Link, int]:
        """Send what is marked; also return the last place that it got, 0 if there was nothing."""
        place = 0
        while batch := await self._local.outgoing(kinds, MOST_ROWS):
            left: Sequence[Outgoing] = batch
            while left:
                part = _part(left, self._room)
                try:
                    link, place = await self._send_part(link, part, tally)
                except TooLarge:
                    if len(part) == 1:
                        raise
                    # Whatever is in between takes no more at once, and will not the next time.
                    self._room = self._most_room = sum(map(_weight, part)) // 2
                else:
                    left = left[len(part) :]
            if len(batch) < MOST_ROWS:
                break
        return link, place

    async def _send_part(
        self, link: Link, part: Sequence[Outgoing], tally: Tally
    ) -> tuple[Link, int]:
        rows = [outgoing.row for outgoing in part if outgoing.row is not None]
        place = await self._push(rows) if rows else link.seen
        if _has(rows, self._urgent):
            # Noted with the rows, so that an interruption does not leave it out.
            link = msgspec.structs.replace(link, unpublished=True)
        if rows and place == link.seen + 1:
            # Nobody else has sent anything meanwhile: these rows need not come back.
            link = msgspec.structs.replace(
                link, seen=place, statements=(place + 1, ""), objects=(place + 1, "", "")
            )
        await self._local.sent([outgoing.mark for outgoing in part], place, link)
        tally.sent += len(rows)
        tally.critical |= _has(rows, self._urgent)
        return link, place

    async def _push(self, rows: Sequence[Row]) -> int:
        """Send rows; over a line that is too slow for so many, the next try sends fewer."""
        try:
            place = await self._replica.push(rows)
        except TryLater as error:
            if error.code == "timeout":
                self._room = min(self._room, max(_LEAST_BYTES, self._room // 2))
            raise
        self._room = min(self._most_room, self._room * 2)
        return place

    async def _receive(
        self, link: Link, poll: Poll, tally: Tally, keep: set[tuple[str, str]] | None = None
    ) -> Link:
        """Take over all rows behind the link, and remember how far that went.

        Args:
            link: where to begin.
            poll: where it ends.
            tally: to add to.
            keep: where everything is received, what the remote has is noted here, and what it
                has not is swept. Until then the link does not say that all was received, so
                that an interruption lets it begin again.
        """

        async def merge(page: Page[Any], link: Link) -> None:
            merged: Merged = await self._local.merge(page.rows, link)
            tally.received += merged.changed
            tally.refused += merged.refused + page.damaged
            if keep is not None:
                keep.update((row.kind, row.id) for row in page.rows if not row.deleted)
                # What cannot be read there is there all the same.
                keep.update(page.unread)

        # Categories come before the statements that are filed in them.
        async for objects, last in pages(self._replica.objects, link.objects):
            link = msgspec.structs.replace(link, objects=last)
            await merge(objects, link)
        async for statements, end in pages(self._replica.statements, link.statements):
            link = msgspec.structs.replace(link, statements=end)
            await merge(statements, link)
        if not link.seen:
            # Everything was asked for: what came with none of the pages shows only so.
            displaced = await self._replica.displaced()
            await merge(Page((), len(displaced), None, full=False, unread=displaced), link)
        if keep is not None and await self._local.sweep(frozenset(keep)):
            tally.critical = True
        link = msgspec.structs.replace(link, seen=poll.seq)
        await self._local.merge((), link)
        return link

    async def _publish(self, link: Link, tally: Tally) -> Link:
        """Put the critical state as a whole where it is read as a whole.

        Whoever has sent rows of it does so, after receiving all that was sent before: the one
        that comes last shows everything, and nobody who has only received needs to.
        """
        known = link.critical
        for _ in range(_MOST_CONFLICTS):
            data = await self._local.critical()
            made = await self._replica.put_critical(data, known, self._device, self._now())
            if made is not None:
                link = msgspec.structs.replace(link, critical=made, unpublished=False)
                await self._local.merge((), link)
                return link
            link, known = await self._merge_critical(link, tally)
        link = msgspec.structs.replace(link, unpublished=True)
        await self._local.merge((), link)
        return link

    async def _merge_critical(self, link: Link, tally: Tally) -> tuple[Link, int]:
        """Take in what was written since, by another device or another tool."""
        found = await self._replica.critical()
        if found is not None and found[1] == -1 and not await self._local.adopt_critical(found[0]):
            tally.refused += 1
        link = await self._exchange(link, await self._replica.poll(), self._urgent, tally)
        return link, found[1] if found is not None else 0

    def _moved_on(self, link: Link) -> bool:
        seen, at = self._signed
        return link.seen != seen and not 0 <= self._now() - at < _SIGN_SECONDS

    async def _sign(self, link: Link, tally: Tally) -> None:
        await self._replica.sign(self._device, self._name, link.seen, self._now())
        self._signed = (link.seen, self._now())
        tally.signed = True
        if not 0 <= self._now() - self._pruned_at < _PRUNE_SECONDS:
            await self._local.forget_before(await self._replica.prune())
            self._pruned_at = self._now()


async def pages(
    ask: Callable[[P, int], Awaitable[Page[P]]], after: P
) -> AsyncIterator[tuple[Page[P], P]]:
    """Page after page behind a place, each with its own last place, until one is not full.

    What is too large is asked for in halves.
    """
    limit = MOST_ROWS
    while True:
        try:
            page = await ask(after, limit)
        except TooLarge:
            if limit == 1:
                raise
            limit = max(1, limit // 2)
            continue
        if page.last is not None:
            after = page.last
            yield page, after
        if not page.full:
            return
        limit = min(MOST_ROWS, limit * 2)


def _part(batch: Sequence[Outgoing], room: int) -> Sequence[Outgoing]:
    """The beginning of a batch, of at most so many bytes of JSON; one row alone may be longer."""
    size = 0
    for number, outgoing in enumerate(batch):
        size += _weight(outgoing)
        if number and size > room:
            return batch[:number]
    return batch


def _weight(outgoing: Outgoing) -> int:
    """The bytes that a row takes in an argument, where quotes are escaped once more."""
    row = outgoing.row
    if row is None:
        return _ROW_BYTES
    view = row.view
    texts = (row.id, row.data, row.place, view and (view.text, view.category))
    return _ROW_BYTES + len(msgspec.json.encode(texts))


def _has(rows: Sequence[Row], kinds: frozenset[str]) -> bool:
    return any(row.kind in kinds for row in rows)
