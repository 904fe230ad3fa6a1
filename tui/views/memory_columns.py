"""The columns of the tables of memories."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rich.text import Text

from thermocline.daemon.shapes.memory import MemoryView
from thermocline.daemon.shapes.recall import HitView

from ..text import one_line
from ..widgets.gauge import bar
from ..widgets.paged import Column
from ..widgets.paint import paint
from .memory_text import age, grade, grade_cell, head_of, short, tier_cell, type_word

if TYPE_CHECKING:
    from .view import View

Columns: TypeAlias = list[Column[MemoryView]]

# From this width of the table on, everything has a column of its own.
_ALL = 110


def listed(view: View) -> Columns:
    """The columns of the list."""
    make = _Cells(view)
    return [
        Column("importance", "Importance", 14, make.grade, least=_ALL),
        Column("importance", "Importance", 10, make.word, least=60, most=_ALL - 1),
        Column("score", "Score", 5, make.score, right=True, least=90),
        Column("score", "Tier", 8, make.tier, least=50),
        Column("type", "Type", 6, make.type, least=_ALL),
        Column("category", "Category", 14, make.category, least=60),
        Column("subject", "Subject", 10, make.subject, least=_ALL),
        Column("", "Text", 0, make.text),
        Column("uses", "Uses", 5, make.uses, least=_ALL, right=True),
        Column("age", "Age", 6, make.age, right=True),
    ]


def found(view: View) -> Columns:
    """The columns of what a search finds."""
    make = _Cells(view)
    return [
        Column("", "Relevance", 11, make.relevance),
        Column("importance", "Importance", 10, make.word, least=_ALL),
        Column("", "Tier", 8, make.tier, least=_ALL),
        Column("category", "Category", 14, make.category, least=70),
        Column("", "Text", 0, make.text),
        Column("age", "Age", 6, make.age, right=True),
    ]


def brief(view: View) -> Callable[[MemoryView], tuple[Text, Text]]:
    """A row of two lines: its text, and its facts."""
    make = _Cells(view)

    def lines(memory: MemoryView) -> tuple[Text, Text]:
        first = make.relevance(memory) if isinstance(memory, HitView) else make.word(memory)
        second = Text().append_text(first).append(" ").append_text(make.tier(memory)).append("  ")
        second.append(age(memory.created_at, view.app.now()), "dim").append("  ")
        second.append(view.shown(memory.category).plain, "dim")
        return make.text(memory), second

    return lines


class _Cells:
    """What each column shows of a memory."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._paint = partial(paint, view.app)

    def grade(self, memory: MemoryView) -> Text:
        return grade_cell(memory, self._paint)

    def word(self, memory: MemoryView) -> Text:
        word, color = grade(memory.importance)
        return Text(f"{word:<9}", self._paint(color))

    def score(self, memory: MemoryView) -> Text:
        return Text(short(memory.score))

    def tier(self, memory: MemoryView) -> Text:
        return tier_cell(memory, self._paint)

    def type(self, memory: MemoryView) -> Text:
        return Text(type_word(memory.type))

    def category(self, memory: MemoryView) -> Text:
        """The end of the path, which says most."""
        path = self._view.shown(memory.category)
        return Text(f"…{path.plain[-13:]}", "dim") if len(path) > 14 else Text(path.plain, "dim")

    def subject(self, memory: MemoryView) -> Text:
        return self._view.shown(one_line(memory.subject[:200]))

    def text(self, memory: MemoryView) -> Text:
        narrow = self._view.size.width < _ALL or isinstance(memory, HitView)
        return head_of(memory, self._view.shown, self._paint, subject=narrow)

    def uses(self, memory: MemoryView) -> Text:
        return Text(f"{memory.access_count:,}" if memory.access_count else "", "dim")

    def age(self, memory: MemoryView) -> Text:
        return Text(age(memory.created_at, self._view.app.now()), "dim")

    def relevance(self, memory: MemoryView) -> Text:
        value = memory.relevance if isinstance(memory, HitView) else 0.0
        full, empty = bar(value, 6)
        return Text(full, self._paint("accent")).append(empty, "dim").append(f" {value:.2f}")
