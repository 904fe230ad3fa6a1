"""`thermocline sync`, `sync-critical` and `devices`: replication and its devices."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping

from .. import shapes
from ..client import ApiError, Client
from ..client.wording import ago, moment, names_of, number_of
from .arguments import WrongUsage, say
from .database import PATIENCE_SECONDS, add_database, database_of
from .terminal import Shown, show_json, show_rows, visible


def add_sync(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sync`."""
    parser.add_argument("--now", action="store_true", help="send and receive now, and wait for it")


def run_sync(args: argparse.Namespace, client: Client) -> Shown:
    """Replicate now, or show the state of it."""
    client.timeout = PATIENCE_SECONDS
    if args.now:
        return _told(client.sync())
    status = client.sync_status()
    return lambda: show_rows(_rows(status))


def phase_of(status: shapes.sync.ReplicationStatus) -> str:
    """What replication is doing, in a few words; in capitals where the user must act."""
    if status.replica == "none":
        return "off"
    if status.phase == "waiting":
        now = time.time()
        return f"waiting, next try {ago(max(status.next_try or now, now), now)}"
    if status.phase == "stopped":
        return "STOPPED until it is fixed"
    if status.phase == "working":
        return "running"
    if status.last_success is None:
        return "not started"
    return "changes to send" if status.queued else "up to date"


def _told(synced: shapes.sync.Synced) -> str:
    text = f"sent {synced.sent:,}, received {synced.received:,}"
    if synced.refused:
        text += f", skipped {synced.refused:,} that this release cannot read"
    took = synced.took_ms
    text += " in " + (f"{took / 1000:.1f} s" if took >= 1000 else f"{took:.0f} ms")
    nothing = not (synced.sent or synced.received or synced.refused)
    return f"{text}: nothing to do" if nothing else text


def _rows(status: shapes.sync.SyncStatus) -> Iterator[tuple[str, str]]:
    yield "replica", _place(status)
    yield "state", phase_of(status)
    if status.message:
        yield "", status.message
    if status.hint:
        yield "remedy", status.hint
    yield "to send", _queued(status.outbox)
    if status.lost_values:
        lost = number_of(status.lost_values, "value", "values")
        yield (
            "conflicts",
            f"{lost} lost to a later change elsewhere: thermocline history --conflicts",
        )
    for note in status.notes:
        yield "left out", note
    if status.away:
        yield "away", f"not seen for 90 days: {', '.join(status.away)}"
    if status.replica != "none":
        yield "last success", _succeeded(status.last_success)
        yield "since start", _counted(status)
        yield "restore", _verified(status.verification)
    yield "device", f"{status.device.name} ({status.device.id})"


def _place(status: shapes.sync.ReplicationStatus) -> str:
    if status.replica == "none":
        return "none: set sync.url to replicate"
    if status.replica == "unknown":
        unusable = "the configured database cannot be used"
        return unusable if status.message else "not checked yet"
    return f"{status.url} ({status.configured_by})"


def _queued(kinds: Mapping[str, int]) -> str:
    named = (number_of(number, *names_of(kind)) for kind, number in kinds.items())
    return ", ".join(named) or "nothing"


def _succeeded(last: float | None) -> str:
    return "none since the daemon started" if last is None else ago(last)


def _verified(last: shapes.sync.Verification | None) -> str:
    """The result of the last check that a restore would work."""
    if last is None:
        return "not verified yet"
    when = ago(last.at)
    if last.verified:
        return f"{last.rows:,} rows verified {when}"
    return f"FAILED {when}: {'; '.join(last.faults)}"


def _counted(status: shapes.sync.ReplicationStatus) -> str:
    text = f"sent {status.sent:,}, received {status.received:,}"
    if status.refused:
        text += f", skipped {status.refused:,} that this release cannot read"
    return text


def add_sync_critical(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sync-critical`."""
    add_database(parser)
    parser.epilog = 'It answers in JSON: {"synced", "timestamp"}, or {"error"} and exit code 1.'


def run_sync_critical(args: argparse.Namespace, client: Client) -> int:
    """Send them, and answer as EvoClaw does: JSON on one line, an error as a text."""
    client.timeout = PATIENCE_SECONDS
    try:
        synced = client.sync(critical=True, **database_of(args))
    except (WrongUsage, ApiError) as error:
        if hint := getattr(error, "hint", None):
            say(visible(hint))
        show_json({"error": str(error)}, one_line=True)
        return 1
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    # As Python's isoformat has it, with a colon in the offset.
    timestamp = f"{now[:-2]}:{now[-2:]}"
    show_json({"synced": synced.synced, "timestamp": timestamp}, one_line=True)
    return 0


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Add the options of `devices`."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--retire", metavar="ID|NAME", help="do not wait any longer for a device that is gone"
    )
    one.add_argument("--rejoin", action="store_true", help="use this device again after --retire")
    parser.epilog = (
        "A deletion is kept until every device that is not retired has received it. Everything\n"
        "that a retired device has sent is kept."
    )


def run_devices(args: argparse.Namespace, client: Client) -> Shown:
    """List them, or do what an option says."""
    client.timeout = PATIENCE_SECONDS
    if args.retire is not None:
        retired = client.retire_device(args.retire)
        return f"retired {retired.name} ({retired.id})"
    if args.rejoin:
        done = client.rejoin()
        counts = f"rejoined: sent {done.sent:,}, received {done.received:,}"
        return counts if done.rejoined else "this device was not retired"
    devices = client.devices().results
    return lambda: _show_devices(devices)


def _show_devices(devices: list[shapes.sync.DeviceView]) -> None:
    if not devices:
        say("no device has replicated yet")
        return
    head = ("device", "name", "first contact", "last contact", "rows behind", "")
    show_rows([head, *map(_device, devices)])


def _device(device: shapes.sync.DeviceView) -> tuple[str, ...]:
    return (
        device.id,
        device.name,
        moment(device.first_at),
        ago(device.last_at),
        "-" if device.behind is None else f"{device.behind:,}",
        _note(device),
    )


def _note(device: shapes.sync.DeviceView) -> str:
    notes = ["this device"] if device.this else []
    if device.retired_at is not None:
        notes.append(f"retired {ago(device.retired_at)}")
    return ", ".join(notes)
