"""What a person who started the daemon by hand sees first."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def welcome_text(socket: Path, usual: str) -> str:
    """Three commands to try, as they work in another terminal in this folder.

    Args:
        socket: where the daemon listens.
        usual: where a command looks for it by itself.
    """
    command = _command(Path(sys.argv[0]).absolute())
    if str(socket) != usual:
        command += f" --socket {shlex.quote(str(socket))}"
    return f"""
Thermocline is running. In another terminal, try:

  {command} store "Maya's flight lands on Friday at 18:40" --category travel
  {command} retrieve "when does Maya arrive?"
  {command} status

Ctrl-C stops it. What it has acknowledged is on the disk.
"""


def _command(program: Path) -> str:
    """How a person in this folder calls the program that runs."""
    if program.suffix == ".py":
        return f"{sys.executable} -m thermocline.daemon.cli.main"
    if shutil.which(program.name) == str(program):
        return program.name
    here = Path.cwd()
    return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)
