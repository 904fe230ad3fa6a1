"""Detects the format of one file of a memory, and reads it into an `Intake`.

A workspace may contain anything: links are not followed, pipes are not waited for, and the size of
a file is checked before it is read.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

from thermocline.sync import Row

from ..errors import InvalidInput, ThermoclineError
from ..memory.checks import shown as quoted
from ..memory.hot.state import TOP_KEYS, number
from ..memory.records import FileFormat, Json
from ..memory.scoring import DAY
from ..runtime import atomic
from ..store import apply
from ..store.engine import LARGEST
from ..store.records.documents import (
    HOT_FILE,
    MARKDOWN_FILE,
    METRICS_FILE,
    STORED_METRICS,
    TREE_FILE,
    WARM_FILE,
    render,
)
from ..store.records.similar import find_same
from . import memory_md, tier_files, warm_file
from .intake import THERE, ImportReport, Intake
from .values import Parsed, reason, unexpected, unknown_keys

FORMATS: Final[tuple[str, ...]] = get_args(FileFormat)
# The tree before the memories, which would create their categories without a description.
FILES: Final[dict[str, FileFormat]] = {
    TREE_FILE: "tree",
    WARM_FILE: "warm",
    HOT_FILE: "hot",
    METRICS_FILE: "metrics",
}
# The counters that are computed whenever the file is written, so never read.
_COMPUTED: Final = frozenset(
    (
        *("tree_index_size_bytes", "tree_node_count", "hot_memory_size_bytes"),
        *("warm_memory_count", "warm_memory_size_kb", "timestamp", "_schema_version"),
    )
)
# How many names a message lists.
_NAMED: Final = 12
_LONGEST_NAME: Final = 60
_COUNTER: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
# The keys that only a hot state has, in any generation.
_HOT_KEYS: Final = frozenset({*TOP_KEYS, "owner", "agent", "lessons"}) - {"_schema_version"}


def read_file(path: Path, intake: Intake, *, below: Path | None) -> None:
    """Read a file, if it exists, into a memory, and report what was left out. Blocking.

    Its format is detected. Below the folder `below` no link is followed.
    """
    try:
        content, stood = atomic.read(path, LARGEST, below=below)
    except FileNotFoundError:
        return
    except (OSError, ThermoclineError) as error:
        intake.report.note(str(path), reason(error, path))
        return
    try:
        take(content, path.name, intake, written_at=stood.st_mtime, shown=str(path))
    except ThermoclineError as error:
        intake.report.note(str(path), error.message)


def take(
    content: bytes,
    name: str,
    intake: Intake,
    expected: FileFormat | None = None,
    *,
    written_at: float,
    shown: str | None = None,
) -> None:
    """Import the content of a file into a memory.

    The `name` of a file that was set aside begins with its original name. `written_at` is when it
    was last changed, the default of missing times. The report names it `shown`, by default `name`.

    Raises:
        InvalidInput: it has an unknown format, or cannot be read at all.
    """
    tx = intake.tx
    format_ = format_of(content, name, expected)
    written_at = min(written_at, tx.now)
    shown = shown or name
    if format_ == "rows":
        rows = rows_in(io.BytesIO(content), shown, intake.report)
        entries = intake.rows(rows, is_export=True)
    elif format_ == "memory-md":
        memories, faults = memory_md.parse(_text(content), written_at)
        ours = render(tx.db, ["hot"], tx.now, tx.rules)[MARKDOWN_FILE]
        shown_now = {(memory.id, memory.category) for memory in memory_md.parse(ours, 0)[0]}
        new = [
            memory
            for memory in memories
            if (memory.id, memory.category) not in shown_now
            and find_same(tx.db, memory.text, tx.now) is None
        ]
        intake.skip(THERE, len(memories) - len(new))
        intake.memories(new, editable=frozenset())
        intake.report.note(shown, *faults)
        entries = len(memories)
    else:
        document = _json(content)
        if not isinstance(document, (list, dict) if format_ == "warm" else dict):
            wanted = "a list or an object" if format_ == "warm" else "an object"
            raise InvalidInput(unexpected(wanted, document))
        entries = take_document(document, format_, intake, shown, written_at)
    intake.report.read.append({"file": shown, "format": format_, "entries": entries})


def take_document(
    document: Json, format_: FileFormat, intake: Intake, name: str, written_at: float
) -> int:
    """Import a JSON document; return the number of its entries."""
    parse, take_in = _JSON_FORMATS[format_]
    more = {"max_depth": intake.tx.rules.tree.max_depth} if format_ == "warm" else {}
    parsed = parse(document, written_at, **more)
    take_in(intake, parsed.content)
    intake.report.note(name, *parsed.faults)
    return 1 if format_ == "hot" else len(parsed.content)


def parse_metrics(document: Json, now: float) -> Parsed[dict[str, float]]:
    """The counters of a metrics file, finite and not negative; times in seconds.

    Counters that EvoClaw does not know are read too; everything else is ignored.

    EvoClaw's tools add to every number, the time of the last consolidation included: a time in the
    future is such a sum, and is left out. Never raises.
    """
    if not isinstance(document, dict):
        return Parsed({}, (unexpected("an object", document),))
    values: dict[str, float] = {}
    faults: list[str] = []
    unknown: list[str] = []
    for name, content in document.items():
        if name in _COMPUTED:
            continue
        value = number(content) if _COUNTER.fullmatch(name) else None
        if value is None or value < 0:
            if name in STORED_METRICS:
                faults.append(f"{name}: {unexpected('a number from 0', content)}")
            else:
                unknown.append(name)
        elif name != "last_consolidation" or 0 < value <= now + DAY:
            values[name] = value
        elif value:
            faults.append(f"{name}: {quoted(content)} lies in the future")
    return Parsed(values, (*faults, *unknown_keys(dict.fromkeys(unknown, 1))))


_JSON_FORMATS: Final[dict[FileFormat, tuple[Callable[..., Parsed[Any]], Callable[..., None]]]] = {
    "hot": (tier_files.parse_hot, Intake.hot),
    "warm": (warm_file.parse, Intake.memories),
    "tree": (tier_files.parse_tree, Intake.categories),
    "metrics": (parse_metrics, Intake.counters),
}


def format_of(content: bytes, name: str, expected: FileFormat | None = None) -> FileFormat:
    """The format of a file: as given, or by its name, or by its content; else `InvalidInput`."""
    if expected is None:
        return _by_name(name) or _by_content(content)
    try:
        other = _by_content(content)
    except InvalidInput:
        return expected
    if other != expected:
        raise InvalidInput(
            f"it is not {expected}: it is {other}", field="format", hint=f"say format {other}"
        )
    return expected


def are_rows(head: bytes, *, whole: bool) -> bool:
    """Whether a file with this beginning consists of rows, a row in each line."""
    lines = [line for line in head.splitlines() if line.strip()]
    if not whole and len(lines) > 1:
        lines.pop()
    return bool(lines) and all(apply.row_of(line) is not None for line in lines[:2])


def rows_in(lines: BinaryIO, name: str, report: ImportReport) -> Iterator[Row]:
    """The rows in lines of JSON, as in a backup or an export; invalid lines are reported."""
    bad = 0
    for row in apply.rows_in(lines):
        if row is None:
            bad += 1
        else:
            yield row
    if bad:
        report.note(name, f"{bad} {'line is no row' if bad == 1 else 'lines are not rows'}")


def _by_name(name: str) -> FileFormat | None:
    for known, format_ in FILES.items():
        if name == known or name.startswith(f"{known}."):
            return format_
    if name.startswith("MEMORY") or ".md" in name:
        return "memory-md"
    return None


def _by_content(content: bytes) -> FileFormat:
    if are_rows(content, whole=True):
        return "rows"
    try:
        document = _json(content)
    except InvalidInput as error:
        raise _unknown_format(f": {error.message}") from error
    if isinstance(document, list) and all(isinstance(item, dict) for item in document):
        return "warm"
    if isinstance(document, dict):
        if "root" in document:
            return "tree"
        if document.keys() & _HOT_KEYS:
            return "hot"
        if document.keys() & set(STORED_METRICS):
            return "metrics"
        values = [value for name, value in document.items() if not name.startswith("_")]
        if values and all(
            isinstance(entry, dict) and entry.keys() & {"text", "content", "fact", "event_type"}
            for entry in values
        ):
            return "warm"
    raise _unknown_format(f": it is {kind_of(document)}")


def kind_of(document: Json) -> str:
    """What a JSON document is, for a message."""
    if isinstance(document, dict):
        return with_names("a JSON object", "keys", document)
    if not isinstance(document, list):
        return "a single JSON value"
    objects = [item for item in document if isinstance(item, dict)]
    if objects and len(objects) == len(document):
        keys = {key for item in objects for key in item}
        return with_names("a JSON list of objects", "keys", keys)
    return f"a JSON list of {len(document):,} values"


def with_names(what: str, plural: str, names: Iterable[str]) -> str:
    """`what`, and the first of its names."""
    listed = sorted(name[:_LONGEST_NAME] for name in names)
    if not listed:
        return f"{what} without {plural}"
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    return f"{what} with the {plural} {', '.join(listed[:_NAMED])}{more}"


def _unknown_format(reason: str) -> InvalidInput:
    return InvalidInput(
        f"cannot tell what the file is{reason}",
        field="format",
        hint=f"say so: --format {', '.join(FORMATS)}",
    )


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 (byte {error.start})") from error


def _json(content: bytes) -> Json:
    try:
        return json.loads(_text(content))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"it is not JSON: {error}") from error
