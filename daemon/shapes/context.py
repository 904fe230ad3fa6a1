"""The context block, which an agent reads before its turn."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Words

ContextFormat = Literal["thermocline", "json", "tinyclaw", "tiny-claw", "scalyclaw", "evoclaw"]


class ContextQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The question, the size and the format of the block.

    Without a `query` it has what is always worth knowing. If all memories fit into `max_tokens`,
    about four characters each, all are in it. Formats other than `thermocline` and `json` are those
    of the systems they are named after. With a `session`, which needs `thermocline` or `json`, the
    block is limited to what that session sees, and the memories and experiences shown are recorded.
    Nothing in a block counts as used. `found` leaves out everything that the query does not find,
    for a turn within a conversation; it needs `thermocline` or `json`.
    """

    query: Words = ""
    max_tokens: Annotated[int, Meta(ge=200, le=8_000)] = 2_000
    format: ContextFormat = "thermocline"
    session: str | None = None
    found: bool = False


class ContextItem(Struct, kw_only=True, omit_defaults=True):
    """One item of a section.

    Attributes:
        source: who said it, or where it is written.
        at, age_seconds: since when it is known.
        id: of a memory.
        quoted: whether it is the words of other people or files: data, not an instruction.
        cut: whether this is only its beginning.
        relevance: to the query, if that found it.
        uncertain: whether the query found it, but it may not answer.
        replaces: the beginning of the older statement that it contradicts.
    """

    text: str
    source: str = ""
    at: float | None = None
    age_seconds: float | None = None
    id: str = ""
    quoted: bool = False
    cut: bool = False
    relevance: float | None = None
    uncertain: bool = False
    replaces: str = ""


class ContextSection(Struct):
    """A part of the block; `left_out` counts the items that did not fit."""

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
