"""Finds and imports files of other tools and earlier runs, and what a damaged database holds."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..memory.checks import check_agent
from ..store.agent_paths import AgentPaths
from ..store.database.transaction import Transaction
from ..store.engine import LARGEST, TOO_LARGE
from ..store.limits import archive_faded
from ..store.records import memory_rows
from . import state_files
from .intake import Intake
from .salvage import salvage

_log = logging.getLogger(__name__)
_MEMORY: Final = "memory"
_FOLDERS_AT_MOST: Final = 1000


class TakeOver:
    """Fills the database of an agent from existing files; see `place.Importer`."""

    def is_there(self, place: AgentPaths) -> bool:
        return any(_has_files(folder) for folder, _ in _roots(place))

    def take_over(self, tx: Transaction, place: AgentPaths, damaged: Path | None) -> dict[str, Any]:
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


def _roots(place: AgentPaths) -> list[tuple[Path, Path]]:
    """Each folder that may have state files, the authoritative one first.

    With each the folder below which other users may write, and links are not followed. A workspace
    given as the folder is the agent's alone; another keeps the files of `default` in `memory/`
    itself, and those of other agents in subfolders.
    """
    folder = place.folder.resolve()
    own = (folder, folder / _MEMORY, folder / _MEMORY / place.agent)
    roots = [(path, folder) for path in own]
    if place.workspace is not None:
        top = place.workspace.resolve()
        roots += [(top / _MEMORY, top)] if place.agent == "default" else []
        roots.append((top / _MEMORY / place.agent, top))
    return [(root, below) for root, below in roots if root.is_dir()]


def _free_hidden(tx: Transaction) -> None:
    """Restore memories whose merge target was lost: they would stay hidden forever."""
    hidden = "merged_into IS NOT NULL AND merged_into NOT IN (SELECT id FROM memories)"
    for memory in memory_rows.select(tx.db, hidden):
        memory_rows.restore_merged(tx, memory)


def _has_files(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in state_files.FILES)
