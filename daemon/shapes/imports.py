"""Importing the files of other programs, and texts written by people."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .cold import DatabaseBody

Format = Literal["hot", "warm", "tree", "metrics", "memory-md", "rows"]


class ImportBody(DatabaseBody, kw_only=True, forbid_unknown_fields=True):
    """What to import: a `text`, entries of another system, or the database at `url`.

    Attributes:
        text: the content of a file, which is called `name` and was `written_at`.
        memories: records as in warm-memory.json, each with a stable `id`; a known one is changed if
            its `updated_at` is later than the change here. Secrets in them are replaced.
        experiences: the same for experiences.
        distil: store only the facts of turns, extracted by rules.
        `format`: of the file, if neither its name nor its content shows it.
        dry_run: only report what would be stored.
    """

    text: str | None = None
    memories: list[dict[str, Any]] | None = None
    experiences: list[dict[str, Any]] | None = None
    distil: bool = False
    name: Annotated[str, Meta(max_length=1024)] = ""
    written_at: Annotated[float, Meta(ge=0)] | None = None
    format: Format | None = None
    dry_run: bool = False


class ReadPart(Struct, kw_only=True):
    """A file with its format, or a table, and its number of entries."""

    file: str | UnsetType = UNSET
    table: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    entries: int


class OtherAgent(Struct):
    """Another agent whose memory was found in the same place."""

    agent: str
    path: str


class Imported(Struct, kw_only=True):
    """The result of an import; repeating the import stores nothing.

    Attributes:
        read: each file or table, and its number of entries.
        stored: the number of new rows, by kind.
        skipped: the number of rows that were not new, by reason.
        left_out: what could not be used, one line each.
    """

    read: list[ReadPart] = field(default_factory=list)
    stored: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    others: list[OtherAgent] = field(default_factory=list)
    dry_run: bool = False
