"""Memories on the screen: columns of tables, all that is known of one, why it answers a question.

What was stored goes to the screen through `View.shown` alone.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, TypeAlias

from msgspec import UNSET
from rich.style import Style
from rich.table import Table
from rich.text import Text

from thermocline.daemon.client.wording import ago, heading_of, moment, number_of, one_line
from thermocline.daemon.schemas.memory import MemoryView
from thermocline.daemon.schemas.recall import Explanation, HitView

from ..charts import bar
from ..table import Column
from .view import View

Columns: TypeAlias = list[Column[MemoryView]]

# From which importance on a memory is called so. Those by default, 0.6 and of imports 0.5, have no
# colour.
_GRADES: Final = ((0.8, "Critical", "error"), (0.6, "Important", ""), (0.4, "Useful", ""))
_TRIVIAL: Final = ("Trivial", "secondary")
_TIERS: Final = {"hot": ("▲", "error"), "warm": ("●", "warning"), "cold": ("▽", "primary")}
_TYPES: Final = {"semantic": "fact", "episodic": "event", "procedural": "how-to"}
_PARTS: Final = ("match", "recency", "importance")
# A cell of the table is never longer.
_CELL: Final = 600
_WORD: Final = re.compile(r"\w+")
_LABEL: Final = 12
# From these widths of the table on there is a column of its own for the subject of a memory. The
# text has more than half of the row at every width: a column is shown from the width on at which
# that still holds, with all that come before it.
_SUBJECT: Final = 176


def grade(importance: float) -> tuple[str, str]:
    """The word for an importance, and the name of its colour, or ""."""
    return next(((word, color) for least, word, color in _GRADES if importance >= least), _TRIVIAL)


def tier_of(memory: MemoryView, view: View) -> Text:
    """`▲ hot`; what is pinned says so."""
    mark, color = _TIERS.get(memory.tier, ("◇", "secondary"))
    return Text(f"{'◆' if memory.pinned else mark} {memory.tier}", view.paint(color))


def short(value: float) -> str:
    """Two digits after the point, and no more columns than four."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def age(when: float, now: float) -> str:
    """`3 d`, for a column."""
    return ago(when, now).removesuffix(" ago")


def columns_of(view: View, *, hits: bool = False) -> Columns:
    """The columns of a list of memories, or of the answers to a question."""
    importance, tier = partial(_grade, view=view), partial(tier_of, view=view)
    category = partial(_category, view=view)

    def text(memory: MemoryView) -> Text:
        return head_of(memory, view, subject=hits or view.size.width < _SUBJECT)

    def uses(memory: MemoryView) -> Text:
        return Text(f"{memory.access_count:,}" if memory.access_count else "", "dim")

    old = Column("Age", 6, partial(_age, view=view), "age", right=True)
    if hits:
        return [
            Column("Relevance", 11, partial(_relevance, view=view)),
            Column("Importance", 10, importance, "importance", least=128),
            Column("Tier", 8, tier, least=104),
            Column("Category", 14, category, "category", least=84, keep_end=True),
            Column("Text", 0, text),
            old,
        ]
    return [
        Column("Importance", 11, importance, "importance", least=104),
        Column("Score", 5, lambda memory: short(memory.score), "score", right=True, least=118),
        Column("Tier", 8, tier, "score", least=50),
        Column("Type", 6, lambda memory: _TYPES.get(memory.type, memory.type), "type", least=148),
        Column("Category", 14, category, "category", least=78, keep_end=True),
        Column("Subject", 12, partial(_subject, view=view), "subject", least=_SUBJECT),
        Column("Text", 0, text),
        Column("Uses", 5, uses, "uses", least=132, right=True),
        old,
    ]


def two_lines(memory: MemoryView, view: View) -> tuple[Text, Text]:
    """A row of two lines: its text, and its facts."""
    first = _relevance(memory, view) if isinstance(memory, HitView) else _grade(memory, view)
    facts = first.append(" ").append_text(tier_of(memory, view)).append("  ")
    facts.append_text(_age(memory, view)).append("  ").append_text(_category(memory, view))
    return head_of(memory, view, subject=True), facts


def _grade(memory: MemoryView, view: View) -> Text:
    word, color = grade(memory.importance)
    return Text(f"{word:<9}", view.paint(color))


def _subject(memory: MemoryView, view: View) -> Text:
    return view.shown(one_line(memory.subject[:200]))


def _category(memory: MemoryView, view: View) -> Text:
    return Text(view.shown(memory.category).plain, "dim")


def _age(memory: MemoryView, view: View) -> Text:
    return Text(age(memory.created_at, view.app.now()), "dim")


def _relevance(memory: MemoryView, view: View) -> Text:
    value = memory.relevance if isinstance(memory, HitView) else 0.0
    full, empty = bar(value, 6)
    return Text(full, view.paint("accent")).append(empty, "dim").append(f" {value:.2f}")


def head_of(memory: MemoryView, view: View, *, subject: bool) -> Text:
    """A memory on one line: the subject in front if it has no column, and what became of it."""
    line = Text()
    if memory.superseded_by:
        line.append("outdated ", view.paint("warning"))
    if memory.is_outside:
        line.append_text(view.shown(f"quoted {memory.source} ")).stylize(view.paint("warning"))
    if memory.pinned and isinstance(memory, HitView):
        line.append("◆ ", view.paint("accent"))
    if subject and (heading := heading_of(memory.subject, memory.text)):
        line.append_text(view.shown(one_line(heading[:_CELL]))).append(": ")
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
    for match in _WORD.finditer(text.plain):
        token = _folded(match[0])
        if any(_same(token, word) for word in wanted):
            text.stylize(style, *match.span())


def _folded(word: str) -> str:
    apart = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in apart if not unicodedata.combining(char))


def _same(token: str, word: str) -> bool:
    """Whether two words are forms of one, as far as their beginning tells."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(token, word, strict=False))
    common = sum(1 for _ in alike)
    is_form = common == len(word) or common >= max(len(token), len(word)) - 3
    return token == word or (common >= 4 and is_form)


def explained(hit: HitView, view: View, columns: int) -> Text:
    """Why a memory answers: a bar for the relevance, each part of the order, and each signal."""
    text, parts = Text(no_wrap=True), hit.parts
    bars = [("relevance", hit.relevance, "accent", 1.0)]
    if isinstance(parts, Explanation):
        bars += [(name, getattr(parts, name), "primary", 1.0) for name in _PARTS]
        highest = max(parts.signals.values(), default=0.0) or 1.0
        signals = sorted(parts.signals.items(), key=lambda pair: -pair[1])
        bars += [(f"  {name}", value, "secondary", highest) for name, value in signals]
    for label, value, color, top in bars:
        full, empty = bar(value / top, max(4, min(30, columns - _LABEL - 7)))
        text.append("\n" * bool(text)).append(f"{label:<{_LABEL}}")
        text.append(full, view.paint(color)).append(empty, "dim").append(f" {value:5.2f}")
    return text


def reasons(hit: HitView, view: View) -> Iterator[tuple[str, Text]]:
    """What else speaks for a hit: words, neighbours, category."""
    parts = hit.parts
    if not isinstance(parts, Explanation):
        return
    if parts.words:
        yield "words", view.shown(", ".join(parts.words))
    if parts.neighbours:
        yield "neighbours", Text(", ".join(key[:8] for key in parts.neighbours))
    if parts.path:
        yield "named by", view.shown(parts.path)
    if parts.reason:
        yield "reason", view.shown(parts.reason)


def facts(memory: MemoryView, view: View) -> Iterator[tuple[str, Text]]:
    """What is known of a memory beside its text, a line each; empty fields are left out."""
    word, color = grade(memory.importance)
    yield "importance", Text(f"{word} {short(memory.importance)}", view.paint(color))
    tier = Text().append_text(tier_of(memory, view))
    for name in ("pinned", "standing", "archived"):
        tier.append(f", {name}" if getattr(memory, name) is True else "")
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
        yield "data", view.shown(json.dumps(memory.data, ensure_ascii=False)[:2000])


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
