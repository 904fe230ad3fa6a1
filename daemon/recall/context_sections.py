"""The sections of a context block: what each shows, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from ..memory import hot, markdown, own_files
from ..memory import tree as trees
from ..memory.own_files import EpisodeLine, Reflection, Skill
from ..memory.records import Memory
from ..store import entities, hot_rows, own_entries, tree_rows
from ..store.own_entries import OwnEntry
from . import context_memories
from .context_items import Shown
from .context_memories import shown
from .context_reading import MOST_MEMORIES, BlockReading
from .sources import CHUNKS, EXPERIENCES, MEMORIES

_REFLECTIONS: Final = 10
_EPISODES: Final = 3
_SKILLS: Final = 3
_PAIRS: Final = 5
_EXPERIENCES: Final = 3
_ENTITIES: Final = 5
_RELATIONS: Final = 5
_CHUNKS: Final = 4

Read: TypeAlias = Callable[[BlockReading], Iterable[Shown]]


class Section(msgspec.Struct, frozen=True):
    """A section of the block.

    Attributes:
        name: the name of its element.
        read: returns its items, best first.
        importance: its share of the budget, relative to the other sections.
        source: the source of recall that the ids of its items belong to; only sections with a
            source are read under filters.
        is_last: whether it is cut only after all other sections.
        asks: whether its items depend on the query.
    """

    name: str
    read: Read
    importance: float
    source: str = ""
    is_last: bool = False
    asks: bool = True


def _always(reading: BlockReading) -> Iterable[Shown]:
    return _without_hits(reading, reading.always)


def _without_hits(reading: BlockReading, memories: Sequence[Memory]) -> Sequence[Shown]:
    older = context_memories.replaced(reading.db, (memory.id for memory in memories))
    agent = reading.asked.agent
    return [shown(memory, agent, older.get(memory.id, "")) for memory in memories]


def _hot(reading: BlockReading) -> Iterable[Shown]:
    """The hot state without its promoted memories, which have a section of their own."""
    document = hot.document(hot_rows.load(reading.db), (), reading.asked.rules.hot)
    if text := markdown.body(document, reading.asked.local):
        # Blank lines only cost tokens.
        short = text.replace("\n\n", "\n")
        yield Shown(short, "thermocline hot", rest="`thermocline hot`")


def _tree(reading: BlockReading) -> Iterable[Shown]:
    nodes = tree_rows.load(reading.db)
    if not any(node.warm_count or node.cold_count for node in nodes.values()):
        return
    if text := trees.prompt(nodes, reading.asked.rules.tree.max_size_bytes):
        yield Shown(text, "thermocline tree", rest="`thermocline tree`")


def _knowledge(reading: BlockReading) -> Iterable[Shown]:
    part = own_entries.part(reading.db, own_entries.KNOWLEDGE)
    if text := own_files.knowledge_text(part.text):
        path, line = own_files.KNOWLEDGE, _first_line(part.text)
        yield Shown(text, path, part.changed_at, rest=path, line=line)


def _reflections(reading: BlockReading) -> Iterable[Shown]:
    for one in own_entries.newest(reading.db, "reflections", _REFLECTIONS):
        assert isinstance(one.item, Reflection)
        text = f"[{one.item.type}] {one.item.text}"
        yield Shown(text, own_files.REFLECTIONS, one.created_at)


def _episodes(reading: BlockReading) -> Iterable[Shown]:
    hits = reading.hits("episode", _EPISODES)
    found: list[tuple[OwnEntry, float | None, bool]] = [
        (hit.item, hit.relevance, not hit.sure) for hit in hits
    ]
    if reading.answer is None:
        newest = own_entries.newest(reading.db, "episodes", _EPISODES)
        found = [(one, None, False) for one in newest]
    for one, relevance, unsure in found:
        assert isinstance(one.item, EpisodeLine)
        who = f"conversation with {one.item.user}" if one.item.user else "a conversation"
        text = f"[{one.item.outcome}] {one.item.text}"
        yield Shown(text, who, one.created_at, quoted=True, relevance=relevance, uncertain=unsure)


def _skills(reading: BlockReading) -> Iterable[Shown]:
    """Without a query, the descriptions of the newest skills."""
    if reading.answer is None:
        for one in own_entries.newest(reading.db, "skills", MOST_MEMORIES):
            assert isinstance(one.item, Skill)
            yield Shown(f"{one.id}: {one.item.description}", own_files.SKILLS)
    for hit in reading.hits("skill", _SKILLS):
        skill, at = hit.item.item, hit.item.created_at
        yield Shown(
            skill.text.strip(),
            skill.path,
            at,
            rest=skill.path,
            line=_first_line(skill.text),
            head=f"{skill.id}: {skill.description}",
            relevance=hit.relevance,
            uncertain=not hit.sure,
        )


def _memories(reading: BlockReading) -> Iterable[Shown]:
    """The memories that the query finds; without one, the first by score."""
    if reading.answer is None:
        yield from by_score(reading)[:MOST_MEMORIES]
        return
    older = context_memories.replaced(reading.db, (memory.id for memory, _ in reading.found))
    for memory, hit in reading.found:
        yield shown(
            memory,
            reading.asked.agent,
            older.get(memory.id, ""),
            relevance=hit.relevance,
            uncertain=not hit.sure,
        )


def by_score(reading: BlockReading) -> Sequence[Shown]:
    """All that is known by score, without what always holds."""
    known = {memory.id for memory in reading.always}
    rest = [memory for memory in reading.ranked.memories if memory.id not in known]
    return _without_hits(reading, rest)


def _pairs(reading: BlockReading) -> Iterable[Shown]:
    for hit in reading.hits("pair", _PAIRS):
        pair = hit.item
        text = f"{pair.key}: {pair.value}"
        yield Shown(
            text,
            "thermocline kv",
            pair.updated_at,
            relevance=hit.relevance,
            uncertain=not hit.sure,
        )


def _experiences(reading: BlockReading) -> Iterable[Shown]:
    for hit in reading.hits("experience", _EXPERIENCES):
        one = hit.item
        said = one.solution
        if not isinstance(said, str):
            # The solution of an observed experience may only repeat its intent.
            known = isinstance(said, dict) and [*said.values()] == [one.intent]
            said = "" if known else msgspec.json.encode(said).decode()
        yield Shown(
            f"[{one.type}] {one.intent}" + (f" → {said}" if said else ""),
            "thermocline experiences",
            one.last_used_at,
            one.id,
            quoted=bool(one.conversation),
            relevance=hit.relevance,
            uncertain=not hit.sure,
        )


def _entities(reading: BlockReading) -> Iterable[Shown]:
    ids = [memory.id for memory in reading.memories]
    for one in entities.known(reading.db, reading.asked.query, ids, _ENTITIES, reading.asked.now):
        related = ", ".join(f"{r.relation} {r.target}" for r in one.relations[:_RELATIONS])
        text = f"{one.name} ({one.type}{f': {related}' if related else ''})"
        mentions = f"{one.mentions} {'memory' if one.mentions == 1 else 'memories'}"
        yield Shown(text, mentions, one.last_seen)


def _chunks(reading: BlockReading) -> Iterable[Shown]:
    """Parts of watched files, except the files that other sections show."""
    elsewhere = (own_files.KNOWLEDGE, own_files.SKILL_FOLDER)
    hits = reading.hits(CHUNKS.name, MOST_MEMORIES)
    others = (hit for hit in hits if not any(part in hit.item.path for part in elsewhere))
    for hit in islice(others, _CHUNKS):
        chunk = hit.item
        yield Shown(
            chunk.text,
            chunk.id,
            chunk.modified_at,
            quoted=True,
            head=chunk.heading,
            relevance=hit.relevance,
            uncertain=not hit.sure,
        )


def _first_line(text: str) -> int:
    return 1 + text[: len(text) - len(text.lstrip())].count("\n")


# In the order of the block.
SECTIONS: Final = (
    Section("always", _always, 5, MEMORIES.name, is_last=True, asks=False),
    Section("hot-state", _hot, 5, asks=False),
    Section("categories", _tree, 2, asks=False),
    Section("knowledge", _knowledge, 5, is_last=True, asks=False),
    Section("reflections", _reflections, 2, asks=False),
    Section("episodes", _episodes, 2),
    Section("skills", _skills, 3),
    # Not "memories": observing removes elements of that name, which other hosts write.
    Section("remembered", _memories, 5, MEMORIES.name),
    Section("facts", _pairs, 1),
    Section("experiences", _experiences, 2, EXPERIENCES.name),
    Section("entities", _entities, 1),
    Section("files", _chunks, 3, CHUNKS.name),
)
# The source of recall that the ids of a section's items belong to.
SOURCE_OF: Final = {one.name: one.source for one in SECTIONS if one.source}
