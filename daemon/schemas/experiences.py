"""Experiences: what worked for an intent, and what somebody prefers."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.experiences import FADED, Experience, ExperienceType
from .common import Input, Json, Paged, RecallLimit, Share, Words

Intent = Annotated[str, Meta(min_length=1, max_length=2_000, description="not blank")]
User = Annotated[str, Meta(max_length=200)]
# 0 would prune nothing; new experiences have 1.
Weight = Annotated[float, Meta(gt=0, le=1)]


class ExperienceBody(Input):
    """What was wanted (`intent`), and what was done about it: any JSON as `solution`.

    `weight` is the weight after a use; it halves in every half-life without a use.
    """

    type: ExperienceType
    intent: Intent
    solution: Json
    success_score: Share = 1.0
    tags: tuple[str, ...] = ()
    weight: Weight = 1.0
    user: User = ""
    conversation: User = ""


class ExperienceView(Experience, frozen=True, kw_only=True):
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

    initial_weight: float
    relevance: float | UnsetType = UNSET
    similarity: float | UnsetType = UNSET
    warning: str | UnsetType = UNSET


class ExperienceQuery(Paged):
    """Which experiences to list, heaviest first."""

    type: ExperienceType | None = None
    user: User | None = None
    min_weight: Share = 0.0


class ExperiencePage(Struct):
    """A page of experiences, and their total number."""

    experiences: list[ExperienceView]
    total: int


class ExperienceSearch(Input):
    """An intent in words; among similar experiences those with more of the `tags` come first."""

    q: Words
    tags: tuple[str, ...] = ()
    limit: RecallLimit = 5


class SimilarExperiences(Struct, omit_defaults=True):
    """The experiences with a similar intent, most similar first; `note` as in `/api/recall`."""

    query: str
    experiences: list[ExperienceView]
    why: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class ExperienceDeleted(Struct):
    """The experience is deleted for good."""

    deleted: str


class ExperienceStats(Struct, kw_only=True, rename="camel"):
    """The number by type, and the mean age in days; `faded` would be pruned now."""

    total: int
    by_type: dict[str, int]
    avg_age: float
    faded: int


class PruneBody(Input):
    """Experiences of less than `min_weight` are pruned; `dry_run` only lists them."""

    min_weight: Weight = FADED
    dry_run: bool = False


class Pruned(Struct):
    """The pruned experiences, each restored by `undo` of kind `experience`; `kept` are left."""

    pruned: list[ExperienceView]
    kept: int
    done: bool


class PreferenceBody(Input):
    """What a user prefers in a category, such as `editor` and `vim`."""

    category: Annotated[str, Meta(min_length=1, max_length=200, description="not blank")]
    value: Annotated[str, Meta(min_length=1, max_length=1_000, description="not blank")]
    user: User = ""


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


class PreferenceQuery(Paged):
    """Whose preferences to list; default: those of all users."""

    user: User | None = None


class PreferencePage(Struct):
    """The preferences, most certain of a category first, and their total number."""

    preferences: list[PreferenceView]
    total: int
