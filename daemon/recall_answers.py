"""The shapes of what a recall takes and gives, for type checkers and for readers.

As with `answers`, nothing is checked at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from .answers import Json, Memory, Tier, Time, Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Explanation(TypedDict):
    """Why a memory stands where it does in a recall.

    `match`, `recency` and `importance` make its relevance; the `signals` make its match. It has
    the `words` itself, the `lenders` are neighbours that have some, and `path` is the category
    that the query named, or "", or that a model named for the `reason` given.
    """

    match: float
    recency: float
    importance: float
    signals: dict[str, float]
    words: list[str]
    lenders: list[str]
    path: str
    reason: str


class Found(Memory):
    """A memory with its place in a recall; `parts` only when an explanation was asked for."""

    relevance: float
    search_method: str
    parts: NotRequired[Explanation]


class FoundPair(TypedDict):
    """A key-value pair that answers; its id is `kv:` and the key."""

    id: str
    key: str
    value: str
    relevance: float
    words: list[str]


class TreePath(TypedDict):
    """A category that a query named, and the way to it from the root."""

    path: str
    relevance: float
    words: list[str]
    trace: list[str]


class Understood(TypedDict):
    """What was read in a query; dates are spans of seconds, their ends not included."""

    words: list[str]
    common_words: list[str]
    phrases: list[list[str]]
    excluded: list[list[str]]
    people: list[str]
    dates: list[tuple[float, float]]
    tree: list[TreePath]


class ReasonedPath(TypedDict):
    """A category in which a model expects the answer, and the way to it from the root."""

    path: str
    relevance: float
    reason: str
    trace: list[str]


class ByModel(TypedDict):
    """What a model had a part in; `why` is there if it had none, `spent` says what it took."""

    way: Literal["rule", "llm"]
    tree: list[ReasonedPath]
    why: NotRequired[str]
    spent: NotRequired[dict[str, Json]]


class RecallOptions(TypedDict, total=False):
    """How to recall; the weights given override those of the configuration.

    A `preset` ranks by a published formula in place of the weights. `now` is the time that the
    question is asked at. In the modes `llm` and `hybrid` a model has a part, the configured one
    or the one at `llm_endpoint`.
    """

    limit: int
    max_tokens: int
    types: Sequence[Type]
    events: Sequence[str]
    tags: Sequence[str]
    category: str
    tier: Tier
    source: str
    actor: str
    group: str
    since: Time
    until: Time
    min_importance: float
    include: Sequence[Literal["merged", "expired"]]
    weights: Mapping[Literal["match", "recency", "importance"], float]
    preset: Literal["tinyclaw", "scalyclaw"]
    mode: Literal["keyword", "tree", "llm", "hybrid"]
    llm_endpoint: str
    now: Time
    explain: bool
    reinforce: bool


class Recall(TypedDict):
    """The memories that fit best first, then the pairs; `why` says it when there are none.

    `understood` is there only when an explanation was asked for.
    """

    results: list[Found]
    searched: dict[str, int]
    took_ms: float
    mode: str
    key_values: NotRequired[list[FoundPair]]
    understood: NotRequired[Understood]
    why: NotRequired[str]
    llm: NotRequired[ByModel]


class ColdFound(TypedDict):
    """What a database holds of some words; `relevance` is the share of them that it has."""

    results: list[Found]
