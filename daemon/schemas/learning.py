"""What an agent learns: experiences and preferences, sessions, and what its own files hold."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.agent_files import EpisodeLine as EpisodeLine
from ..memory.agent_files import Reflection as Reflection
from ..memory.experiences import Experience, ExperienceType
from ..memory.records import Session as Session
from .common import (
    Input,
    Json,
    PageOf,
    Share,
)

Intent = Annotated[str, Meta(min_length=1, max_length=2_000, description="not blank")]
User = Annotated[str, Meta(max_length=200)]
# 0 would prune nothing; new experiences have 1.
Weight = Annotated[float, Meta(gt=0, le=1)]
HalfLife = Annotated[float, Meta(ge=1, le=365, description="days")]


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


class ExperiencePage(Struct):
    """A page of experiences, and their total number."""

    experiences: list[ExperienceView]
    total: int


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


class Pruned(Struct):
    """The pruned experiences, each restored by `undo` of kind `experience`; `kept` are left."""

    pruned: list[ExperienceView]
    kept: int
    done: bool


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


class PreferencePage(Struct):
    """The preferences, most certain of a category first, and their total number."""

    preferences: list[PreferenceView]
    total: int


# Sessions


class SessionPage(Struct):
    """A page of sessions, newest first, and their total number."""

    sessions: list[Session]
    total: int


# Knowledge, reflections, episodes and skills


SkillId = Annotated[str, Meta(description="a plain file name without its ending, such as `deploy`")]


class ReflectionStored(Reflection, frozen=True, kw_only=True):
    """The reflection as written to the file, and a warning if it has a secret."""

    warning: str | UnsetType = UNSET


class ReflectionPage(PageOf[Reflection]):
    """A page of reflections, newest first, and their total number; `warning` of broken lines."""

    warning: str | UnsetType = UNSET


class EpisodeStored(EpisodeLine, frozen=True, kw_only=True):
    """The episode as written to the file, and a warning if it has a secret."""

    warning: str | UnsetType = UNSET


class EpisodePage(PageOf[EpisodeLine]):
    """A page of episodes, newest first, and their total number; `warning` of broken lines."""

    warning: str | UnsetType = UNSET


class SkillView(Struct):
    """A skill; `path` is that of its file in the workspace."""

    id: str
    description: str
    path: str
    updated_at: float
    text: str | UnsetType = UNSET


class SkillPage(PageOf[SkillView]):
    """A page of skills, and their total number."""


class SkillStored(Struct):
    """The skill is on the disk; `added`: it is a new one."""

    id: str
    path: str
    added: bool


class KnowledgeView(Struct, kw_only=True):
    """The knowledge, and a warning if it has more lines than a model should always get."""

    text: str
    path: str
    lines: int
    max_lines: int
    updated_at: float
    warning: str | UnsetType = UNSET
