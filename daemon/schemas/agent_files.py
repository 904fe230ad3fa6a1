"""The agent's own files: knowledge, reflections, episodes, skills."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.agent_files import EpisodeLine as EpisodeLine
from ..memory.agent_files import EpisodeOutcome, ReflectionType
from ..memory.agent_files import Fold as Fold
from ..memory.agent_files import Reflection as Reflection
from .common import Input, Limit, Method, Offset, Paged, PageOf

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


class KnowledgeQuery(Input):
    """`fold` proposes what to remove or shorten if it is too long."""

    fold: bool = False


class KnowledgeView(Struct, kw_only=True):
    """The knowledge, and a warning if it has more lines than a model should always get.

    `folds` are the lines to fold, and `folded` is the shorter text: by a model or by rules.
    """

    text: str
    path: str
    lines: int
    max_lines: int
    updated_at: float
    warning: str | UnsetType = UNSET
    folds: list[Fold] | UnsetType = UNSET
    folded: list[str] | UnsetType = UNSET
    mode: Method | UnsetType = UNSET
