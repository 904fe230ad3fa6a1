"""Reading `warm-memory.json`: EvoClaw's list of facts, its Go service's object, and our own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from ...errors import InvalidInput
from ..checks import shown
from ..records import Json, Memory
from .values import count, kind
from .warm_record import WarmRecord

_ID: Final = re.compile(r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{1,128}")


class ParsedWarm(msgspec.Struct, frozen=True):
    """What a warm file holds.

    Attributes:
        memories: in the order of the file, every id once, none of them archived.
        faults: what could not be read, a line each; texts are never quoted.
    """

    memories: tuple[Memory, ...]
    faults: tuple[str, ...] = ()


def parse(document: Json, now: float, device: str = "", *, max_depth: int = 4) -> ParsedWarm:
    """The memories of a warm file of any generation.

    What a record lacks gets EvoClaw's defaults: importance 0.5, no accesses, and as its
    creation `timestamp`, else `now`. A category that is too deep is cut to `max_depth` levels
    and noted in `original_category`. A missing id is derived from text and creation, so that
    reading the file again gives the same. Of two records with one id and one text the more
    used stays; with different texts the later gets an id of its own.

    `device` is who changed the memories last, where a record does not say. Reading what
    `warm.record` wrote gives the same memories. Never raises: what cannot be read is in the
    faults, and the caller should then keep the file.
    """
    faults: list[str] = []
    found: dict[str, Memory] = {}
    for where, key, value in _records(document, faults):
        record = WarmRecord(where, value, faults)
        try:
            memory = record.memory(now, device, max_depth)
        except InvalidInput as error:
            faults.append(f"{where}: {error.message}")
            continue
        _collect(found, _identified(memory, record, key), record)
    return ParsedWarm(tuple(found.values()), tuple(faults))


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


def _identified(memory: Memory, record: WarmRecord, key: Json) -> Memory:
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


def _collect(found: dict[str, Memory], memory: Memory, record: WarmRecord) -> None:
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
