"""What a note leaves out that a reader will want later."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Omission


class ValidateBody(Struct, forbid_unknown_fields=True):
    """A `text`, and the name of the file that it is from; without both, today's note is read."""

    text: str | None = None
    file: Annotated[str, Meta(max_length=4_096)] | None = None


class Validated(Struct, kw_only=True):
    """EvoClaw's answer: `ok` with a message, or `warning` with a suggestion for each warning."""

    status: Literal["ok", "warning"]
    message: str | UnsetType = UNSET
    warnings_count: int | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    file: str | None
    suggestions: list[str] | UnsetType = UNSET
    omissions: list[Omission] | UnsetType = UNSET
