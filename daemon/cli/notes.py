"""`thermocline validate` and `extract-metadata`: what a note lacks, and its references."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from ..client import ApiError, Client
from .arguments import text_in
from .terminal import show_json, show_rows, visible

_MOST_EXIT: Final = 99


def add_validate(parser: argparse.ArgumentParser) -> None:
    """Add the options of `validate`."""
    parser.add_argument("--file", metavar="FILE", help="the note; default: today's")
    parser.epilog = (
        "It warns of tools without a URL, of actions without a command, and of decisions\n"
        f"without a next step. The exit code is the number of warnings, at most {_MOST_EXIT}."
    )


def run_validate(args: argparse.Namespace, client: Client) -> int:
    """Check the note; returns the number of warnings."""
    try:
        body = {} if args.file is None else {"text": text_in(args.file), "file": args.file}
        found = client.validate(**body)
    except (FileNotFoundError, ApiError) as error:
        if not args.json or getattr(error, "field", "file") != "file":
            raise
        show_json(_missing(args.file))
        return 1
    if args.json:
        answer = json.loads(client.answered)
        show_json({name: value for name, value in answer.items() if name != "omissions"})
    else:
        name = visible(found.file or "the text")
        for omission in found.omissions or ():
            print(f"{name}:{omission.line}: {visible(omission.message)}")
            print(f"  {visible(omission.suggestion)}")
        if found.message:
            print(f"{name}: {visible(found.message)}")
    return min(found.warnings_count or 0, _MOST_EXIT)


def _missing(file: str | None) -> dict[str, Any]:
    """EvoClaw's answer if the note does not exist."""
    return {
        "status": "warning",
        "warnings_count": 1,
        "warnings": [f"Daily notes file not found: {file or 'the note of today'}"],
        "file": file,
        "suggestions": ["name a file with --file, or write memory/YYYY-MM-DD.md"],
    }


def add_extract_metadata(parser: argparse.ArgumentParser) -> None:
    """Add the options of `extract-metadata`."""
    parser.add_argument(
        "--file", required=True, metavar="FILE", help="a text; - reads standard input"
    )


def run_extract_metadata(args: argparse.Namespace, client: Client) -> None:
    """Extract them; nothing is stored."""
    found = client.metadata(text_in(args.file))
    if args.json:
        show_json({"file": args.file, **json.loads(client.answered)})
    else:
        kinds = ("urls", "commands", "paths")
        show_rows((kind[:-1], one) for kind in kinds for one in getattr(found.metadata, kind))
