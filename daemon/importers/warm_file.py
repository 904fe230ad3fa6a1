"""Reading `warm-memory.json`: EvoClaw's list of facts, its Go service's object, and our own."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..memory.checks import check_category, check_tags, check_text, shown
from ..memory.metadata import extract
from ..memory.records import DEFAULT_CATEGORY, DEFAULT_EVENT, TYPES, Json, Memory, Metadata, Type
from ..memory.scoring import DEFAULT_IMPORTANCE
from .values import Fields, Parsed, count, is_storable, unexpected, unknown_keys

_ID: Final = re.compile(r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{1,128}")
_DEEPEST: Final = 100
_TEXTS: Final = ("subject", "source", "actor", "group", "writer", "original_category")

# The fields that the Go service keeps of a fact beside its text and outcome.
_GO_DETAILS: Final = ("emotion", "people", "topics", "date", "actions")
# Read or derived; everything else in a record is left out.
_KNOWN: Final = frozenset(Memory.__struct_fields__) | {
    *("timestamp", "event_type", "content", "fact", "last_accessed"),
    *("score", "tier", "search_method", "tree_relevance", "relevance"),
}
_KNOWN_CONTENT: Final = frozenset((*_GO_DETAILS, "fact", "outcome"))


def parse(document: Json, now: float, *, max_depth: int = 4) -> Parsed[tuple[Memory, ...]]:
    """The memories of a warm file of any generation, in its order, every id once.

    Missing fields get EvoClaw's defaults: importance 0.5, no accesses, and as its creation
    `timestamp`, else `now`. A category that is too deep is cut, and stays in `original_category`. A
    missing id is derived from text and creation, so that reading the file again gives the same. Of
    two records with one id and one text the more used one stays; with different texts the later one
    gets another id. Reading the output of `warm.record` gives the same memories. Never raises.
    """
    faults: list[str] = []
    unknown: Counter[str] = Counter()
    memories: dict[str, Memory] = {}
    for where, key, value in _records(document, faults):
        record = _Record(where, value, faults)
        unknown.update(record.unknown())
        try:
            memory = record.memory(now, max_depth)
        except InvalidInput as error:
            faults.append(f"{where}: {error.message}")
            continue
        _collect(memories, _identified(memory, record, key), record)
    return Parsed(tuple(memories.values()), (*faults, *unknown_keys(unknown)))


def check_id(key: str) -> str:
    """The id of a record; `InvalidInput` if it is empty, too long, or has blanks or slashes."""
    if not _ID.fullmatch(key):
        raise InvalidInput("it cannot be used as an id", field="id")
    return key


def _records(document: Json, faults: list[str]) -> Iterator[tuple[str, Json, dict[str, Json]]]:
    if isinstance(document, list):
        entries = [(f"[{index}]", None, value) for index, value in enumerate(document)]
    elif isinstance(document, dict):
        entries = [
            (shown(key), key, value)
            for key, value in document.items()
            if not str(key).startswith("_")
        ]
    else:
        faults.append(unexpected("a list or an object", document))
        return
    for where, key, value in entries:
        if isinstance(value, dict):
            yield where, key, value
        else:
            faults.append(f"{where}: {unexpected('an object', value)}")


def _identified(memory: Memory, record: _Record, key: Json) -> Memory:
    """`memory` under the id of its record, else its key, else one derived from its content."""
    key_field = record.fields.get("id")
    if key_field is None or key_field == "":
        key_field = key
    elif count(key_field) is not None:
        key_field = str(key_field)
    if isinstance(key_field, str) and _ID.fullmatch(key_field):
        return msgspec.structs.replace(memory, id=key_field)
    if key_field is not None:
        record.fault("id", "cannot be used as an id; it got a new one")
    created = repr(memory.created_at) if record.has_time else ""
    return msgspec.structs.replace(memory, id=_derived(memory.text, created))


def _collect(memories: dict[str, Memory], memory: Memory, record: _Record) -> None:
    """Add a memory under an id that no other text has."""
    wanted, attempt = memory.id, 0
    while (other := memories.get(memory.id)) is not None and other.text != memory.text:
        attempt += 1
        fresh = _derived(memory.text, f"{wanted}\0{attempt}")
        memory = msgspec.structs.replace(memory, id=fresh)
    if attempt:
        record.fault("id", "is already used by another text; it got a new one")
    if other is None:
        memories[memory.id] = memory
        return
    record.fault("id", "is in the file twice with the same text; the more used one stays")
    if (memory.access_count, memory.updated_at) > (other.access_count, other.updated_at):
        memories[memory.id] = memory


def _derived(text: str, salt: str) -> str:
    return hashlib.sha256(f"{salt}\0{text}".encode()).hexdigest()[:12]


class _Record(Fields):
    """One record; `has_time` tells whether it says when it was created."""

    def __init__(self, where: str, fields: dict[str, Json], faults: list[str]) -> None:
        super().__init__(where, fields, faults)
        self.has_time = False
        content = fields.get("content")
        inner = content if isinstance(content, dict) else {}
        self._content = Fields(f"{where}.content", inner, faults)

    def unknown(self) -> Iterator[str]:
        yield from (name for name in self.fields if name not in _KNOWN)
        inner = self._content.fields
        yield from (f"content.{name}" for name in inner if name not in _KNOWN_CONTENT)

    def memory(self, now: float, max_depth: int) -> Memory:
        """The memory, its id still empty; `InvalidInput` only if it has no valid text."""
        text = self._body()
        created_at = self.time("created_at", "timestamp")
        self.has_time = created_at is not None
        created_at = now if created_at is None else created_at
        updated_at = self.time("updated_at")
        category, original = self._category(max_depth)
        known: dict[str, Any] = {name: self.text(name) for name in _TEXTS}
        known["original_category"] = known["original_category"] or original
        return Memory(
            id="",
            text=text,
            type=self._type(),
            event=self.text("event") or self.text("event_type") or DEFAULT_EVENT,
            outcome=self.text("outcome") or self._content.text("outcome"),
            category=category,
            tags=self._tags(),
            importance=self.importance(DEFAULT_IMPORTANCE),
            position=self.count("position"),
            pinned=self.fields.get("pinned") is True,
            standing=self.fields.get("standing") is True,
            metadata=self._metadata(text),
            data=self._data(),
            created_at=created_at,
            updated_at=created_at if updated_at is None else updated_at,
            last_accessed_at=self.time("last_accessed_at", "last_accessed"),
            access_count=self.count("access_count") or 0,
            expires_at=self.time("expires_at"),
            merged_into=self.text("merged_into") or None,
            superseded_by=self.text("superseded_by") or None,
            **known,
        )

    def _body(self) -> str:
        fields = self.fields
        fact = self._content.fields.get("fact")
        for text in (fields.get("text"), fields.get("content"), fact, fields.get("fact")):
            if isinstance(text, str):
                return check_text(text)
        raise InvalidInput(unexpected("text", fields.get("text")), field="text")

    def _type(self) -> Type:
        value = self.fields.get("type")
        if isinstance(value, str) and value in TYPES:
            return TYPES[value]
        if value is not None:
            self.expected("type", ", ".join(sorted(TYPES)), value)
        is_talk = self.fields.get("event_type") == "conversation"
        return "episodic" if is_talk else "semantic"

    def _category(self, max_depth: int) -> tuple[str, str]:
        value = self.text("category")
        if not value:
            return DEFAULT_CATEGORY, ""
        try:
            whole = check_category(value, _DEEPEST)
        except InvalidInput as error:
            self.fault("category", f"{error.message}; it is filed under '{DEFAULT_CATEGORY}'")
            return DEFAULT_CATEGORY, ""
        cut = "/".join(whole.split("/")[:max_depth])
        return cut, "" if cut == whole else whole

    def _tags(self) -> tuple[str, ...]:
        try:
            return check_tags(self._strings("tags", self.fields.get("tags")))
        except InvalidInput as error:
            self.fault("tags", error.message)
            return ()

    def _metadata(self, text: str) -> Metadata:
        value = self.fields.get("metadata")
        if not isinstance(value, dict):
            if value is not None:
                self.expected("metadata", "an object", value)
            return extract(text)
        names = Metadata.__struct_fields__
        return Metadata(*(self._strings(f"metadata.{name}", value.get(name)) for name in names))

    def _strings(self, name: str, value: Json) -> tuple[str, ...]:
        if value is not None and not isinstance(value, list | tuple):
            self.expected(name, "a list", value)
            value = None
        for index, item in enumerate(value or ()):
            if not is_storable(item):
                self.expected(f"{name}[{index}]", "text", item)
        return tuple(item for item in value or () if is_storable(item))

    def _data(self) -> Json:
        value = self.fields.get("data")
        if value is None:
            details = {name: self._content.fields.get(name) for name in _GO_DETAILS}
            value = {name: detail for name, detail in details.items() if detail} or None
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            self.fault("data", "cannot be written as JSON again")
            return None
        return value
