"""Proving that a restore would work."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RestoreBody(Struct, forbid_unknown_fields=True):
    """What to do: `verify`, the only thing that a running daemon can."""

    verify: Annotated[bool, Meta(extra_json_schema={"const": True})]


class Verification(Struct, frozen=True, kw_only=True):
    """A memory was restored into a temporary folder and compared with the live one.

    Rows on their way between the two are left out.

    Attributes:
        verified: nothing is missing, different or extra, and all came as it was sent.
        rows: how many were compared.
        missing: rows that the replica does not have.
        different: rows that the replica has in another version.
        extra: rows that only the replica has.
        seconds: how long it took.
        at: when it was over, in seconds since the epoch.
        faults: what is wrong, a line each.
    """

    verified: bool
    rows: int
    missing: int
    different: int
    extra: int
    seconds: float
    at: float
    faults: tuple[str, ...] = ()
