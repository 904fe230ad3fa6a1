"""`thermocline sync`: how replication stands, or replicating now."""

from __future__ import annotations

import time

from ..client import Client
from .database import PATIENCE_SECONDS
from .terminal import ago, number_of, show_json, show_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import Final

    from ..answers import Synced
    from ..status_answers import Standing, SyncStanding, Verification

_KINDS: Final = {
    "memory": ("memory", "memories"),
    "hot": ("hot entry", "hot entries"),
    "category": ("category", "categories"),
    "pair": ("pair", "pairs"),
    "uses": ("count of uses", "counts of uses"),
    "metrics": ("set of counters", "sets of counters"),
    "note": ("note", "notes"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("--now", action="store_true", help="send and receive now, and wait for it")


def run(args: argparse.Namespace) -> int:
    """Show how it stands, or do it."""
    with Client(args.socket, args.agent, PATIENCE_SECONDS) as client:
        if args.now:
            synced = client.sync()
            if args.json:
                show_json(synced)
            else:
                print(_told(synced))
            return 0
        standing = client.sync_status()
    if args.json:
        show_json(standing)
    else:
        show_rows(_rows(standing, time.time()))
    return 0


def phase_of(standing: Standing, now: float) -> str:
    """What replication is doing, in a few words; capital letters where somebody must act."""
    if standing["replica"] == "none":
        return "off"
    if standing["phase"] == "waiting":
        return f"waiting, next try {ago(max(standing['next_try'] or now, now), now)}"
    if standing["phase"] == "stopped":
        return "STOPPED until it is mended"
    if standing["phase"] == "working":
        return "at work"
    if standing["last_success"] is None:
        return "not begun"
    return "some to send" if standing["queued"] else "in step"


def _told(synced: Synced) -> str:
    text = f"sent {synced['sent']:,}, received {synced['received']:,}"
    if synced["refused"]:
        text += f", passed over {synced['refused']:,} that make no sense"
    took = synced["took_ms"]
    text += " in " + (f"{took / 1000:.1f} s" if took >= 1000 else f"{took:.0f} ms")
    nothing = not (synced["sent"] or synced["received"] or synced["refused"])
    return f"{text}: nothing was left" if nothing else text


def _rows(standing: SyncStanding, now: float) -> Iterator[tuple[str, str]]:
    yield "replica", _place(standing)
    yield "state", phase_of(standing, now)
    if standing["message"]:
        yield "", standing["message"]
    if standing["hint"]:
        yield "way out", standing["hint"]
    yield "to send", _queued(standing["outbox"])
    if standing["lost_values"]:
        lost = number_of(standing["lost_values"], "value", "values")
        yield (
            "conflicts",
            f"{lost} lost to a later change elsewhere: thermocline history --conflicts",
        )
    for note in standing["notes"]:
        yield "left out", note
    if standing["away"]:
        yield "away", f"not seen for 90 days: {', '.join(standing['away'])}"
    if standing["replica"] != "none":
        yield "last success", _succeeded(standing["last_success"], now)
        yield "since start", _counted(standing)
        yield "restore", _verified(standing["verification"], now)
    yield "device", f"{standing['device']['name']} ({standing['device']['id']})"


def _place(standing: Standing) -> str:
    if standing["replica"] == "none":
        return "none: set sync.url to replicate"
    if standing["replica"] == "unknown":
        unusable = "what the configuration names cannot be used"
        return unusable if standing["message"] else "not looked for yet"
    return f"{standing['url']} ({standing['configured_by']})"


def _queued(kinds: Mapping[str, int]) -> str:
    named = (number_of(number, *_KINDS.get(kind, (kind, kind))) for kind, number in kinds.items())
    return ", ".join(named) or "nothing"


def _succeeded(last: float | None, now: float) -> str:
    return "none since the daemon started" if last is None else ago(last, now)


def _verified(last: Verification | None, now: float) -> str:
    """How the last proof that a restore works went."""
    if last is None:
        return "none yet"
    when = ago(last["at"], now)
    if last["verified"]:
        return f"{last['rows']:,} rows could be restored {when}"
    return f"FAILED {when}: {'; '.join(last['faults'])}"


def _counted(standing: Standing) -> str:
    text = f"sent {standing['sent']:,}, received {standing['received']:,}"
    if standing["refused"]:
        text += f", passed over {standing['refused']:,} that make no sense"
    return text
