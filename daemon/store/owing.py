"""Which closed memories have something that their replica has not heard of."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .database import FILE_NAME


def owes(place: Callable[[str], tuple[Path, Any]], names: Iterable[str]) -> set[str]:
    """The agents among `names` whose outbox is not empty. Blocking.

    One that cannot be read is left out: opening it tells what is wrong.
    """
    return {name for name in names if _owes(place(name)[0] / FILE_NAME)}


def _owes(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return False
    try:
        return db.execute("SELECT 1 FROM outbox LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return False
    finally:
        db.close()
