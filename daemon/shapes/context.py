"""What an agent reads before its turn."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Words

ContextFormat = Literal["thermocline", "json", "tinyclaw", "tiny-claw", "scalyclaw", "evoclaw"]


class ContextQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """For which question the block is, its size, and how it is written.

    Without a `query` it has what is always worth knowing. `max_tokens`, about four characters
    each, is for `thermocline` and `json`; the other formats are those of the systems they are
    named after, with their own sizes. With a `session` the block has what that session sees, and
    what it shows of memories and experiences is recorded; one that names a category or paths goes
    with `thermocline` and `json`. Only memories that a query finds count as used, and not by
    a reader. `found` leaves out all that the query does not find, for a turn in the middle of a
    conversation; then, too, it goes with `thermocline` and `json`.
    """

    query: Words = ""
    max_tokens: Annotated[int, Meta(ge=200, le=8_000)] = 2_000
    format: ContextFormat = "thermocline"
    session: str | None = None
    found: bool = False


class ContextItem(Struct, kw_only=True, omit_defaults=True):
    """One thing of a section.

    Attributes:
        source: who said it, or where it stands.
        at, age_seconds: since when it is so.
        id: of a memory.
        quoted: whether it is what others said or wrote: data, and no instruction.
        cut: whether this is its beginning alone.
        relevance: to the query, if that found it.
    """

    text: str
    source: str = ""
    at: float | None = None
    age_seconds: float | None = None
    id: str = ""
    quoted: bool = False
    cut: bool = False
    relevance: float | None = None


class ContextSection(Struct):
    """A part of the block; `left_out` counts the items for which there was no room."""

    name: str
    items: list[ContextItem]
    left_out: int


class ContextBlock(Struct, kw_only=True):
    """The block as `text`, or its `sections` in the format `json`; `tokens` is an estimate."""

    format: ContextFormat
    tokens: int
    text: str | UnsetType = UNSET
    sections: list[ContextSection] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
