"""Reading MEMORY.md, or any such page: the text written by people, line by line, as memories."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ..errors import InvalidInput
from ..language.standing import is_standing_statement
from ..memory.checks import CATEGORY_CHARS, check_category, check_text, filed_category
from ..memory.front_matter import front_matter
from ..memory.metadata import extract
from ..memory.records import DEFAULT_CATEGORY, Memory
from ..store.records.memory_md import outside_section

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*$")
_BULLET: Final = re.compile(r"[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,9}[.)][ \t]+")
_RULE: Final = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_FENCE: Final = re.compile(r"(```|~~~)")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
# The first and last lines of EvoClaw's pages and ours.
_GENERATED: Final = re.compile(r"\*(Generated: |Written by |Auto-?generated|This file)[^*]*\*")
# The daemon writes a lesson or memory of the hot state with its category; below these headings a
# task with its status, an event with its day.
_MARKED: Final = re.compile(r"\*\*\[([^]\n]+)\]\*\*(?:\s+(\S.*))?", re.DOTALL)
_STATED: Final = {
    "pending_tasks": re.compile(r"\[[^]a-z\n]+\](?:\s+|$)"),
    "recent_events": re.compile(r"\[[A-Z][a-z]{2} \d\d\](?:\s+|$)"),
}
_LEVELS: Final = 3
_SEGMENT: Final = 64


def parse(text: str, written_at: float) -> tuple[list[Memory], list[str]]:
    """The memories in a page outside the daemon's section, and a line for each fault.

    Each bullet and each paragraph is one memory, with the lines that continue it. Headings below
    the title make its category, unless it has a mark such as `**[home/gate]**`. Ids derive from the
    text alone: reading the page again, or reordered, gives the same memories.
    """
    memories: dict[str, Memory] = {}
    faults: list[str] = []
    for number, heading, line in statements(text):
        if _GENERATED.fullmatch(line):
            faults.append(f"line {number}: a generated note about the page")
            continue
        category, statement = _unmarked(heading, line)
        if not statement:
            continue  # What the mark was for is forgotten.
        try:
            check_text(statement)
        except InvalidInput as error:
            faults.append(f"line {number}: {error.message}")
            continue
        key = hashlib.sha256(" ".join(statement.split()).encode()).hexdigest()[:16]
        memories.setdefault(
            key,
            Memory(
                id=key,
                text=statement,
                standing=is_standing_statement(statement),
                category=category,
                metadata=extract(statement),
                source="MEMORY.md",
                created_at=written_at,
                updated_at=written_at,
            ),
        )
    return list(memories.values()), faults


def statements(page: str) -> Iterator[tuple[int, str, str]]:
    """Each statement: the number of its first line, its category and its text.

    The daemon's section and the front matter state nothing.
    """
    page = _COMMENT.sub("", outside_section(page))
    begin = front_matter(page)[1]
    headings: list[tuple[int, str]] = []
    begun, fence = 0, ""
    lines: list[str] = []

    def finished() -> Iterator[tuple[int, str, str]]:
        statement = "\n".join(lines).strip()
        lines.clear()
        if statement:
            yield begun, _category(headings), statement

    for number, line in enumerate(page.splitlines()[begin:], begin + 1):
        bare = line.strip()
        mark = _FENCE.match(bare)
        if fence or mark:
            begun = begun if lines else number
            lines.append(line.rstrip())
            if mark and (not fence or mark[1] == fence):
                fence = "" if fence else mark[1]
            continue
        heading, bullet = _HEADING.match(bare), _BULLET.match(bare)
        if heading or bullet or not bare or _RULE.match(bare):
            yield from finished()
        if heading:
            level = len(heading[1])
            headings[:] = [item for item in headings if item[0] < level] + [(level, heading[2])]
        elif bare and not _RULE.match(bare):
            begun = begun if lines else number
            lines.append(bare[bullet.end() :] if bullet else bare)
    yield from finished()


def _unmarked(category: str, statement: str) -> tuple[str, str]:
    if marked := _MARKED.fullmatch(statement):
        with suppress(InvalidInput):
            return filed_category(marked[1]), marked[2] or ""
    mark = _STATED[category].match(statement) if category in _STATED else None
    return category, statement[mark.end() :] if mark else statement


def _category(headings: list[tuple[int, str]]) -> str:
    below = (text for level, text in headings if level > 1)
    names = [re.sub(r"\W+", "_", text)[:_SEGMENT].strip("_").lower() for text in below]
    path = "/".join([name for name in names if name][:_LEVELS])
    try:
        return check_category(path[:CATEGORY_CHARS]) if path else DEFAULT_CATEGORY
    except InvalidInput:
        return DEFAULT_CATEGORY
