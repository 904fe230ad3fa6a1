r"""A row in few bytes, before it is encrypted: what is encrypted cannot be compressed any more.

| bytes | content |
|---|---|
| 1 | which of the parts that follow are there |
| 8 | the id, if it is 16 hexadecimal digits |
| 8 | the stamp of the row |
| 6 | its device, if it is 12 hexadecimal digits |
| 1 each, and 0 | the fields: the number of the name, and the form of the value |
| 1, 4 or 7 each | values that are numbers: hundredths, or times beside that of the stamp |
| the rest | all texts, with NUL between them, compressed (raw deflate) with common words |

The texts are the agent, the kind, what of id and device is not above, the clocks of single fields
as JSON, and for each field its name, if it has no number, and its value, as JSON unless it is a
text. Within a text NUL is written as `\1\1`, and `\1` as `\1\2`.

Each row is compressed alone, with words that are the same for everybody: its length says nothing
about other rows.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

import msgspec

from ..clock import COUNTER_BITS
from ..rows import Clocks, Fields, Row, Stamp
from .cipher import Unsealable

_KINDS: Final = ("semantic", "episodic", "procedural")
_EVENTS: Final = (
    "fact_stored",
    "task_completed",
    "preference_learned",
    "correction",
    "error_recovery",
)
_VALUES: Final = ("null", "true", "false", "https://", "general\0", *(f"{e}\0" for e in _EVENTS))
# What rows begin and end with, the most frequent last.
_ENDS: Final = (
    *(f"\0{kind}\0uid:{user}" for user in (0, 1000) for kind in _KINDS),
    "default\0memory\0",
)
_WORDS: Final = (
    Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").replace("\n", " ")
    + "".join((*_VALUES, *_ENDS))
).encode()
# Fields by their numbers, which are part of the format.
_NAMES: Final = (
    *("", "text", "category", "created_at", "updated_at", "importance", "type", "event", "actor"),
    *("writer", "tags", "subject", "metadata", "access_count", "desc", "value", "position"),
    *("content", "path", "session", "source", "user", "standing", "superseded_by"),
)
_NUMBERS: Final = {name: number for number, name in enumerate(_NAMES) if name}
_OTHER_NAME: Final = 31
# The forms of a value.
_TEXT, _JSON, _HUNDREDTHS, _TIME, _NEAR = range(5)
_FORM_BITS: Final = 3
_SIZES: Final = {_TEXT: 0, _JSON: 0, _HUNDREDTHS: 1, _TIME: 7, _NEAR: 4}
_IN_HUNDREDTHS: Final = {number / 100: number for number in range(1, 256)}
# From 2004 to 2038 a time in seconds, as a float, is a whole number of these.
_TICKS: Final = 1 << 22
_SHORT_ID, _SHORT_DEVICE, _HAS_CLOCKS = 1, 2, 4
_ID_BYTES, _DEVICE_BYTES = 8, 6
_STAMP: Final = struct.Struct(">q")
# A window of 8 KB, which the words fill: a larger one takes longer to copy than it is worth.
_WINDOW: Final = -13
_MEMORY: Final = 6
_MOST_BYTES: Final = 64 << 20
_compressor: Final = zlib.compressobj(6, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=_WORDS)
_json: Final = msgspec.json.Encoder(order="sorted")


class _FieldClocks(msgspec.Struct, frozen=True, omit_defaults=True):
    fields: dict[str, Stamp] = {}
    deleted: Stamp | None = None


_clocks_decoder: Final = msgspec.json.Decoder(_FieldClocks)


def pack(agent: str, row: Row) -> bytes:
    """An agent's row in few bytes."""
    at, device = row.clocks.at
    texts = [agent, row.kind]
    flags = 0
    head = bytearray(1)
    if short := _from_hex(row.id, _ID_BYTES):
        flags |= _SHORT_ID
        head += short
    else:
        texts.append(row.id)
    head += _STAMP.pack(at)
    if short := _from_hex(device, _DEVICE_BYTES):
        flags |= _SHORT_DEVICE
        head += short
    else:
        texts.append(device)
    if row.clocks.fields or row.clocks.deleted is not None:
        flags |= _HAS_CLOCKS
        texts.append(_json.encode(_FieldClocks(row.clocks.fields, row.clocks.deleted)).decode())
    head[0] = flags
    numbers = bytearray()
    for name, value in row.data.items():
        number = _NUMBERS.get(name)
        if number is None:
            texts.append(name)
            number = _OTHER_NAME
        form = _JSON
        if isinstance(value, str):
            form = _TEXT
            texts.append(value)
        elif isinstance(value, float):
            form, content = _packed_float(value, at)
            numbers += content
        if form == _JSON:
            texts.append(_json.encode(value).decode())
        head.append(number << _FORM_BITS | form)
    head.append(0)
    joined = "\0".join(texts)
    if "\1" in joined or joined.count("\0") >= len(texts):
        escaped = (text.replace("\1", "\1\2").replace("\0", "\1\1") for text in texts)
        joined = "\0".join(escaped)
    compressor = _compressor.copy()
    return bytes(head + numbers) + compressor.compress(joined.encode()) + compressor.flush()


def unpack(packed: bytes) -> tuple[str, Row]:
    """The agent, and the row, in these bytes, else `Unsealable`."""
    try:
        return _unpacked(packed)
    except (IndexError, StopIteration, ValueError, OverflowError, struct.error, zlib.error):
        raise Unsealable("it is not a row") from None


def _unpacked(packed: bytes) -> tuple[str, Row]:
    flags, place = packed[0], 1
    key = device = ""
    if flags & _SHORT_ID:
        key = packed[place : place + _ID_BYTES].hex()
        place += _ID_BYTES
    [at] = _STAMP.unpack_from(packed, place)
    place += _STAMP.size
    if flags & _SHORT_DEVICE:
        device = packed[place : place + _DEVICE_BYTES].hex()
        place += _DEVICE_BYTES
    end = packed.index(0, place)
    fields, place = packed[place:end], end + 1
    texts_begin = place + sum(_SIZES[field & 7] for field in fields)
    unpacking = zlib.decompressobj(_WINDOW, zdict=_WORDS)
    joined = unpacking.decompress(packed[texts_begin:], _MOST_BYTES).decode()
    listed = joined.split("\0")
    if "\1" in joined:
        listed = [text.replace("\1\1", "\0").replace("\1\2", "\1") for text in listed]
    texts = iter(listed)
    agent, kind = next(texts), next(texts)
    key = key or next(texts)
    device = device or next(texts)
    single = _clocks_decoder.decode(next(texts)) if flags & _HAS_CLOCKS else _FieldClocks()
    data: Fields = {}
    for field in fields:
        number, form = field >> _FORM_BITS, field & 7
        name = next(texts) if number == _OTHER_NAME else _NAMES[number]
        size = _SIZES[form]
        if form == _TEXT:
            data[name] = next(texts)
        elif form == _JSON:
            data[name] = msgspec.json.decode(next(texts))
        else:
            content, place = packed[place : place + size], place + size
            ticks = int.from_bytes(content, "big", signed=True) + _ticks_of(at)
            data[name] = content[0] / 100 if form == _HUNDREDTHS else ticks / _TICKS
    clocks = Clocks((at, device), single.fields, single.deleted)
    return agent, Row(kind=kind, id=key, data=data, clocks=clocks)


def _packed_float(value: float, at: int) -> tuple[int, bytes]:
    if hundredths := _IN_HUNDREDTHS.get(value):
        return _HUNDREDTHS, bytes((hundredths,))
    ticks = value * _TICKS
    if value < 1 or not ticks.is_integer():
        return _JSON, b""
    beside = int(ticks) - _ticks_of(at)
    for form in (_NEAR, _TIME):
        if -(1 << 8 * _SIZES[form] - 1) <= beside < 1 << 8 * _SIZES[form] - 1:
            return form, beside.to_bytes(_SIZES[form], "big", signed=True)
    return _JSON, b""


def _ticks_of(stamp: int) -> int:
    return (stamp >> COUNTER_BITS) * _TICKS // 1000


def _from_hex(text: str, length: int) -> bytes:
    """A text of hexadecimal digits as bytes; empty if it is not one, or of another length."""
    try:
        content = bytes.fromhex(text)
    except ValueError:
        return b""
    return content if len(content) == length and content.hex() == text else b""
