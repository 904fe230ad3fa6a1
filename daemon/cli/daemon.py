"""`thermocline daemon`: run the daemon."""

from __future__ import annotations

import argparse

from ..client import Client
from ..runtime.quick_start import quick_start
from .options import DAEMON, add_options


def add_daemon(parser: argparse.ArgumentParser) -> None:
    """Add the options of `daemon`."""
    add_options(parser, DAEMON, DAEMON)
    parser.add_argument("--welcome", action="store_true", help="show what to try first")


def run_daemon(args: argparse.Namespace, _: Client) -> int:
    """Run until a signal ends it."""
    with quick_start():
        from ..app import main  # noqa: PLC0415 - the other verbs must not load the daemon

    return main(
        state_dir=args.state_dir,
        socket=args.socket,
        config=args.config,
        sets=args.sets,
        welcome=args.welcome,
    )
