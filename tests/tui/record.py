"""Records what a real daemon answers to every tab, for the snapshots and the pictures of README.

    .venv/bin/python tests/tui/record.py

Run it when an answer that a tab shows has changed its shape, then `make snapshots UPDATE=1`.
"""

import asyncio
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))

from daemon_process import Daemon, until, wait_until
from recorded_daemon import RECORDED, RecordingClient

from thermocline.daemon.client import Client
from thermocline.tui.app import ThermoclineApp
from thermocline.tui.views import TABS

SIZES = ((40, 20), (80, 24), (120, 40))
MEMORIES = (
    ("people/ana", 0.6, "fact", "tea",
     "Ana prefers green tea, and never before nine"),
    ("people/ana", 0.85, "fact", "birthday",
     "Ana's birthday is on the 3rd of March"),
    ("people/ben", 0.95, "fact", "health",
     "Ben is allergic to peanuts"),
    ("people/ben", 0.5, "fact", "team",
     "Ben reviews the storage code, Clara the protocol"),
    ("work/release", 0.8, "decision", "plan",
     "The release is on Friday after the review"),
    ("work/release", 0.7, "lesson", "plan",
     "Release notes are written for users, not for developers"),
    ("work/release", 0.55, "fact", "ops",
     "The staging host is harbour-2; harbour-1 is being replaced"),
    ("work/design", 0.9, "decision", "db",
     "We chose SQLite over a server: one file, one writer, no port"),
    ("work/design", 0.9, "lesson", "db",
     "Every write is acknowledged only once it is on the disk"),
    ("work/design", 0.65, "decision", "db",
     "The queue is bounded; callers wait instead of losing data"),
    ("work/incidents", 0.75, "lesson", "ops",
     "The deploy hung because the health check followed a redirect"),
    ("work/incidents", 0.8, "task", "ops",
     "The certificate of the relay expires on the 12th"),
    ("home/garden", 0.3, "fact", "garden",
     "The tomato seedlings go out in May"),
    ("home/garden", 0.25, "fact", "garden",
     "Water the fig every ten days in winter"),
    ("home/gate", 0.45, "fact", "house",
     "The gate opens with the third button from the left"),
    ("travel/lisbon", 0.6, "event", "trip",
     "The flight to Lisbon leaves at 07:40 from gate B12"),
    ("travel/lisbon", 0.4, "fact", "trip",
     "The flat in Alfama has no lift; pack light"),
    ("health/running", 0.35, "fact", "sport",
     "Runs five kilometres on Tuesdays and Thursdays"),
    ("health/running", 0.5, "fact", "sport",
     "The left knee complains after ten kilometres"),
    ("tools/editor", 0.2, "preference", "tools",
     "Uses Helix with the Catppuccin theme"),
    ("tools/shell", 0.55, "fact", "tools",
     "The backup script lives in ~/bin/keep and runs from cron"),
    ("tools/shell", 0.3, "preference", "tools",
     "Prefers ripgrep to grep, fd to find"),
)  # fmt: skip
NOTES = """# Harbour

How the hosts of the harbour are kept.

## Backups

Every night at two the databases are copied to the second disk and checked.

## Certificates

The relay renews by itself; the mail host has to be asked.
"""


def seed(client: Client, workspace: Path) -> None:
    for category, importance, kind, tag, text in MEMORIES:
        client.store(text, category=category, importance=importance, event=kind, tags=[tag])
    hostile = "a note with \x1b[31mcolours\x07, \u202eits end first, and [b]markup[/b]"
    client.store(hostile, category="work/incidents", importance=0.4)
    for question in ("tea", "release", "backup script", "lisbon flight", "peanuts"):
        client.recall(question)
    client.hot_update("identity", {"agent_name": "Iris", "owner_name": "Ana"})
    client.hot_update("project", {"name": "harbour", "status": "active"})
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    (workspace / "memory" / "harbour.md").write_text(NOTES, encoding="utf-8")
    client.files_sync()
    client.sync()
    client.verify()
    client.consolidate()


def shaped(live: dict[str, Any]) -> None:
    """Two hours of use in place of the seconds that the recording took."""
    count = len(live["stores"])
    for at in range(count):
        wave = 1.2 + math.sin(at / 9) + math.sin(at / 3.7) / 2
        busy = max(wave, 0) if at % 17 else wave + 3
        live["stores"][at] = round(busy * 6)
        live["recalls"][at] = round(busy * 14)
        live["recall_p50_ms"][at] = round(3.1 + wave, 1)
        live["recall_p99_ms"][at] = round(8 + 6 * abs(math.sin(at / 5)) + busy, 1)
        live["outbox"][at] = round(max(0, 40 * math.sin(at / 11)))
        live["sync_ms"][at] = round(60 + 25 * math.sin(at / 6), 1)
        live["memory_bytes"][at] = 48_000_000


async def visit(daemon: Daemon) -> list[Any]:
    for size in SIZES:
        app = ThermoclineApp(lambda agent: RecordingClient(str(daemon.socket), agent))
        async with app.run_test(size=size) as pilot:
            for name in TABS:
                await app.action_tab(name)
                await until(lambda app=app: app.is_idle and app.events, "the tab is drawn")
                await pilot.pause(0.7)
                await until(lambda app=app: app.is_idle, "the tab is drawn")
            events = [
                {
                    "id": event.id,
                    "type": event.type,
                    "data": {"agent": event.agent, "time": event.time, **event.data},
                }
                for event in app.events
            ]
    return events


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HOME"] = str(folder)
        workspace = folder / "workspace"
        workspace.mkdir()
        daemon = Daemon(
            folder,
            *("--set", f"sync.url=file:{folder}/usb/replica.db"),
            *("--set", f'agents={{"default": {{"workspace": "{workspace}"}}}}'),
        )
        (folder / "usb").mkdir()
        daemon.start()
        with daemon.client() as client:
            seed(client, workspace)
            wait_until(lambda: client.sync_status().queued == 0, "all is sent")
        events = asyncio.run(visit(daemon))
        daemon.stop()
    found = RecordingClient.heard
    for key, answer in found.items():
        if "/api/metrics/live" in key:
            shaped(answer)
        if '"/api/status"' in key:
            answer.update(uptime_seconds=275_523.0, pid=4711, memory_bytes=51_380_224)
    text = json.dumps(
        {"now": time.time(), "answers": dict(sorted(found.items())), "events": events},
        ensure_ascii=False,
        indent=0,
    )
    RECORDED.write_text(text.replace(name, "/home/ana") + "\n", encoding="utf-8")
    print(f"{len(found)} answers, {len(events)} events, {RECORDED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
