"""`thermocline forget`: delete memories for good."""

from __future__ import annotations

from ..client import ApiError, Client
from .arguments import say
from .memories import short
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument(
        "ids",
        nargs="+",
        metavar="ID",
        help="an id, or the first 4 or more characters of it; nothing is asked",
    )


def run(args: argparse.Namespace) -> int:
    """Delete each that is there; 1 when one was not, after the others are deleted."""
    code = 0
    with Client(args.socket, args.agent) as client:
        for memory_id in args.ids:
            try:
                deleted = client.forget(memory_id)
            except ApiError as error:
                if error.status >= 500:
                    raise
                say(visible(str(error)))
                code = 1
                continue
            if args.json:
                show_json(deleted, one_line=True)
            else:
                print("forgot", short(visible(deleted.get("id", memory_id))))
                for back in deleted.get("unmerged", ()):
                    print(short(visible(back)), "was merged into it, and is back")
    return code
