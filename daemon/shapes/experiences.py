"""Experiences: what worked for an intent, and what somebody prefers."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.experiences import ExperienceType
from .common import Json, Limit, Offset, RecallLimit, Share, Words

Said = Annotated[str, Meta(min_length=1, max_length=2_000, description="not blank")]
User = Annotated[str, Meta(max_length=200)]
# 0 would prune nothing; new experiences have 1.
Weight = Annotated[float, Meta(gt=0, le=1)]


class ExperienceBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was wanted (`intent`), and what was done about it: any JSON as `solution`.

    `weight` is the weight after a use; it halves every 30 days without a use. `successScore`,
    `userId` and `conversationId` are profClaw's names of fields.
    """

    type: ExperienceType
    intent: Said
    solution: Json
    success_score: Share | UnsetType = UNSET
    successScore: Share | UnsetType = UNSET  # noqa: N815 - profClaw's name
    tags: tuple[str, ...] = ()
    weight: Weight = 1.0
    user: User | UnsetType = UNSET
    userId: User | UnsetType = UNSET  # noqa: N815 - profClaw's name
    conversation: User | UnsetType = UNSET
    conversationId: User | UnsetType = UNSET  # noqa: N815 - profClaw's name


class ExperienceView(Struct, kw_only=True, omit_defaults=True):
    """An experience. Times are seconds since the epoch.

    Attributes:
        success_score: how well it worked; of a preference the confidence, which closes a fifth of
            the gap to 1 with each repetition.
        weight: the present weight.
        initial_weight: the weight after a use.
        pruned_at: since when it is no longer found.
        relevance: to the question, if there was one.
        similarity: the relevance, reduced by up to half for missing tags.
    """

    id: str
    type: ExperienceType
    intent: str
    solution: Json
    success_score: float
    tags: tuple[str, ...]
    conversation: str = ""
    user: str = ""
    created_at: float
    last_used_at: float
    use_count: int
    weight: float
    initial_weight: float
    pruned_at: float | None = None
    relevance: float | UnsetType = UNSET
    similarity: float | UnsetType = UNSET
    warning: str | UnsetType = UNSET


class ExperienceQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which experiences to list, heaviest first; `userId` and `minWeight` are profClaw's names."""

    type: ExperienceType | None = None
    user: User | None = None
    userId: User | None = None  # noqa: N815 - profClaw's name
    min_weight: Share | None = None
    minWeight: Share | None = None  # noqa: N815 - profClaw's name
    limit: Limit = 50
    offset: Offset = 0


class ExperiencePage(Struct):
    """A page of experiences, and their total number."""

    experiences: list[ExperienceView]
    total: int


class ExperienceSearch(Struct, kw_only=True, forbid_unknown_fields=True):
    """An intent in words; among similar experiences those with more of the `tags` come first."""

    q: Words
    tags: tuple[str, ...] = ()
    limit: RecallLimit = 5


class SimilarExperiences(Struct, omit_defaults=True):
    """The experiences with a similar intent, most similar first."""

    query: str
    experiences: list[ExperienceView]
    why: str | UnsetType = UNSET


class ExperienceDeleted(Struct):
    """The experience is deleted for good."""

    deleted: str


class ExperienceStats(Struct, kw_only=True, rename="camel"):
    """The number by type, and the mean age in days; `faded` would be pruned now."""

    total: int
    by_type: dict[str, int]
    avg_age: float
    faded: int


class PruneBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Experiences of less than `min_weight` are pruned; `dry_run` only lists them."""

    min_weight: Weight | None = None
    minWeight: Weight | None = None  # noqa: N815 - profClaw's name
    dry_run: bool = False


class Pruned(Struct):
    """The pruned experiences, each restored by `undo` of kind `experience`; `kept` are left."""

    pruned: list[ExperienceView]
    kept: int
    done: bool


class PreferenceBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a user prefers in a category, such as `editor` and `vim`."""

    category: Annotated[str, Meta(min_length=1, max_length=200)]
    value: Annotated[str, Meta(min_length=1, max_length=1_000)]
    user: User | UnsetType = UNSET
    userId: User | UnsetType = UNSET  # noqa: N815 - profClaw's name


class PreferenceView(Struct):
    """A preference, its confidence, and the number of times that it was stated."""

    id: str
    user: str
    category: str
    value: str
    confidence: float
    repeats: int
    weight: float
    last_used_at: float


class PreferenceQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose preferences to list; default: those of all users."""

    user: User | None = None
    userId: User | None = None  # noqa: N815 - profClaw's name
    limit: Limit = 50
    offset: Offset = 0


class PreferencePage(Struct):
    """The preferences, most certain of a category first, and their total number."""

    preferences: list[PreferenceView]
    total: int
