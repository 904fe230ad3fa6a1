"""Memories as texts for the screen: cells of the table, all that is known of one, why it was found.

What was stored goes to the screen through `View.shown` alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from rich.style import Style
from rich.table import Table
from rich.text import Text

from thermocline.daemon.client.wording import ago, moment, number_of
from thermocline.daemon.shapes.memory import MemoryView
from thermocline.daemon.shapes.recall import Explanation, HitView

from ..text import one_line
from ..widgets.gauge import bar

if TYPE_CHECKING:
    from .view import View

# From which importance on a memory is called so.
GRADES: Final = (
    (0.8, "Critical", "error"),
    (0.6, "Important", "warning"),
    (0.4, "Useful", "primary"),
)
TRIVIAL: Final = ("Trivial", "secondary")
_TIERS: Final = {"hot": ("▲", "error"), "warm": ("●", "warning"), "cold": ("▽", "primary")}
_FROZEN: Final = ("◇", "secondary")
_SHORT_TYPES: Final = {"semantic": "fact", "episodic": "event", "procedural": "how-to"}
_PARTS: Final = ("match", "recency", "importance")
# A cell of the table is never longer.
_CELL: Final = 600
_WORD: Final = re.compile(r"\w+")
_LABEL: Final = 12


def grade(importance: float) -> tuple[str, str]:
    """The word for an importance, and the name of its colour."""
    return next(((word, color) for least, word, color in GRADES if importance >= least), TRIVIAL)


def tier_of(memory: MemoryView, view: View) -> Text:
    """`▲ hot`; what is pinned says so."""
    mark, color = _TIERS.get(memory.tier, _FROZEN)
    return Text(f"{'◆' if memory.pinned else mark} {memory.tier}", view.paint(color))


def type_word(kind: str) -> str:
    """A type in a word as people use it."""
    return _SHORT_TYPES.get(kind, kind)


def short(value: float) -> str:
    """Two digits after the point, and no more columns than four."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def age(when: float, now: float) -> str:
    """`3 d`, for a column."""
    return ago(when, now).removesuffix(" ago")


def head_of(memory: MemoryView, view: View, *, subject: bool) -> Text:
    """A memory on one line: the subject in front if it has no column, and what became of it."""
    line = Text()
    if memory.superseded_by:
        line.append("outdated ", view.paint("warning"))
    if memory.pinned and isinstance(memory, HitView):
        line.append("◆ ", view.paint("accent"))
    if subject and memory.subject:
        line.append_text(view.shown(one_line(memory.subject[:_CELL]))).append(": ")
        line.stylize("bold", 0, len(line))
    line.append_text(view.shown(one_line(memory.text[:_CELL])))
    if isinstance(memory, HitView):
        mark(line, words_of(memory), view)
    return line


def words_of(memory: MemoryView) -> tuple[str, ...]:
    """The words of the question that a hit has."""
    parts = memory.parts if isinstance(memory, HitView) else UNSET
    return parts.words if isinstance(parts, Explanation) else ()


def mark(text: Text, words: Sequence[str], view: View) -> None:
    """Mark the words of a question in a text, in any of their forms."""
    style = view.paint("accent") + Style(underline=True)
    wanted = [_folded(word) for word in words]
    if not wanted:
        return
    for found in _WORD.finditer(text.plain):
        token = _folded(found[0])
        if any(_same(token, word) for word in wanted):
            text.stylize(style, *found.span())


def _folded(word: str) -> str:
    apart = unicodedata.normalize("NFKD", word.casefold())
    return "".join(one for one in apart if not unicodedata.combining(one))


def _same(token: str, word: str) -> bool:
    """Whether two words are forms of one, as far as their beginning tells."""
    if token == word or (len(word) >= 4 and token.startswith(word)):
        return True
    common = 0
    for one, other in zip(token, word, strict=False):
        if one != other:
            break
        common += 1
    return common >= 4 and common >= max(len(token), len(word)) - 3


def explained(hit: HitView, view: View, columns: int) -> Text:
    """Why a hit was found: a bar for the relevance, each part of the order, and each signal."""
    text = Text(no_wrap=True)
    _bar(text, "relevance", hit.relevance, view.paint("accent"), columns)
    parts = hit.parts
    if not isinstance(parts, Explanation):
        return text
    for name in _PARTS:
        _bar(text, name, getattr(parts, name), view.paint("primary"), columns)
    highest = max(parts.signals.values(), default=0.0)
    for name, value in sorted(parts.signals.items(), key=lambda pair: -pair[1]):
        _bar(text, f"  {name}", value, view.paint("secondary"), columns, highest or 1.0)
    return text


def reasons(hit: HitView, view: View) -> Iterator[tuple[str, Text]]:
    """What else was found of a hit: words, neighbours, category."""
    parts = hit.parts
    if not isinstance(parts, Explanation):
        return
    if parts.words:
        yield "words", view.shown(", ".join(parts.words))
    if parts.lenders:
        yield "neighbours", Text(", ".join(key[:8] for key in parts.lenders))
    if parts.path:
        yield "named by", view.shown(parts.path)
    if parts.reason:
        yield "reason", view.shown(parts.reason)


def _bar(
    text: Text, label: str, value: float, style: Style, columns: int, top: float = 1.0
) -> None:
    room = max(4, min(30, columns - _LABEL - 7))
    full, empty = bar(value / top, room)
    text.append("\n" * bool(text)).append(f"{label:<{_LABEL}}").append(full, style).append(
        empty, "dim"
    )
    text.append(f" {value:5.2f}")


def facts(memory: MemoryView, view: View) -> Iterator[tuple[str, Text]]:
    """What is known of a memory beside its text, a line each; empty fields are left out."""
    word, color = grade(memory.importance)
    yield "importance", Text(f"{word} {short(memory.importance)}", view.paint(color))
    tier = Text().append_text(tier_of(memory, view))
    words = {
        "pinned": memory.pinned,
        "standing": memory.standing is True,
        "archived": memory.archived,
    }
    tier.append("".join(f", {word}" for word, holds in words.items() if holds))
    yield "tier", tier
    yield "score", Text(short(memory.score))
    category = view.shown(memory.category)
    if memory.original_category:
        category.append(" (was ").append_text(view.shown(memory.original_category)).append(")")
    yield "category", category
    yield "type", Text(f"{memory.type}, ").append_text(view.shown(memory.event))
    for name in ("subject", "outcome"):
        if value := getattr(memory, name):
            yield name, view.shown(value)
    if memory.tags:
        yield "tags", view.shown(", ".join(memory.tags))
    yield from _times(memory, view.app.now())
    for name in ("urls", "commands", "paths"):
        for value in getattr(memory.metadata, name):
            yield name[:-1], view.shown(value)
    if memory.data is not None:
        yield "data", view.shown(str(memory.data)[:2000])


def _times(memory: MemoryView, now: float) -> Iterator[tuple[str, Text]]:
    yield "stored", _at(memory.created_at, now)
    if memory.updated_at - memory.created_at > 1:
        yield "changed", _at(memory.updated_at, now)
    uses = number_of(memory.access_count, "time", "times")
    if memory.last_accessed_at is not None:
        uses += f", last {ago(memory.last_accessed_at, now)}"
    yield "used", Text(uses if memory.access_count else "never")
    if memory.expires_at is not None:
        yield "expires", _at(memory.expires_at, now)


def provenance(memory: MemoryView, device: str, view: View) -> Iterator[tuple[str, Text]]:
    """Where a memory is from: who said it, how it came, who wrote it, and on which device."""
    for name in ("source", "actor", "writer"):
        if value := getattr(memory, name):
            yield name, view.shown(value)
    if device:
        yield "device", view.shown(device)
    if memory.group:
        place = "" if memory.position is None else f", place {memory.position}"
        yield "conversation", view.shown(memory.group).append(place)
    for name in ("merged_into", "superseded_by"):
        if value := getattr(memory, name):
            yield name.replace("_", " "), Text(str(value)[:8])


def lined(pairs: Iterator[tuple[str, Text]]) -> Table:
    """Names and values below each other; a long value goes on below itself."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", width=_LABEL, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    return table


def _at(when: float, now: float) -> Text:
    return Text(moment(when, now)).append(f"  {ago(when, now)}", "dim")
