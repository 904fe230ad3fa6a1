"""The records: a memory, which is one remembered statement with its fields, and smaller ones.

Also of watched files: what is indexed of them, and the state of their index; of sessions, which are
stretches of work: what went into which of their answers; and of what memories name: the people,
projects, places and things, their relations, and how their names are compared.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from ..errors import InvalidInput

Type: TypeAlias = Literal["semantic", "episodic", "procedural"]
# Tiny Claw's types of events.
EventType: TypeAlias = Literal[
    "correction", "preference_learned", "fact_stored", "task_completed", "delegation_result"
]
# A type as clients may give it: ours, or one of ScalyClaw's four older types or Tiny Claw's.
GivenType: TypeAlias = Type | Literal["fact", "conversation", "analysis", "research"] | EventType
Tier: TypeAlias = Literal["hot", "warm", "cold", "frozen"]
Json: TypeAlias = Any
# The outcome that a text reports.
Outcome: TypeAlias = Literal["positive", "negative", "pending", "ongoing"]
# How a list of memories is sorted.
Order: TypeAlias = Literal[
    "newest", "oldest", "importance", "score", "uses", "type", "category", "subject"
]
# What a file of a memory holds, as another program or a device of ours wrote it.
FileFormat: TypeAlias = Literal["hot", "warm", "tree", "metrics", "memory-md", "rows"]
# What became of a row when an author's changes were undone.
Undoing: TypeAlias = Literal[
    "deleted", "deleted; what it replaced cannot come back: forgotten", "put back",
    "cannot come back: forgotten", "left: others have changed it since", "left: it is in use",
]  # fmt: skip

TYPES: Final[dict[str, Type]] = {
    "semantic": "semantic",
    "episodic": "episodic",
    "procedural": "procedural",
    "fact": "semantic",
    "conversation": "episodic",
    "analysis": "semantic",
    "research": "semantic",
    **dict.fromkeys(get_args(EventType), "episodic"),
}
DEFAULT_CATEGORY: Final = "general"
DEFAULT_EVENT: Final = "fact_stored"
# The sources of automatic memories: stated by a user, inferred by a model, reported by an agent,
# extracted from a text, or merged from other memories. Callers may give any source.
USER_STATED: Final = "user-stated"
INFERRED: Final = "inferred"
OBSERVED: Final = "observed"
EXTRACTED: Final = "auto-extraction"
CONSOLIDATED: Final = "consolidation"
# The first words of sources that are neither a person nor the agent itself: `web`, `tool:grep`,
# `https://…`, `Email from …`. Their texts are quoted until somebody has reviewed them.
_OUTSIDE: Final = re.compile(
    r"\s*(?:web|https?|ur[il]|(?:web)?(?:page|site|search)|browser|feed|rss|tools?|mcp|agents?"
    r"|files?|documents?|docs?|pdf|e?mails?)(?![a-z])"
)
# The keys of `data` of automatic memories: the words that were said beside a memory in its
# conversation, the entities, the daily note and the other system of origin.
SPOKEN_CONTEXT: Final = "said_beside"
ENTITIES: Final = "entities"
NOTE: Final = "note"
IMPORTED: Final = "imported"


class Metadata(msgspec.Struct, frozen=True):
    """The references that a text carries, each list in the order of the text."""

    urls: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One remembered statement. Times are seconds since the epoch, UTC."""

    id: str  # opaque, unique within the agent
    text: str
    type: Type = "semantic"
    event: str = DEFAULT_EVENT  # its cause, such as `correction` or `task_completed`; an open set
    subject: str = ""
    outcome: str = ""
    category: str = DEFAULT_CATEGORY  # its place in the tree, `a/b/c`
    # The category that the caller gave, if the tree has merged it into a parent since; else "".
    original_category: str = ""
    tags: tuple[str, ...] = ()
    importance: float = 0.5  # 0 to 1
    pinned: bool = False  # a person keeps it in the hot state; its score is never below hot
    standing: bool = False  # it matters to every question: health, rules, who somebody is
    source: str = ""
    actor: str = ""  # who said it
    # The conversation it came from, and its place there.
    group: str = ""
    position: int | None = None
    metadata: Metadata = Metadata()
    data: Json = None  # any JSON, such as the solution of an experience
    created_at: float
    updated_at: float
    last_accessed_at: float | None = None
    access_count: int = 0
    expires_at: float | None = None
    merged_into: str | None = None  # the id of the memory that replaced it; it is then not searched
    superseded_by: str | None = None  # the id of a newer memory that contradicts it; both stay
    archived_at: float | None = None  # the time at which it became cold, or None
    writer: str = ""  # the user who stored it over the socket, as `uid:1000`, else the importer

    def expired(self, now: float) -> bool:
        """Whether its expiry time has passed; it is then neither listed nor recalled."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def is_outside(self) -> bool:
        """Whether nobody's word stands for it."""
        return is_outside(self.source)


@lru_cache(maxsize=1_024)
def is_outside(source: str) -> bool:
    """Whether a text with this source came from outside, so that nobody's word stands for it."""
    return _OUTSIDE.match(unicodedata.normalize("NFKC", source).casefold()) is not None


def outranks(memory: Memory, other: Memory) -> bool:
    """Whether a user stated `memory`, and no user stated `other`."""
    return memory.source == USER_STATED and other.source in {INFERRED, EXTRACTED}


class Pair(msgspec.Struct, frozen=True):
    """A key and its value; times in seconds since the epoch."""

    key: str
    value: str
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def length(self) -> int:
        """The characters of both as one text."""
        return len(self.key) + 1 + len(self.value)


class Distilled(msgspec.Struct, frozen=True, kw_only=True):
    """A fact with its details, in the format of EvoClaw's distiller."""

    fact: str = ""  # one self-contained statement
    emotion: str = "neutral"  # a word for the mood, or `neutral`
    people: tuple[str, ...] = ()  # names, as written
    topics: tuple[str, ...] = ()  # words in lower case, the best first
    actions: tuple[str, ...] = ()  # verb phrases
    outcome: Outcome = "ongoing"  # positive, negative, pending, or ongoing by default
    # The references of the source text, not counted in the size of the fact.
    urls: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


OmissionKind: TypeAlias = Literal["url", "command", "next_step"]


class Omission(msgspec.Struct, frozen=True):
    """Something that is missing in a note."""

    kind: OmissionKind
    message: str  # the warning, in EvoClaw's words
    line: int  # where in the note, from 1
    suggestion: str  # what to write, and on which line


class IndexedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A watched file. With a `reason` it is not indexed; `meta` is its front matter.

    Times are seconds since the epoch; `size` is in bytes.
    """

    path: str
    size: int
    modified_at: float
    indexed_at: float
    title: str
    lines: int
    chunks: int
    meta: dict[str, Json] = {}
    reason: str = ""


class IndexedChunk(msgspec.Struct, frozen=True):
    """A part of a file that answers or is listed; `heading` names the headings above it."""

    id: str  # path and lines, as editors take them
    path: str
    position: int  # its place among the chunks of its file
    start_line: int
    end_line: int
    title: str
    heading: str
    text: str
    hash: str  # of the text: it stays while the text does, wherever that moves
    modified_at: float


class FilesBrought(msgspec.Struct, frozen=True):
    """The number of files that an update of the index changed."""

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0


class IndexState(msgspec.Struct, frozen=True):
    """The state of an index: whether it is older than the files, and whether it sees changes.

    `watched_files` are all that are wanted, `left_out` of them cannot be indexed; `missing` are
    watched paths that do not exist on this device.
    """

    dirty: bool = False
    syncing: bool = False
    last_sync_at: float | None = None
    watched_files: int = 0
    left_out: int = 0
    watching: bool = False
    to_read: int = 0
    missing: list[str] = []


class WatchedPath(msgspec.Struct, frozen=True):
    """A watched path: the `workspace`, from the `config`, or `added`."""

    path: str
    origin: Literal["workspace", "config", "added"]
    missing: bool


SessionStatus: TypeAlias = Literal["active", "archived"]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of work. Times are seconds since the epoch."""

    id: str
    name: str = ""
    conversation: str = ""
    user: str = ""
    category: str = ""  # it sees only memories below it; "": all, unless it names paths
    # The beginnings of the paths of files that it sees; empty: all, unless it names a category.
    paths: tuple[str, ...] = ()
    status: SessionStatus = "active"
    created_at: float
    updated_at: float  # when it was last opened or archived


EntityType: TypeAlias = Literal[
    "person", "project", "technology", "place", "organization", "concept"
]
ENTITY_TYPES: Final[tuple[str, ...]] = get_args(EntityType)
# Of what has none, or another one.
UNKNOWN_TYPE: Final = "concept"


def check_types(entities: Any, *, field: str) -> None:
    """Raise `InvalidInput` for an entity in `data.entities` of a type not in `ENTITY_TYPES`."""
    for at, entity in enumerate(entities if isinstance(entities, list) else ()):
        kind = entity.get("type") if isinstance(entity, dict) else None
        if kind and str(kind).lower() not in ENTITY_TYPES:
            place = f"{field}[{at}].type"
            known = ", ".join(sorted(ENTITY_TYPES))
            raise InvalidInput(f"'{place}': expected one of {known} (got '{kind}')", field=place)


class Relation(msgspec.Struct, frozen=True):
    """A relation of an entity to another."""

    relation: str
    target: str
    strength: float  # one for each memory that states it, each halved every 90 days
    since: float  # when it was first stated
    memories: tuple[str, ...]  # ids of the newest memories that state it


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """A person, project, place or thing that memories name."""

    key: str  # the normalized name, by which it is compared
    name: str  # as first written
    type: str  # the first given one of `ENTITY_TYPES`; `concept` by default
    aliases: tuple[str, ...]  # its other names, and other spellings of the name
    mention_count: int  # the number of memories that name it
    # When the oldest and the newest of them were made.
    first_seen: float
    last_seen: float
    relations: tuple[Relation, ...]  # its relations to other entities, strongest first
    memories: tuple[str, ...]  # ids of the newest memories that name it

    @property
    def summary(self) -> str:
        """What is known of it, in one line."""
        aliases = f", also {', '.join(self.aliases)}" if self.aliases else ""
        related = "; ".join(f"{relation.relation} {relation.target}" for relation in self.relations)
        summary = f"{self.name} ({self.type}{aliases})" + (f": {related}" if related else "")
        return " ".join(summary.split())


LONGEST_NAME: Final = 3
# Only the first words of a text are compared with names.
_MOST_WORDS: Final = 200
_WORD: Final = re.compile(r"[^\s,.;:!?()\[\]\"“”„]+")


def name_key(name: str) -> str:
    """The key that names are compared by: like SQLite's `lower`, which folds only ASCII."""
    name = name.strip(" ")
    if name.isascii():
        return name.lower()
    return "".join(char.lower() if char.isascii() else char for char in name)


def words_of(text: str) -> list[str]:
    """The first words of a text, without surrounding punctuation."""
    return _WORD.findall(text)[:_MOST_WORDS]
