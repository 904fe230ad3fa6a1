"""`thermocline import`: take in what other tools, or other hands, have written."""

from __future__ import annotations

from pathlib import Path

from ..client import Client
from .arguments import WrongUsage, decoded, read_stdin, say
from .database import PATIENCE_SECONDS, token_of
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

# A larger file is read by the daemon itself, which root and its own user may ask for.
_LARGEST_SENT: Final = 400_000
_FORMATS: Final = ("hot", "warm", "tree", "metrics", "memory-md", "rows")
_NAMED: Final = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("path", metavar="PATH", nargs="?", help="a file, a folder, or - for standard input")
    add(
        "--url", "--db-url", dest="db_url", metavar="URL",
        help="a database that EvoClaw filled: libsql:// or https://",
    )  # fmt: skip
    add("--token-file", metavar="FILE", help="what holds its token alone; - reads standard input")
    add("--auth-token", metavar="TOKEN", help="the token itself, which other users can see")
    add("--format", choices=_FORMATS, help="what the file is; left out: that is found out")
    add("--dry-run", action="store_true", help="say what would be stored, and store nothing")
    parser.epilog = (
        "Takes each state file, also one that was set aside; MEMORY.md, whose lines become\n"
        "memories; lines of rows; and a folder or workspace, of every agent in it unless one is\n"
        "named. Where a single state file differs from the memory, that counts as an edit of when\n"
        "the file was written; a folder only adds. What was forgotten stays so, and a second run\n"
        "adds nothing.\n"
        "example:\n  thermocline import warm-memory.json.changed-20260301T120000"
    )


def run(args: argparse.Namespace) -> int:
    """Take it in, and tell what was."""
    if bool(args.path) == bool(args.db_url):
        raise WrongUsage("give a PATH or --url")
    token = token_of(args)
    if token and not args.db_url:
        raise WrongUsage("a token is for --url")
    wish = _database(args.db_url, token) if args.db_url else _file(args.path)
    wish["dry_run"] = args.dry_run
    if args.format:
        wish["format"] = args.format
    answers: dict[str, Any] = {}
    agents = [args.agent]
    for agent in agents:
        with Client(args.socket, agent, timeout=PATIENCE_SECONDS) as client:
            answer = client.request("POST", "/api/import", body=wish)
        answers[agent or ""] = answer
        if args.agent is None and agent is None:
            agents += [other["agent"] for other in answer["others"]]
    if args.json:
        show_json(answers[args.agent or ""] if len(answers) == 1 else {"agents": answers})
        return 0
    for agent, answer in answers.items():
        _show(agent if len(answers) > 1 else "", answer)
    return 0


def _database(url: str, token: str | None) -> dict[str, Any]:
    return {"url": url, "token": token} if token else {"url": url}


def _file(given: str) -> dict[str, Any]:
    """What is sent of a file: its content, or where it is."""
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


def _show(agent: str, answer: dict[str, Any]) -> None:
    of = f"{agent}: " if agent else ""
    for one in answer["read"]:
        what = one.get("file") or one.get("table")
        print(f"{of}read {visible(what)}: {one['entries']:,} entries")
    would = "would store" if answer["dry_run"] else "stored"
    print(f"{of}{would}: {_counted(answer['stored']) or 'nothing new'}")
    if answer["skipped"]:
        print(f"{of}skipped: {_counted(answer['skipped'])}")
    for line in answer["left_out"][:_NAMED]:
        say(f"left out: {visible(line)}")
    if len(answer["left_out"]) > _NAMED:
        say(f"left out: {len(answer['left_out']) - _NAMED:,} more; --json shows them")
    for other in answer["others"] if agent or answer["others"] else ():
        if not agent:
            say(f"agent {other['agent']} is there too: give --agent-id {other['agent']}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())
