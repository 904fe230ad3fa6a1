"""Questions in words, what answers them, and the context block."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Entity, Pair, Type
from ..memory.tree_nodes import NamedCategory
from .common import AgentName, Endpoint, Json, Method, RecallLimit, Time, Words
from .files import FoundChunk
from .learning import ExperienceView
from .memory import FilterFields, MemoryView

Source = Literal["memory", "pair", "file", "episode", "reflection", "skill", "experience", "entity"]
Confidence = Literal["sure", "unsure", "none"]
Mode = Literal["keyword", "tree", "llm"]
Preset = Literal["tinyclaw", "scalyclaw"]
# What is said above results that are not sure.
NOT_SURE: Final = "nothing certain; perhaps related"
Weight = Annotated[float, Meta(ge=0, le=100)]


class GivenWeights(Struct, frozen=True, forbid_unknown_fields=True):
    """Weights for this call; default: those of the preset, else of the configuration.

    `semantic` is ScalyClaw's name for `match`.
    """

    match: Weight | None = None
    semantic: Weight | None = None
    recency: Weight | None = None
    importance: Weight | None = None


class RecallBody(FilterFields, kw_only=True):
    """A question, and conditions on the answer.

    `mode` tree only searches the categories. In mode `llm` a model, or the server at
    `llm_endpoint`, names the categories in which it expects the answer, and their memories take
    part. Without the model's answer it is as `keyword`, and `llm` in the answer says why.

    The default of `limit` is `recall.limit` of the configuration; without `preset` and `weights`,
    `recall.preset` applies. A preset ranks all matches by a published formula, of which `weights`
    may replace the numbers; weights that are not given keep theirs. `now`, seconds or ISO 8601, is
    the reference time of words like "last week" and of ages. `max_tokens` counts four characters of
    text as one. `min_relevance` drops every result below it; without it, an answer that is not sure
    has at most five. `fields` full adds the whole record to each result, `explain` the reasons for
    its rank. With `reinforce` false the question leaves no trace. A URL has no `weights`; at least
    one of them is above 0.

    `since` and `until` limit the answers of every source; with another filter only memories answer.
    `session` limits the question to what that session sees.
    `llm_endpoint` needs the role `write`, and mode `llm`. `user`, Tiny Claw's `userId`,
    names the agent in place of `agent`; `default-user` is the default.
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
    fields: Literal["lean", "full"] = "lean"
    explain: bool = False
    reinforce: bool = True
    session: str | None = None
    user: AgentName | None = None
    weights: GivenWeights = GivenWeights()


class Explanation(Struct):
    """Why a memory has its rank.

    Attributes:
        match, recency, importance: the parts of the order, each 0 to 1; with a preset, of the
            relevance.
        signals: what each signal added to the match.
        words: the words of the query that it has, or something that means the same.
        by: for those of the latter, its own words: {"boss": "manager"}.
        neighbours: the ids of those whose words count for it.
        path: the category of the tree that named it, or "".
        reason: a model's reason for that category, or "".
    """

    match: float
    recency: float
    importance: float
    signals: dict[str, float]
    words: tuple[str, ...]
    by: dict[str, str]
    neighbours: tuple[str, ...]
    path: str
    reason: str


class HitView(MemoryView, frozen=True, kw_only=True):
    """A memory that answers a query, with all of its fields."""

    relevance: float
    search_method: str
    parts: Explanation | UnsetType = UNSET


class RecallResult(Struct, kw_only=True, omit_defaults=True):
    """One result, without its empty fields. Times are seconds since the epoch.

    Attributes:
        id: of a pair `kv:` and the key, of a part of a file its path and lines, of an entity its
            name in lower case.
        text: of a pair the key and the value, of an entity what is known of it.
        relevance: how likely it answers, 0 to 1, on one scale for all questions and sources; in
            mode `tree` it is EvoClaw's, with a preset that system's.
        score: with a preset, that system's composite, which decides the order.
        sure: whether it most likely answers.
        outdated: whether a newer memory contradicts it.
        quoted_from: where a text came from for which no word stands: the source of a memory, or
            for an entity that memories name it.
        path: of a file; of a turn, and of a memory made from one, `chat://` and its conversation.
        lines: the first and the last line in the file.
        search_method: `keyword`; without a word of the question `meaning` if it is near in
            meaning, else `keyword-tree` or `llm-tree` by its category.
        created_at: of a part of a file when it was changed, of an entity when it was first named.
        parts: the reasons for its rank, with `explain`.
        memory, pair, file, entry, experience, entity: the whole record, with `fields` full; an
            entry is a line of the agent's reflections or episodes, or a skill.
    """

    id: str
    source: Source
    text: str
    relevance: float
    score: float | UnsetType = UNSET
    sure: bool
    category: str = ""
    outdated: bool = False
    quoted_from: str = ""
    actor: str = ""
    outcome: str = ""
    key: str = ""
    path: str = ""
    lines: tuple[int, int] | UnsetType = UNSET
    search_method: str = "keyword"
    created_at: float
    updated_at: float | UnsetType = UNSET
    expires_at: float | UnsetType = UNSET
    parts: Explanation | UnsetType = UNSET
    memory: MemoryView | UnsetType = UNSET
    pair: Pair | UnsetType = UNSET
    file: FoundChunk | UnsetType = UNSET
    entry: dict[str, Json] | UnsetType = UNSET
    experience: ExperienceView | UnsetType = UNSET
    entity: Entity | UnsetType = UNSET


class TreePath(Struct):
    """A category that the query named, and the way to it from the root."""

    path: str
    relevance: float
    words: tuple[str, ...]
    trace: tuple[str, ...]


class Understood(Struct):
    """How the query was understood; dates as they are written in it."""

    words: tuple[str, ...]
    common_words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]
    people: tuple[str, ...]
    dates: tuple[str, ...]
    tree: tuple[TreePath, ...]


class ReasonedPath(NamedCategory, frozen=True, kw_only=True):
    """A category in which a model expects the answer, and the way to it from the root."""

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
    """The model's part in the answer: `method` is `rule` if it had none, and `why` says why."""

    method: Method
    tree: list[ReasonedPath]
    why: str | UnsetType = UNSET
    spent: Expense | UnsetType = UNSET


class Recalled(Struct, omit_defaults=True):
    """The results of all sources, best first.

    `confidence` is `sure` if the first result is, `unsure` if it is not, and `none` without
    results; `why` then says why, in a sentence. `note` says why words answered alone although an
    encoder is configured. `searched` counts what was searched, by source.
    `tree` has the categories by which alone something was found, `llm` is present in modes with a
    model, `understood` with an explanation. `auto_synced` is as in
    a search of files.
    """

    results: list[RecallResult]
    confidence: Confidence
    took_ms: float
    mode: str
    searched: dict[str, int]
    understood: Understood | UnsetType = UNSET
    auto_synced: bool | UnsetType = UNSET
    why: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    tree: list[TreePath] | UnsetType = UNSET
    llm: ByModel | UnsetType = UNSET


class SearchResults(Struct):
    """The hits, best first; `note` is as in `/api/recall`."""

    results: list[HitView]
    note: str | UnsetType = UNSET


# The context block


ContextFormat = Literal["thermocline", "json", "tinyclaw", "tiny-claw", "scalyclaw", "evoclaw"]


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
    """The block as `text`, or its `sections` in the format `json`; `tokens` is an estimate.

    `auto_synced` is as in a search of files, `note` as in `/api/recall`.
    """

    format: ContextFormat
    tokens: int
    text: str | UnsetType = UNSET
    sections: list[ContextSection] | UnsetType = UNSET
    auto_synced: bool | UnsetType = UNSET
    note: str | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
