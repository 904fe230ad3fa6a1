"""The entries that a reader of a foreign format yields: memories, turns and experiences.

Each has an id derived from that in its source, so that an import can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ..language.standing import is_standing_statement
from ..memory.metadata import extract, merge
from ..memory.records import ENTITIES, IMPORTED, OBSERVED, USER_STATED, Json, Metadata
from ..runtime.project import project_of

# A longer text is cut: no memory takes more than 64 KB.
_TEXT_BYTES: Final = 60_000
# A key may contain the text.
_KEY_CHARS: Final = 500
_SEGMENT_CHARS: Final = 60
_LONGEST: Final = {
    "subject": 500,
    "group": 200,
    "actor": 200,
    "source": 200,
    "outcome": 4_000,
    "event": 64,
}
_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}


class ReadFault(msgspec.Struct, frozen=True):
    """An item that could not be used: its place, and the reason."""

    place: str
    why: str
    agent: str = ""


class SourceEntry(msgspec.Struct, frozen=True):
    """The file or table of an entry, and its fields as `warm_file` reads them."""

    place: str
    fields: dict[str, Any]
    is_experience: bool = False
    agent: str = ""  # whose it is; "" if the place does not say


class Document(msgspec.Struct, frozen=True):
    """A whole file that the daemon parses: a state file, a page, or rows in lines."""

    path: Path
    content: bytes
    written_at: float
    format: str | None = None
    agent: str = ""  # whose it is; "" if the place does not say


Reading: TypeAlias = Iterator[SourceEntry | Document | ReadFault]


class EntryBuilder:
    """Makes the entries of one place.

    `fault` receives a place and what is wrong there; `place` is the file or table, as the report
    names it; `written_at` is the default of missing times.
    """

    def __init__(
        self, fault: Callable[[str, str], None], system: str, place: str, written_at: float
    ) -> None:
        self.system = system
        self.place = place
        self.written_at = written_at
        self._fault = fault

    def fault(self, why: str) -> None:
        self._fault(self.place, why)

    def memory(self, key: Json, text: Json, **fields: Json) -> Iterator[SourceEntry]:
        """A memory with the source's `key`; long fields are cut, blank ones left out.

        Nothing without a text. `paths` are added to the metadata, `entities` to the data.
        """
        if not isinstance(text, str) or not text.strip():
            return
        text = text.strip().lstrip("\ufeff")
        if len(text) > _TEXT_BYTES // 4 and len(text.encode(errors="replace")) > _TEXT_BYTES:
            self.fault(f"{str(key)[:_KEY_CHARS]}: cut to {_TEXT_BYTES:,} bytes")
            text = text.encode(errors="replace")[:_TEXT_BYTES].decode(errors="ignore")
        if paths := fields.pop("paths", None):
            named = Metadata(paths=tuple(path for path in paths if isinstance(path, str)))
            fields["metadata"] = msgspec.to_builtins(merge(named, extract(text)))
        data = {
            **(fields.pop("data", None) or {}),
            IMPORTED: {"from": self.system, "id": str(key)[:_KEY_CHARS]},
        }
        if entities := fields.pop("entities", None):
            data[ENTITIES] = entities
        for name in fields.keys() & _LONGEST.keys():
            fields[name] = str(fields[name] or "")[: _LONGEST[name]]
        fields = {
            name: value
            for name, value in fields.items()
            if value is not None and value not in ("", [])
        }
        fields.setdefault("created_at", self.written_at)
        fields.setdefault("source", self.system)
        if fields.get("event") != "turn" and is_standing_statement(text, fields.get("source", "")):
            fields.setdefault("standing", True)
        yield SourceEntry(self.place, {"id": self.id(key), "text": text, "data": data, **fields})

    def turn(self, key: Json, text: Json, *, role: Json, **more: Json) -> Iterator[SourceEntry]:
        """A turn of a conversation; nothing unless it is by a person or an agent."""
        actor = _ROLES.get(str(role))
        if actor is not None:
            yield from self.memory(
                key, text,
                **{"actor": actor, "category": f"conversations/{self.system}", **more},
                type="episodic", event="turn", importance=0.5,
                source=USER_STATED if actor == "user" else OBSERVED,
            )  # fmt: skip

    def id(self, key: Json) -> str:
        """The id for a key of the source; the same on every device."""
        return hashlib.sha256(f"{self.system}\0{key}".encode(errors="replace")).hexdigest()[:16]


def category(*names: Json) -> str:
    """A category path of some names, which may have any characters."""
    words = (re.sub(r"[^\w.-]+", "_", str(name or "").lower()).strip("_. ") for name in names)
    return "/".join(word[:_SEGMENT_CHARS] for word in words if word)


def project_name(folder: Json) -> str:
    """The name of the project of a session's working folder, as hooks name it too."""
    return project_of(folder).name if isinstance(folder, str) and folder.startswith("/") else ""


def entity(name: Json, kind: Json = "", **relation: Json) -> dict[str, Json]:
    """An entity that a memory names; its `relation` to the `target`, if there is one."""
    named: dict[str, Json] = {"name": str(name)[:120], "type": kind or "concept"}
    if relation:
        named["relations"] = [{part: str(value)[:120] for part, value in relation.items()}]
    return named


def tags_of(*values: Json) -> list[str]:
    """Tags from lists, from texts of JSON lists and from texts with commas, each once."""
    tags: list[str] = []
    for value in values:
        listed = json_list(value) or (value.split(",") if isinstance(value, str) else [])
        tags += [tag.strip().lstrip("#")[:60] for tag in listed if isinstance(tag, str)]
    return [*dict.fromkeys(tag for tag in tags if tag)][:32]


def json_of(value: Json) -> Json:
    """The value of a JSON text; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def json_list(value: Json) -> list[Json]:
    """A list, or the list in a JSON text, else an empty one."""
    value = json_of(value)
    return value if isinstance(value, list) else []
