"""`thermocline context`: what the agent reads before its turn."""

from __future__ import annotations

import argparse
from typing import Final

from ..client import Client
from .arguments import one_text, say, text_of, whole
from .terminal import show_answer, show_json, show_text, visible

_FORMATS: Final = ("thermocline", "json", "tinyclaw", "tiny-claw", "scalyclaw", "evoclaw")


def add_context(parser: argparse.ArgumentParser) -> None:
    """Add the options of `context`."""
    add = parser.add_argument
    add("words", nargs="?", metavar="QUERY", help="the turn it is for; - reads it from stdin")
    add("--query", metavar="TEXT", help="the query, in place of the first word")
    add(
        "--max-tokens",
        type=whole,
        metavar="N",
        default=2_000,
        help="size of the block, 200 to 8000 (default 2000)",
    )
    add("--format", choices=_FORMATS, default=_FORMATS[0], help="how it is written")
    add("--session", metavar="ID", help="only what this session sees, which records the answer")
    parser.epilog = "example:\n  thermocline context 'why does the deploy hang?' --max-tokens 1000"


def run_context(args: argparse.Namespace, client: Client) -> None:
    """Print the block, if it has any content."""
    given = args.words is not None or args.query is not None
    query = text_of(one_text(args.words, args.query, "--query")) if given else ""
    block = client.context(
        query, max_tokens=args.max_tokens, format=args.format, session=args.session
    )
    for warning in block.warnings or ():
        say(visible(warning))
    if args.json:
        show_answer(client.answered)
    elif args.format == "json":
        show_json(block.sections)
    elif block.text:
        show_text(block.text)
