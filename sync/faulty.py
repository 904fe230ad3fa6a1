"""A remote that fails on purpose, for the tests of whoever uses one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Literal

import msgspec

from .failures import SyncError, TryLater
from .remote import Remote, Result, Statement


def offline() -> SyncError:
    """The error of a network that is gone."""
    return TryLater("offline")


class Fault(msgspec.Struct, frozen=True):
    """What befalls one batch.

    Attributes:
        fails: "before" it reaches the remote; "after" it was applied: its answer is lost.
        delay: seconds that pass first.
        error: makes the error that is raised when it fails.
    """

    fails: Literal["", "before", "after"] = ""
    delay: float = 0.0
    error: Callable[[], SyncError] = offline


class FaultyRemote:
    """Another remote, with faults.

    Args:
        inner: the remote that works.
        sleep: lets seconds pass; a test may only count them.
        plan: a fault for each batch in turn; once it ends, all goes well.

    Attributes:
        online: set it to False, and every batch fails before it is sent. Such batches do not use
            up the plan.
        batches: how many were asked for, whatever came of them.
        applied: how many reached the inner remote and were done.
    """

    def __init__(
        self, inner: Remote, sleep: Callable[[float], Awaitable[None]], plan: Iterable[Fault] = ()
    ) -> None:
        self._inner = inner
        self._sleep = sleep
        self._plan = iter(plan)
        self.online = True
        self.batches = 0
        self.applied = 0

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        """Run the statements, unless the plan has it otherwise; as for `Remote`."""
        self.batches += 1
        fault = next(self._plan, Fault()) if self.online else Fault("before")
        if fault.delay:
            await self._sleep(fault.delay)
        if fault.fails == "before":
            raise fault.error()
        results = await self._inner.batch(statements)
        self.applied += 1
        if fault.fails == "after":
            raise fault.error()
        return results

    async def close(self) -> None:
        """Close the inner remote."""
        await self._inner.close()


def at_random(random: Random, chance: float, longest_delay: float = 0.0) -> Iterator[Fault]:
    """A plan without end: each batch fails with `chance`, before or after; the seed decides."""
    while True:
        fails: Literal["", "before", "after"] = ""
        if random.random() < chance:
            fails = "before" if random.random() < 0.5 else "after"
        yield Fault(fails, delay=random.uniform(0.0, longest_delay))
