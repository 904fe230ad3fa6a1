"""`thermocline backup`: all of an agent's memory into one file."""

from __future__ import annotations

from pathlib import Path

from ..client import Client
from .arguments import say
from .saving import add_file, pass_on, refuse_terminal, save
from .terminal import show_json, size, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from typing import Final

    from ..files.walker import Skipped
    from ..restore.archive import Archive

_NAMED: Final = 10
_KINDS: Final = {
    "memory": "memories",
    "hot": "hot entries",
    "category": "categories",
    "pair": "key-value pairs",
    "note": "notes",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add_file(parser, default=None)
    parser.epilog = (
        "The archive holds every row and the files of the workspace, and can be read by\n"
        "its owner alone. It is checked before it gets its name. The daemon goes on meanwhile.\n"
        "example:\n  thermocline backup ana-2026-03-01.tar.gz --agent-id ana"
    )


def run(args: argparse.Namespace) -> int:
    """Save it, and tell what is in it."""
    refuse_terminal(args.file)
    with Client(args.socket, args.agent) as client:
        if args.file == "-":
            say(f"{size(pass_on(client.backup()))} written")
            return 0
        file = Path(args.file).expanduser()
        found = save(client.backup(), file, force=args.force, check=_verified)
    _warn(found.skipped)
    if args.json:
        show_json(_answer(file, found))
    else:
        _show(file, found)
    return 0


def _verified(part: Path) -> Archive:
    # Reading an archive takes modules that no other verb needs.
    from ..restore.archive import read  # noqa: PLC0415

    return read(part)


def _answer(file: Path, found: Archive) -> dict[str, object]:
    return {
        "file": str(file),
        "size_bytes": file.stat().st_size,
        "agent": found.manifest.agent,
        "made_at": found.manifest.made_at,
        "counts": found.manifest.counts,
        "files": len(found.files),
        "unpacked_bytes": found.size,
        "skipped": [{"path": one.path, "why": one.why} for one in found.skipped],
    }


def _show(file: Path, found: Archive) -> None:
    print(f"{visible(str(file))}: {size(file.stat().st_size)}, agent {found.manifest.agent}")
    print(f"  {counted(found.manifest.counts)}")
    print(f"  {len(found.files):,} files, {size(found.size)} unpacked; all checked")


def counted(counts: dict[str, int]) -> str:
    """How many of each kind, those aside of which there are none."""
    words = [f"{kind_of(name)}: {count:,}" for name, count in counts.items() if count]
    return ", ".join(words) or "nothing stored yet"


def kind_of(name: str) -> str:
    """The rows of a kind, in words for people."""
    return _KINDS.get(name, name)


def _warn(skipped: Iterable[Skipped]) -> None:
    """Say what the archive lacks; a list without end helps nobody."""
    all_of_them = [*skipped]
    for one in all_of_them[:_NAMED]:
        say(f"left out: {visible(one.path)} ({visible(one.why)})")
    if len(all_of_them) > _NAMED:
        say(f"left out: {len(all_of_them) - _NAMED:,} more")
