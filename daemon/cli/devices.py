"""`thermocline devices`: the devices that share the memory."""

from __future__ import annotations

import time

from ..client import Client
from .arguments import say
from .database import PATIENCE_SECONDS
from .terminal import ago, moment, show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ..status_answers import Device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--retire",
        metavar="ID|NAME",
        help="wait for a device no longer: it is lost, or given away",
    )
    one.add_argument(
        "--rejoin", action="store_true", help="take this device in again after it was retired"
    )
    parser.epilog = (
        "What is deleted is remembered as such until every device has heard of it, but for those\n"
        "that are retired. What a retired device has sent stays."
    )


def run(args: argparse.Namespace) -> int:
    """List them, or do what an option says."""
    with Client(args.socket, args.agent, PATIENCE_SECONDS) as client:
        if args.retire is not None:
            _retire(client, args.retire, as_json=args.json)
        elif args.rejoin:
            _rejoin(client, as_json=args.json)
        else:
            _list(client, as_json=args.json)
    return 0


def _list(client: Client, *, as_json: bool) -> None:
    devices = client.devices()
    if as_json:
        show_json(devices)
    elif devices["results"]:
        _show(devices["results"])
    else:
        say("no device has been there yet")


def _show(devices: Sequence[Device]) -> None:
    now = time.time()
    head = ("device", "name", "first contact", "last contact", "rows behind", "")
    show_rows([head, *(_row(device, now) for device in devices)])


def _row(device: Device, now: float) -> tuple[str, ...]:
    return (
        device["id"],
        device["name"],
        moment(device["first_at"], now),
        ago(device["last_at"], now),
        "-" if device["behind"] is None else f"{device['behind']:,}",
        _note(device, now),
    )


def _note(device: Device, now: float) -> str:
    notes = ["this device"] if device["this"] else []
    if device["retired_at"] is not None:
        notes.append(f"retired {ago(device['retired_at'], now)}")
    return ", ".join(notes)


def _retire(client: Client, key: str, *, as_json: bool) -> None:
    retired = client.retire_device(key)
    if as_json:
        show_json(retired)
    else:
        print("retired", visible(retired["name"]), f"({visible(retired['id'])})")


def _rejoin(client: Client, *, as_json: bool) -> None:
    rejoined = client.rejoin()
    if as_json:
        show_json(rejoined)
    elif rejoined["rejoined"]:
        print(f"rejoined: sent {rejoined['sent']:,}, received {rejoined['received']:,}")
    else:
        print("this device was in use all along")
