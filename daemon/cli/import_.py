"""`thermocline import`: import what other tools, or other people, have written."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from .. import shapes
from ..client import Client
from .arguments import WrongUsage, decoded, read_stdin, say
from .database import PATIENCE_SECONDS, token_of
from .options import DATABASE, add_options, refuse
from .terminal import show_json, visible

# The daemon reads a larger file itself; only root and the daemon's user may request that.
_LARGEST_SENT: Final = 400_000
_FORMATS: Final = ("hot", "warm", "tree", "metrics", "memory-md", "rows")
_NAMED: Final = 10


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import`."""
    add = parser.add_argument
    add("path", metavar="PATH", nargs="?", help="a file, a folder, or - for standard input")
    url = {"flags": ("--url", "--db-url"), "help": "a database of EvoClaw's: libsql:// or https://"}
    add_options(parser, DATABASE, DATABASE, db_url=url)
    add("--format", choices=_FORMATS, help="format of the file; default: detect it")
    add("--dry-run", action="store_true", help="store nothing, and show what would be stored")
    parser.epilog = (
        "Imports any state file, also one that was set aside; MEMORY.md, whose lines become\n"
        "memories; exported rows; and a folder or workspace, with all its agents unless one is\n"
        "named. A difference between a single state file and the memory counts as an edit made\n"
        "when the file was written; a folder only adds. Forgotten memories stay forgotten, and\n"
        "repeating an import adds nothing.\n"
        "example:\n  thermocline import warm-memory.json.changed-20260301T120000"
    )


def run_import(args: argparse.Namespace, client: Client) -> None:
    """Import it, and print what was stored."""
    refuse(bool(args.path) == bool(args.db_url), "give a PATH or --url")
    token = token_of(args)
    refuse(token and not args.db_url, "a token needs --url")
    request = _database(args.db_url, token) if args.db_url else _file(args.path)
    request["dry_run"] = args.dry_run
    if args.format:
        request["format"] = args.format
    client.timeout = PATIENCE_SECONDS
    answers = {args.agent or "": client.import_(**request)}
    raw = {args.agent or "": json.loads(client.answered)}
    if args.agent is None:
        for agent in [other.agent for other in answers[""].others]:
            with Client(args.socket, agent, PATIENCE_SECONDS) as another:
                answers[agent] = another.import_(**request)
                raw[agent] = json.loads(another.answered)
    if args.json:
        show_json(raw[args.agent or ""] if len(raw) == 1 else {"agents": raw})
        return
    for agent, answer in answers.items():
        _show(agent if len(answers) > 1 else "", answer)


def _database(url: str, token: str | None) -> dict[str, Any]:
    return {"url": url, "token": token} if token else {"url": url}


def _file(given: str) -> dict[str, Any]:
    """What is sent of a file: its content, or its path."""
    if given == "-":
        return {"text": decoded(read_stdin(), "standard input"), "name": ""}
    path = Path(given).expanduser().resolve()
    found = path.stat()
    if not path.is_file() or found.st_size > _LARGEST_SENT:
        return {"path": str(path)}
    content = path.read_bytes()
    if not content.strip():
        raise WrongUsage(f"{given} is empty")
    if content.startswith(b"\x1f\x8b"):
        return {"path": str(path)}
    return {
        "text": decoded(content, given),
        "name": path.name,
        "written_at": max(0.0, found.st_mtime),
    }


def _show(agent: str, answer: shapes.imports.Imported) -> None:
    of = f"{agent}: " if agent else ""
    for one in answer.read:
        what = one.file or one.table or ""
        print(f"{of}read {visible(what)}: {one.entries:,} entries")
    would = "would store" if answer.dry_run else "stored"
    print(f"{of}{would}: {_counted(answer.stored) or 'nothing new'}")
    if answer.skipped:
        print(f"{of}skipped: {_counted(answer.skipped)}")
    for line in answer.left_out[:_NAMED]:
        say(f"left out: {visible(line)}")
    if len(answer.left_out) > _NAMED:
        say(f"left out: {len(answer.left_out) - _NAMED:,} more; --json shows them")
    for other in answer.others if agent or answer.others else ():
        if not agent:
            say(f"agent {other.agent} is there too: give --agent-id {other.agent}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())
