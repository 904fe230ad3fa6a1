"""`thermocline tui`: the live view, in the terminal, as a picture, or in a browser."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Final

from ..client import Client, DaemonUnreachable
from ..errors import Unavailable
from .arguments import WrongUsage, say

_PORT: Final = 8765
# A program that is served to a browser has no terminal, but one of Textual's drivers.
_DRIVER_VARIABLE: Final = "TEXTUAL_DRIVER"


def add_tui(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tui`."""
    parser.add_argument("--tab", metavar="NAME", help="the tab to show; default: the last one")
    parser.add_argument("--read-only", action="store_true", help="no key changes anything")
    parser.add_argument(
        "--screenshot", metavar="FILE", help="write a picture of the tab as SVG, and exit"
    )
    parser.add_argument(
        "--size", metavar="WxH", default="120x40", help="columns and rows of the picture (120x40)"
    )
    parser.add_argument(
        "--web",
        action="store_true",
        help="serve the view to one browser on this device, at an address that works once",
    )
    parser.add_argument(
        "--port", type=int, default=_PORT, help=f"the port of --web on loopback ({_PORT})"
    )
    parser.epilog = "In the view, ? shows the keys."


def run_tui(args: argparse.Namespace, client: Client) -> int:
    """Open the view.

    Raises:
        Unavailable: textual is not installed.
        WrongUsage: there is no such tab or size, or no terminal.
    """
    size = _size(args.size)
    try:
        from thermocline.tui import run, views  # noqa: PLC0415 - half a second, and an extra
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the terminal view needs {str(error.name).partition('.')[0]}, which is not installed",
            hint='install the extra: pip install "thermocline[tui]", or "make tui" in a checkout',
        ) from error
    if args.tab is not None and args.tab not in views.TABS:
        raise WrongUsage(f"no tab {args.tab!r}; there are {', '.join(views.TABS)}")
    connect = run.connector(args.socket, read_only=args.read_only or bool(args.screenshot))
    if args.screenshot:
        file = Path(args.screenshot)
        shown = {"agent": args.agent, "tab": args.tab, "read_only": args.read_only}
        if not run.screenshot(connect, file, size=size, **shown):
            raise DaemonUnreachable(client.socket_path, "the picture only says so")
        return 0
    if args.web:
        return _serve(args)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) and _DRIVER_VARIABLE not in os.environ:
        raise WrongUsage("tui needs a terminal; see --screenshot, or thermocline status --watch")
    return run.open_view(connect, agent=args.agent, tab=args.tab, read_only=args.read_only)


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,3})x(\d{2,3})", text)
    if found is None:
        raise WrongUsage(f"--size: expected columns x rows such as 120x40, got {text[:40]!r}")
    return int(found[1]), int(found[2])


def _serve(args: argparse.Namespace) -> int:
    from thermocline.tui.web import HOST, WebServer  # noqa: PLC0415 - likewise

    words = [sys.executable, "-m", f"{__package__}.main", "tui"]
    for option, value in (("--socket", args.socket), ("--agent", args.agent), ("--tab", args.tab)):
        words += [option, value] if value is not None else []
    words += ["--read-only"] * args.read_only
    if not 1 <= args.port <= 65_535:
        raise WrongUsage(f"--port: expected 1 to 65535, got {args.port}")

    def told(address: str) -> None:
        print(address, flush=True)
        say("open it in a browser on this device; it works once. Ctrl-C ends it")

    try:
        WebServer(f"exec {shlex.join(words)}", args.port, told).serve()
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {HOST}:{args.port}: {error.strerror or error}",
            hint="choose another with --port",
        ) from error
    return 0
