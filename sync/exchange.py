"""One round of replication: receive new rows, then send new rows.

An interruption at any point is repaired by the next round: the cursor moves with the rows that were
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
from .replica import MOST_BYTES, MOST_ROWS, Batch, Device, Page, Replica
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
    # Whether a sealed remote has plain rows too, of any agent.
    unsealed: bool = False

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
        # While a large push is under way the next one is read and sealed, and the last one
        # recorded.
        self._ahead: asyncio.Task[Batch | None] | None = None
        self._recording: asyncio.Task[None] | None = None
        self._pruned_at = float("-inf")
        self.unsealed = unsealed
        self._is_any_unsealed = False
        # The epoch of the keys that were published, for this agent's remote.
        self._published = -1
        # The epoch in which all rows were sealed, the last time that this was looked at.
        self._resealed = 0

    async def run(
        self, *, urgent_only: bool = False, heartbeat: bool = False, head: Cursor | None = None
    ) -> RoundResult:
        """Receive everything, then send everything, or only the urgent kinds.

        With `heartbeat` the remote records this device's contact, even if there is nothing to send.
        `head` is the recent end of the order; without it the remote is asked.
        """
        try:
            return await self._run(urgent_only, heartbeat, head)
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
        result = RoundResult()
        head = await self._replica.head()
        cursor = await self._relink(head, await self._local.cursor())
        await self._pull(cursor, head.seq, result)
        return result

    async def _run(self, urgent_only: bool, heartbeat: bool, head: Cursor | None) -> RoundResult:
        result = RoundResult()
        kinds = self._urgent if urgent_only else None
        if self.unsealed is not None:
            await self._take_over(self.unsealed)
        cursor = await self._local.cursor()
        head = head or await self._replica.head()
        waiting = bool(await self._local.pending(kinds, 1, 1))
        # If there is nothing to receive, a push signs too.
        moved = heartbeat or head != cursor or self._published != self._replica.form.epoch
        if self._replica.form.epoch and (heartbeat or self._is_any_unsealed):
            self._is_any_unsealed = await self._replica.is_any_unsealed()
        result.unsealed = self._is_any_unsealed
        if not waiting and not moved and self.unsealed is None:
            return result
        while True:
            if moved or not cursor.epoch:
                head, cursor = await self._follow(head, cursor, waiting, result)
            if not cursor.epoch or await self._exchange(head, cursor, kinds, result):
                break
            head, cursor, moved = await self._replica.head(), await self._local.cursor(), True
        if self.unsealed is not None and not await self._local.pending(None, 1, 1):
            await self.unsealed.erase()
            await self._switched()
            result.unsealed = self._is_any_unsealed = await self._replica.is_any_unsealed()
        if heartbeat:
            await self._tidy(result)
        return result

    async def _take_over(self, unsealed: Replica) -> None:
        """Receive what the remote has unsealed, unless this device sends sealed rows already."""
        if not await unsealed.is_any_unsealed():
            await self._switched()
            return
        # From here on no device adds to it.
        await self._replica.publish_keys()
        if not (await unsealed.head()).epoch:
            await self._switched()
            return
        sealed, cursor = await self._replica.head(), await self._local.cursor()
        if not sealed.epoch or sealed.epoch != cursor.epoch:
            plain = Exchange(self._local, unsealed, self._device, self._urgent, self._now)
            await plain.receive()

    async def _switched(self) -> None:
        if self._keys is not None:
            await self._keys.switched(self._replica.agent)
        self.unsealed = None

    async def _follow(
        self, head: Cursor, cursor: Cursor, waiting: bool, result: RoundResult
    ) -> tuple[Cursor, Cursor]:
        """Make sure that the cursor is to this remote as it is now, and record the contact."""
        if head.epoch != cursor.epoch or head.seq < cursor.seq:
            # What was asked may be older than the cursor.
            head = await self._replica.head()
        if self._published != self._replica.form.epoch or head.epoch != cursor.epoch:
            await self._replica.publish_keys()
            self._published = self._replica.form.epoch
        if not head.epoch:
            if not (waiting or cursor.epoch):
                # Neither side has any rows: the agent is not created on the remote.
                await self._replica.prepare(self._now())
                result.signed = True
                return head, Cursor()
            head = await self._replica.begin()
        if head.epoch == cursor.epoch and head.seq < cursor.seq:
            # It was set back. Once it has grown again the number would not show that.
            head = await self._replica.renew(head.epoch)
        cursor = await self._relink(head, cursor)
        signed_at = cursor.seq
        result.signed, retired = await self._replica.heartbeat(self._device, signed_at, self._now())
        if not result.signed:
            if await self._replica.knows(self._device):
                head = await self._replica.renew(head.epoch)
                cursor = await self._relink(head, cursor)
                signed_at = cursor.seq
            else:
                # The other devices need not compare what they have.
                signed_at = 0
                if cursor != await self._local.restored():
                    cursor = Cursor(head.epoch)
                    await self._local.offer_all(cursor)
            result.signed, retired = await self._replica.heartbeat(
                self._device, signed_at, self._now()
            )
        if retired:
            raise self._retired()
        return head, cursor

    def _retired(self) -> Refused:
        return Refused("retired", hint=_PAIR_AGAIN if self._replica.form.epoch else "")

    async def _relink(self, head: Cursor, cursor: Cursor) -> Cursor:
        if head.epoch == cursor.epoch:
            return cursor
        cursor = Cursor(head.epoch)
        await self._local.offer_all(cursor)
        return cursor

    async def _exchange(
        self, head: Cursor, cursor: Cursor, kinds: frozenset[str] | None, result: RoundResult
    ) -> bool:
        """Receive, send, and receive again, until nothing is left; False: another remote."""
        small = 0
        try:
            while True:
                if head.seq > cursor.seq:
                    await self._until_recorded()
                    cursor = await self._pull(cursor, head.seq, result)
                # Two devices with the same id cannot be told apart: this one takes another first.
                if result.copied or small > _MOST_SMALL_PUSHES:
                    return True
                batch = await self._next_batch(kinds, result)
                if batch is None:
                    return True
                small += len(batch.rows) < _SMALL_ROWS
                if batch.rows:
                    if len(batch.rows) >= _SMALL_ROWS:
                        ahead = self._read_batch(kinds, result, batch.rows[-1].row.key)
                        self._ahead = asyncio.create_task(ahead)
                    head = await self._push(batch, cursor, result)
                    if head.epoch != cursor.epoch:
                        return False
                    cursor = await self._local.cursor() if self._recording is None else head
        finally:
            if self._ahead is not None:
                self._ahead.cancel()
                await asyncio.wait([self._ahead])
                self._ahead = None
            await self._until_recorded()

    async def _next_batch(self, kinds: frozenset[str] | None, result: RoundResult) -> Batch | None:
        """What to send next: what was read ahead, then what is left or has changed."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and (batch := await ahead) is not None:
            return batch
        await self._until_recorded()
        return await self._read_batch(kinds, result)

    async def _read_batch(
        self,
        kinds: frozenset[str] | None,
        result: RoundResult,
        after: tuple[str, str] | None = None,
    ) -> Batch | None:
        """Pending rows, as many as one push can carry; None: there are none."""
        pending = await self._local.pending(kinds, self._rows, self._room, after)
        if not pending:
            return None
        rows = await self._sendable(pending, result)
        more = min(MOST_ROWS, self._rows + self._rows // 8 + 1)
        self._rows = more if len(rows) == len(pending) else max(1, len(rows))
        return await self._replica.batch(rows)

    async def _until_recorded(self) -> None:
        """Wait until the last push is recorded."""
        recording, self._recording = self._recording, None
        if recording is not None:
            await recording

    async def _pull(self, cursor: Cursor, until: int, result: RoundResult) -> Cursor:
        """Apply everything after the cursor, in order, with some pages requested ahead."""
        requested: deque[tuple[int, asyncio.Task[Page]]] = deque()
        begin = cursor.seq
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
                    self._width = max(1, page.until - cursor.seq)
                else:
                    self._width = min(PAGE_ROWS, 2 * self._width)
                cursor = Cursor(cursor.epoch, page.until)
                if page.rows or page.unreadable or cursor.seq == until:
                    await self._apply(page, cursor, result)
        finally:
            for _, task in requested:
                task.cancel()
            await asyncio.gather(*(task for _, task in requested), return_exceptions=True)
        return cursor

    async def _apply(self, page: Page, cursor: Cursor, result: RoundResult) -> None:
        applied = await self._local.apply(page.rows, cursor)
        result.received += applied.changed
        result.refused += applied.refused
        result.conflicts += applied.conflicts
        result.copied |= applied.copied
        for device in applied.ahead:
            result.note("device", device, "its clock is more than a day ahead")
        if page.unreadable:
            # Send again what is here as it was there; all else is left out.
            held = await self._local.offer_again(self._replica.form, page.unreadable)
            for row in page.unreadable:
                name = row.kind, row.id
                key, is_offered = held.get(name, (name, False))
                result.refused += not is_offered
                result.note(*key, row.reason + ("; sent again from here" if is_offered else ""))

    async def _sendable(self, batch: Sequence[Pending], result: RoundResult) -> list[Pending]:
        """The beginning of a batch that one push can carry, without rows that cannot be sent."""
        fit: list[Pending] = []
        room = self._room
        for pending in batch:
            try:
                room -= self._replica.form.size(pending)
            except ValueError as error:
                await self._set_aside(pending, str(error), result)
                continue
            if fit and room < 0:
                break
            fit.append(pending)
        return fit

    async def _push(self, batch: Batch, cursor: Cursor, result: RoundResult) -> Cursor:
        """Send rows; rows that were not taken are merged with the remote's version."""
        try:
            pushed = await self._replica.push(batch, self._device, cursor.seq, self._now())
        except RowTooLarge as error:
            rows = batch.rows
            if len(rows) == 1:
                await self._set_aside(rows[0], error.message, result)
                return cursor
            # Something in between refuses this size, and would again the next time.
            half = sum(map(self._replica.form.size, rows)) // 2
            self._room = self._most_room = max(_LEAST_BYTES, half)
            return await self._push(batch.first(len(rows) // 2), cursor, result)
        except TryLater as error:
            if error.code == "timeout":
                # On a line that is too slow for this size the next try sends less.
                self._room = max(_LEAST_BYTES, self._room // 2)
            raise
        self._room = min(self._most_room, 2 * self._room)
        await self._until_recorded()
        if not pushed.signed:
            return await self._replica.renew(pushed.head.epoch)
        if pushed.head == Cursor(cursor.epoch, cursor.seq + len(batch.rows)):
            # No other device has sent anything meanwhile: these rows need not be received again.
            if pushed.complete and self._ahead is not None:
                self._recording = asyncio.create_task(self._local.taken(batch.rows, pushed.head))
                result.sent += len(batch.rows)
            else:
                unsure = () if pushed.complete else batch.rows
                await self._record_push(batch.rows, unsure, pushed.head, result)
        elif pushed.complete:
            # They come back with the rows of other devices, and are then no longer pending.
            result.sent += len(batch.rows)
        return pushed.head

    async def _record_push(
        self,
        batch: Sequence[Pending],
        unsure: Sequence[Pending],
        cursor: Cursor,
        result: RoundResult,
    ) -> None:
        """Record the rows that were taken, and merge those that were not."""
        differing = await self._standing(unsure)
        left = {pending.row.key for pending, _ in differing}
        taken = [pending for pending in batch if pending.row.key not in left]
        await self._local.taken(taken, cursor)
        result.sent += len(taken)
        if received := tuple(current for _, current in differing if isinstance(current, Received)):
            await self._apply(Page(received, (), cursor.seq), cursor, result)
        rebased: list[Pending] = []
        for row, current in differing:
            if isinstance(current, Unreadable) and current.version in (None, row.seen):
                reason = f"what the replica has cannot be merged: {current.reason}"
                await self._set_aside(row, reason, result)
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

    async def _set_aside(self, pending: Pending, reason: str, result: RoundResult) -> None:
        await self._local.set_aside(pending, reason)
        result.set_aside += 1
        result.note(*pending.row.key, reason)

    async def _tidy(self, result: RoundResult) -> None:
        """Once a day: prune old tombstones, and find devices that were not seen for long.

        After each new epoch seal the rows of earlier ones with its key.
        """
        if self._resealed != self._replica.form.epoch:
            epoch = self._replica.form.epoch
            await self._replica.reseal()
            self._resealed = epoch
        if not 0 <= self._now() - self._pruned_at < _DAY:
            # Somebody may have removed keys there.
            await self._replica.publish_keys()
            await self._replica.prune(self._now())
            result.away = tuple(await self._replica.away(self._now()))
            is_sealed = bool(self._replica.form.epoch)
            if is_sealed and (held := await self._local.fingerprint(self._replica.form)):
                proof = proofs.Proof(int(self._now()), *held)
                await proofs.prove(self._replica, self._device, proof)
            self._pruned_at = self._now()
