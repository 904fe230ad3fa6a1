"""Condensing a text to what is worth remembering."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Distilled as Distilled  # noqa: PLC0414 - part of an answer as it is
from .common import CategoryPath, Endpoint, Share, Way
from .recall import Expense


class DistilBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """One `text`, or 1 to 100 `texts`; none may be blank.

    `llm` true asks the configured model, false uses the rules; default: `distillation.mode` of the
    configuration. `llm_endpoint` is the URL of a server to ask instead. `facts` returns every
    statement worth keeping. `store` stores the result (all the facts, if requested) in the matching
    category of the tree, or else in `category`, which needs `store`. `max_bytes` and `aggression`
    replace those of the configuration.
    """

    text: str | None = None
    texts: tuple[str, ...] | None = None
    core_summary: bool = False
    facts: bool = False
    store: bool = False
    category: CategoryPath | None = None
    llm: bool | None = None
    llm_endpoint: Endpoint | None = None
    max_bytes: Annotated[int, Meta(ge=16, le=65_536)] | None = None
    aggression: Share | None = None


class StageSizes(Struct):
    """The bytes of the text, of what was distilled from it, and of its summary."""

    raw: int
    fact: int
    core: int


class StoredFact(Struct):
    """The memory with the fact; `duplicate`: the fact was already stored.

    `supersedes` are the memories that the new one replaces.
    """

    id: str
    text: str
    category: str
    importance: float
    duplicate: bool
    supersedes: list[str] | UnsetType = UNSET


class DistilledText(Struct, kw_only=True):
    """The facts; `mode` says whether a model or the rules found them, `why` why no model did.

    `original_size` and `distilled_size` are bytes.
    """

    distilled: Distilled
    mode: Way
    original_size: int
    distilled_size: int
    compression_ratio: float
    stages: StageSizes
    core_summary: str | UnsetType = UNSET
    core_size: int | UnsetType = UNSET
    facts: list[Distilled] | UnsetType = UNSET
    stored: list[StoredFact] | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: Expense | UnsetType = UNSET


class DistilledTexts(Struct):
    """Several texts, in their order."""

    results: list[DistilledText]
