"""Questions in words, and what answers them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Type
from .common import Endpoint, RecallLimit, Time, Way, Words
from .experiences import ExperienceView
from .files import FoundChunk
from .graph import FoundEntity
from .memory import MemoryView, Narrowing

Mode = Literal["keyword", "tree", "llm", "hybrid"]
Preset = Literal["tinyclaw", "scalyclaw"]
Weight = Annotated[float, Meta(ge=0, le=100)]


class GivenWeights(Struct, frozen=True, forbid_unknown_fields=True):
    """Weights for this call; default: those of the configuration."""

    match: Weight | None = None
    recency: Weight | None = None
    importance: Weight | None = None


class RecallQuery(Narrowing, kw_only=True, forbid_unknown_fields=True):
    """A question, and conditions on the answer.

    `mode` tree only searches the categories. In mode `llm` a model, or the server at
    `llm_endpoint`, names the categories in which it expects the answer, and their memories take
    part; in mode `hybrid` only if it does so in time (`recall.hybrid_deadline_ms`). Without the
    model's answer both are as `keyword`, and `llm` in the answer says why. With `Accept:
    application/x-ndjson`, mode `hybrid` gives two lines: the result by words, at once, and then the
    final one.

    The default of `limit` is `recall.limit` of the configuration; without `preset` and `weights`,
    `recall.preset` applies. A preset ranks by a published formula in place of the weights. `now`,
    seconds or ISO 8601, is the reference time of words like "last week" and of ages. `max_tokens`
    counts four characters of text as one. `min_relevance` drops every hit below it, in place of
    `recall.min_relevance`, which depends on the most relevant one. With `reinforce` false the
    question leaves no trace.

    `session` limits the question to what that session sees, and records what the answer shows.
    `llm_endpoint` needs the role `write`, and mode `llm` or `hybrid`.
    """

    query: Words
    limit: RecallLimit | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    min_relevance: Annotated[float, Meta(ge=0, le=1)] | None = None
    types: tuple[Type, ...] = ()
    events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    preset: Preset | None = None
    mode: Mode = "keyword"
    llm_endpoint: Endpoint | None = None
    now: Time | None = None
    explain: bool = False
    reinforce: bool = True
    session: str | None = None


class RecallBody(RecallQuery, kw_only=True, forbid_unknown_fields=True):
    """A question as in the URL, with `weights` for this call, at least one of them above 0."""

    weights: GivenWeights = GivenWeights()


class SearchQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """ScalyClaw's parameters besides ours: `q` or `query` is required, `topK` is the limit."""

    q: Words | None = None
    query: Words | None = None
    topK: RecallLimit | None = None  # noqa: N815 - the name of the parameter
    limit: RecallLimit | None = None
    type: tuple[Type, ...] = ()
    tags: tuple[str, ...] = ()


class Explanation(Struct):
    """Why a memory has its rank.

    Attributes:
        match, recency, importance: the parts of the order, each 0 to 1; with a preset, of the
            relevance.
        signals: what each signal added to the match, before scaling to the best candidate.
        words: the words of the query that it has.
        lenders: the ids of the neighbours whose words count for it.
        path: the category of the tree that named it, or "".
        reason: a model's reason for that category, or "".
    """

    match: float
    recency: float
    importance: float
    signals: dict[str, float]
    words: tuple[str, ...]
    lenders: tuple[str, ...]
    path: str
    reason: str


class HitView(MemoryView, kw_only=True):
    """A memory that answers a query.

    `relevance` estimates how likely it does, 0 to 1, on one scale for all questions; the order is
    the ranking's. In mode `tree` it is EvoClaw's, with a preset that system's. `path` is `chat://`
    and its conversation, for a turn and for a memory made from one.
    """

    relevance: float
    search_method: str
    path: str | UnsetType = UNSET
    parts: Explanation | UnsetType = UNSET


class FoundPair(Struct):
    """A key-value pair that answers; `id` is `kv:` and the key."""

    id: str
    key: str
    value: str
    relevance: float
    words: tuple[str, ...]


class FoundEntry(Struct):
    """An entry of the agent's own files that answers; `path` is its file in the workspace."""

    source: Literal["reflection", "episode", "skill"]
    id: str
    text: str
    path: str
    created_at: float
    relevance: float
    words: tuple[str, ...]


class SearchCounts(Struct):
    """The number of each kind that was searched; `entries` are those of the agent's own files."""

    memories: int
    key_values: int
    entries: int = 0
    experiences: int = 0
    entities: int = 0
    chunks: int = 0


class TreePath(Struct):
    """A category that the query named, and the way to it from the root."""

    path: str
    relevance: float
    words: tuple[str, ...]
    trace: tuple[str, ...]


class Understood(Struct):
    """How the query was understood. Dates are spans in seconds since the epoch."""

    words: tuple[str, ...]
    common_words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]
    people: tuple[str, ...]
    dates: tuple[tuple[float, float], ...]
    tree: tuple[TreePath, ...]


class ReasonedPath(Struct):
    """A category in which a model expects the answer, why, and the way to it from the root."""

    path: str
    relevance: float
    reason: str
    trace: tuple[str, ...]


class Expense(Struct, frozen=True):
    """The cost of a model's answer; `cleared` counts the secrets that were removed first."""

    model: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    cached: bool
    seconds: float
    cleared: dict[str, int]


class ByModel(Struct):
    """The model's part in the answer: `way` is `rule` if it had none, and `why` says why."""

    way: Way
    tree: list[ReasonedPath]
    why: str | UnsetType = UNSET
    spent: Expense | UnsetType = UNSET


class Recalled(Struct, omit_defaults=True):
    """The hits, best first. `why` explains an empty answer in a sentence.

    `llm` is present in modes with a model, `understood` with an explanation.
    """

    results: list[HitView]
    searched: SearchCounts
    took_ms: float
    mode: str
    key_values: list[FoundPair] = []
    entries: list[FoundEntry] = []
    experiences: list[ExperienceView] = []
    entities: list[FoundEntity] = []
    chunks: list[FoundChunk] = []
    understood: Understood | UnsetType = UNSET
    why: str | UnsetType = UNSET
    doubt: str | UnsetType = UNSET
    llm: ByModel | UnsetType = UNSET


class SearchResults(Struct):
    """The hits, best first."""

    results: list[HitView]
