"""MEMORY.md: the hot state as a page for people, in EvoClaw's layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, tzinfo
from typing import Final

import msgspec

from .hot.state import Item, is_finished, number
from .records import Json

_TITLE: Final = "# MEMORY.md - Long-Term Context"
_NOTE: Final = (
    "*Written by Thermocline from the hot state: change that with `thermocline hot --update`;"
    " of an edit here only a copy is kept. In MEMORY.md, write above or below this section.*"
)
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
_MAX_TASKS: Final = 10
_MAX_EVENTS: Final = 10
_MAX_LESSONS: Final = 20

# The beginnings of a heading, quote, list, fence, rule or HTML block.
_BLOCK_START: Final = re.compile(r"[#>`~<=|]|[-+*_](?=\s|$)|[-*_](?=[\s*_-]*$)")
# The zero-width joiners: not printable in Python, but parts of words and emoji.
_JOINERS: Final = "\u200c\u200d"
_NUMBERED: Final = re.compile(r"(\d{1,9})([.)])(?=\s|$)")


def render(document: dict[str, Json], now: float, local: tzinfo) -> str:
    """The page for a hot document, with its dates in the zone `local`.

    Every stored text takes one line, and is escaped if it would begin a Markdown block such as a
    heading.
    """
    lines = [_TITLE, "", _NOTE, "", "---", "", *_sections(document, local)]
    moment = datetime.fromtimestamp(now, local)
    lines += ["---", f"*Generated: {moment:%Y-%m-%d %H:%M}*", ""]
    return "\n".join(lines)


def body(document: dict[str, Json], local: tzinfo) -> str:
    """The sections of the page alone; "" if the document is empty."""
    return "\n".join(_sections(document, local)).rstrip("\n")


def _sections(document: dict[str, Json], local: tzinfo) -> Iterator[str]:
    context = document.get("active_context", {})
    lessons = document.get("critical_lessons", [])[:_MAX_LESSONS]
    tasks = [task for task in context.get("tasks", ()) if not is_finished(task)]
    sections = (
        ("🤖 Agent Identity", _values(document.get("identity", {}))),
        ("👤 Owner Profile", _values(document.get("owner_profile", {}))),
        ("💼 Active Projects", _projects(context.get("projects", ()))),
        ("✅ Pending Tasks", _bullets(tasks[-_MAX_TASKS:], _task)),
        ("📅 Recent Events", _bullets(context.get("events", [])[-_MAX_EVENTS:], _event(local))),
        ("🎯 Critical Lessons", _bullets(lessons, _lesson)),
        ("🔥 Hot Memories", _bullets(document.get("hot_memories", ()), _lesson)),
    )
    for title, lines in sections:
        if content := list(lines):
            yield from (f"## {title}", "", *content, "")


def _values(section: Item) -> Iterator[str]:
    for key, value in section.items():
        if text := _inline(value):
            yield f"- **{_flat(key.replace('_', ' ')).title()}:** {text}"


def _projects(projects: Iterable[Item]) -> Iterator[str]:
    for index, project in enumerate(projects):
        if index:
            yield ""
        yield f"### {_inline(project.get('name')) or 'Unnamed'}"
        if description := _inline(project.get("description")):
            yield _line(description)
        if status := _inline(project.get("status")):
            yield f"**Status:** {status}"


def _bullets(items: Iterable[Item], write: Callable[[Item], str]) -> Iterator[str]:
    return (f"- {text}" for text in map(write, items) if text)


def _task(task: Item) -> str:
    text = _inline(task.get("text"))
    status = _inline(task.get("status")) or "pending"
    return f"[{status.upper()}] {text}" if text else ""


def _event(local: tzinfo) -> Callable[[Item], str]:
    def write(event: Item) -> str:
        text = _inline(event.get("text"))
        day = _day(event.get("timestamp"), local)
        return f"[{day}] {text}" if text and day else _line(text)

    return write


def _lesson(lesson: Item) -> str:
    text = _inline(lesson.get("text"))
    category = _inline(lesson.get("category"))
    return f"**[{category}]** {text}" if text and category else _line(text)


def _day(timestamp: Json, local: tzinfo) -> str:
    seconds = number(timestamp)
    if seconds is None:
        return ""
    try:
        day = datetime.fromtimestamp(seconds, local)
    except (ValueError, OverflowError, OSError):
        return ""
    # Not by strftime, which depends on the locale.
    return f"{_MONTHS[day.month - 1]} {day.day:02d}"


def _inline(value: Json) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, str):
        return _flat(value)
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(_inline, value)))
    if isinstance(value, dict):
        pairs = ((_flat(key), _inline(inner)) for key, inner in value.items())
        return "; ".join(f"{key}: {text}" for key, text in pairs if text)
    return msgspec.json.encode(value).decode()


def _flat(text: str) -> str:
    """`text` on one line; runs of blanks, line ends and control characters become one blank."""
    return " ".join("".join(map(_visible, text)).split())


def _visible(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else " "


def _line(text: str) -> str:
    """`text`, escaped so that a line that begins with it is a paragraph."""
    if _BLOCK_START.match(text):
        return f"\\{text}"
    return _NUMBERED.sub(r"\1\\\2", text, count=1) if _NUMBERED.match(text) else text
