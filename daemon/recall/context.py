"""The context block: what an agent reads before its turn, section by section, within a budget.

All sections read from one snapshot; what needs no query is cached while the database is unchanged.
The items are then cut to the budget. If all living memories fit, all are shown. Else the sections
share the budget by importance, and the memories of the query get what the others leave, then
further memories by score.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..language.secrets import clear, holds_secret
from ..memory import agent_files, hot, markdown, tree_nodes
from ..memory.agent_files import EpisodeLine, Reflection, Skill
from ..memory.experiences import Experience
from ..memory.messages import estimated_tokens
from ..memory.records import Entity, Json
from ..store.records import agent_entries, entities, hot_rows, tree_rows
from ..store.records.agent_entries import OwnEntry
from ..store.records.selecting import Filters
from .answer import Hit
from .context_items import LEAST_TOKENS, BlockItem, FilledSection, fill, shares
from .context_reading import MOST_MEMORIES, BlockReading, BlockRequest
from .sources import CHUNKS, EXPERIENCES, MEMORIES
from .tree_search import described

# The tokens of a section's tags.
_FRAME_TOKENS: Final = 12
# What stands surely fits if it takes no more than one in three of the block's tokens.
_SHARE_OF_STANDING: Final = 3
_REFLECTIONS: Final = 10
_EPISODES: Final = 3
_SKILLS: Final = 3
_PAIRS: Final = 5
_EXPERIENCES: Final = 3
_ENTITIES: Final = 5
_RELATIONS: Final = 5
_CHUNKS: Final = 4
# The further memories, which fill what the sections leave.
_REST: Final = ""
# The tree without the cores of memories, which are not needed where all memories are shown.
_NAMES: Final = "names"

Render: TypeAlias = Callable[[BlockItem], str]


class Section(msgspec.Struct, frozen=True):
    """A section of the block.

    Attributes:
        name: the name of its element.
        read: returns its items, best first.
        importance: its share of the budget, relative to the other sections.
        source: the source of recall that the ids of its items belong to; only sections with a
            source are read under filters.
        asks: whether its items depend on the query.
    """

    name: str
    read: Callable[[BlockReading], Iterable[BlockItem]]
    importance: float
    source: str = ""
    asks: bool = True


def read_block(
    db: sqlite3.Connection, request: BlockRequest, render: Render
) -> list[FilledSection]:
    """The sections with content, in order, within `request.max_tokens` as `render` writes them."""
    reading = BlockReading(db, request)
    if reading.answer is None and not request.found:
        return reading.cached("block without a query", lambda: _read(reading, render))
    return _read(reading, render)


def _read(reading: BlockReading, render: Render) -> list[FilledSection]:
    request = reading.request
    sections = [section for section in SECTIONS if section.source or request.filters == Filters()]
    asking = [section for section in sections if section.asks and reading.answer is not None]
    read: dict[str, Sequence[BlockItem]] = {
        section.name: _rendered(section.read(reading), render) for section in asking
    }
    if request.found:
        # Entities are related to the results, and are not results.
        read.pop("entities", None)
        return _filled(read, {}, (), request.max_tokens, render)

    def background() -> Mapping[str, Sequence[BlockItem]]:
        silent = [section for section in sections if section not in asking]
        items = {section.name: _rendered(section.read(reading), render) for section in silent}
        names = _rendered(_names(reading), render) if items.get("categories") else []
        return items | {_REST: _rendered(_without_always(reading), render), _NAMES: names}

    read |= reading.cached("context", background) if asking else background()
    hits = {item.id: item for item in read["remembered"] if item.relevance is not None}
    always = [
        replace(item, relevance=hits[item.id].relevance).rendered_by(render)
        if item.id in hits
        else item
        for item in read["always"]
    ]
    # No memory is shown twice.
    shown = {item.id for item in always}
    remembered = [item for item in read["remembered"] if item.id not in shown]
    shown |= {item.id for item in remembered}
    rest = [item for item in read[_REST] if item.id not in shown]
    reserved: dict[str, int] = {}
    if _size((*always, *remembered, *rest)) + _FRAME_TOKENS * 2 <= request.max_tokens:
        certain = [replace(item, uncertain=False).rendered_by(render) for item in remembered]
        remembered, rest = [*certain, *rest], []
        read |= {"categories": read[_NAMES]}
        reserved = {"always": _size(always), "remembered": _size(remembered)}
    else:
        # Not all of it may fit.
        always.sort(key=lambda item: -(item.relevance or 0.0))
    read |= {"always": always, "remembered": remembered}
    return _filled(read, reserved, rest, request.max_tokens, render)


def _rendered(items: Iterable[BlockItem], render: Render) -> list[BlockItem]:
    return [item.rendered_by(render) for item in items]


def _size(items: Iterable[BlockItem]) -> int:
    return sum(item.tokens for item in items)


def _filled(
    read: Mapping[str, Sequence[BlockItem]],
    reserved: Mapping[str, int],
    rest: Sequence[BlockItem],
    budget: int,
    render: Render,
) -> list[FilledSection]:
    """The sections cut to the budget; what is left of it shows memories.

    Args:
        read: the items of each section.
        reserved: the tokens of the sections that must not be cut.
        rest: further memories, which are not counted if they do not fit.
        budget: the tokens of all.
        render: writes an item.
    """

    def cost(item: BlockItem) -> int:
        return item.tokens or estimated_tokens(render(item)) + 1

    sections = [section for section in SECTIONS if read.get(section.name)]
    # In a small budget, the least important sections are left out.
    sections.sort(key=lambda section: section.importance, reverse=True)
    del sections[max(1, budget // (_FRAME_TOKENS + LEAST_TOKENS)) :]
    needs = {
        section.name: (_size(read[section.name]), section.importance)
        for section in sections
        if section.name not in reserved
    }
    left = budget - sum(reserved.values()) - _FRAME_TOKENS * len(sections)
    rooms = {**shares(needs, left), **reserved}
    rooms.pop("remembered", None)
    filled = {name: fill(name, read[name], room, cost) for name, room in rooms.items()}
    used = sum(
        _FRAME_TOKENS + sum(map(cost, section.items))
        for section in filled.values()
        if section.items
    )
    memories = fill(
        "remembered", [*read.get("remembered", ()), *rest], budget - used - _FRAME_TOKENS, cost
    )
    filled["remembered"] = replace(memories, left_out=max(0, memories.left_out - len(rest)))
    in_order = (filled.get(section.name) for section in SECTIONS)
    return [section for section in in_order if section is not None and section.items]


def _result(hit: Hit, text: str, source: str, at: float | None, **more: Any) -> BlockItem:
    """A result of the query as an item."""
    return BlockItem(text, source, at, relevance=hit.relevance, uncertain=not hit.sure, **more)


def _always(reading: BlockReading) -> Iterable[BlockItem]:
    return reading.items(reading.always)


def _hot(reading: BlockReading) -> Iterable[BlockItem]:
    """The hot state without what other sections show: promoted memories, and what stands."""
    standing = [memory.text for memory in reading.always]
    if estimated_tokens("".join(standing)) > reading.request.max_tokens // _SHARE_OF_STANDING:
        # Not all of it is shown there.
        standing = []
    state = hot_rows.load(reading.db)
    profile = {name: _unlisted(value, standing) for name, value in state.owner_profile.items()}
    state = replace(
        state, owner_profile={name: left for name, left in profile.items() if left != []}
    )
    document = hot.document(state, (), reading.request.rules.hot)
    if text := markdown.body(document, reading.request.local):
        # Blank lines only cost tokens.
        short = text.replace("\n\n", "\n")
        short = clear(short).text if holds_secret(short) else short
        yield BlockItem(short, "thermocline hot", rest="`thermocline hot`")


def _unlisted(value: Json, texts: Sequence[str]) -> Json:
    """A list without what stands in these texts; any other value as it is."""
    if not isinstance(value, list):
        return value

    def is_told(item: Json) -> bool:
        return isinstance(item, str) and any(item.rstrip(".") in text for text in texts)

    return [item for item in value if not is_told(item)]


def _names(reading: BlockReading) -> Iterable[BlockItem]:
    return _shown_tree(reading, tree_rows.load(reading.db))


def _tree(reading: BlockReading) -> Iterable[BlockItem]:
    return _shown_tree(reading, described(reading.db))


def _shown_tree(reading: BlockReading, nodes: tree_nodes.Tree) -> Iterable[BlockItem]:
    if not any(node.warm_count or node.cold_count for node in nodes.values()):
        return
    if text := tree_nodes.prompt(nodes, reading.request.rules.tree.max_size_bytes):
        # Its words are those of memories, whoever said them.
        yield BlockItem(text, "thermocline tree", rest="`thermocline tree`", quoted=True)


def knowledge(reading: BlockReading) -> Iterable[BlockItem]:
    """The agent's own file of knowledge."""
    part = agent_entries.part(reading.db, agent_entries.KNOWLEDGE)
    if text := agent_files.knowledge_text(part.text):
        path, line = agent_files.KNOWLEDGE, _first_line(part.text)
        yield BlockItem(text, path, part.changed_at, rest=path, line=line)


def _reflections(reading: BlockReading) -> Iterable[BlockItem]:
    for entry in agent_entries.newest(reading.db, "reflections", _REFLECTIONS):
        assert isinstance(entry.item, Reflection)
        text = f"[{entry.item.type}] {entry.item.text}"
        yield BlockItem(text, agent_files.REFLECTIONS, entry.created_at)


def _episodes(reading: BlockReading) -> Iterable[BlockItem]:
    if reading.answer is None:
        yield from map(_episode, agent_entries.newest(reading.db, "episodes", _EPISODES))
    for hit in reading.hits("episode", _EPISODES):
        item = _episode(hit.item)
        yield replace(item, relevance=hit.relevance, uncertain=not hit.sure)


def _episode(entry: OwnEntry) -> BlockItem:
    assert isinstance(entry.item, EpisodeLine)
    user = entry.item.user
    source = f"conversation with {user}" if user else "a conversation"
    text = f"[{entry.item.outcome}] {entry.item.text}"
    return BlockItem(text, source, entry.created_at, quoted=True)


def _skills(reading: BlockReading) -> Iterable[BlockItem]:
    """Without a query, the descriptions of the newest skills."""
    if reading.answer is None:
        for entry in agent_entries.newest(reading.db, "skills", MOST_MEMORIES):
            assert isinstance(entry.item, Skill)
            yield BlockItem(f"{entry.id}: {entry.item.description}", agent_files.SKILLS)
    for hit in reading.hits("skill", _SKILLS):
        skill: Skill = hit.item.item
        text, path, head = skill.text.strip(), skill.path, f"{skill.id}: {skill.description}"
        line = _first_line(skill.text)
        yield _result(hit, text, path, hit.item.created_at, rest=path, line=line, head=head)


def _memories(reading: BlockReading) -> Iterable[BlockItem]:
    """The memories that the query finds; without one, the first by score."""
    if reading.answer is None:
        yield from islice(_without_always(reading), MOST_MEMORIES)
    for item in reading.items(reading.memories) if reading.answer else ():
        _, hit = reading.memory_hits[item.id]
        yield replace(item, relevance=hit.relevance, uncertain=not hit.sure)


def _without_always(reading: BlockReading) -> Sequence[BlockItem]:
    """The memories by score, without what always holds."""
    known = {memory.id for memory in reading.always}
    return reading.items([item for item in reading.by_score if item.id not in known])


def _pairs(reading: BlockReading) -> Iterable[BlockItem]:
    for hit in reading.hits("pair", _PAIRS):
        yield _result(hit, hit.text, "thermocline kv", hit.item.updated_at)


def _experiences(reading: BlockReading) -> Iterable[BlockItem]:
    for hit in reading.hits("experience", _EXPERIENCES):
        experience: Experience = hit.item
        text = f"[{experience.type}] {experience.summary}"
        quoted = bool(experience.conversation)
        at = experience.last_used_at
        yield _result(hit, text, "thermocline experiences", at, id=experience.id, quoted=quoted)


def _entities(reading: BlockReading) -> Iterable[BlockItem]:
    ids = [memory.id for memory in reading.memories]
    request = reading.request
    for entity in entities.known(reading.db, request.query, ids, _ENTITIES, request.now):
        mentions = f"{entity.mention_count} {'memory' if entity.mention_count == 1 else 'memories'}"
        # Names and relations are words of texts, whoever wrote those.
        yield BlockItem(entity_text(entity), mentions, entity.last_seen, quoted=True)


def entity_text(entity: Entity, mark: str = "") -> str:
    """An entity with its relations in a line, the name between marks."""
    related = ", ".join(
        f"{relation.relation} {relation.target}" for relation in entity.relations[:_RELATIONS]
    )
    name = f"{mark}{entity.name}{mark} ({entity.type}{f': {related}' if related else ''})"
    return " ".join(name.split())


def _chunks(reading: BlockReading) -> Iterable[BlockItem]:
    """Parts of watched files, except the files that other sections show."""
    elsewhere = (agent_files.KNOWLEDGE, agent_files.SKILL_FOLDER)
    hits = reading.hits(CHUNKS.name, MOST_MEMORIES)
    others = (hit for hit in hits if not any(part in hit.item.path for part in elsewhere))
    for hit in islice(others, _CHUNKS):
        chunk = hit.item
        text, at, head = chunk.text, chunk.modified_at, chunk.heading
        yield _result(hit, text, chunk.id, at, quoted=True, head=head)


def _first_line(text: str) -> int:
    return 1 + text[: len(text) - len(text.lstrip())].count("\n")


# In the order of the block.
SECTIONS: Final = (
    Section("always", _always, 20, MEMORIES.name, asks=False),
    Section("hot-state", _hot, 5, asks=False),
    Section("categories", _tree, 2, asks=False),
    Section("knowledge", knowledge, 20, asks=False),
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
SOURCE_OF: Final = {section.name: section.source for section in SECTIONS if section.source}
