"""The state folder: who may read it, each agent's database, what was set aside, watched files."""

from __future__ import annotations

import os
import pwd
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from ..runtime.problems import first_of
from ..store.database import connect_look
from ..store.schema import MIGRATIONS
from .exam import UNIT, Exam, Symptom
from .machine import watched

_ASIDE: Final = re.compile(r"\.(corrupt|too-large|changed|before-restore|v\d+)-\d{8}T\d{6}")
_NAMED: Final = 5


def permissions(exam: Exam) -> Iterator[Symptom]:
    """Only the daemon's user can read the memories, and that user can write all of them."""
    top = exam.state_dir
    if not top.exists():
        yield Symptom("ok", f"{top} does not exist yet; the daemon makes it")
        return
    found = top.stat()
    if found.st_mode & 0o077:
        text = f"other users may enter {top} (mode {stat.S_IMODE(found.st_mode):o})"
        yield Symptom("warning", text, f"chmod 700 {top}")
    strange = [path for path in _near(top) if path.lstat().st_uid != found.st_uid]
    if strange:
        owner, names = _user(found.st_uid), first_of([*map(str, strange)], _NAMED)
        text = f"not {owner}'s, whose daemon cannot write them: {names}"
        yield Symptom("failure", text, f"chown -R {owner}: {top}")
    elif os.getuid() not in (0, found.st_uid):
        text = f"{top} is {_user(found.st_uid)}'s: what is in it was not looked at"
        yield Symptom("warning", text, "run it as that user, or with sudo")
    elif os.getuid() and not os.access(top, os.R_OK | os.W_OK | os.X_OK):
        yield Symptom("failure", f"{top} cannot be written", f"chmod u+rwx {top}")
    else:
        yield Symptom("ok", f"{top} is {_user(found.st_uid)}'s")


def integrity(exam: Exam) -> Iterator[Symptom]:
    """Every agent's database is sound; nothing is written or locked."""
    newest, sound = MIGRATIONS[-1].version, 0
    for agent, path in exam.agents():
        schema, faults = _look(path)
        if faults != ["ok"]:
            # A daemon may have opened the database in between.
            schema, faults = _look(path)
        if schema > newest:
            text = f"a later release wrote the memory of '{agent}' (schema {schema}, not {newest})"
            yield Symptom("failure", text, "install that release again, or a later one")
        elif faults != ["ok"]:
            yield Symptom(
                "failure",
                f"the database of '{agent}' is damaged: {'; '.join(faults)}",
                "restart the daemon: it sets the file aside and rebuilds all that can be read;"
                f" `thermocline restore --agent-id {agent}` brings the rest from the replica",
            )
        else:
            sound += 1
    yield Symptom("ok", f"{sound} sound")


def _look(path: Path) -> tuple[int, list[str]]:
    """The schema of a database and its faults, `ok` if there is none."""
    try:
        with closing(connect_look(path)) as db:
            schema = int(db.execute("PRAGMA user_version").fetchone()[0])
            return schema, [str(text) for (text,) in db.execute("PRAGMA integrity_check(3)")]
    except sqlite3.Error as error:
        return 0, [str(error)]


def set_aside(exam: Exam) -> Iterator[Symptom]:
    """Damaged, foreign or replaced files that were set aside for a person to look at."""
    agents = exam.state_dir / "agents"
    places = (exam.state_dir, agents, *agents.glob("*"))
    left = [path for place in places for path in place.glob("*") if _ASIDE.search(path.name)]
    if left:
        size = sum(_size(path) for path in left) / 1e6
        names = first_of([*map(str, left)], _NAMED)
        text = f"{len(left)} set aside ({size:,.1f} MB): {names}"
        yield Symptom("warning", text, "look into them, then delete them")
    else:
        yield Symptom("ok", "nothing was set aside")


def watched_files(exam: Exam) -> Iterator[Symptom]:
    """The daemon can read the files that it watches."""
    count = 0
    unit = exam.system(UNIT)
    drops = "".join(
        drop.read_text(errors="replace") for drop in unit.with_suffix(".service.d").glob("*.conf")
    )
    for path in watched(exam):
        count += 1
        sandboxed = unit.exists() and path.is_relative_to("/home")
        if not path.exists():
            remedy = f"bring it back, or `thermocline index remove {path}`"
            yield Symptom("warning", f"{path} is not there", remedy)
        elif sandboxed and not any(str(folder) in drops for folder in (path, *path.parents[:-2])):
            text = f"the service's sandbox hides {path}"
            yield Symptom("warning", text, "name it in a drop-in: see the example watch-home.conf")
    yield Symptom("ok", f"{count} beside the agents' own")


def _near(top: Path) -> Iterator[Path]:
    """The files of the state folder and of each agent, without those in the folders below."""
    for pattern in ("*", "agents/*", "agents/*/*"):
        yield from top.glob(pattern)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
