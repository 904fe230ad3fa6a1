"""`thermocline validate`: what a note leaves out that a reader will want later."""

from __future__ import annotations

from ..client import Client
from .arguments import decoded, read_stdin
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from ..upkeep_answers import Validated

_MOST_EXIT: Final = 99


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("--file", metavar="FILE", help="the note; today's when left out")
    parser.epilog = (
        "It warns of tools without a URL, of actions without a command, and of decisions\n"
        f"without a next step. The exit code is the number of warnings, at most {_MOST_EXIT}."
    )


def run(args: argparse.Namespace) -> int:
    """Look through it; as many warnings as the exit code says."""
    body: dict[str, Any] = {}
    if args.file is not None:
        body = {"text": _text_in(args.file), "file": args.file}
    with Client(args.socket, args.agent) as client:
        found: Validated = client.request("POST", "/api/validate", body=body)
    if args.json:
        show_json({name: value for name, value in found.items() if name != "omissions"})
    else:
        _show(found)
    return min(found.get("warnings_count", 0), _MOST_EXIT)


def _text_in(name: str) -> str:
    if name == "-":
        return decoded(read_stdin(), "standard input")
    with open(name, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a command's time
        return decoded(file.read(), name)


def _show(found: Validated) -> None:
    name = visible(found["file"] or "the text")
    for omission in found.get("omissions", []):
        print(f"{name}:{omission['line']}: {visible(omission['message'])}")
        print(f"  {visible(omission['suggestion'])}")
    if "message" in found:
        print(f"{name}: {visible(found['message'])}")
