"""Opens the view: in this terminal, as a picture, or in a browser."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from thermocline.daemon.client import Client

from .app import ThermoclineApp
from .feed import ReadOnlyClient
from .session import state_file

_SETTLE_SECONDS = 20.0


def connector(socket: str | None, *, read_only: bool) -> Callable[[str | None], Client]:
    """A factory of clients for a socket; None: the default socket, looked for each time."""
    kind = ReadOnlyClient if read_only else Client
    return lambda agent: kind(socket, agent, program="tui")


def open_view(
    connect: Callable[[str | None], Client], *, agent: str | None, tab: str | None, read_only: bool
) -> int:
    """Open the view in this terminal until it is left; return the exit code."""
    app = ThermoclineApp(
        connect, agent=agent, tab=tab, read_only=read_only, state=state_file(os.environ)
    )
    app.run()
    return app.return_code or 0


def picture_of(app: ThermoclineApp) -> str:
    """The screen as SVG that loads nothing from other places."""
    return re.sub(
        r"@font-face \{.*?\}", "", app.export_screenshot(title="thermocline"), flags=re.DOTALL
    )


def screenshot(
    connect: Callable[[str | None], Client],
    file: Path,
    *,
    agent: str | None,
    tab: str | None,
    size: tuple[int, int],
    read_only: bool,
) -> bool:
    """Write a picture of a tab as SVG; False if no daemon answered, and the picture says so."""
    app = ThermoclineApp(connect, agent=agent, tab=tab, read_only=read_only)
    answered, picture = False, ""

    async def shoot(pilot: Pilot[object]) -> None:
        nonlocal answered, picture
        waited = 0.0
        while waited < _SETTLE_SECONDS and not app.is_idle and not app.snapshot.trouble:
            await pilot.pause(0.05)
            waited += 0.05
        # Events come a moment after the first status.
        await pilot.pause(0.4)
        while app.snapshot.connected and not app.is_idle:
            await pilot.pause(0.05)
        await pilot.pause()
        answered = app.snapshot.connected
        picture = picture_of(app)
        app.exit()

    app.run(headless=True, size=size, auto_pilot=shoot)
    if picture:
        file.write_text(picture, encoding="utf-8")
    return answered
