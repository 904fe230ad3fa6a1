"""EvoClaw: state files, a workspace with its agents, MEMORY.md, and the tables of a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import InvalidInput
from .. import evoclaw_database, state_files, takeover
from ..found import LARGEST_FILE, Document, Found, GivenPath, Reading
from ..sqlite_copy import Copy

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


def read(look: GivenPath) -> Iterator[Found | Document]:
    """The state files of all agents as documents, and the rows of the tables."""
    for copy in look.databases():
        yield from _database(look, copy)
    if not look.is_folder:
        if not look.databases():
            yield from _document(look, look.path, "")
        return
    for agent in _agents(look):
        for path in _files(look, agent):
            yield from _document(look, path, agent)


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


def state_file(look: GivenPath, format_: str) -> Reading:
    """A file whose format was named."""
    return look.reading(_document(look, look.path, "", format_))


def _document(
    look: GivenPath, path: Path, agent: str, format_: str | None = None
) -> Iterator[Document]:
    if (found := look.content(path, agent)) is not None:
        yield Document(path, *found, format_, agent)


def _own_tables(copy: Copy) -> bool:
    wanted = {"agent_id", "id"}
    return (
        any(copy.tables.get(name, set()) >= wanted for name in _TABLES) or _CRITICAL in copy.tables
    )


def _database(look: GivenPath, copy: Copy) -> Iterator[Found | Document]:
    for table in _TABLES:
        for row in look.rows(copy, table):
            fields = evoclaw_database.record({"table": table, **row})
            agent = str(row.get("agent_id") or "")
            if str(fields["text"]).strip():
                yield Found(f"{copy.path}: {table}", fields, agent=agent)
    for row in look.rows(copy, _CRITICAL):
        try:
            state = json.loads(row.get("data") or "{}")
        except (ValueError, RecursionError):
            look.fault(f"{copy.path}: {_CRITICAL}", "its data is not JSON")
            continue
        for key, name in (("tree_nodes", "tree"), ("hot_state", "hot")):
            if isinstance(state, dict) and state.get(key) is not None:
                content = json.dumps(state[key]).encode()
                at = float(row.get("updated_at") or 0)
                agent = str(row.get("agent_id") or "")
                yield Document(copy.path, content, at, name, agent)
