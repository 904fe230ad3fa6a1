"""The hot state, which is always in the agent's context, and how to read its entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ..records import Json

Section: TypeAlias = Literal[
    "identity", "owner_profile", "project", "event", "task", "lesson", "extra", "context"
]
Item: TypeAlias = dict[str, Json]
Quota: TypeAlias = Annotated[int, Meta(ge=0, le=10_000)]

# The sections that are objects, each the field of a state; and those that are lists, with their
# field and the key that names an entry.
OBJECTS: Final[tuple[Section, ...]] = ("identity", "owner_profile", "extra", "context")
LISTS: Final[dict[Section, tuple[str, str]]] = {
    "project": ("projects", "name"),
    "event": ("events", "text"),
    "task": ("tasks", "text"),
    "lesson": ("lessons", "text"),
}
DEFAULT_LESSON_CATEGORY: Final = "general"
DEFAULT_TASK_STATUS: Final = "pending"
# The importance of a lesson without one, as in EvoClaw.
UNSTATED_IMPORTANCE: Final = 0.5

FINISHED: Final = frozenset(
    {
        "abandoned", "archived", "canceled", "cancelled", "closed", "complete", "completed",
        "done", "dropped", "finished", "obsolete", "rejected", "resolved", "shipped",
    }
)  # fmt: skip


class HotLimits(msgspec.Struct, frozen=True):
    """The limits of the hot state; the configuration's section `hot`.

    `max_bytes` counts its compact JSON in UTF-8.

    An empty document takes about 130 bytes, so a lower `max_bytes` cannot be kept.
    """

    max_bytes: Annotated[int, Meta(ge=512, le=1_048_576)] = 5_120
    max_lessons: Quota = 20
    max_events: Quota = 10
    max_tasks: Quota = 10


class HotState(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's hot state. Immutable: every function returns a new one.

    Lists are ordered from the oldest entry to the newest. `update` returns a normalised state:
    every lesson, event and task has a non-blank `text` and a `timestamp` in epoch seconds, every
    project a `name`, and the texts of lessons, texts of tasks and names of projects are unique.

    Attributes:
        extra: unknown top-level keys of the document, kept unchanged; known keys are ignored.
        context: the same for keys of `active_context`.
    """

    identity: Item = {}
    owner_profile: Item = {}
    projects: tuple[Item, ...] = ()
    events: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    lessons: tuple[Item, ...] = ()
    extra: Item = {}
    context: Item = {}


def is_finished(item: Mapping[str, Json]) -> bool:
    """Whether the status of a task or project says that it is finished."""
    status = item.get("status")
    return isinstance(status, str) and status.strip().casefold() in FINISHED


def importance_of(lesson: Mapping[str, Json]) -> float:
    """A lesson's importance, 0 to 1; the default if it has no valid one."""
    value = number(lesson.get("importance"))
    return UNSTATED_IMPORTANCE if value is None else min(1.0, max(0.0, value))


def number(value: Json) -> float | None:
    """`value` as a float if it is a finite JSON number, else None (also for a boolean)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < float("inf") else None
