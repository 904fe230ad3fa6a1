"""The agent's own files: knowledge, reflections, episodes, skills."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.own_files import EpisodeLine as EpisodeLine  # noqa: PLC0414 - an answer as it is
from ..memory.own_files import EpisodeOutcome, ReflectionType
from ..memory.own_files import Fold as Fold  # noqa: PLC0414
from ..memory.own_files import Reflection as Reflection  # noqa: PLC0414
from .common import Limit, Offset, Way

Said = Annotated[str, Meta(max_length=4_000, description="one line, not blank")]
SkillId = Annotated[str, Meta(description="a plain file name without its ending, such as `deploy`")]


class ReflectionQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which reflections to list."""

    type: ReflectionType | None = None
    limit: Limit = 50
    offset: Offset = 0


class ReflectionBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was learned: the context, the lesson, and the action to take."""

    type: ReflectionType
    context: Said
    lesson: Said
    action: Said | None = None


class ReflectionStored(Struct, kw_only=True):
    """The reflection as written to the file, and a warning if it has a secret."""

    ts: str
    type: str
    context: str
    lesson: str
    action: str | None
    warning: str | UnsetType = UNSET


class ReflectionPage(Struct):
    """A page of reflections, newest first, and their total number."""

    results: list[Reflection]
    total: int


class EpisodeQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which episodes to list."""

    outcome: EpisodeOutcome | None = None
    limit: Limit = 50
    offset: Offset = 0


class EpisodeBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The result of a conversation, and the user of it."""

    summary: Said
    tags: tuple[str, ...] = ()
    outcome: EpisodeOutcome = "informational"
    user: Annotated[str, Meta(max_length=200)] = "user"


class EpisodeStored(EpisodeLine, frozen=True, kw_only=True):
    """The episode as written to the file, and a warning if it has a secret."""

    warning: str | UnsetType = UNSET


class EpisodePage(Struct):
    """A page of episodes, newest first, and their total number."""

    results: list[EpisodeLine]
    total: int


class SkillQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which skills to list."""

    limit: Limit = 100
    offset: Offset = 0


class SkillBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """A skill: when to use it, and its text in Markdown. A known id is replaced.

    Without a text a new skill gets an empty file, and the file of a known one stays.
    """

    id: SkillId
    description: Said
    text: str = ""


class SkillView(Struct):
    """A skill; `path` is that of its file in the workspace."""

    id: str
    description: str
    path: str
    updated_at: float
    text: str | UnsetType = UNSET


class SkillPage(Struct):
    """A page of skills, and their total number."""

    results: list[SkillView]
    total: int


class SkillStored(Struct):
    """The skill is on the disk; `added`: it is a new one."""

    id: str
    path: str
    added: bool


class KnowledgeQuery(Struct, forbid_unknown_fields=True):
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
    mode: Way | UnsetType = UNSET
