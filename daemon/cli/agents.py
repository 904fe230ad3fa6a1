"""`thermocline agents`: who has a memory here."""

from __future__ import annotations

from ..client import Client
from .arguments import say
from .terminal import show_json, show_rows, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This verb has no options of its own."""
    del parser


def run(args: argparse.Namespace) -> int:
    """List them."""
    with Client(args.socket, args.agent) as client:
        agents = client.agents()
    if args.json:
        show_json(agents)
        return 0
    if not agents["results"]:
        say("no agent has a memory yet")
        return 0
    rows = [("agent", "memories", "size", "")]
    for agent in agents["results"]:
        memories = "-" if agent["memories"] is None else f"{agent['memories']:,}"
        rows.append(
            (agent["id"], memories, size(agent["size_bytes"]), "open" if agent["open"] else "")
        )
    show_rows(rows)
    return 0
