"""Reading `warm-memory.json`: EvoClaw's list of facts, its Go service's object, and our own."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

import msgspec

from ..errors import InvalidInput
from ..memory.checks import check_category, check_tags, check_text, shown
from ..memory.metadata import extract
from ..memory.records import DEFAULT_CATEGORY, DEFAULT_EVENT, Json, Memory, Metadata, Type
from ..memory.scoring import DEFAULT_IMPORTANCE
from .values import (
    LARGEST_INT,
    count,
    kind,
    moment,
    number,
    says_nothing,
    storable,
    unknown_keys,
)

_ID: Final = re.compile(r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{1,128}")
_TYPES: Final[dict[str, Type]] = {name: name for name in get_args(Type)}
_DEEPEST: Final = 100
_TEXTS: Final = ("subject", "source", "actor", "group", "writer", "original_category")

# What the Go service keeps of a fact beside its text and outcome.
_GO_DETAILS: Final = ("emotion", "people", "topics", "date", "actions")
# Read, or derived anew: everything else in a record is left out.
_KNOWN: Final = frozenset(Memory.__struct_fields__) | {
    *("timestamp", "event_type", "content", "fact", "last_accessed"),
    *("score", "tier", "search_method", "tree_relevance", "relevance"),
    # Earlier releases wrote the versions of a record into it.
    *("clock", "device", "filed_clock", "filed_device"),
}
_KNOWN_CONTENT: Final = frozenset((*_GO_DETAILS, "fact", "outcome"))


class ParsedWarm(msgspec.Struct, frozen=True):
    """What a warm file holds.

    Attributes:
        memories: in the order of the file, every id once, none of them archived.
        faults: what could not be read, a line each; texts are never quoted.
        left_out: the keys that have no meaning here, a line each.
    """

    memories: tuple[Memory, ...]
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def parse(document: Json, now: float, *, max_depth: int = 4) -> ParsedWarm:
    """The memories of a warm file of any generation.

    What a record lacks gets EvoClaw's defaults: importance 0.5, no accesses, and as its
    creation `timestamp`, else `now`. A category that is too deep is cut to `max_depth` levels
    and noted in `original_category`. A missing id is derived from text and creation, so that
    reading the file again gives the same. Of two records with one id and one text the more
    used stays; with different texts the later gets an id of its own.

    Reading what `warm.record` wrote gives the same memories. Never raises: what cannot be read
    is in the faults, and the caller should then keep the file.
    """
    faults: list[str] = []
    unknown: Counter[str] = Counter()
    found: dict[str, Memory] = {}
    for where, key, value in _records(document, faults):
        record = _Record(where, value, faults)
        unknown.update(record.unknown())
        try:
            memory = record.memory(now, max_depth)
        except InvalidInput as error:
            faults.append(f"{where}: {error.message}")
            continue
        _collect(found, _identified(memory, record, key), record)
    return ParsedWarm(tuple(found.values()), tuple(faults), unknown_keys(unknown))


def _records(document: Json, faults: list[str]) -> Iterator[tuple[str, Json, dict[str, Json]]]:
    """Each record as (where it stands, the key that it stands under, its fields)."""
    if isinstance(document, list):
        entries = [(f"[{index}]", None, value) for index, value in enumerate(document)]
    elif isinstance(document, dict):
        entries = [
            (shown(key), key, value)
            for key, value in document.items()
            if not str(key).startswith("_")
        ]
    else:
        faults.append(f"expected a list or an object, got {kind(document)}")
        return
    for where, key, value in entries:
        if isinstance(value, dict):
            yield where, key, value
        else:
            faults.append(f"{where}: expected an object, got {kind(value)}")


def _identified(memory: Memory, record: _Record, key: Json) -> Memory:
    """`memory` under the id of its record, else its key, else one derived from what it says."""
    given = record.fields.get("id")
    if given is None or given == "":
        given = key
    elif count(given) is not None:
        given = str(given)
    if isinstance(given, str) and _ID.fullmatch(given):
        return msgspec.structs.replace(memory, id=given)
    if given is not None:
        record.fault("id", "cannot be used as an id; it got one of its own")
    created = repr(memory.created_at) if record.has_time else ""
    return msgspec.structs.replace(memory, id=_derived(memory.text, created))


def _collect(found: dict[str, Memory], memory: Memory, record: _Record) -> None:
    """Add a memory under an id that no other text has."""
    wanted, attempt = memory.id, 0
    while (other := found.get(memory.id)) is not None and other.text != memory.text:
        attempt += 1
        fresh = _derived(memory.text, f"{wanted}\0{attempt}")
        memory = msgspec.structs.replace(memory, id=fresh)
    if attempt:
        record.fault("id", "is already that of another text; it got one of its own")
    if other is None:
        found[memory.id] = memory
        return
    record.fault("id", "stands in the file twice with the same text; the more used one stays")
    if (memory.access_count, memory.updated_at) > (other.access_count, other.updated_at):
        found[memory.id] = memory


def _derived(text: str, salt: str) -> str:
    return hashlib.sha256(f"{salt}\0{text}".encode()).hexdigest()[:12]


class _Record:
    """The fields of one record, read with their faults noted.

    Attributes:
        fields: the record as it stands in the file.
        has_time: whether it says when it was created.
    """

    def __init__(self, where: str, fields: dict[str, Json], faults: list[str]) -> None:
        self.fields = fields
        self.has_time = False
        self._where = where
        self._faults = faults
        content = fields.get("content")
        self._content: dict[str, Json] = content if isinstance(content, dict) else {}

    def fault(self, field: str, what: str) -> None:
        """Note what is wrong with a field."""
        self._faults.append(f"{self._where}.{field}: {what}")

    def unknown(self) -> Iterator[str]:
        """The keys that have no meaning here."""
        yield from (name for name in self.fields if name not in _KNOWN)
        yield from (f"content.{name}" for name in self._content if name not in _KNOWN_CONTENT)

    def memory(self, now: float, max_depth: int) -> Memory:
        """The memory, its id still empty.

        Raises:
            InvalidInput: it has no text, or one that cannot be kept; nothing else is fatal.
        """
        text = self._body()
        created_at = self._created_at()
        self.has_time = created_at is not None
        created_at = now if created_at is None else created_at
        updated_at = self._time("updated_at")
        category, original = self._category(max_depth)
        known: dict[str, Any] = {name: self._text(name) for name in _TEXTS}
        known["original_category"] = known["original_category"] or original
        return Memory(
            id="",
            text=text,
            type=self._type(),
            event=self._text("event") or self._text("event_type") or DEFAULT_EVENT,
            outcome=self._text("outcome") or self._text("outcome", self._content),
            category=category,
            tags=self._tags(),
            importance=self._importance(),
            position=self._count("position", None),
            metadata=self._metadata(text),
            data=self._data(),
            created_at=created_at,
            updated_at=created_at if updated_at is None else updated_at,
            last_accessed_at=self._time("last_accessed_at", "last_accessed"),
            access_count=self._count("access_count", 0) or 0,
            expires_at=self._time("expires_at"),
            merged_into=self._text("merged_into") or None,
            superseded_by=self._text("superseded_by") or None,
            **known,
        )

    def _body(self) -> str:
        candidates = (
            self.fields.get("text"),
            self.fields.get("content"),
            self._content.get("fact"),
            self.fields.get("fact"),
        )
        for text in candidates:
            if isinstance(text, str):
                return check_text(text)
        raise InvalidInput(f"expected text, got {kind(self.fields.get('text'))}", field="text")

    def _created_at(self) -> float | None:
        created_at = self._time("created_at")
        return self._time("timestamp") if created_at is None else created_at

    def _time(self, *names: str) -> float | None:
        for name in names:
            value = self.fields.get(name)
            found = moment(value)
            if found is not None:
                return found
            if not says_nothing(value):
                self.fault(name, f"{shown(value)} is no time")
        return None

    def _importance(self) -> float:
        value = self.fields.get("importance")
        found = number(value)
        if found is None:
            if value is not None:
                self.fault("importance", f"expected a number from 0 to 1, got {shown(value)}")
            return DEFAULT_IMPORTANCE
        if not 0.0 <= found <= 1.0:
            self.fault("importance", f"{shown(value)} was brought into 0 to 1")
        return min(1.0, max(0.0, found))

    def _count(self, name: str, default: int | None) -> int | None:
        value = self.fields.get(name)
        if value is None:
            return default
        found = count(value, LARGEST_INT)
        if found is None:
            self.fault(name, f"expected a whole number from 0, got {shown(value)}")
            return default
        return found

    def _text(self, name: str, fields: dict[str, Json] | None = None) -> str:
        value = (self.fields if fields is None else fields).get(name)
        if value is None:
            return ""
        if not storable(value):
            self.fault(name, f"expected text, got {kind(value)} that cannot be kept as text")
            return ""
        return str(value)

    def _type(self) -> Type:
        value = self.fields.get("type")
        if isinstance(value, str) and value in _TYPES:
            return _TYPES[value]
        if value is not None:
            self.fault("type", f"expected {', '.join(sorted(_TYPES))}, got {shown(value)}")
        is_talk = self.fields.get("event_type") == "conversation"
        return "episodic" if is_talk else "semantic"

    def _category(self, max_depth: int) -> tuple[str, str]:
        value = self.fields.get("category")
        if value is None or value == "":
            return DEFAULT_CATEGORY, ""
        if not isinstance(value, str):
            self.fault("category", f"expected text, got {kind(value)}")
            return DEFAULT_CATEGORY, ""
        try:
            whole = check_category(value, _DEEPEST)
        except InvalidInput as error:
            self.fault("category", f"{error.message}; it is filed under '{DEFAULT_CATEGORY}'")
            return DEFAULT_CATEGORY, ""
        cut = "/".join(whole.split("/")[:max_depth])
        return cut, "" if cut == whole else whole

    def _tags(self) -> tuple[str, ...]:
        value = self.fields.get("tags")
        if value is None:
            return ()
        try:
            return check_tags(self._strings("tags", value))
        except InvalidInput as error:
            self.fault("tags", error.message)
            return ()

    def _metadata(self, text: str) -> Metadata:
        value = self.fields.get("metadata")
        if not isinstance(value, dict):
            if value is not None:
                self.fault("metadata", f"expected an object, got {kind(value)}; found it anew")
            return extract(text)
        lists = {
            name: tuple(self._strings(f"metadata.{name}", value.get(name) or ()))
            for name in Metadata.__struct_fields__
        }
        return Metadata(**lists)

    def _strings(self, name: str, value: Json) -> Iterable[str]:
        if not isinstance(value, list | tuple):
            self.fault(name, f"expected a list, got {kind(value)}")
            return
        for index, item in enumerate(value):
            if storable(item):
                yield item
            else:
                self.fault(f"{name}[{index}]", f"expected text, got {kind(item)}")

    def _data(self) -> Json:
        value = self.fields.get("data")
        if value is None:
            details = {name: self._content.get(name) for name in _GO_DETAILS}
            value = {name: detail for name, detail in details.items() if detail} or None
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            self.fault("data", "cannot be written as JSON again")
            return None
        return value
