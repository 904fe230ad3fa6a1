"""Restoring from a replica is joining: an empty folder, the ordinary pull, and one swap.

Each memory is filled beside its place, so that any interruption is resumed; it is compared with
the replica, and only then swapped in. Nothing is written to the replica: a token that allows
reading is enough.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from thermocline.sync import (
    Device,
    Exchange,
    Heads,
    Remote,
    Replica,
    RowTooLarge,
    SyncError,
    TryLater,
    Waiting,
)
from thermocline.sync.failures import retrying
from thermocline.sync.page_process import WORTH_ROWS, ProcessReplica
from thermocline.sync.sealing import proofs

from ..config.settings import Rules
from ..errors import DiskFull, InvalidInput, NotFound, ReadOnly, StoreDamaged, ThermoclineError
from ..memory.checks import is_agent
from ..runtime import atomic
from ..store import apply, outbox
from ..store.database.memory_database import translated
from . import digests
from .account import CREDENTIALS_FILE, KEY_FILE, RING_FILE
from .databases import as_ours, our_errors
from .digests import Differences, named
from .sealing import is_sealed
from .staging import RUN_FILE, WORKSPACE, Staging, Target, give, locked, renewed

if TYPE_CHECKING:
    from .keychain import Keychain

T = TypeVar("T")


class RestoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The restore that the command asked for."""

    state_dir: Path  # where the daemon keeps its memories; made, if it is missing
    # Whose memory; None: that of the archive, or of every agent in the database.
    agent: str | None = None
    file: Path | None = None  # an archive; None: a database is restored
    # Of the database; None: as the configuration has it.
    url: str | None = None
    token: str | None = None
    recovery_key: str | None = None  # opens a sealed database; None: it is asked for
    replace: bool = False  # set aside what is there, instead of refusing
    keep_going: bool = False  # restore the other rows, though some on the replica are damaged
    # Fail when the replica cannot be reached for this long; None: wait.
    give_up_seconds: float | None = None
    # A configuration over all others, and single keys of it.
    config: Path | None = None
    sets: tuple[str, ...] = ()


class AgentRestored(msgspec.Struct, frozen=True, kw_only=True):
    """One memory that was restored."""

    agent: str
    folder: str  # where it is
    set_aside: str | None  # where the previous memory is now; None if the place was empty
    unsent: int  # rows of that memory that the replica does not have
    counts: dict[str, int]  # live rows by kind
    rows: int  # all that the replica has, deleted ones too; compared by kind
    lost: tuple[str, ...]  # what could not be restored, a line each
    unindexed: int  # memories that the daemon has still to index
    seconds: float  # of this run


class Outcome(msgspec.Struct):
    """The result for all agents: restored, or failed with a reason; `sealed`: the replica is."""

    sealed: bool = False
    restored: list[AgentRestored] = []
    failed: dict[str, ThermoclineError] = {}


class _Run(msgspec.Struct):
    """The agents that a restore has completed, in a file, so that the same command resumes it.

    An agent is noted once its memory is complete and verified, before the swap.
    """

    url: str
    restored: dict[str, AgentRestored] = {}

    def has_moved(self, place: Target) -> bool:
        """Whether the memory is already in its place."""
        return place.agent in self.restored and place.is_taken() and not place.staged.exists()


class Restorer:
    """Restores from one database.

    `say` receives a line for people at each step, `show` a line that the next line replaces;
    `open_keys` finds the keys of a sealed replica, of which only sealed agents are restored:
    anybody could have put others there. `in_process` has another process receive the pages of a
    replica, with the keyring of a sealed one.
    """

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        remote: Remote,
        url: str,
        request: RestoreRequest,
        *,
        rules: Rules,
        say: Callable[[str], None],
        show: Callable[[str], None],
        waiting: Waiting,
        open_keys: Callable[[Remote], Awaitable[Keychain]],
        in_process: Callable[[Replica, bytes], ProcessReplica],
    ) -> None:
        self._remote = remote
        self._open_keys = open_keys
        self._in_process = in_process
        # The keys of a sealed replica.
        self._keychain: Keychain | None = None
        self._url = url
        self._request = request
        self._rules = rules
        self._say = say
        self._show = show
        self._waiting = waiting
        self._random = random.Random()  # noqa: S311 - spreads waits, hides nothing
        self._run_file = request.state_dir / "agents" / RUN_FILE

    async def join(self) -> Outcome:
        """Restore. A failure of one agent does not stop the other restores.

        `NotFound`: there is nothing to restore; `Conflict`: a place is not empty, and nothing was
        changed; `AlreadyRunning`: a daemon runs in the state folder.
        """
        state_dir = self._request.state_dir
        with translated(state_dir), our_errors(), locked(state_dir, "a restore"):
            await self._unlock()
            if self._keychain is not None:
                await self._keychain.save()
                give_keys(state_dir)
            return await self._join_all()

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeat `ask` while the replica cannot be reached."""
        began, give_up = time.monotonic(), self._request.give_up_seconds

        def wait(error: TryLater, seconds: float) -> None:
            if give_up is not None and time.monotonic() + seconds - began > give_up:
                if error.code == "offline":
                    error.hint = "repeat the command when it answers: what was fetched is kept"
                raise error
            left = (
                "" if give_up is None else f", for up to {began + give_up - time.monotonic():.0f} s"
            )
            self._say(
                f"{error.message}; waiting for the replica{left} (Ctrl-C ends it):"
                f" next try in {seconds:.0f} s"
            )

        async for attempt in retrying(
            self._waiting, sleep=asyncio.sleep, before_wait=wait, random=self._random
        ):
            with attempt:
                return await ask()
        raise SyncError("offline")

    async def _unlock(self) -> None:
        if await self._patiently(lambda: is_sealed(self._remote)):
            self._keychain = await self._patiently(lambda: self._open_keys(self._remote))
        elif self._request.recovery_key is not None:
            raise InvalidInput(
                "cannot use a recovery key: this replica is not sealed",
                hint="if yours was, something else answers in its place with rows of its own",
            )

    def _replica(self, agent: str) -> Replica:
        if self._keychain is None:
            return Replica(self._remote, agent)
        return self._keychain.replica(self._remote, agent)

    def _ring(self) -> bytes:
        """The keyring for another process; empty if the replica is not sealed."""
        return b"" if self._keychain is None else self._keychain.needed().encoded()

    async def _names(self) -> list[str]:
        heads = await self._patiently(Heads(self._remote).all)
        wanted = self._request.agent
        names = [written for written, head in heads.items() if head.epoch]
        if self._keychain is not None:
            agent_of = self._keychain.agent_of
            names = [await agent_of(self._remote, name) or "" for name in names]
        there = sorted(filter(is_agent, names))
        if not there:
            raise NotFound(
                "cannot restore: the replica holds no memory",
                hint="check the URL; `thermocline import` reads what EvoClaw stored there",
            )
        if wanted is not None and wanted not in there:
            raise NotFound(
                f"cannot restore '{wanted}': the replica has no memory of it",
                hint=f"it holds the memory of: {', '.join(map(repr, there[:20]))}",
            )
        return there if wanted is None else [wanted]

    def _run(self) -> _Run:
        """The interrupted run from the same replica, or a new one."""
        try:
            earlier = msgspec.json.decode(self._run_file.read_bytes(), type=_Run)
        except (OSError, msgspec.MsgspecError):
            return _Run(self._url)
        return earlier if earlier.url == self._url else _Run(self._url)

    async def _join_all(self) -> Outcome:
        request, run = self._request, self._run()
        outcome = Outcome(self._keychain is not None)
        left_alone = (WORKSPACE, CREDENTIALS_FILE)
        places = [Target(request.state_dir, name, left_alone) for name in await self._names()]
        for place in places:
            if not request.replace and not run.has_moved(place):
                place.refuse_taken()
        device = renewed(request.state_dir)
        for place in places:
            try:
                if not run.has_moved(place):
                    await self._restore(place, device, run)
                outcome.restored.append(run.restored[place.agent])
            except (DiskFull, ReadOnly) as error:
                error.hint = "free some space and repeat the command: it continues where it stopped"
                raise
            except ThermoclineError as error:
                outcome.failed[place.agent] = error
            except RowTooLarge as error:
                outcome.failed[place.agent] = as_ours(error)
        if not outcome.failed:
            atomic.remove(self._run_file)
        return outcome

    async def _restore(self, place: Target, device: str, run: _Run) -> None:
        agent, began, aside = place.agent, time.monotonic(), place.free_name()
        staging = Staging(place.staged, device=device, rules=self._rules)
        try:
            held, after, until = await self._begin(staging, self._replica(agent))
            staging.came = _counting(agent, held, after, until, self._show)
            await self._fill(staging, self._replica(agent), until - after)
            # One processor indexes the rows, another one reads them.
            unindexed, differences = await asyncio.gather(
                staging.index(), self._compared(staging, self._replica(agent), until)
            )
            if staging.is_resumed:
                await staging.check()
            withheld = await self._withheld(self._replica(agent), differences)
            counts = await staging.read(apply.counts)
            await staging.seal()
        except StoreDamaged:
            # The next run would resume it.
            await staging.discard()
            raise
        finally:
            await staging.close()
        lost = (*_unusable(differences), *withheld)
        if lost and not self._request.keep_going:
            raise StoreDamaged(
                f"cannot restore all of '{agent}': {'; '.join(lost)}",
                hint="`thermocline restore --verify` on a device that has them sends them again;"
                " --keep-going restores all the others, without fetching them again",
            )
        run.restored[agent] = AgentRestored(
            agent=agent,
            folder=str(place.folder),
            set_aside=str(aside) if place.is_taken() else None,
            unsent=outbox.unsent(place.folder),
            counts=counts,
            rows=differences.rows - len(differences.extra),
            lost=lost,
            unindexed=unindexed,
            seconds=round(time.monotonic() - began, 3),
        )
        atomic.write(self._run_file, msgspec.json.encode(run))
        place.swap(aside)

    async def _begin(self, staging: Staging, replica: Replica) -> tuple[int, int, int]:
        """Open the database of an interrupted run, or an empty one.

        Returns its number of rows, its place in the replica's order, and the end of that.
        """
        head = await self._patiently(replica.head)
        if await staging.resume(self._url):
            cursor = await staging.read(outbox.cursor)
            # The name may lead to another database now, or it was set back.
            if cursor.epoch in ("", head.epoch) and cursor.seq <= head.seq:
                held = await staging.count()
                if held:
                    self._say(f"{replica.agent}: resuming after {held:,} rows already restored")
                return held, cursor.seq, head.seq
        await staging.begin(self._url)
        return 0, 0, head.seq

    async def _withheld(self, replica: Replica, compared: Differences) -> list[str]:
        """What a sealed replica does not show, as far as it can be known, a line each."""
        if self._keychain is None:
            return []
        lines = []
        if await self._patiently(replica.is_any_unsealed):
            lines.append(
                "there are rows that are not sealed, which anybody could have changed: the device"
                " that began to seal the replica has them"
            )
        listed = await self._patiently(lambda: proofs.read(replica))
        proven = {
            name: proof
            for name, proof in listed.items()
            if time.time() - proof.at <= proofs.MOST_SECONDS
        }
        if not proven:
            return lines
        after = min([compared.shown[0], *(proof.seq for proof in proven.values())])
        head = await self._patiently(replica.head)
        newest = await self._patiently(lambda: proofs.newest(replica, after))
        for name, proof in proven.items():
            differing = proofs.differing(proof, compared.shown, newest)
            share = 100 if head.seq < proof.seq else differing
            if share:
                day = time.strftime("%Y-%m-%d", time.localtime(proof.at))
                lines.append(
                    f"rows are missing, or older than '{name}' had them on {day}, in {share} % of"
                    " the replica: that device has them"
                )
        return lines

    async def _fill(self, staging: Staging, replica: Replica, places: int) -> None:
        with ExitStack() as stack:
            if _is_long(places):
                replica = stack.enter_context(self._in_process(replica, self._ring()))
            device = Device(replica.agent, "")
            exchange = Exchange(staging, replica, device, frozenset(), time.time)
            await self._patiently(exchange.receive)

    async def _compared(self, staging: Staging, replica: Replica, places: int) -> Differences:
        """Compare what was received, which another process reads if there is a processor for it."""
        self._say(f"{replica.agent}: comparing the restored rows with the replica")
        reading = None
        if _is_long(places):
            apart = asyncio.to_thread(digests.read_apart, staging.path, replica.agent, self._ring())
            reading = asyncio.create_task(apart)
        differences = await self._patiently(lambda: digests.compare(replica, staging, reading))
        if differences.missing or differences.different:
            raise StoreDamaged(
                f"cannot restore '{replica.agent}': the restored rows differ from the replica: "
                + "; ".join(_unusable(differences)),
                hint="run it again from the beginning; if it fails the same way, check the disk",
            )
        return differences


def _is_long(rows: int) -> bool:
    """Whether another process is worth its start."""
    return rows >= WORTH_ROWS and (os.cpu_count() or 1) > 1


def give_keys(state_dir: Path) -> None:
    """Give the files of the keys to the daemon's user."""
    for name in (KEY_FILE, RING_FILE):
        if (state_dir / name).exists():
            give(state_dir, state_dir / name)


def _unusable(differences: Differences) -> list[str]:
    """What is missing for a restore, after this device has received everything."""
    return [
        *named(differences.missing, "not on the replica"),
        *named(differences.different, "not as received"),
        *named(differences.extra, "damaged on the replica, or unreadable for this release"),
    ]


def _counting(
    agent: str, held: int, after: int, until: int, show: Callable[[str], None]
) -> Callable[[int, int], None]:
    """Shows how many rows have come, and up to which place of the replica's order.

    A number of all rows would cost as many reads there.
    """
    came, began = held, time.monotonic()

    def count(more: int, place: int) -> None:
        nonlocal came
        came += more
        seconds = max(time.monotonic() - began, 0.001)
        share = min(1.0, (place - after) / max(1, until - after))
        rate = (came - held) / seconds
        text = f"{agent}: {came:,} rows, {100 * share:.0f} %, {rate:,.0f} rows/s"
        show(f"{text}, {seconds * (1 - share) / share:.0f} s left" if share > 0 else text)

    return count
