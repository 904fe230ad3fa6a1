"""Finds and imports the files of other tools, of earlier runs, or a damaged database."""

from __future__ import annotations

import logging
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


class Root(msgspec.Struct, frozen=True):
    """A folder that may have state files of one agent.

    Attributes:
        below: the folder below which other users may write, and links are not followed.
    """

    folder: Path
    below: Path


class TakeOver:
    """Fills the database of an agent from existing files; see `place.Importer`."""

    def is_there(self, place: Place) -> bool:
        """Whether there are state files to take over, in the folder or the workspace."""
        return any(
            _exists(root.folder / name) for root in _roots(place) for name in state_files.FILES
        )

    def take_over(self, tx: Transaction, place: Place, damaged: Path | None) -> dict[str, Any]:
        """Apply all that can be read: the database before the files, which may be older."""
        intake = Intake(tx)
        if damaged is not None:
            salvage(damaged, intake)
        for root in _roots(place):
            take_folder(root, intake)
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


def take_folder(root: Root, intake: Intake) -> None:
    """Take the state files of one folder."""
    for name in state_files.FILES:
        state_files.read_file(root.folder / name, intake, below=root.below)


def roots_of(top: Path, agent: str) -> list[Root]:
    """Where state files of an agent may be in a folder or workspace named by the caller.

    A workspace keeps those of the agent `default` in `memory/` itself, and those of other agents in
    subfolders.
    """
    top = top.resolve()
    memory = top / _MEMORY
    places = [top, memory, memory / agent] if agent == _DEFAULT else [top, memory / agent]
    return [Root(place, top) for place in places if place.is_dir()]


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
        if name != agent and any(_exists(folder / file) for file in state_files.FILES):
            yield name, folder


def _roots(place: Place) -> list[Root]:
    """The authoritative place first; a workspace given as the folder is the agent's alone."""
    folder = place.folder.resolve()
    own = (folder, folder / _MEMORY, folder / _MEMORY / place.agent)
    found = [Root(one, folder) for one in own if one.is_dir()]
    if place.workspace is not None:
        found += roots_of(place.workspace, place.agent)[1:]
    return found


def _free_hidden(tx: Transaction) -> None:
    """Restore memories whose merge target was lost: they would stay hidden forever."""
    hidden = tx.db.execute(
        "SELECT id FROM memories WHERE merged_into IS NOT NULL"
        " AND merged_into NOT IN (SELECT id FROM memories)"
    ).fetchall()
    for (key,) in hidden:
        memory_rows.come_back(tx, memory_rows.there(tx, key))


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True
