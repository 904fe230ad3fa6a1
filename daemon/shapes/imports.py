"""What other tools, or other hands, have written, taken into a memory."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .cold import DatabaseBody

Format = Literal["hot", "warm", "tree", "metrics", "memory-md", "rows"]


class ImportBody(DatabaseBody, kw_only=True, forbid_unknown_fields=True):
    """What to take in: one of a `text`, a `path`, or the database at `url`.

    Attributes:
        path: a whole path of what the daemon reads, for root and its own user alone.
        text: the content of a file, which is called `name` and was `written_at`.
        `format`: what the file is, where neither its name nor its content tells.
        dry_run: only tell what would be stored.
    """

    path: str | None = None
    text: str | None = None
    name: Annotated[str, Meta(max_length=1024)] = ""
    written_at: Annotated[float, Meta(ge=0)] | None = None
    format: Format | None = None
    dry_run: bool = False


class ReadPart(Struct, kw_only=True):
    """A file with its format, or a table, and how many entries it held."""

    file: str | UnsetType = UNSET
    table: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    entries: int


class OtherAgent(Struct):
    """Another agent whose memory is there too."""

    agent: str
    path: str


class Imported(Struct, kw_only=True):
    """What was taken in: a second time it stores nothing.

    Attributes:
        read: each file or table, and how much it held.
        stored: rows that said something new, by kind.
        skipped: how many did not, by reason.
        left_out: what could not be used, a line each.
    """

    read: list[ReadPart] = field(default_factory=list)
    stored: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    others: list[OtherAgent] = field(default_factory=list)
    dry_run: bool = False
