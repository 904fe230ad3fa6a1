"""Finds and imports the files of other tools, of earlier runs, or a damaged database."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..memory.checks import check_agent
from ..store import memory_rows
from ..store.opening import LARGEST, TOO_LARGE
from ..store.place import Place
from ..store.settling import archive_faded
from ..store.transaction import Transaction
from . import state_files
from .intake import Intake
from .salvage import salvage

_log = logging.getLogger(__name__)
_DEFAULT: Final = "default"
_MEMORY: Final = "memory"
_FOLDERS_AT_MOST: Final = 1000


class TakeOver:
    """Fills the database of an agent from existing files; see `place.Importer`."""

    def is_there(self, place: Place) -> bool:
        """Whether there are state files to take over, in the folder or the workspace."""
        return any(_has_files(folder) for folder, _ in _roots(place))

    def take_over(self, tx: Transaction, place: Place, damaged: Path | None) -> dict[str, Any]:
        """Apply all that can be read: the database before the files, which may be older."""
        intake = Intake(tx)
        if damaged is not None:
            salvage(damaged, intake)
        for folder, below in _roots(place):
            for name in state_files.FILES:
                state_files.read_file(folder / name, intake, below=below)
        for path in sorted(place.folder.glob(f"*.{TOO_LARGE}-*")):
            intake.report.note(str(path), f"set aside: it has more than {LARGEST:,} bytes")
        _free_hidden(tx)
        archive_faded(tx)
        for top in (place.folder, place.workspace):
            for name, folder in others(top, place.agent) if top is not None else ():
                intake.report.note(
                    str(folder),
                    f"it belongs to the agent '{name}';"
                    f" take it over with `thermocline import {folder} --agent-id {name}`",
                )
        for line in intake.report.left_out:
            _log.warning(
                "left out while taking over: %s",
                line,
                extra={"action": "left_out", "agent": place.agent},
            )
        report: dict[str, Any] = msgspec.to_builtins(intake.report)
        return report


def others(top: Path, agent: str) -> Iterator[tuple[str, Path]]:
    """The other agents with a folder in a workspace, and those folders."""
    memory = top / _MEMORY
    try:
        folders = sorted(memory.iterdir())[:_FOLDERS_AT_MOST]
    except OSError:
        return
    for folder in folders:
        try:
            name = check_agent(folder.name)
        except InvalidInput:
            continue
        if name != agent and _has_files(folder):
            yield name, folder


def _roots(place: Place) -> list[tuple[Path, Path]]:
    """Each folder that may have state files, the authoritative one first.

    With each the folder below which other users may write, and links are not followed. A workspace
    given as the folder is the agent's alone; another keeps the files of `default` in `memory/`
    itself, and those of other agents in subfolders.
    """
    folder = place.folder.resolve()
    own = (folder, folder / _MEMORY, folder / _MEMORY / place.agent)
    found = [(one, folder) for one in own]
    if place.workspace is not None:
        top = place.workspace.resolve()
        found += [(top / _MEMORY, top)] if place.agent == _DEFAULT else []
        found.append((top / _MEMORY / place.agent, top))
    return [(one, below) for one, below in found if one.is_dir()]


def _free_hidden(tx: Transaction) -> None:
    """Restore memories whose merge target was lost: they would stay hidden forever."""
    hidden = tx.db.execute(
        "SELECT id FROM memories WHERE merged_into IS NOT NULL"
        " AND merged_into NOT IN (SELECT id FROM memories)"
    ).fetchall()
    for (key,) in hidden:
        memory_rows.come_back(tx, memory_rows.there(tx, key))


def _has_files(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in state_files.FILES)
