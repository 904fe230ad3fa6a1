"""What a restore leaves that was killed, and who goes on from there.

The last two renames of one that replaces a memory cannot be one: what was there is set aside, and
what is whole is put into its place. A folder that is whole is therefore marked before the first
of them. A daemon that starts finds the mark and does the second; the next restore takes it off.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..store import atomic
from .moving import Run
from .place import UNPACKED, WHOLE, RestorePlace

_log = logging.getLogger(__name__)
_STAGING: Final = re.compile(rf"\.([A-Za-z0-9_-]{{1,64}})\.restoring({UNPACKED}\w+)?({WHOLE})?")


def finish(state_dir: Path) -> None:
    """Put what is whole into its place, where that is empty.

    A place that is not empty was not set aside yet, or somebody has put it back: it stays as it
    is. What came from a replica then stays too, for the same command to go on with; what came
    from an archive goes. To be called before a memory is opened, while no other process can.

    Args:
        state_dir: the folder of all agents; it need not exist.
    """
    try:
        for folder, agent, unpacked, whole in _left(state_dir):
            place = RestorePlace(state_dir, agent)
            if whole and not place.is_taken():
                place.put(folder)
                _log.info("finished an interrupted restore of '%s'", agent)
            elif unpacked:
                shutil.rmtree(folder)
            elif whole:
                _unmark(folder)
        Run.live(state_dir)
    except OSError as error:
        _log.warning("cannot finish an interrupted restore: %s", error)


def take_up(state_dir: Path) -> None:
    """Let a restore from a replica go on with what an earlier one has marked as whole.

    Raises:
        OSError: the disk refuses.
    """
    for folder, _, unpacked, whole in _left(state_dir):
        if whole and not unpacked:
            _unmark(folder)


def _left(state_dir: Path) -> Iterator[tuple[Path, str, bool, bool]]:
    """Each folder beside its place: whose, whether from an archive, and whether whole."""
    for folder in sorted((state_dir / "agents").glob(".*.restoring*")):
        if found := _STAGING.fullmatch(folder.name):
            yield folder, found[1], found[2] is not None, found[3] is not None


def _unmark(folder: Path) -> None:
    folder.rename(folder.with_name(folder.name.removesuffix(WHOLE)))
    atomic.sync_folder(folder.parent)
