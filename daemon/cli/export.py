"""`thermocline export`: everything that is remembered, one JSON object a line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..client import Client
from .arguments import say
from .saving import add_file, pass_on, save
from .terminal import show_json, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add_file(parser, default="-")
    parser.epilog = (
        "Each line is a row: kind, id, data, and the clocks of its fields. Merged, expired and\n"
        "archived memories are among them; fields at their default are left out.\n"
        "example:\n  thermocline export | jq -r 'select(.kind == \"memory\") | .data.text'"
    )


def run(args: argparse.Namespace) -> int:
    """Write it out."""
    with Client(args.socket, args.agent) as client:
        if args.file != "-":
            file = Path(args.file).expanduser()
            written = save(
                client.download("/api/export"), file, force=args.force, check=os.path.getsize
            )
            say(f"{size(written)} written to {file}")
        elif sys.stdout.isatty():
            for line in client.export():
                show_json(line, one_line=True)
        else:
            pass_on(client.download("/api/export"))
    return 0
