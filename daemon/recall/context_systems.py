"""Writes a context block as TinyClaw, Tiny Claw, ScalyClaw or EvoClaw does, within a budget.

Their closing mark is escaped in texts, further lines of a memory are marked as such, what came from
outside is quoted as in our block, and what does not fit is left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from ..language.secrets import clear, holds_secret
from ..memory import hot, markdown, tree_nodes
from ..memory.agent_files import EpisodeLine, Reflection, Skill
from ..memory.messages import estimated_tokens
from ..memory.records import Entity, Memory
from ..schemas.recall import Preset
from ..store.records import agent_entries, entities, hot_rows, key_values, selecting, tree_rows
from .answer import Hit
from .context import entity_text, knowledge
from .context_items import BlockItem, continued, escaped, fill, plain, shares
from .context_reading import BlockReading, is_secret, quoted, shown_hits
from .recall import Request, recall
from .tree_search import described

_MARK: Final = "[/MEMORY]"
# Escaped so that no text can end the block.
_ESCAPED_MARK: Final = "[\\/MEMORY]"
_BETWEEN: Final = "\n\n"
_LONG_WORD: Final = 3
_TINYCLAW_REFLECTIONS: Final = 10
_TINYCLAW_EPISODES: Final = 3
_TINYCLAW_SKILLS: Final = 3

T = TypeVar("T")
# A heading, or "", with its items.
Part: TypeAlias = tuple[str, Sequence[BlockItem]]


class BlockFormat(msgspec.Struct, frozen=True):
    """How a system writes its block: its parts in order, and what surrounds them."""

    read: Callable[[BlockReading], Iterable[Part]]
    before: str = ""
    after: str = ""


def block_of(name: str, reading: BlockReading) -> str:
    """The block of a system of at most `max_tokens` of the request; "" if it would be empty."""
    system = SYSTEMS[name]
    parts = [
        (f"## {title}\n" if title else "", items) for title, items in system.read(reading) if items
    ]
    needs = {str(at): (sum(map(_cost, items)), 1.0) for at, (_, items) in enumerate(parts)}
    frames = sum(estimated_tokens(heading + _BETWEEN) for heading, _ in parts)
    budget = reading.request.max_tokens - estimated_tokens(system.before + system.after)
    rooms = shares(needs, budget - frames)
    texts: list[str] = []
    for at, (heading, items) in enumerate(parts):
        if fitting := fill(heading, items, rooms[str(at)], _cost).items:
            lines = (plain(item.whole) for item in fitting)
            texts.append(heading + "\n".join(map(_closed, lines)))
    return f"{system.before}{_BETWEEN.join(texts)}{system.after}" if texts else ""


def _closed(line: str) -> str:
    """The line, whose quote may have been cut."""
    return line + "</quote>" if "<quote" in line and "</quote>" not in line else line


def _cost(item: BlockItem) -> int:
    return estimated_tokens(item.whole + "\n")


def _part(title: str, lines: Iterable[str]) -> Part:
    return title, [BlockItem(continued(line)) for line in lines]


def _tinyclaw(reading: BlockReading) -> Iterable[Part]:
    """TinyClaw's block precedes a message."""
    db, message = reading.db, reading.request.query.lower()
    parts = (
        ("Knowledge", [*knowledge(reading)]),
        _part("Recent Reflections", _tinyclaw_reflections(db)),
        _part("Relevant Past Conversations", _tinyclaw_episodes(db, message)),
        ("Relevant Skills", _tinyclaw_skills(db, message)),
    )
    for title, items in parts:
        yield (
            title,
            [
                replace(
                    item,
                    head=item.head.replace(_MARK, _ESCAPED_MARK),
                    text=item.text.replace(_MARK, _ESCAPED_MARK),
                )
                for item in items
            ],
        )


def _tinyclaw_reflections(db: sqlite3.Connection) -> Iterable[str]:
    for entry in agent_entries.last_lines(db, "reflections", _TINYCLAW_REFLECTIONS):
        reflection = entry.item
        assert isinstance(reflection, Reflection)
        action = f" → {reflection.action}" if reflection.action else ""
        yield f"- [{reflection.type}] {reflection.context}: {reflection.lesson}{action}"


def _tinyclaw_episodes(db: sqlite3.Connection, message: str) -> list[str]:
    """The episodes that have the most long words of the message."""
    words = [word for word in message.split() if len(word) > _LONG_WORD]
    scored: list[tuple[int, str]] = []
    for entry in agent_entries.every(db, "episodes") if words else ():
        episode = entry.item
        assert isinstance(episode, EpisodeLine)
        text = f"{episode.summary} {' '.join(episode.tags)}".lower()
        score = sum(word in text for word in words)
        scored.append((score, f"- <quote>[{episode.outcome}] {escaped(episode.text)}</quote>"))
    return _best(scored, _TINYCLAW_EPISODES)


def _tinyclaw_skills(db: sqlite3.Connection, message: str) -> list[BlockItem]:
    """The skills with the most words of their description in the message."""
    scored: list[tuple[int, BlockItem]] = []
    for entry in agent_entries.every(db, "skills"):
        skill = entry.item
        if isinstance(skill, Skill) and skill.text.strip():
            words = {word for word in skill.description.lower().split() if len(word) > _LONG_WORD}
            item = BlockItem(skill.text.strip(), rest=skill.path, line=1, head=f"### {entry.id}")
            scored.append((sum(word in message for word in words), item))
    return _best(scored, _TINYCLAW_SKILLS)


def _best(scored: Iterable[tuple[int, T]], limit: int) -> list[T]:
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [value for _, value in best[:limit]]


_RELEVANT: Final = 10
_IMPORTANT: Final = 5
_IMPORTANT_FROM: Final = 0.7
_FACTS: Final = 10
# Read in addition, so that those that hold a secret can be left out.
_MOST_SECRETS: Final = 20
_LABELS: Final = {"correction": "⚠️ Correction", "preference_learned": "⭐ Preference"}


def _tiny_claw(reading: BlockReading) -> Iterable[Part]:
    db, wanted = reading.db, selecting.Filters(min_importance=_IMPORTANT_FROM)
    newest = selecting.newest(db, wanted, limit=_MOST_SECRETS + _IMPORTANT, now=reading.request.now)
    newest = [memory for memory in newest if not is_secret(memory)][:_IMPORTANT]
    pairs, _ = key_values.page(db, "", _MOST_SECRETS + _FACTS, 0)
    facts = [fact for pair in pairs if not holds_secret(fact := f"{pair.key}: {pair.value}")]
    hits = _hits(reading, "tinyclaw", _RELEVANT, "memory", "pair")
    important = (
        f"{_LABELS.get(item.event, '📌 Note')}: {quoted(item, item.text)}" for item in newest
    )
    return (
        _part("Relevant Memories", map(_tiny_claw_line, hits)),
        _part("Important Context", important),
        _part("Stored Facts", (f"- {fact}" for fact in facts[:_FACTS])),
    )


def _tiny_claw_line(hit: Hit) -> str:
    if not isinstance(hit.item, Memory):
        return f"🔑 {hit.text}"
    outcome = f" → {hit.memory.outcome}" if hit.memory.outcome else ""
    return f"📝 {quoted(hit.memory, hit.memory.text + outcome)}"


def _hits(reading: BlockReading, preset: Preset, limit: int, *sources: str) -> Sequence[Hit]:
    """The best hits of some sources by a published formula."""
    block_request = reading.request
    if not block_request.query.strip():
        return ()
    request = Request(
        text=block_request.query,
        sources=frozenset(sources),
        limit=limit,
        min_relevance=0.0,
        preset=preset,
        scoring=block_request.rules.scoring,
        now=block_request.now,
        local=block_request.local,
        nearness=block_request.nearness,
    )
    return shown_hits(recall(reading.db, request, block_request.rules.recall))


_SCALYCLAW_LEAST: Final = 10
_SCALYCLAW_MEMORIES: Final = 7
_SCALYCLAW_ENTITIES: Final = 5


def _scalyclaw(reading: BlockReading) -> Iterable[Part]:
    """ScalyClaw's addition to its prompt; nothing for a short input."""
    query, now = reading.request.query, reading.request.now
    if len(query) < _SCALYCLAW_LEAST:
        return
    hits = _hits(reading, "scalyclaw", _SCALYCLAW_MEMORIES, "memory")
    yield _part("Relevant Memories", (_scalyclaw_line(hit.memory) for hit in hits))
    ids = [hit.id for hit in hits]
    known = entities.known(reading.db, query, ids, _SCALYCLAW_ENTITIES, now)
    yield _part("Known Entities", (_scalyclaw_entity(reading.db, entity) for entity in known))


def _scalyclaw_entity(db: sqlite3.Connection, entity: Entity) -> str:
    text = entity_text(entity, "**")
    return f"- <quote>{escaped(text)}</quote>" if entities.from_outside(db, entity) else f"- {text}"


def _scalyclaw_line(memory: Memory) -> str:
    importance = max(1, min(10, round(memory.importance * 10)))
    subject = memory.subject or memory.category
    line = f"[{memory.type}] **{subject}** (importance: {importance}): {memory.text}"
    return f"- {quoted(memory, line)}"


_EVOCLAW_BYTES: Final = 3_072


def _evoclaw(reading: BlockReading) -> Iterable[Part]:
    """EvoClaw's tiers: the hot state, the tree, and up to 3 KB of memories."""
    db, request = reading.db, reading.request
    document = hot.document(hot_rows.load(db), (), request.rules.hot)
    if body := markdown.body(document, request.local):
        yield "", [BlockItem(clear(body).text, rest="`thermocline hot`")]
    if nodes := described(db):
        tree = tree_nodes.show(nodes, *tree_rows.totals(db), request.rules.tree)
        yield "", [BlockItem(f"<quote>{escaped(tree)}</quote>", rest="`thermocline tree`")]
    lines: list[str] = []
    room = _EVOCLAW_BYTES
    for memory in reading.memories:
        line = f"- {quoted(memory, f'[{memory.category}] {memory.text}')}"
        size = len(line.encode()) + 1
        if size <= room:
            lines.append(line)
            room -= size
    yield _part("Retrieved Memories", lines)


SYSTEMS: Final = {
    "tinyclaw": BlockFormat(_tinyclaw, "[MEMORY]\n", f"\n{_MARK}"),
    "tiny-claw": BlockFormat(_tiny_claw, "\n"),
    "scalyclaw": BlockFormat(_scalyclaw),
    "evoclaw": BlockFormat(_evoclaw),
}
