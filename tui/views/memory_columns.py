"""The tables of memories: their columns, and how their pages are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.text import Text

from thermocline.daemon.client import Client
from thermocline.daemon.shapes.memory import MemoryPage, MemoryView
from thermocline.daemon.shapes.recall import HitView

from ..text import one_line
from ..widgets.gauge import bar
from ..widgets.paged import PAGE, Column, PagedTable
from .memory_text import age, grade, grade_cell, head_of, short, tier_cell, type_word

if TYPE_CHECKING:
    from .view import View

Columns: TypeAlias = list[Column[MemoryView]]

# From this width of the table on, everything has a column of its own.
_ALL = 110


async def read(view: View, table: PagedTable[MemoryView], **filters: Any) -> bool:
    """Fill a table with the pages that are on the screen; whether that succeeded."""
    pages: dict[int, list[MemoryView]] = {}
    total = 0
    for page in table.wanted():
        found = await view.call(_page, filters, page)
        if found is None:
            return False
        pages[page], total = found.results, found.total
    table.put(total, pages)
    return True


def _page(client: Client, filters: dict[str, Any], page: int) -> MemoryPage:
    return client.list(**filters, limit=PAGE, offset=page * PAGE)


def listed(view: View) -> Columns:
    """The columns of the list."""
    make = _Cells(view)
    return [
        Column("Importance", 14, make.grade, "importance", least=_ALL),
        Column("Importance", 10, make.word, "importance", least=60, most=_ALL - 1),
        Column("Score", 5, make.score, "score", right=True, least=90),
        Column("Tier", 8, make.tier, "score", least=50),
        Column("Type", 6, make.type, "type", least=_ALL),
        Column("Category", 14, make.category, "category", least=60),
        Column("Subject", 10, make.subject, "subject", least=_ALL),
        Column("Text", 0, make.text),
        Column("Uses", 5, make.uses, "uses", least=_ALL, right=True),
        Column("Age", 6, make.age, "age", right=True),
    ]


def found(view: View) -> Columns:
    """The columns of what a search finds."""
    make = _Cells(view)
    return [
        Column("Relevance", 11, make.relevance),
        Column("Importance", 10, make.word, "importance", least=_ALL),
        Column("Tier", 8, make.tier, least=_ALL),
        Column("Category", 14, make.category, "category", least=70),
        Column("Text", 0, make.text),
        Column("Age", 6, make.age, "age", right=True),
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
        self._paint = view.paint

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
