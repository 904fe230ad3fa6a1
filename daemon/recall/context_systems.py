"""Writes a context block as TinyClaw, Tiny Claw, ScalyClaw or EvoClaw does, within a budget.

Only their closing mark is removed from texts, and what does not fit is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from ..memory import hot, markdown, own_files
from ..memory import tree as trees
from ..memory.messages import estimated_tokens
from ..memory.own_files import EpisodeLine, Reflection, Skill
from ..memory.records import Memory
from ..shapes.recall import Preset
from ..store import entities, hot_rows, key_values, own_entries, selecting, tree_rows
from .context_items import Need, Shown, fill, shares
from .context_reading import BlockReading
from .recall import Hit, Request, recall

_MARK: Final = "[/MEMORY]"
# Escaped so that no text can end the block.
_ESCAPED_MARK: Final = "[\\/MEMORY]"
_LONG_WORD: Final = 3
_TINYCLAW_REFLECTIONS: Final = 10
_TINYCLAW_EPISODES: Final = 3
_TINYCLAW_SKILLS: Final = 3


class BlockPart(msgspec.Struct, frozen=True):
    """A part of a block: a heading, or "", with its items."""

    title: str
    items: Sequence[Shown]

    @property
    def heading(self) -> str:
        """The line above the items."""
        return f"## {self.title}\n" if self.title else ""


class BlockFormat(msgspec.Struct, frozen=True):
    """How a system writes its block.

    Attributes:
        read: returns the parts in order.
        between: what separates them.
        before, after: what surrounds them.
    """

    read: Callable[[BlockReading], Sequence[BlockPart]]
    between: str = "\n\n"
    before: str = ""
    after: str = ""


def block_of(name: str, reading: BlockReading) -> str:
    """The block of a system of at most `asked.max_tokens`; "" if it would be empty."""
    system = SYSTEMS[name]
    parts = [part for part in system.read(reading) if part.items]
    frames = {
        str(at): estimated_tokens(part.heading + system.between) for at, part in enumerate(parts)
    }
    needs = {str(at): Need(sum(map(_cost, part.items))) for at, part in enumerate(parts)}
    budget = reading.asked.max_tokens - estimated_tokens(system.before + system.after)
    rooms = shares(needs, budget - sum(frames.values()))
    texts: list[str] = []
    for at, part in enumerate(parts):
        fitting = fill(part.title, part.items, rooms[str(at)], _cost).items
        if fitting:
            texts.append(part.heading + "\n".join(item.whole for item in fitting))
    return f"{system.before}{system.between.join(texts)}{system.after}" if texts else ""


def _cost(item: Shown) -> int:
    return estimated_tokens(item.whole + "\n")


def _part(title: str, lines: Iterable[str]) -> BlockPart:
    return BlockPart(title, [Shown(line) for line in lines])


def _tinyclaw(reading: BlockReading) -> Sequence[BlockPart]:
    """TinyClaw's block precedes a message."""
    db, message = reading.db, reading.asked.query.lower()
    part = own_entries.part(db, own_entries.KNOWLEDGE)
    knowledge = own_files.knowledge_text(part.text)
    line = 1 + part.text[: len(part.text) - len(part.text.lstrip())].count("\n")
    reflections = (
        f"- [{one.item.type}] {one.item.context}: {one.item.lesson}"
        + (f" → {one.item.action}" if one.item.action else "")
        for one in own_entries.last_lines(db, "reflections", _TINYCLAW_REFLECTIONS)
        if isinstance(one.item, Reflection)
    )
    episodes = (f"- [{one.outcome}] {one.text}" for one in _episodes_for(reading, message))
    file = own_files.KNOWLEDGE
    parts = (
        BlockPart("Knowledge", [Shown(knowledge, rest=file, line=line)] if knowledge else []),
        _part("Recent Reflections", reflections),
        _part("Relevant Past Conversations", episodes),
        BlockPart("Relevant Skills", _skills_for(reading, message)),
    )
    return [BlockPart(part.title, [*map(_escaped, part.items)]) for part in parts]


def _escaped(item: Shown) -> Shown:
    head, text = (value.replace(_MARK, _ESCAPED_MARK) for value in (item.head, item.text))
    return msgspec.structs.replace(item, head=head, text=text)


def _episodes_for(reading: BlockReading, message: str) -> list[EpisodeLine]:
    words = [word for word in message.split() if len(word) > _LONG_WORD]
    if not words:
        return []
    scored: list[tuple[int, EpisodeLine]] = []
    for one in own_entries.every(reading.db, "episodes"):
        assert isinstance(one.item, EpisodeLine)
        text = f"{one.item.summary} {' '.join(one.item.tags)}".lower()
        if score := sum(word in text for word in words):
            scored.append((score, one.item))
    scored.sort(key=lambda pair: -pair[0])
    return [episode for _, episode in scored[:_TINYCLAW_EPISODES]]


def _skills_for(reading: BlockReading, message: str) -> list[Shown]:
    """The skills with the most words of their description in the message."""
    scored: list[tuple[int, Shown]] = []
    for one in own_entries.every(reading.db, "skills"):
        if isinstance(one.item, Skill) and one.item.text:
            words = set(one.item.description.lower().split())
            score = sum(word in message for word in words if len(word) > _LONG_WORD)
            item = Shown(one.item.text, rest=one.item.path, line=1, head=f"### {one.id}")
            scored.append((score, item))
    scored.sort(key=lambda pair: -pair[0])
    return [item for score, item in scored[:_TINYCLAW_SKILLS] if score]


_RELEVANT: Final = 10
_IMPORTANT: Final = 5
_IMPORTANT_FROM: Final = 0.7
_FACTS: Final = 10
_LABELS: Final = {"correction": "⚠️ Correction", "preference_learned": "⭐ Preference"}


def _tiny_claw(reading: BlockReading) -> Sequence[BlockPart]:
    db, now = reading.db, reading.asked.now
    hits = _ranked(reading, "tinyclaw", _RELEVANT, "memory", "pair")
    wanted = selecting.Filters(min_importance=_IMPORTANT_FROM)
    newest = selecting.newest(db, wanted, limit=_IMPORTANT, now=now)
    pairs, _ = key_values.page(db, "", _FACTS, 0)
    return (
        _part("Relevant Memories", map(_tiny_claw_line, hits)),
        _part(
            "Important Context",
            (f"{_LABELS.get(one.event, '📌 Note')}: {one.text}" for one in newest),
        ),
        _part("Stored Facts", (f"- {one.key}: {one.value}" for one in pairs)),
    )


def _tiny_claw_line(hit: Hit) -> str:
    if not isinstance(hit.item, Memory):
        return f"🔑 {hit.text}"
    outcome = f" → {hit.memory.outcome}" if hit.memory.outcome else ""
    return f"📝 {hit.memory.text}{outcome}"


def _ranked(reading: BlockReading, preset: Preset, limit: int, *sources: str) -> list[Hit]:
    """The best hits of some sources by a published formula."""
    asked = reading.asked
    if not asked.query.strip():
        return []
    request = Request(
        text=asked.query,
        sources=frozenset(sources),
        limit=limit,
        min_relevance=0.0,
        preset=preset,
        scoring=asked.rules.scoring,
        now=asked.now,
        local=asked.local,
    )
    return [*recall(reading.db, request, asked.rules.recall).hits]


_SCALYCLAW_LEAST: Final = 10
_SCALYCLAW_MEMORIES: Final = 7
_SCALYCLAW_ENTITIES: Final = 5


def _scalyclaw(reading: BlockReading) -> Sequence[BlockPart]:
    """ScalyClaw's addition to its prompt; nothing for a short input."""
    if len(reading.asked.query) < _SCALYCLAW_LEAST:
        return ()
    hits = _ranked(reading, "scalyclaw", _SCALYCLAW_MEMORIES, "memory")
    shown = [hit.memory.id for hit in hits]
    known = entities.known(
        reading.db, reading.asked.query, shown, _SCALYCLAW_ENTITIES, reading.asked.now
    )
    return (
        _part("Relevant Memories", (_scalyclaw_line(hit.memory) for hit in hits)),
        _part("Known Entities", map(_scalyclaw_entity, known)),
    )


def _scalyclaw_line(memory: Memory) -> str:
    importance = max(1, min(10, round(memory.importance * 10)))
    subject = memory.subject or memory.category
    return f"- [{memory.type}] **{subject}** (importance: {importance}): {memory.text}"


def _scalyclaw_entity(one: entities.Entity) -> str:
    related = ", ".join(f"{r.relation} {r.target}" for r in one.relations)
    return f"- **{one.name}** ({one.type}{f': {related}' if related else ''})"


_EVOCLAW_BYTES: Final = 3_072


def _evoclaw(reading: BlockReading) -> Sequence[BlockPart]:
    """EvoClaw's tiers: the hot state, the tree, and up to 3 KB of memories."""
    asked, db = reading.asked, reading.db
    body = markdown.body(hot.document(hot_rows.load(db), (), asked.rules.hot), asked.local)
    nodes = tree_rows.load(db)
    tree = trees.show(nodes, *tree_rows.totals(db), asked.rules.tree) if nodes else ""
    lines: list[str] = []
    room = _EVOCLAW_BYTES
    for memory in reading.memories:
        line = f"- [{memory.category}] {memory.text}"
        size = len(line.encode()) + 1
        if size <= room:
            lines.append(line)
            room -= size
    return (
        BlockPart("", [Shown(body, rest="`thermocline hot`")] if body else []),
        BlockPart("", [Shown(tree, rest="`thermocline tree`")] if tree else []),
        _part("Retrieved Memories", lines),
    )


SYSTEMS: Final = {
    "tinyclaw": BlockFormat(_tinyclaw, before="[MEMORY]\n", after=f"\n{_MARK}"),
    "tiny-claw": BlockFormat(_tiny_claw, between="\n\n", before="\n"),
    "scalyclaw": BlockFormat(_scalyclaw),
    "evoclaw": BlockFormat(_evoclaw),
}
