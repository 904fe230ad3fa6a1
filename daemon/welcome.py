"""What a person who started the daemon by hand sees first."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def welcome_text(socket: Path, usual: str) -> str:
    """Three commands to try, as they work in another terminal in this folder.

    Args:
        socket: where the daemon listens.
        usual: where a command looks for it by itself.
    """
    program = Path(sys.argv[0])
    here = Path.cwd()
    command = str(program.relative_to(here)) if program.is_relative_to(here) else program.name
    if str(socket) != usual:
        command += f" --socket {shlex.quote(str(socket))}"
    return f"""
Thermocline is running. In another terminal, try:

  {command} store "Maya's flight lands on Friday at 18:40" --category travel
  {command} retrieve "when does Maya arrive?"
  {command} status

Ctrl-C stops it. What it has acknowledged is on the disk.
"""
