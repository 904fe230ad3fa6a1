"""The daemon's endless tasks go on, whatever happens to one of them."""

import asyncio
import logging

from thermocline.daemon.api.serving import Background


class Task:
    """Fails so many times, with words that nobody is to read, and then goes on."""

    WORDS = "what an agent has told me"

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.goes_on = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        if self.failures:
            self.failures -= 1
            raise UnicodeError(self.WORDS)
        self.goes_on.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


class Stubborn:
    """Fails when it is cancelled for the first time."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = 0

    async def run(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise OSError("on its way out") from None


async def test_a_task_that_fails_as_it_is_cancelled_ends_all_the_same(problems):
    background = Background(problems, pause_seconds=3600.0, again_seconds=0.01)
    stubborn = Stubborn()
    background.begin("stubborn", stubborn.run)
    await stubborn.began.wait()
    await background.end()
    assert stubborn.cancelled == 1


async def test_a_task_that_fails_is_told_of_and_begins_anew(problems, caplog):
    background = Background(problems, pause_seconds=0.0)
    failing, sound = Task(2), Task(0)
    with caplog.at_level(logging.ERROR):
        background.begin("failing", failing.run)
        background.begin("sound", sound.run)
        await asyncio.gather(failing.goes_on.wait(), sound.goes_on.wait())
    [problem] = problems.current()
    assert problem.code == "task_failed"
    assert "'failing' failed with UnicodeError" in problem.message
    assert not problem.lasting
    assert "test_background.py" in caplog.text
    assert Task.WORDS not in caplog.text + problem.message
    await background.end()
    assert failing.ended
    assert sound.ended
