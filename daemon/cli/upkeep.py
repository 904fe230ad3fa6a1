"""`thermocline upkeep`: what happens by itself, when it did last and when it is due."""

from __future__ import annotations

import time

from ..client import Client
from .terminal import ago, moment, show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..upkeep_answers import Schedule, UpkeepStanding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This verb has no options of its own."""
    parser.epilog = (
        "The times are those of upkeep.* in the configuration. thermocline consolidate runs it\n"
        "at once."
    )


def run(args: argparse.Namespace) -> int:
    """Show the schedules."""
    with Client(args.socket, args.agent) as client:
        standing: UpkeepStanding = client.request("GET", "/api/upkeep")
    if args.json:
        show_json(standing)
        return 0
    now = time.time()
    if standing["schedules"]:
        rows = [
            ("run", f"times ({standing['zone']})", "last", "next", ""),
            *(_row(s, now) for s in standing["schedules"]),
        ]
        show_rows(rows)
    else:
        print("nothing is scheduled: see upkeep.* in the configuration")
    if running := standing["running"]:
        done = f", {running['step']} is done" if running["step"] else ""
        print(f"running: {running['mode']}, begun {ago(running['since'], now)}{visible(done)}")
    return 0


def _when(seconds: float | None) -> str:
    """A time to come with its hour, however far it is, and with its year once it is another."""
    if seconds is None:
        return "never"
    local = time.localtime(seconds)
    this_year = local.tm_year == time.localtime().tm_year
    return time.strftime("%b %d %H:%M" if this_year else "%b %d %H:%M %Y", local)


def _row(schedule: Schedule, now: float) -> tuple[str, ...]:
    seconds, every = schedule["seconds"], schedule["every"]
    took = "" if seconds is None else f"took {seconds:.1f} s"
    return (
        schedule["name"],
        schedule["cron"] or ("" if every is None else f"every {every / 86_400:g} days"),
        moment(schedule["last"], now),
        "by hand" if schedule["next"] is None else _when(schedule["next"]),
        f"FAILED: {schedule['error']}" if schedule["error"] else took,
    )
