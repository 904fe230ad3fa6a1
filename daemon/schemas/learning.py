"""What an agent learns: experiences and preferences, sessions, and what its own files hold."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.agent_files import EpisodeLine as EpisodeLine
from ..memory.agent_files import EpisodeOutcome, ReflectionType
from ..memory.agent_files import Reflection as Reflection
from ..memory.experiences import FADED, Experience, ExperienceType
from ..memory.records import Session as Session
from ..memory.records import SessionStatus
from .common import (
    CategoryPath,
    Input,
    Json,
    Limit,
    Offset,
    Paged,
    PageOf,
    RecallLimit,
    Share,
    Words,
)

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


# Sessions


Name = Annotated[str, Meta(max_length=200)]
PathStart = Annotated[str, Meta(min_length=1, max_length=4_096)]


class SessionBody(Input):
    """A session to open.

    With a `category` or `paths` (prefixes of the paths of watched files), it only sees the memories
    below the one and the files below the other. With neither it sees everything.
    """

    name: Name = ""
    category: CategoryPath | None = None
    paths: Annotated[tuple[PathStart, ...], Meta(max_length=64)] = ()
    conversation: Name = ""
    user: Name = ""


class SessionQuery(Paged):
    """Which sessions to list."""

    status: SessionStatus | None = None


class SessionPage(Struct):
    """A page of sessions, newest first, and their total number."""

    sessions: list[Session]
    total: int


# Knowledge, reflections, episodes and skills


OneLine = Annotated[str, Meta(max_length=4_000, description="one line, not blank")]
SkillId = Annotated[str, Meta(description="a plain file name without its ending, such as `deploy`")]


class ReflectionQuery(Paged):
    """Which reflections to list."""

    type: ReflectionType | None = None


class ReflectionBody(Input):
    """What was learned: the context, the lesson, and the action to take."""

    type: ReflectionType
    context: OneLine
    lesson: OneLine
    action: OneLine | None = None


class ReflectionStored(Reflection, frozen=True, kw_only=True):
    """The reflection as written to the file, and a warning if it has a secret."""

    warning: str | UnsetType = UNSET


class ReflectionPage(PageOf[Reflection]):
    """A page of reflections, newest first, and their total number; `warning` of broken lines."""

    warning: str | UnsetType = UNSET


class EpisodeQuery(Paged):
    """Which episodes to list."""

    outcome: EpisodeOutcome | None = None


class EpisodeBody(Input):
    """The result of a conversation, and the user of it."""

    summary: OneLine
    tags: tuple[str, ...] = ()
    outcome: EpisodeOutcome = "informational"
    user: Annotated[str, Meta(max_length=200)] = "user"


class EpisodeStored(EpisodeLine, frozen=True, kw_only=True):
    """The episode as written to the file, and a warning if it has a secret."""

    warning: str | UnsetType = UNSET


class EpisodePage(PageOf[EpisodeLine]):
    """A page of episodes, newest first, and their total number; `warning` of broken lines."""

    warning: str | UnsetType = UNSET


class SkillQuery(Input):
    """Which skills to list."""

    limit: Limit = 100
    offset: Offset = 0


class SkillBody(Input):
    """A skill: when to use it, and its text in Markdown. `force` replaces one of the same id.

    Without a text a new skill gets an empty file, and the file of a known one stays.
    """

    id: SkillId
    description: OneLine
    text: str = ""
    force: bool = False


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
