"""`thermocline backup` and `export`: all of an agent's memory in a file, to restore or to read."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..client import Client
from ..client.wording import names_of, size
from .arguments import say
from .saving import add_file, pass_on, refuse_terminal, save
from .terminal import show_json, visible

if TYPE_CHECKING:  # importing it loads what no other verb needs
    from ..files.walker import Skipped
    from ..restore.archive import Archive

_NAMED: Final = 10


def add_backup(parser: argparse.ArgumentParser) -> None:
    """Add the options of `backup`."""
    add_file(parser, default=None)
    parser.epilog = (
        "The archive contains every row and the files of the workspace; only its owner can read\n"
        "it. It is checked before it gets its name. The daemon keeps running.\n"
        "example:\n  thermocline backup ana-2026-03-01.tar.gz --agent-id ana"
    )


def run_backup(args: argparse.Namespace, client: Client) -> None:
    """Save it, and print what it contains."""
    refuse_terminal(args.file)
    if args.file == "-":
        say(f"{size(pass_on(client.backup()))} written")
        return
    file = Path(args.file).expanduser()
    found = save(client.backup(), file, force=args.force, check=_verified)
    _warn(found.skipped)
    if args.json:
        show_json(_answer(file, found))
    else:
        _show(file, found)


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
    """The number of rows of each kind that there is."""
    words = [f"{names_of(name)[1]}: {count:,}" for name, count in counts.items() if count]
    return ", ".join(words) or "nothing stored yet"


def _warn(skipped: Sequence[Skipped]) -> None:
    """Name the files that the archive lacks."""
    for one in skipped[:_NAMED]:
        say(f"left out: {visible(one.path)} ({visible(one.why)})")
    if len(skipped) > _NAMED:
        say(f"left out: {len(skipped) - _NAMED:,} more")


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the options of `export`."""
    add_file(parser, default="-")
    parser.epilog = (
        "Each line is a row: kind, id, data, and the clocks of its fields. Merged, expired and\n"
        "archived memories are included; fields with their default value are left out.\n"
        "example:\n  thermocline export | jq -r 'select(.kind == \"memory\") | .data.text'"
    )


def run_export(args: argparse.Namespace, client: Client) -> None:
    """Write the rows, to standard output or into a file."""
    if args.file == "-":
        if not sys.stdout.isatty():
            pass_on(client.download("/api/export"))
            return
        for line in client.export():
            show_json(line, one_line=True)
        return
    file = Path(args.file).expanduser()
    written = save(client.download("/api/export"), file, force=args.force, check=os.path.getsize)
    if args.json:
        show_json({"file": str(file), "size_bytes": written})
    else:
        say(f"{size(written)} written to {file}")
