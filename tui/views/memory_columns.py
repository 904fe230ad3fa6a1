"""The tables of memories: their columns, and how their pages are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rich.text import Text

from thermocline.daemon.client import Client
from thermocline.daemon.shapes.memory import MemoryPage, MemoryView
from thermocline.daemon.shapes.recall import HitView

from ..text import one_line
from ..widgets.gauge import bar
from ..widgets.paged import PAGE, Column, PagedTable
from .memory_text import age, grade, head_of, short, tier_of, type_word

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
    return [
        Column("Importance", 14, lambda one: _grade(one, view), "importance", least=_ALL),
        Column(
            "Importance", 10, lambda one: _word(one, view), "importance", least=60, most=_ALL - 1
        ),
        Column("Score", 5, lambda one: short(one.score), "score", right=True, least=90),
        Column("Tier", 8, lambda one: tier_of(one, view), "score", least=50),
        Column("Type", 6, lambda one: type_word(one.type), "type", least=_ALL),
        Column(
            "Category", 14, lambda one: _category(one, view), "category", least=60, keep_end=True
        ),
        Column(
            "Subject",
            10,
            lambda one: view.shown(one_line(one.subject[:200])),
            "subject",
            least=_ALL,
        ),
        Column("Text", 0, lambda one: _text(one, view)),
        Column("Uses", 5, _uses, "uses", least=_ALL, right=True),
        Column("Age", 6, lambda one: _age(one, view), "age", right=True),
    ]


def found(view: View) -> Columns:
    """The columns of what a search finds."""
    return [
        Column("Relevance", 11, lambda one: _relevance(one, view)),
        Column("Importance", 10, lambda one: _word(one, view), "importance", least=_ALL),
        Column("Tier", 8, lambda one: tier_of(one, view), least=_ALL),
        Column(
            "Category", 14, lambda one: _category(one, view), "category", least=70, keep_end=True
        ),
        Column("Text", 0, lambda one: _text(one, view)),
        Column("Age", 6, lambda one: _age(one, view), "age", right=True),
    ]


def brief(memory: MemoryView, view: View) -> tuple[Text, Text]:
    """A row of two lines: its text, and its facts."""
    first = _relevance(memory, view) if isinstance(memory, HitView) else _word(memory, view)
    facts = first.append(" ").append_text(tier_of(memory, view)).append("  ")
    facts.append_text(_age(memory, view)).append("  ").append_text(_category(memory, view))
    return _text(memory, view), facts


def _word(memory: MemoryView, view: View) -> Text:
    word, color = grade(memory.importance)
    return Text(f"{word:<9}", view.paint(color))


def _grade(memory: MemoryView, view: View) -> Text:
    return _word(memory, view).append(f" {short(memory.importance)}")


def _category(memory: MemoryView, view: View) -> Text:
    return Text(view.shown(memory.category).plain, "dim")


def _text(memory: MemoryView, view: View) -> Text:
    narrow = view.size.width < _ALL or isinstance(memory, HitView)
    return head_of(memory, view, subject=narrow)


def _uses(memory: MemoryView) -> Text:
    return Text(f"{memory.access_count:,}" if memory.access_count else "", "dim")


def _age(memory: MemoryView, view: View) -> Text:
    return Text(age(memory.created_at, view.app.now()), "dim")


def _relevance(memory: MemoryView, view: View) -> Text:
    value = memory.relevance if isinstance(memory, HitView) else 0.0
    full, empty = bar(value, 6)
    return Text(full, view.paint("accent")).append(empty, "dim").append(f" {value:.2f}")
