"""Opens the view: in this terminal, as a picture, or in a browser, there protected by a token."""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import secrets
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import web
from textual.pilot import Pilot
from textual_serve.server import Server

from thermocline.daemon.client import AsyncClient

from .app import ThermoclineApp
from .feed import ReadOnlyClient
from .session import state_file

_SETTLE_SECONDS = 20.0


def connector(socket: str | None, *, read_only: bool) -> Callable[[str | None], AsyncClient]:
    """A factory of clients for a socket; None: the default socket, looked for each time."""
    kind = ReadOnlyClient if read_only else AsyncClient
    return lambda agent: kind(socket, agent, program="tui")


def open_view(
    connect: Callable[[str | None], AsyncClient],
    *,
    agent: str | None,
    tab: str | None,
    read_only: bool,
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
    connect: Callable[[str | None], AsyncClient],
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


HOST: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 24
# Nothing is fetched from elsewhere, and no other page can embed the view.
_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self' ws://{here};"
    " frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Door:
    """Lets in one browser: the first request with the token gets a cookie, all others get 403."""

    def __init__(self, port: int) -> None:
        self._here = f"{HOST}:{port}"
        # Cookies of one host are shared by its ports.
        self._cookie = f"thermocline_{port}"
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._session = secrets.token_urlsafe(_TOKEN_BYTES)

    @property
    def address(self) -> str:
        """Where to go; it works once."""
        return f"http://{self._here}/?token={self._token}"

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request through, or refuse it; an aiohttp middleware."""
        if (
            request.host != self._here
            or request.headers.get("Origin", self._origin) != self._origin
        ):
            raise web.HTTPForbidden(text="this view is only served to its own address\n")
        shown = request.query.get("token", "")
        if shown and _same(shown, self._token):
            self._token = ""
            answer = web.Response(status=303, headers={"Location": "/"})
            answer.set_cookie(
                self._cookie, self._session, httponly=True, samesite="Strict", path="/"
            )
            return answer
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            raise web.HTTPForbidden(
                text="open the address that thermocline tui --web printed; it works once\n"
            )
        return await handler(request)

    async def sign(self, _: web.Request, response: web.StreamResponse) -> None:
        """Say what a page may load; runs before any answer is sent."""
        response.headers["Content-Security-Policy"] = _POLICY.format(here=self._here)
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"

    @property
    def _origin(self) -> str:
        return f"http://{self._here}"


def _same(text: str, wanted: str) -> bool:
    # Bytes of a head that are not UTF-8 are lone surrogates in Python.
    seen = text.encode(errors="backslashreplace")
    return bool(wanted) and hmac.compare_digest(seen, wanted.encode())


class WebServer(Server):
    """Runs the view for each page that is open, behind a door; `say` receives the address."""

    def __init__(self, command: str, port: int, say: Callable[[str], None]) -> None:
        super().__init__(command, host=HOST, port=port, title="Thermocline")
        self.door = Door(port)
        self._say = say

    def initialize_logging(self) -> None:
        """Requests are not logged: the first one's address has the token."""

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: callers cannot connect yet."""

    def serve(self, debug: bool = False) -> None:  # noqa: ARG002
        """Serve until a signal; the address is said once callers can connect."""
        self.initialize_logging()
        loop = asyncio.new_event_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.request_exit)
        web.run_app(
            self._make_app(),
            host=HOST,
            port=self.port,
            handle_signals=False,
            loop=loop,
            print=lambda _: self._say(self.door.address),
        )

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.door.check(request, handler)

        app.middlewares.append(check)
        app.on_response_prepare.append(self.door.sign)
        return app
