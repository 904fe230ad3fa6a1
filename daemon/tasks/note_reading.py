"""Extracts the facts of a daily note with a model; no reference of the note is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ..language.extraction.notes import NoteFact, read_note
from ..llm.model import Part
from ..llm.replies import one_line, share_of
from ..memory.metadata import extract, merge, within
from ..memory.records import DEFAULT_CATEGORY, Metadata
from ..memory.similarity import words
from ..store.agent_store import AgentStore
from ..store.records import tree_rows
from .model_or_rules import AskOptions, ModelOrRules

# The size of one question about a note, and the maximum number of questions per note.
_CHUNK_CHARS: Final = 6_000
_MOST_CHUNKS: Final = 20
_MOST_CATEGORIES: Final = 20
_MOST_FACTS: Final = 60
_LEAST_CHARS: Final = 10
_LONGEST_FACT: Final = 500
_CATEGORY_CHARS: Final = 200
_IMPORTANCE: Final = 0.5


class NoteFactReply(msgspec.Struct, frozen=True):
    """One fact that a model finds in a note."""

    text: str
    category: str = DEFAULT_CATEGORY
    importance: float = _IMPORTANCE
    metadata: Metadata = Metadata()


async def read_by_model(
    store: AgentStore,
    text: str,
    headings: Mapping[str, str],
    model: ModelOrRules,
    options: AskOptions,
) -> list[NoteFact]:
    """The facts of a note, as a model reads it.

    Facts of the rules are added if the model has left out one of their URLs, commands or paths. The
    most used categories of `store` are offered; `headings` are words of headings and their
    categories, for the rules.

    Raises:
        ModelUnavailable: no model answers usefully.
        InvalidInput: the endpoint is not an address.
    """
    by_rules = await model.rules.run(len(text), read_note, text, headings)
    known = (*await store.read(_categories), *(fact.category for fact in by_rules))
    offered = list(dict.fromkeys(known))[:_MOST_CATEGORIES]
    facts: list[NoteFact] = []
    for first, chunk in _chunks(text):
        replies = await _ask_model(chunk, offered, model, options)
        facts += [fact for reply in replies[:_MOST_FACTS] if (fact := _fact(reply, chunk, first))]
    return [*facts, *_left_out(by_rules, facts)]


def _categories(db: sqlite3.Connection) -> list[str]:
    tree = tree_rows.load(db)
    full = sorted(tree, key=lambda path: (-tree[path].warm_count - tree[path].cold_count, path))
    return full[:_MOST_CATEGORIES]


async def _ask_model(
    chunk: str, categories: Sequence[str], model: ModelOrRules, options: AskOptions
) -> list[NoteFactReply]:
    urls = extract(chunk).urls
    parts = (
        Part("categories", "\n".join(categories) or DEFAULT_CATEGORY, stable=True),
        Part("needed URLs", "\n".join(urls) or "none"),
        Part("note", chunk),
    )
    return (await model.ask(model.question("ingest", *parts), list[NoteFactReply], options)).value


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    lines: list[str] = []
    first, size, parts = 1, 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        if lines and size + len(line) > _CHUNK_CHARS:
            yield first, "\n".join(lines)
            parts += 1
            if parts == _MOST_CHUNKS:
                return
            lines, first, size = [], number, 0
        lines.append(line[:_CHUNK_CHARS])
        size += len(line) + 1
    if any(line.strip() for line in lines):
        yield first, "\n".join(lines)


def _fact(reply: NoteFactReply, chunk: str, first: int) -> NoteFact | None:
    text = one_line(reply.text, _LONGEST_FACT)
    if len(text) < _LEAST_CHARS:
        return None
    return NoteFact(
        text=text,
        category=one_line(reply.category, _CATEGORY_CHARS).strip("/") or DEFAULT_CATEGORY,
        importance=share_of(reply.importance, _IMPORTANCE),
        metadata=merge(within(reply.metadata, chunk), extract(text)),
        line=first + _place(text, chunk.splitlines()),
    )


def _place(text: str, lines: Sequence[str]) -> int:
    in_fact = frozenset(words(text))
    shared = [len(in_fact.intersection(words(line))) for line in lines]
    return max(range(len(shared)), key=lambda at: (shared[at], -at), default=0)


def _left_out(by_rules: Sequence[NoteFact], facts: Sequence[NoteFact]) -> Iterator[NoteFact]:
    """The facts of the rules with a reference that no fact of the model has."""
    have = {value for fact in facts for value in _values(fact.metadata)}
    for fact in by_rules:
        own = frozenset(_values(fact.metadata))
        if not own <= have:
            have |= own
            yield fact


def _values(metadata: Metadata) -> tuple[str, ...]:
    return (*metadata.urls, *metadata.commands, *metadata.paths)
