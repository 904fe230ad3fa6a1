"""Every tab at three widths, compared with its picture.

The answers are recorded, and the clock stands still; see `record.py`.
"""

import time
from collections.abc import Iterator

import pytest
from daemon_process import until

pytest.importorskip("pytest_textual_snapshot")

from recorded_daemon import RecordedClient, recorded
from textual.pilot import Pilot

from thermocline.tui.app import ThermoclineApp
from thermocline.tui.views import VIEWS

pytestmark = pytest.mark.snapshot
SIZES = ((40, 20), (80, 24), (120, 40))


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The log shows local times."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        patch.setenv("HOME", "/home/ana")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}")
@pytest.mark.parametrize("tab", [tab.name for tab in VIEWS])
def test_a_tab_looks_as_before(tab, size, snap_compare):
    found = recorded()
    app = ThermoclineApp(
        lambda agent: RecordedClient(found, agent), tab=tab, now=lambda: found["now"]
    )

    async def drawn(pilot: Pilot[None]) -> None:
        await until(
            lambda: app.events_seen == len(found["events"]) and app.is_idle, "the tab is drawn"
        )
        # Columns and the place of the cursor follow from what was drawn, a moment later.
        same, last = 0, ""
        while same < 5:
            await pilot.pause(0.05)
            picture = app.export_screenshot(simplify=True)
            same, last = (same + 1 if app.is_idle and picture == last else 0), picture

    assert snap_compare(app, terminal_size=size, run_before=drawn)
