"""`thermocline doctor`: what is wrong on this device, and what to do."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ..client import Client
from ..client.wording import number_of
from .options import DAEMON, add_options
from .terminal import show_json, visible


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    add_options(parser, DAEMON, ("state_dir",))
    parser.epilog = (
        "Works with and without a running daemon, and changes nothing. For the service of the\n"
        "system run it with sudo.\n\n"
        "exit codes: 0 nothing keeps the memory from working, though there may be warnings;\n"
        "1 something does"
    )


def run_doctor(args: argparse.Namespace, client: Client) -> int:
    """Show every finding, what is wrong with its remedy; 1 if something failed."""
    from ..doctor import checks, exam  # noqa: PLC0415 - only this verb loads so much

    client.timeout = 5.0
    lines = []
    for line in checks.examine(exam.begin(os.environ, client, args.state_dir, Path("/"))):
        lines.append(line)
        if not args.json:
            _show(line)
    failures, warnings = (
        sum(line.level == level for line in lines) for level in ("failure", "warning")
    )
    if args.json:
        found = [{name: getattr(line, name) for name in line.__struct_fields__} for line in lines]
        show_json({"ok": not failures, "findings": found})
    else:
        told = [number_of(failures, "failure", "failures")] if failures else []
        told += [number_of(warnings, "warning", "warnings")] if warnings else []
        print(", ".join(told) or "nothing is wrong")
    return 1 if failures else 0


def _show(line: Any) -> None:
    level = "ok" if line.level == "ok" else line.level.upper()
    print(f"{level:<8} {line.check}: {visible(line.message)}")
    if line.remedy and line.level != "ok":
        print(f"{'':<8} {visible(line.remedy)}")
