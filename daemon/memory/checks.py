"""Checks of callers' values, expiry included: each returns the clean value or raises an error.

Errors are `InvalidInput`, or its subclass `TooLarge`, with the name of the invalid field.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from ..errors import InvalidInput, TooLarge
from .records import Json, Metadata
from .tree_nodes import ROOT

TEXT_BYTES: Final = 65_536
DATA_BYTES: Final = 65_536
DATA_LEVELS: Final = 32
# JSON decodes larger integers as floats.
_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1
CATEGORY_CHARS: Final = 200
SOURCE_CHARS: Final = 200
SEGMENT_CHARS: Final = 64
TAGS: Final = 32
TAG_CHARS: Final = 64
REFERENCES: Final = 64
REFERENCE_CHARS: Final = 2_048

# The first second after the year 9999, where ISO 8601 and `datetime` end.
TIME_END: Final = 253_402_300_800.0

_AGENT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Eight digits are an ISO 8601 date and four a year, not a number of seconds.
_EPOCH: Final = re.compile(r"(?:[0-9]{1,3}|[0-9]{9,20})(?:\.[0-9]{1,20})?")
_TIME_HINT: Final = "seconds since 1970, or ISO 8601 such as '2026-02-11T08:00:00Z'"
_SINCE_HINT: Final = f"how long ago, such as '2h', '7d' or 'yesterday', or a time: {_TIME_HINT}"
# Control characters, lone surrogates, and Unicode line and paragraph separators.
_UNPRINTABLE: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


def shown(value: object, limit: int = 48) -> str:
    """`value` as an error message quotes it: escaped, on one line, cut at `limit` characters."""
    if isinstance(value, str):
        value = value[: limit + 1]
    elif isinstance(value, list | tuple | dict):
        return {list: "a list", tuple: "a list", dict: "an object"}[type(value)]
    elif isinstance(value, int) and value.bit_length() > 64:
        return "a very large number"
    text = repr(value)
    return text if len(text) <= limit + 2 else f"{text[:limit]}…"


def check_text(text: str, limit_bytes: int = TEXT_BYTES, *, field: str = "text") -> str:
    """The text of a memory: not blank, valid Unicode, no NUL, at most `limit_bytes`."""
    if not text.strip():
        raise InvalidInput(f"give '{field}' some text: it is empty or blank", field=field)
    size = _storable_size(text, field)
    if size > limit_bytes:
        raise TooLarge(
            f"shorten '{field}': it has {size} bytes, and the limit is {limit_bytes}",
            field=field,
            hint="split it into several memories, or keep it in a file and store its path",
        )
    return text


def check_short(text: str, field: str, limit_chars: int) -> str:
    """A short text such as a subject or a source, stripped; it may be empty."""
    text = text.strip()
    _check_length(text, field, limit_chars)
    _storable_size(text, field)
    return text


def is_agent(text: str) -> bool:
    """Whether `check_agent` accepts it."""
    return _AGENT.fullmatch(text) is not None


def check_agent(agent: str, *, field: str = "agent") -> str:
    """An agent id: 1 to 64 of ASCII letters, digits, `_` and `-`; it names a folder."""
    if not is_agent(agent):
        raise InvalidInput(
            f"cannot use {shown(agent)} as an agent id",
            field=field,
            hint="1 to 64 letters, digits, '_' or '-'",
        )
    return agent


def check_importance(importance: float, *, field: str = "importance") -> float:
    """An importance from 0 to 1."""
    if isinstance(importance, bool) or not 0.0 <= importance <= 1.0:
        raise InvalidInput(
            f"give '{field}' a number from 0 to 1 (got {shown(importance)})", field=field
        )
    return float(importance)


def check_client_importance(
    value: float, *, beside_content: bool, field: str = "importance"
) -> float:
    """An importance as clients send it: 0 to 1, or an integer on ScalyClaw's scale from 1 to 10.

    An integer 1 is the minimum of that scale if it is sent `beside_content`, else the maximum of
    the other.
    """
    if type(value) is int and (beside_content or value > 1):
        if 1 <= value <= 10:
            return value / 10
    elif not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return float(value)
    least = 1 if beside_content else 2
    raise InvalidInput(
        f"give '{field}' a number from 0 to 1, or an integer from {least} to 10 for tenths"
        f" (got {shown(value)})",
        field=field,
    )


def check_tags(tags: Iterable[str], *, field: str = "tags") -> tuple[str, ...]:
    """At most 32 tags of at most 64 characters, stripped, without blank and equal ones."""
    return _check_list(tags, field, TAG_CHARS, TAGS, "different tags")


def check_metadata(metadata: Metadata, *, field: str = "metadata") -> Metadata:
    """The references that a caller gives: at most 64 of a kind, each at most 2,048 characters."""
    lists = (
        _check_list(values, f"{field}.{name}", REFERENCE_CHARS, REFERENCES)
        for name, values in msgspec.structs.asdict(metadata).items()
    )
    return Metadata(*lists)


def check_data(data: Json, limit_bytes: int = DATA_BYTES, *, field: str = "data") -> Json:
    """Any JSON of at most `limit_bytes` in its compact form and 32 levels.

    Refused is what could not be read back unchanged: lone surrogates, infinities, NaN, and integers
    beyond 64 bits.
    """
    if fault := _data_fault(data):
        raise InvalidInput(f"cannot keep '{field}': it {fault}", field=field)
    try:
        size = len(msgspec.json.encode(data))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"cannot write '{field}' as JSON: {error}", field=field) from error
    if size > limit_bytes:
        raise TooLarge(
            f"shorten '{field}': it has {size} bytes as JSON, and the limit is {limit_bytes}",
            field=field,
        )
    return data


def check_category(path: str, max_depth: int = 4, *, field: str = "category") -> str:
    """A category as a clean path `a/b/c`, in Unicode's form NFC.

    Slashes around it, blanks around its segments and a leading `root/` are removed; `root` alone
    is the root. Checking is idempotent.

    Raises:
        InvalidInput: a segment is empty, `.` or `..`, begins with `_` (reserved for state
            files), or has a backslash or a control character; or the path has more than
            `max_depth` levels.
        TooLarge: a segment has more than 64 characters, or the whole more than 200.
    """
    if len(path) > 4 * CATEGORY_CHARS:
        _check_length(path, field, CATEGORY_CHARS)
    trimmed = unicodedata.normalize("NFC", path).strip().strip("/")
    segments = [segment.strip() for segment in trimmed.split("/")]
    while len(segments) > 1 and segments[0] == ROOT:
        del segments[0]
    for segment in segments:
        _check_segment(segment, path, field)
    clean = "/".join(segments)
    _check_length(clean, field, CATEGORY_CHARS)
    if len(segments) > max_depth:
        raise InvalidInput(
            f"cannot use {field} {shown(clean)}: it has {len(segments)} levels",
            field=field,
            hint=f"the tree has at most {max_depth}; use '{'/'.join(segments[:max_depth])}'",
        )
    return clean


def filed_category(path: str, max_depth: int = 4) -> str:
    """The category in which a memory of `path` is filed: too deep a path is cut."""
    return "/".join(check_category(path, CATEGORY_CHARS).split("/")[:max_depth])


def check_time(value: float | str, *, field: str = "time", hint: str = _TIME_HINT) -> float:
    """A time in the years 1970 to 9999, as seconds since the epoch.

    A string is ISO 8601, in UTC unless it has a zone, or a number of seconds.
    """
    moment = _parse_iso(value, field, hint) if isinstance(value, str) else value
    # NaN, infinities and huge integers all fail the comparison.
    if isinstance(moment, bool) or not 0.0 <= moment < TIME_END:
        hint = "times are seconds, not milliseconds" if moment >= TIME_END else hint
        raise InvalidInput(
            f"give '{field}' a time between the years 1970 and 9999 (got {shown(value)})",
            field=field,
            hint=hint,
        )
    return float(moment)


def _storable_size(text: str, field: str) -> int:
    """The size of `text` in UTF-8; raises if the store or other programs cannot hold it."""
    if "\0" in text:
        raise InvalidInput(
            f"remove the NUL character at position {text.index(chr(0))} of '{field}'", field=field
        )
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"fix '{field}': lone surrogate at position {error.start}",
            field=field,
            hint="the text must be valid Unicode",
        ) from error


def _check_length(text: str, field: str, limit_chars: int) -> None:
    if len(text) > limit_chars:
        raise TooLarge(
            f"shorten '{field}': it has {len(text)} characters, and the limit is {limit_chars}",
            field=field,
        )


def _data_fault(data: Json) -> str | None:
    """Why JSON could not be read back unchanged, or None."""
    level, depth = [data], 0
    while level:
        if any(isinstance(item, int) and not _LEAST <= item <= _MOST for item in level):
            return "has a whole number beyond 64 bits"
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return "has a number that is infinite or NaN"
        depth += 1
        lists = [item for item in level if isinstance(item, list | tuple)]
        objects = [item.values() for item in level if isinstance(item, dict)]
        if depth > DATA_LEVELS and (lists or objects):
            return f"is nested deeper than {DATA_LEVELS} levels"
        level = [inner for part in (*lists, *objects) for inner in part]
    return None


def _check_list(
    values: Iterable[str], field: str, limit_chars: int, limit: int, what: str = ""
) -> tuple[str, ...]:
    """The values, stripped, without blank and duplicate ones."""
    clean = (check_short(value, f"{field}[{i}]", limit_chars) for i, value in enumerate(values))
    unique = tuple(dict.fromkeys(filter(None, clean)))
    if len(unique) > limit:
        raise InvalidInput(
            f"give at most {limit} {what or repr(field)} (got {len(unique)})", field=field
        )
    return unique


def _check_segment(segment: str, path: str, field: str) -> None:
    fault = None
    if not segment:
        fault = "it has an empty level"
    elif segment in {".", ".."}:
        fault = f"'{segment}' is not a name"
    elif segment.startswith("_"):
        fault = "names that begin with '_' are reserved"
    elif "\\" in segment:
        fault = "it has a backslash"
    elif any(unicodedata.category(char) in _UNPRINTABLE for char in segment):
        fault = "it has a control character"
    if fault is not None:
        raise InvalidInput(
            f"cannot use {field} {shown(path)}: {fault}",
            field=field,
            hint="write it like 'projects/boat'",
        )
    _check_length(segment, field, SEGMENT_CHARS)


def _parse_iso(value: str, field: str, hint: str = _TIME_HINT) -> float:
    text = value.strip()
    if _EPOCH.fullmatch(text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.timestamp()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"cannot read '{field}' {shown(value)} as a time", field=field, hint=hint
        ) from error


# A year is 365 days. There are no months, since `m` is a minute.
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}

_HINT: Final = "a duration such as '7d', '12h' or '1d12h' (s m h d w y), or a time in the future"
_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([smhdwy])\s*", re.IGNORECASE)
_LONGEST: Final = 64


def parse_expiry(value: float | str | None, now: float, *, field: str = "expires") -> float | None:
    """The time of `value` in seconds since the epoch; None for never; else `InvalidInput`.

    `value` is a duration from `now` ("7d", "12h", "30m", "45s", "2w", "1y", "1d12h"), a time (ISO
    8601, or seconds since the epoch) after `now`, or empty (None or a blank string).
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    seconds = _duration(value) if isinstance(value, str) else None
    try:
        moment = check_time(value if seconds is None else now + seconds, field=field)
    except InvalidInput as error:
        raise InvalidInput(
            f"cannot read '{field}' {shown(value)} as a duration or a time up to the year 9999",
            field=field,
            hint=_HINT,
        ) from error
    if moment <= now:
        raise InvalidInput(
            f"give '{field}' a time in the future: {shown(value)} is not", field=field, hint=_HINT
        )
    return moment


def parse_since(value: float | str, now: float, *, field: str = "since") -> float:
    """A duration before `now` ("2h", "7d"), or a time, as a time; else `InvalidInput`."""
    seconds = _duration(value) if isinstance(value, str) else None
    if seconds is not None:
        return max(0.0, now - seconds)
    return check_time(value, field=field, hint=_SINCE_HINT)


def _duration(text: str) -> float | None:
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    seconds, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        seconds += float(part[1]) * SECONDS[part[2].lower()]
        position = part.end()
    return min(seconds, TIME_END)
