"""`thermocline extract-metadata`: the URLs, commands and paths in a file."""

from __future__ import annotations

import json
import sys

from ..client import Client
from .arguments import decoded, read_stdin, say
from .terminal import show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument(
        "--file", required=True, metavar="FILE", help="a text; - reads standard input"
    )


def run(args: argparse.Namespace) -> int:
    """Extract them; nothing is stored."""
    try:
        text = decoded(_bytes_of(args.file), args.file)
    except OSError as error:
        _tell(f"cannot read {args.file}: {error.strerror}", as_json=args.json)
        return 1
    with Client(args.socket, args.agent) as client:
        found = client.metadata(text)
    if args.json:
        show_json({"file": args.file, **found})
    else:
        kinds = ("urls", "commands", "paths")
        show_rows((kind[:-1], one) for kind in kinds for one in found["metadata"][kind])  # type: ignore[literal-required]
    return 0


def _bytes_of(name: str) -> bytes:
    if name == "-":
        return read_stdin()
    with open(name, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a command's time
        return file.read()


def _tell(message: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": message}), file=sys.stderr)
    else:
        say(visible(message))
