"""The context block: what an agent reads before its turn, section by section, within a budget.

`SECTIONS` lists the sections. All read their items from one snapshot, which are then cut to the
budget: every section has a floor by its importance, then the knowledge gets what it needs, and
the other sections share the rest by importance.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Rules
from ..language.sentences import sentences
from ..memory import hot, markdown, own_files
from ..memory import tree as trees
from ..memory.own_files import EpisodeLine, Reflection, Skill
from ..memory.records import Memory
from ..store import entities, hot_rows, own_entries, selecting, tree_rows
from ..store.own_entries import OwnEntry
from ..store.selecting import Filters
from .context_items import Filled, Shown, fill
from .recall import Answer, Hit, Request, recall
from .sources import CHUNKS, EXPERIENCES, MEMORIES

# Memories of these actors are the agent's own; those of other actors are quoted.
_OWN_VOICE: Final = frozenset({"", "assistant"})
_MEMORIES: Final = 10
# The results of all sources, and the least relevance of each.
_HITS: Final = 40
_LEAST: Final = 0.2
_SENTENCES: Final = 6
_REFLECTIONS: Final = 10
_EPISODES: Final = 3
_SKILLS: Final = 3
_PAIRS: Final = 5
_EXPERIENCES: Final = 3
_ENTITIES: Final = 5
_RELATIONS: Final = 5
_CHUNKS: Final = 4
# The tokens of a section's tags.
_FRAME_TOKENS: Final = 12
# The share of the budget that the importances divide before the knowledge takes its own.
_FLOOR: Final = 0.5


class Asked(msgspec.Struct, frozen=True):
    """The agent and the query that a context block is made for.

    `found`: include only what the query finds.
    """

    agent: str
    query: str
    now: float
    local: dt.tzinfo
    rules: Rules
    filters: Filters = Filters()
    found: bool = False


class BlockReading:
    """What the sections of one block share, each read once."""

    def __init__(self, db: sqlite3.Connection, asked: Asked) -> None:
        self.db = db
        self.asked = asked

    @cached_property
    def answer(self) -> Answer | None:
        """The answer to the query; None if there is no query."""
        if not self.asked.query.strip():
            return None
        tuning = self.asked.rules.recall
        request = Request(
            text=self.asked.query,
            filters=self.asked.filters,
            limit=_HITS,
            min_relevance=_LEAST,
            weights=tuning.weights,
            scoring=self.asked.rules.scoring,
            now=self.asked.now,
            local=self.asked.local,
        )
        answer = recall(self.db, request, tuning)
        if self.asked.found and not answer.hits:
            return self._of_sentences(request) or answer
        return answer

    def _of_sentences(self, request: Request) -> Answer | None:
        """The answers to the sentences of a turn that finds nothing as a whole."""
        parts = sentences(request.text)[:_SENTENCES]
        if len(parts) < 2:
            return None
        tuning = self.asked.rules.recall
        asked = (msgspec.structs.replace(request, text=one) for one in parts)
        answers = [recall(self.db, one, tuning) for one in asked]
        every = (hit for answer in answers for hit in answer.hits)
        best = sorted(every, key=lambda hit: hit.relevance, reverse=True)
        hits = tuple({(hit.source, hit.id): hit for hit in reversed(best)}.values())[::-1]
        return msgspec.structs.replace(answers[0], hits=hits)

    def hits(self, source: str, limit: int) -> Sequence[Hit]:
        """The best hits of a source of recall; none without a query."""
        if self.answer is None:
            return ()
        return self.answer.of(source)[:limit]

    @cached_property
    def memories(self) -> Sequence[tuple[Memory, float | None]]:
        """The memories found, with their relevance; without a query hot ones, then the newest."""
        if self.answer is not None:
            return [(hit.memory, hit.relevance) for hit in self.hits("memory", _MEMORIES)]
        now, filters = self.asked.now, self.asked.filters
        if MEMORIES.passes(filters, now) is None:
            return ()
        found = {one.id: one for one in self.hot[:_MEMORIES]}
        newest = selecting.newest(self.db, filters, limit=_MEMORIES, now=now)
        found |= {one.id: one for one in newest if one.superseded_by is None}
        return [(one, None) for one in found.values()][:_MEMORIES]

    @cached_property
    def hot(self) -> Sequence[Memory]:
        """The memories of the hot state; none if there are filters."""
        if self.asked.filters != Filters():
            return ()
        return hot_rows.promoted(self.db, self.asked.now, self.asked.rules)


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
    """

    name: str
    read: Read
    importance: float
    source: str = ""
    is_last: bool = False


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
    found: list[tuple[OwnEntry, float | None]] = [(hit.item, hit.relevance) for hit in hits]
    if reading.answer is None:
        found = [(one, None) for one in own_entries.newest(reading.db, "episodes", _EPISODES)]
    for one, relevance in found:
        assert isinstance(one.item, EpisodeLine)
        who = f"conversation with {one.item.user}" if one.item.user else "a conversation"
        text = f"[{one.item.outcome}] {one.item.text}"
        yield Shown(text, who, one.created_at, quoted=True, relevance=relevance)


def _skills(reading: BlockReading) -> Iterable[Shown]:
    """Without a query, the descriptions of the newest skills."""
    if reading.answer is None:
        for one in own_entries.newest(reading.db, "skills", _MEMORIES):
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
        )


def _memories(reading: BlockReading) -> Iterable[Shown]:
    """The memories found, then the hot memories, which do not depend on the query."""
    own = {*_OWN_VOICE, reading.asked.agent}
    found = dict.fromkeys(memory.id for memory, _ in reading.memories)
    hot_ones = [(one, None) for one in reading.hot[:_MEMORIES] if one.id not in found]
    shown = [*reading.memories, *hot_ones]
    # Superseded memories come last.
    shown.sort(key=lambda one: one[0].superseded_by is not None)
    for memory, relevance in shown:
        said = f"{memory.text} → {memory.outcome}" if memory.outcome else memory.text
        if memory.superseded_by is not None:
            said = f"(superseded) {said}"
        yield Shown(
            said,
            memory.actor or memory.source or memory.category,
            memory.created_at,
            memory.id,
            quoted=memory.actor not in own or bool(memory.source),
            relevance=relevance,
        )


def _pairs(reading: BlockReading) -> Iterable[Shown]:
    for hit in reading.hits("pair", _PAIRS):
        pair = hit.item
        text = f"{pair.key}: {pair.value}"
        yield Shown(text, "thermocline kv", pair.updated_at, relevance=hit.relevance)


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
        )


def _entities(reading: BlockReading) -> Iterable[Shown]:
    shown = [memory.id for memory, _ in reading.memories]
    for one in entities.known(reading.db, reading.asked.query, shown, _ENTITIES, reading.asked.now):
        related = ", ".join(f"{r.relation} {r.target}" for r in one.relations[:_RELATIONS])
        text = f"{one.name} ({one.type}{f': {related}' if related else ''})"
        mentions = f"{one.mentions} {'memory' if one.mentions == 1 else 'memories'}"
        yield Shown(text, mentions, one.last_seen)


def _chunks(reading: BlockReading) -> Iterable[Shown]:
    """Parts of watched files, except the files that other sections show."""
    shown = (own_files.KNOWLEDGE, own_files.SKILL_FOLDER)
    hits = reading.hits("file", _MEMORIES)
    others = (hit for hit in hits if not any(part in hit.item.path for part in shown))
    for hit in islice(others, _CHUNKS):
        chunk = hit.item
        yield Shown(
            chunk.text,
            chunk.id,
            chunk.modified_at,
            quoted=True,
            head=chunk.heading,
            relevance=hit.relevance,
        )


def _first_line(text: str) -> int:
    return 1 + text[: len(text) - len(text.lstrip())].count("\n")


# In the order of the block.
SECTIONS: Final = (
    Section("hot-state", _hot, 5),
    Section("categories", _tree, 2),
    Section("knowledge", _knowledge, 5, is_last=True),
    Section("reflections", _reflections, 2),
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


def read_block(
    db: sqlite3.Connection, asked: Asked, max_tokens: int, cost: Callable[[Shown], int]
) -> tuple[list[Filled], list[str]]:
    """The sections with content, in order, within `max_tokens` as `cost` measures them.

    Returns:
        The sections, and the ids of the memories in them that the query found.
    """
    reading = BlockReading(db, asked)
    sections = [one for one in SECTIONS if one.source or asked.filters == Filters()]
    read = {one.name: [*one.read(reading)] for one in sections}
    if asked.found:
        read = {name: [one for one in items if one.relevance is not None]
                for name, items in read.items()}  # fmt: skip
    wanted = {name: sum(map(cost, items)) for name, items in read.items() if items}
    rooms = shares(wanted, max_tokens - _FRAME_TOKENS * len(wanted))
    filled = [fill(name, read[name], room, cost) for name, room in rooms.items()]
    shown = [one for one in filled if one.items]
    used = [
        item.id
        for one in shown
        for item in one.items
        if one.name == "remembered" and item.relevance is not None
    ]
    return shown, used


def shares(wanted: Mapping[str, int], budget: int) -> dict[str, int]:
    """The tokens that each section with content gets; `wanted` is the size of its items."""
    asking = [one for one in SECTIONS if one.name in wanted]
    whole = sum(one.importance for one in asking) or 1
    rooms = {
        one.name: min(wanted[one.name], int(budget * _FLOOR * one.importance / whole))
        for one in asking
    }
    for group in ([o for o in asking if o.is_last], [o for o in asking if not o.is_last]):
        left = budget - sum(rooms.values())
        while left > 0:
            short = [one for one in group if rooms[one.name] < wanted[one.name]]
            weight = sum(one.importance for one in short)
            given = 0
            for one in short:
                more = min(wanted[one.name] - rooms[one.name], int(left * one.importance / weight))
                rooms[one.name] += more
                given += more
            left -= given
            if not given:
                break
    return rooms
