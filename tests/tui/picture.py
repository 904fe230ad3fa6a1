"""Takes the picture of the terminal view in README, with recorded answers: `make picture`."""

import asyncio
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))

from daemon_process import until
from recorded_daemon import RecordedClient, recorded

from thermocline.tui.app import ThermoclineApp
from thermocline.tui.run import picture_of

FILE = Path(__file__).parents[2] / "docs" / "terminal.svg"
SIZE = (104, 30)


async def take() -> str:
    """The overview as SVG, once everything is drawn."""
    answers = recorded()
    app = ThermoclineApp(
        lambda agent: RecordedClient(answers, agent), tab="overview", now=lambda: answers["now"]
    )
    async with app.run_test(size=SIZE) as pilot:
        await until(
            lambda: app.events_seen == len(answers["events"]) and app.is_idle, "the tab is drawn"
        )
        await pilot.pause(1.0)
        return picture_of(app)


if __name__ == "__main__":
    os.environ.update(TZ="UTC", HOME="/home/ana")
    time.tzset()
    FILE.write_text(asyncio.run(take()), encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size:,} bytes")
