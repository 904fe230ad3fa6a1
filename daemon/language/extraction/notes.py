"""Extracts the facts of a daily note from the marks that people use.

EvoClaw's marks are ticked boxes, lines that begin in bold, and items with a decision. In addition,
sentences with a decision, correction or preference are facts, and items that say what is on a day.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from functools import reduce
from typing import Final

import msgspec
from msgspec.structs import replace

from ...memory.metadata import extract, merge
from ...memory.records import DEFAULT_CATEGORY, Metadata
from ...memory.similarity import exact_key
from ..cues import Signal, signals_of
from ..dates import find_dates
from ..markdown import Item, items
from ..sentences import shortened, utf8_bytes
from .keeping import is_worth_keeping
from .statements import statements

# Words of headings and their categories, in EvoClaw's order: the first match decides.
CATEGORIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("gpu", "server", "media", "video", "image", "comfyui", "ltx"), "technical/gpu"
    ),
    **dict.fromkeys(("evoclaw", "coverage", "ci", "test"), "projects/evoclaw"),
    **dict.fromkeys(("clawchain", "substrate", "blockchain"), "projects/clawchain"),
    **dict.fromkeys(("memory", "tiered", "consolidat"), "projects/evoclaw/memory"),
    **dict.fromkeys(("cron", "monitor", "alert"), "technical/cron"),
    **dict.fromkeys(("twitter", "social", "moltbook"), "social"),
}
# Keywords this short only match whole words: "ci" does not match "decisions".
_WHOLE_WORD: Final = 3
MARKED: Final = 0.7
DECIDED: Final = 0.75
SAID: Final = 0.65
# In UTF-8: a Chinese sentence is as short as an English phrase.
_LEAST_BYTES: Final = 15
_LEAST_BULLET_BYTES: Final = 30
_MOST_BYTES: Final = 1_000
_DECISION: Final = re.compile(
    r"\b(?:decided|agreed|confirmed|fixed|blocked|resolved|deployed|installed|created|published"
    r"|completed|migrated|downloaded|decision:)(?!\w)",
    re.IGNORECASE,
)
_SAID: Final[frozenset[Signal]] = frozenset({"decision", "correction", "preference"})
_LINK: Final = re.compile(r"!?\[([^\]\n]{0,300})\]\([^()\s]{1,2048}\)")
_LONGEST_TITLE: Final = 120


class NoteFact(msgspec.Struct, frozen=True):
    """A fact of a note.

    Attributes:
        text: without Markdown, except code spans.
        category: the category of its headings.
        importance: 0.75 for a decision in a list, 0.7 for a ticked or bold item, else 0.65.
        metadata: the references of the item and everything nested in it.
        line: its first line in the note, from 1.
    """

    text: str
    category: str
    importance: float
    metadata: Metadata
    line: int

    @property
    def key(self) -> str:
        """16 hex digits that depend only on the words, not on their place in the note."""
        return hashlib.blake2b(exact_key(self.text).encode(), digest_size=8).hexdigest()


def read_note(text: str, categories: Mapping[str, str] = CATEGORIES) -> list[NoteFact]:
    """The facts of the note `text` in order, each once, ignoring case.

    Args:
        text: Markdown, or any text.
        categories: the categories by words of headings, the first match first. A keyword of up
            to three letters matches a whole word, a longer one the beginning of a word. The
            innermost matching heading decides.
    """
    result: dict[str, NoteFact] = {}
    for item in items(text.encode("utf-8", "replace").decode()):
        for fact in _facts(item, "", categories):
            result.setdefault(fact.text.strip().casefold(), fact)
    return list(result.values())


def _facts(item: Item, context: str, categories: Mapping[str, str]) -> Iterator[NoteFact]:
    importance = _importance(item)
    whole = _with_context(context, _whole_text(item))
    if importance is not None and utf8_bytes(whole) >= _LEAST_BYTES:
        own, apart = _divided(item, context)
        for part in _parts(own):
            text = _with_context(context, _whole_text(part))
            # The caps of the references apply to each part.
            references = reduce(merge, map(extract, _raw(part)), Metadata())
            yield _fact(text, own, importance, references, categories)
        for child in apart:
            yield from _facts(child, "", categories)
        return
    if item.kind == "prose":
        yield from _said(item, categories)
    inner = context
    if _introduces(item):
        inner = _with_context(context, _plain(item).rstrip(": "))
    for child in item.children:
        yield from _facts(child, inner, categories)


def _divided(item: Item, context: str) -> tuple[Item, list[Item]]:
    """The fact with the details in its list, and the children that are facts themselves.

    An item that says too little without its list is not divided.
    """
    apart = [child for child in item.children if _stands_alone(child)]
    own = replace(item, children=[child for child in item.children if not _stands_alone(child)])
    if not apart or utf8_bytes(_with_context(context, _whole_text(own))) < _LEAST_BYTES:
        return item, []
    return own, apart


def _stands_alone(item: Item) -> bool:
    return _importance(item) is not None and utf8_bytes(_plain(item)) > _LEAST_BULLET_BYTES


def _parts(item: Item) -> Iterator[Item]:
    """The item; if it is too long for one fact, several items with some of its children each."""
    own = replace(item, children=[])
    title = own if utf8_bytes(item.text) <= _LONGEST_TITLE else replace(own, lines=[])
    part, size = own, utf8_bytes(item.text)
    for child in item.children:
        length = utf8_bytes(_whole_text(child)) + len("; ")
        if size + length > _MOST_BYTES and part.children:
            yield part
            part, size = replace(title, code=[]), utf8_bytes(title.text)
        if length > _MOST_BYTES - _LONGEST_TITLE and child.children:
            yield from _parts(child)
            continue
        part = replace(part, children=[*part.children, child])
        size += length
    if part.children or part is own:
        yield part


def _importance(item: Item) -> float | None:
    if item.kind == "open" or (_introduces(item) and item.kind != "checked"):
        return None
    if item.kind == "checked":
        return MARKED
    if item.kind != "prose" and _decides(_plain(item)):
        return DECIDED
    if item.bold:
        return MARKED
    return SAID if item.kind != "prose" and _is_on_a_day(_plain(item)) else None


def _introduces(item: Item) -> bool:
    """Whether an item only introduces its list."""
    if not item.children or len(item.text) > _LONGEST_TITLE:
        return False
    return item.bold == "whole" or item.text.endswith(":")


def _decides(text: str) -> bool:
    signals = signals_of(text)
    if utf8_bytes(text) <= _LEAST_BULLET_BYTES:
        return bool(signals & _SAID) and "question" not in signals
    return _DECISION.search(text) is not None or bool(signals & (_SAID | {"solution"}))


def _is_on_a_day(text: str) -> bool:
    signals = signals_of(text)
    return (
        "question" not in signals
        and is_worth_keeping(text, signals, answers=False)
        and bool(find_dates(text, None, UTC))
    )


def _said(item: Item, categories: Mapping[str, str]) -> Iterator[NoteFact]:
    for statement in statements(_plain(item)):
        if (
            utf8_bytes(statement.original) > _LEAST_BULLET_BYTES
            and statement.signals & _SAID
            and "question" not in statement.signals
        ):
            yield _fact(statement.original, item, SAID, extract(statement.original), categories)


def _fact(
    text: str, item: Item, importance: float, metadata: Metadata, categories: Mapping[str, str]
) -> NoteFact:
    text = shortened(text, _MOST_BYTES)
    return NoteFact(text, category_of(item.headings, categories), importance, metadata, item.line)


def _with_context(context: str, text: str) -> str:
    return f"{context}: {text}" if context and text else context or text


def _whole_text(item: Item) -> str:
    """The text of an item and of everything nested in it, on one line."""
    own = _plain(item)
    inner = "; ".join(filter(None, (_whole_text(child).rstrip(" .;") for child in item.children)))
    if not inner:
        return own
    return f"{own.rstrip(' :.;')}: {inner}" if own else inner


def _raw(item: Item) -> Iterator[str]:
    """An item and everything nested in it, as it was written."""
    yield "\n".join(item.source)
    yield from item.code
    for child in item.children:
        yield from _raw(child)


def _plain(item: Item) -> str:
    """The text of an item with the words of its links."""
    return _LINK.sub(r"\1", item.text)


def category_of(headings: tuple[str, ...], categories: Mapping[str, str] = CATEGORIES) -> str:
    """The category of headings, given outermost first; `general` if none matches."""
    for heading in reversed(headings):
        folded = heading.casefold()
        for keyword, category in categories.items():
            if _heads(keyword.casefold(), folded):
                return category
    return DEFAULT_CATEGORY


def _heads(keyword: str, heading: str) -> bool:
    if not keyword.isascii():
        return keyword in heading
    after = r"(?![a-z0-9])" if len(keyword) <= _WHOLE_WORD else ""
    return re.search(rf"(?<![a-z0-9]){re.escape(keyword)}{after}", heading) is not None
