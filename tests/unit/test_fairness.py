"""Whose request begins next, and who waits before that."""

import asyncio
import contextlib

from thermocline.daemon.api.fairness import FairQueue

MANY, FEW = 1, 2


async def begun(order: list[int], turns: FairQueue, process: int) -> None:
    await turns.acquire(process, "a")
    order.append(process)


async def test_a_process_that_asks_a_thousand_times_at_once_does_not_keep_another_waiting():
    turns = FairQueue(asyncio.get_running_loop())
    order: list[int] = []
    async with asyncio.TaskGroup() as group:
        for _ in range(1000):
            group.create_task(begun(order, turns, MANY))
        group.create_task(begun(order, turns, FEW))
    assert len(order) == 1001
    assert order.index(FEW) < 20


async def test_few_requests_begin_in_one_pass_of_the_loop():
    turns = FairQueue(asyncio.get_running_loop())
    order: list[int] = []
    tasks = [asyncio.ensure_future(begun(order, turns, MANY)) for _ in range(100)]
    most, before = 0, 0
    while len(order) < 100:
        await asyncio.sleep(0)
        most, before = max(most, len(order) - before), len(order)
    assert 0 < most <= 10
    await asyncio.gather(*tasks)


async def test_a_caller_that_leaves_takes_no_turn():
    turns = FairQueue(asyncio.get_running_loop())
    order: list[int] = []
    leaving = [asyncio.ensure_future(begun(order, turns, MANY)) for _ in range(50)]
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    async with asyncio.timeout(60):
        await begun(order, turns, FEW)
    assert order.count(FEW) == 1
    for task in leaving:
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_process_that_goes_on_making_mistakes_waits_before_its_turn():
    turns = FairQueue(asyncio.get_running_loop())
    order: list[int] = []
    for _ in range(100):
        turns.note_mistake(MANY)
    for process in range(2_000):
        turns.note_mistake(FEW + process)
    async with asyncio.TaskGroup() as group:
        group.create_task(begun(order, turns, MANY))
        group.create_task(begun(order, turns, FEW))
    assert order == [FEW, MANY]
    assert len(turns._mistakes) <= 2_001
