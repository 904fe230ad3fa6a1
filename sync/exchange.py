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

from .failures import KeyMissing, Refused, RowTooLarge, SchemaMissing, TryLater
from .ports import Cursor, Local
from .replica import MOST_BYTES, MOST_ROWS, Device, Page, Replica
from .row_format import Pending, Received, Unreadable
from .sealing import proofs

PAGE_ROWS: Final = 2000
_PAGES_AHEAD: Final = 4
_LEAST_BYTES: Final = 20_000
# A round ends even if rows keep changing while they are sent.
_MOST_SMALL_PUSHES: Final = 20
_SMALL_ROWS: Final = 1000
_MOST_NOTES: Final = 10
_DAY: Final = 86_400.0

# A sealed replica has other keys since.
_PAIR_AGAIN: Final = (
    "run `thermocline pair` on another device, and `thermocline join` here; its memory is kept"
)


class RoundResult(msgspec.Struct):
    """What one round did."""

    # Rows that the remote took, and received ones that said something new.
    sent: int = 0
    received: int = 0
    refused: int = 0  # received rows that are unreadable or too large
    # As in `Applied`.
    conflicts: int = 0
    set_aside: int = 0  # rows that the remote cannot take
    notes: list[str] = []  # the first of the refused and set aside rows, with the reason
    copied: bool = False
    signed: bool = False  # whether the remote knows the position of this device, if it has one
    # Devices in use that were not seen for 90 days; None: not asked for.
    away: tuple[str, ...] | None = None

    def note(self, kind: str, key: str, reason: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"{kind} {key[:100]}: {reason}")


class Exchange:
    """One agent's rounds of replication. Not to be run twice at once.

    `urgent` are the kinds of rows that `urgent_only` sends; `now` is in seconds since the epoch.
    `unsealed` is the same agent's replica as it was before sealing was switched on: what it has is
    received first, and removed once the sealed replica has everything.
    """

    def __init__(
        self,
        local: Local,
        replica: Replica,
        device: Device,
        urgent: frozenset[str],
        now: Callable[[], float],
        unsealed: Replica | None = None,
    ) -> None:
        self._local = local
        self._replica = replica
        self._keys = replica.keys
        self._device = device
        self._urgent = urgent
        self._now = now
        self._room = self._most_room = MOST_BYTES
        # How many rows a push is likely to carry: the others would be read again for the next.
        self._rows = MOST_ROWS
        self._width = PAGE_ROWS
        # While a large push is under way the next one is read, and the last one recorded.
        self._ahead: asyncio.Task[list[Pending]] | None = None
        self._recording: asyncio.Task[None] | None = None
        self._pruned_at = float("-inf")
        self.unsealed = unsealed
        self._has_keys = False
        # The epoch in which all rows were sealed, the last time that this was looked at.
        self._resealed = 0

    async def run(
        self, *, urgent_only: bool = False, heartbeat: bool = False, poll: Cursor | None = None
    ) -> RoundResult:
        """Receive everything, then send everything, or only the urgent kinds.

        With `heartbeat` the remote records this device's contact, even if there is nothing to send.
        `poll` is the recent end of the order; without it the remote is asked.
        """
        try:
            return await self._run(urgent_only, heartbeat, poll)
        except SchemaMissing:
            await self._replica.prepare(self._now(), is_missing=True)
        except KeyMissing:
            # Other devices have sealed rows with the key of a later epoch.
            if self._keys is None:
                raise
            try:
                await self._keys.learn(self._replica.remote)
            except KeyMissing:
                # A retired device is given none, and this is all that it has to be told.
                if await self._replica.is_retired(self._device):
                    raise self._retired() from None
                raise
        return await self._run(urgent_only, heartbeat, None)

    async def receive(self) -> RoundResult:
        """Receive everything and write nothing on the remote, as for joining a new device.

        A token that allows reading is enough. Repeated, it continues where it was interrupted.
        """
        tally = RoundResult()
        poll = await self._replica.poll()
        link = await self._relink(poll, await self._local.link())
        await self._pull(link, poll.seq, tally)
        return tally

    async def _run(self, urgent_only: bool, heartbeat: bool, poll: Cursor | None) -> RoundResult:
        tally = RoundResult()
        kinds = self._urgent if urgent_only else None
        if self.unsealed is not None:
            await self._take_over(self.unsealed)
        link = await self._local.link()
        poll = poll or await self._replica.poll()
        waiting = bool(await self._local.pending(kinds, 1, 1))
        # If there is nothing to receive, a push signs too.
        moved = heartbeat or poll != link
        if not waiting and not moved and self.unsealed is None:
            return tally
        while True:
            if moved or not link.epoch:
                poll, link = await self._follow(poll, link, waiting, tally)
            if not link.epoch or await self._exchange(poll, link, kinds, tally):
                break
            poll, link, moved = await self._replica.poll(), await self._local.link(), True
        if self.unsealed is not None and not await self._local.pending(None, 1, 1):
            await self.unsealed.erase()
            await self._switched()
        if heartbeat:
            await self._tidy(tally)
        return tally

    async def _take_over(self, unsealed: Replica) -> None:
        """Receive what the remote has unsealed, unless this device sends sealed rows already."""
        if not await unsealed.is_any_unsealed():
            await self._switched()
            return
        # From here on no device adds to it.
        await self._publish_keys()
        if not (await unsealed.poll()).epoch:
            await self._switched()
            return
        sealed, link = await self._replica.poll(), await self._local.link()
        if not sealed.epoch or sealed.epoch != link.epoch:
            plain = Exchange(self._local, unsealed, self._device, self._urgent, self._now)
            await plain.receive()

    async def _switched(self) -> None:
        if self._keys is not None:
            await self._keys.switched(self._replica.agent)
        self.unsealed = None

    async def _publish_keys(self) -> None:
        if self._keys is not None:
            await self._keys.publish(self._replica.remote)

    async def _follow(
        self, poll: Cursor, link: Cursor, waiting: bool, tally: RoundResult
    ) -> tuple[Cursor, Cursor]:
        """Make sure that the link is to this remote as it is now, and record the contact."""
        if poll.epoch != link.epoch or poll.seq < link.seq:
            # The poll may be older than the link.
            poll = await self._replica.poll()
        if not self._has_keys or poll.epoch != link.epoch:
            await self._publish_keys()
            self._has_keys = True
        if not poll.epoch:
            if not (waiting or link.epoch):
                # Neither side has any rows: the agent is not created on the remote.
                await self._replica.prepare(self._now())
                tally.signed = True
                return poll, Cursor()
            poll = await self._replica.begin()
        if poll.epoch == link.epoch and poll.seq < link.seq:
            # It was set back. Once it has grown again the number would not show that.
            poll = await self._replica.renew(poll.epoch)
        link = await self._relink(poll, link)
        tally.signed, retired = await self._replica.heartbeat(self._device, link.seq, self._now())
        if not tally.signed:
            poll = await self._replica.renew(poll.epoch)
            link = await self._relink(poll, link)
            tally.signed, retired = await self._replica.heartbeat(
                self._device, link.seq, self._now()
            )
        if retired:
            raise self._retired()
        return poll, link

    def _retired(self) -> Refused:
        return Refused("retired", hint=_PAIR_AGAIN if self._replica.form.epoch else "")

    async def _relink(self, poll: Cursor, link: Cursor) -> Cursor:
        if poll.epoch == link.epoch:
            return link
        link = Cursor(poll.epoch)
        await self._local.offer_all(link)
        return link

    async def _exchange(
        self, poll: Cursor, link: Cursor, kinds: frozenset[str] | None, tally: RoundResult
    ) -> bool:
        """Receive, send, and receive again, until nothing is left; False: another remote."""
        small = 0
        try:
            while True:
                if poll.seq > link.seq:
                    await self._settled()
                    link = await self._pull(link, poll.seq, tally)
                # Two devices with the same id cannot be told apart: this one takes another first.
                if tally.copied or small > _MOST_SMALL_PUSHES:
                    return True
                pending = await self._pending(kinds)
                if not pending:
                    return True
                small += len(pending) < _SMALL_ROWS
                batch = await self._sendable(pending, tally)
                more = min(MOST_ROWS, self._rows + self._rows // 8 + 1)
                self._rows = more if len(batch) == len(pending) else max(1, len(batch))
                if batch:
                    if len(batch) >= _SMALL_ROWS:
                        after = batch[-1].row.key
                        ahead = self._local.pending(kinds, self._rows, self._room, after)
                        self._ahead = asyncio.create_task(ahead)
                    poll = await self._push(batch, link, tally)
                    if poll.epoch != link.epoch:
                        return False
                    link = await self._local.link() if self._recording is None else poll
        finally:
            if self._ahead is not None:
                self._ahead.cancel()
                await asyncio.wait([self._ahead])
                self._ahead = None
            await self._settled()

    async def _pending(self, kinds: frozenset[str] | None) -> list[Pending]:
        """The rows to send next: those that were read ahead, then what is left or has changed."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and (rows := await ahead):
            return rows
        await self._settled()
        return await self._local.pending(kinds, self._rows, self._room)

    async def _settled(self) -> None:
        """Wait until the last push is recorded."""
        recording, self._recording = self._recording, None
        if recording is not None:
            await recording

    async def _pull(self, link: Cursor, until: int, tally: RoundResult) -> Cursor:
        """Apply everything after the link, in order, with some pages requested ahead."""
        requested: deque[tuple[int, asyncio.Task[Page]]] = deque()
        begin = link.seq
        try:
            while begin < until or requested:
                while begin < until and len(requested) < _PAGES_AHEAD:
                    end = min(begin + self._width, until)
                    requested.append((end, asyncio.create_task(self._replica.page(begin, end))))
                    begin = end
                end, task = requested[0]
                page = await task
                requested.popleft()
                if page.until < end:
                    # The answer could not hold all rows: the rest comes first.
                    rest = asyncio.create_task(self._replica.page(page.until, end))
                    requested.appendleft((end, rest))
                    self._width = max(1, page.until - link.seq)
                else:
                    self._width = min(PAGE_ROWS, 2 * self._width)
                link = Cursor(link.epoch, page.until)
                if page.rows or page.unreadable or link.seq == until:
                    await self._apply(page, link, tally)
        finally:
            for _, task in requested:
                task.cancel()
            await asyncio.gather(*(task for _, task in requested), return_exceptions=True)
        return link

    async def _apply(self, page: Page, link: Cursor, tally: RoundResult) -> None:
        applied = await self._local.apply(page.rows, link)
        tally.received += applied.changed
        tally.refused += applied.refused
        tally.conflicts += applied.conflicts
        tally.copied |= applied.copied
        for device in applied.ahead:
            tally.note("device", device, "its clock is more than a day ahead")
        if page.unreadable:
            # Send again what is here as it was there; all else is left out.
            held = await self._local.offer_again(self._replica.form, page.unreadable)
            for row in page.unreadable:
                name = row.kind, row.id
                key, is_offered = held.get(name, (name, False))
                tally.refused += not is_offered
                tally.note(*key, row.reason + ("; sent again from here" if is_offered else ""))

    async def _sendable(self, batch: Sequence[Pending], tally: RoundResult) -> list[Pending]:
        """The beginning of a batch that one push can carry, without rows that cannot be sent."""
        fit: list[Pending] = []
        room = self._room
        for pending in batch:
            try:
                room -= self._replica.form.size(pending)
            except ValueError as error:
                await self._set_aside(pending, str(error), tally)
                continue
            if fit and room < 0:
                break
            fit.append(pending)
        return fit

    async def _push(self, batch: Sequence[Pending], link: Cursor, tally: RoundResult) -> Cursor:
        """Send rows; rows that were not taken are merged with the remote's version."""
        try:
            pushed = await self._replica.push(batch, self._device, link.seq, self._now())
        except RowTooLarge as error:
            if len(batch) == 1:
                await self._set_aside(batch[0], error.message, tally)
                return link
            # Something in between refuses this size, and would again the next time.
            half = sum(map(self._replica.form.size, batch)) // 2
            self._room = self._most_room = max(_LEAST_BYTES, half)
            return await self._push(batch[: len(batch) // 2], link, tally)
        except TryLater as error:
            if error.code == "timeout":
                # On a line that is too slow for this size the next try sends less.
                self._room = max(_LEAST_BYTES, self._room // 2)
            raise
        self._room = min(self._most_room, 2 * self._room)
        await self._settled()
        if not pushed.signed:
            return await self._replica.renew(pushed.poll.epoch)
        if pushed.poll == Cursor(link.epoch, link.seq + len(batch)):
            # No other device has sent anything meanwhile: these rows need not be received again.
            if pushed.complete and self._ahead is not None:
                self._recording = asyncio.create_task(self._local.taken(batch, pushed.poll))
                tally.sent += len(batch)
            else:
                await self._record_push(batch, () if pushed.complete else batch, pushed.poll, tally)
        elif pushed.complete:
            # They come back with the rows of other devices, and are then no longer pending.
            tally.sent += len(batch)
        return pushed.poll

    async def _record_push(
        self, batch: Sequence[Pending], unsure: Sequence[Pending], link: Cursor, tally: RoundResult
    ) -> None:
        """Record the rows that were taken, and merge those that were not."""
        differing = await self._standing(unsure)
        left = {pending.row.key for pending, _ in differing}
        taken = [pending for pending in batch if pending.row.key not in left]
        await self._local.taken(taken, link)
        tally.sent += len(taken)
        if received := tuple(current for _, current in differing if isinstance(current, Received)):
            await self._apply(Page(received, (), link.seq), link, tally)
        rebased: list[Pending] = []
        for row, current in differing:
            if isinstance(current, Unreadable) and current.version in (None, row.seen):
                reason = f"what the replica has cannot be merged: {current.reason}"
                await self._set_aside(row, reason, tally)
            elif not isinstance(current, Received):
                version = None if current is None else current.version
                rebased.append(msgspec.structs.replace(row, seen=version))
        await self._local.rebase(rebased)

    async def _standing(
        self, batch: Sequence[Pending]
    ) -> list[tuple[Pending, Received | Unreadable | None]]:
        if not batch:
            return []
        try:
            return await self._replica.current_versions(batch)
        except RowTooLarge as error:
            if len(batch) == 1:
                return [(batch[0], Unreadable(*batch[0].row.key, None, error.message))]
        middle = len(batch) // 2
        return await self._standing(batch[:middle]) + await self._standing(batch[middle:])

    async def _set_aside(self, pending: Pending, reason: str, tally: RoundResult) -> None:
        await self._local.set_aside(pending, reason)
        tally.set_aside += 1
        tally.note(*pending.row.key, reason)

    async def _tidy(self, tally: RoundResult) -> None:
        """Once a day: prune old tombstones, and find devices that were not seen for long.

        After each new epoch seal the rows of earlier ones with its key.
        """
        if self._resealed != self._replica.form.epoch:
            epoch = self._replica.form.epoch
            await self._replica.reseal()
            self._resealed = epoch
        if not 0 <= self._now() - self._pruned_at < _DAY:
            # Somebody may have removed keys there.
            await self._publish_keys()
            await self._replica.prune(self._now())
            tally.away = tuple(await self._replica.away(self._now()))
            is_sealed = bool(self._replica.form.epoch)
            if is_sealed and (held := await self._local.fingerprint(self._replica.form)):
                proof = proofs.Proof(int(self._now()), *held)
                await proofs.prove(self._replica, self._device, proof)
            self._pruned_at = self._now()
