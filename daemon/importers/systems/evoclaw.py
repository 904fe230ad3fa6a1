"""EvoClaw: state files, a workspace with its agents, MEMORY.md, and the tables of a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import InvalidInput, ThermoclineError
from ...store import atomic
from .. import evoclaw_database, state_files, takeover
from ..found import LARGEST_FILE, Document, Found, GivenPath, ReadFault, Reading, reason
from ..sqlite_copy import Copy
from .tables import table_rows

NAME: Final = "evoclaw"
_DEFAULT: Final = "default"
_TABLES: Final = ("cold_memories", "cold_memory", "core_memory", "warm_memory")
_CRITICAL: Final = "critical_state"


def detect(look: GivenPath) -> bool:
    """Whether a folder holds state files, a file is one, or a database has its tables."""
    if look.is_folder:
        if any(_files(look, agent) for agent in _agents(look)):
            return True
    elif not look.databases():
        return _is_state_file(look)
    return any(_own_tables(one) for one in look.databases())


def read(look: GivenPath) -> Reading:
    """The state files of all agents as documents, and the rows of the tables."""
    for copy in look.databases():
        yield from _database(copy)
    if not look.is_folder:
        if not look.databases():
            yield from _document(look.path, look.path.parent, "")
        return
    for agent in _agents(look):
        for path in _files(look, agent):
            yield from _document(path, look.path, agent)


def _agents(look: GivenPath) -> list[str]:
    """The agents whose state files may be in a folder; "" for files in the folder itself."""
    return ["", _DEFAULT, *(name for name, _ in takeover.others(look.path, _DEFAULT))]


def _files(look: GivenPath, agent: str) -> list[Path]:
    memory = look.path / "memory"
    own = {"": [look.path], _DEFAULT: [memory, memory / _DEFAULT]}
    places = own.get(agent, [memory / agent])
    paths = [place / name for place in places for name in state_files.FILES]
    return [path for path in paths if path.is_symlink() or path.exists()]


def _is_state_file(look: GivenPath) -> bool:
    try:
        content = look.path.read_bytes() if look.stat.st_size <= LARGEST_FILE else b""
        state_files.format_of(content, look.path.name)
    except (InvalidInput, OSError):
        return False
    return True


def state_file(look: GivenPath, format_: str) -> Iterator[Document | ReadFault]:
    """A file whose format was named."""
    return _document(look.path, look.path.parent, "", format_)


def _document(
    path: Path, below: Path, agent: str, format_: str | None = None
) -> Iterator[Document | ReadFault]:
    try:
        content, found = atomic.read(path, LARGEST_FILE, below=below)
    except (OSError, ThermoclineError) as error:
        yield ReadFault(str(path), reason(error, path), agent)
    else:
        yield Document(path, content, found.st_mtime, format_, agent)


def _own_tables(copy: Copy) -> bool:
    wanted = {"agent_id", "id"}
    return (
        any(copy.tables.get(name, set()) >= wanted for name in _TABLES) or _CRITICAL in copy.tables
    )


def _database(copy: Copy) -> Reading:
    for table in _TABLES:
        for row in table_rows(copy, table):
            if isinstance(row, ReadFault):
                yield row
                continue
            fields = evoclaw_database.record({"table": table, **row})
            agent = str(row.get("agent_id") or "")
            if str(fields["text"]).strip():
                yield Found(f"{copy.path}: {table}", fields, agent=agent)
    for row in table_rows(copy, _CRITICAL):
        if isinstance(row, ReadFault):
            yield row
            continue
        place = f"{copy.path}: {_CRITICAL}"
        try:
            state = json.loads(row.get("data") or "{}")
        except (ValueError, RecursionError):
            yield ReadFault(place, "its data is not JSON")
            continue
        for key, name in (("tree_nodes", "tree"), ("hot_state", "hot")):
            if isinstance(state, dict) and state.get(key) is not None:
                content = json.dumps(state[key]).encode()
                at = float(row.get("updated_at") or 0)
                agent = str(row.get("agent_id") or "")
                yield Document(copy.path, content, at, name, agent)
