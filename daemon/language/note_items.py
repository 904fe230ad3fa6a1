"""Parses a note in Markdown into items: list items with their nested items, and paragraphs."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["checked", "open", "bullet", "prose"]

_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_BULLET: Final = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,9}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?(?=\S)")
_RULE: Final = re.compile(r"[ \t]*(?:[-*_=][ \t]*){3,}$")
_BOLD_START: Final = re.compile(r"[ \t]*(?:\*\*|__)\S")
_TABLE: Final = re.compile(r"[ \t]*\|")
# The title of a note does not describe its parts.
_TITLE: Final = re.compile(r"[0-9]{4}|\b(?:daily|notes?|journal|log)\b", re.IGNORECASE)
_TAB: Final = 4
_DEEPEST: Final = 16


class Item(msgspec.Struct, frozen=True):
    """A paragraph, or an item of a list with its content.

    Attributes:
        kind: "checked" and "open" have a check box.
        line: where it begins, from 1.
        text: its own text on one line, with Markdown, without that of its children.
        code: the fenced code in it or right after it.
        headings: the headings above it, outermost first, without the note's title.
        children: its nested items; of a paragraph, the list after it.
    """

    kind: Kind
    line: int
    text: str
    code: str
    headings: tuple[str, ...]
    children: tuple[Item, ...]


class _Draft(msgspec.Struct):
    """An item while its lines are being read."""

    kind: Kind
    line: int
    indent: int
    headings: tuple[str, ...]
    words: list[str] = []
    code: list[str] = []
    children: list[_Draft] = []

    def finished(self) -> Item:
        children = tuple(child.finished() for child in self.children)
        text = " ".join(" ".join(self.words).split())
        return Item(self.kind, self.line, text, "\n".join(self.code), self.headings, children)


class _Reader:
    """Reads line by line; `top` has the outermost items so far."""

    def __init__(self) -> None:
        self.top: list[_Draft] = []
        self._path: list[_Draft] = []
        self._headings: list[tuple[int, str]] = []
        self._fence = ""
        self._blank = True

    def read(self, number: int, line: str) -> None:
        if self._fence or _FENCE.match(line):
            self._read_code(line)
        elif heading := _HEADING.match(line):
            self._read_heading(len(heading[1]), heading[2])
        elif not line.strip() or _RULE.match(line) or _TABLE.match(line):
            self._blank = True
        elif bullet := _BULLET.match(line):
            self._read_bullet(number, line, bullet)
        else:
            self._read_words(number, line)

    def _read_code(self, line: str) -> None:
        fence = _FENCE.match(line)
        if not self._fence and fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence) and not line.strip().strip(fence[1][0]):
            self._fence = ""
        elif self._path:
            self._path[-1].code.append(line)

    def _read_heading(self, level: int, title: str) -> None:
        self._headings = [pair for pair in self._headings if pair[0] < level]
        if level > 1 or not _TITLE.search(title):
            self._headings.append((level, title))
        self._path = []
        self._blank = True

    def _read_bullet(self, number: int, line: str, bullet: re.Match[str]) -> None:
        indent = len(bullet[1].expandtabs(_TAB))
        introduces = bool(self._path) and self._path[0].kind == "prose"
        if introduces and self._blank and not self._path[0].words[-1].rstrip("*_ ").endswith(":"):
            self._path = []
        while self._path and self._path[-1].kind != "prose" and self._path[-1].indent >= indent:
            self._path.pop()
        del self._path[_DEEPEST:]
        kinds: dict[str | None, Kind] = {None: "bullet", " ": "open"}
        draft = self._add(kinds.get(bullet[2], "checked"), number, indent)
        draft.words.append(line[bullet.end() :])
        self._blank = False

    def _read_words(self, number: int, line: str) -> None:
        indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
        path = self._path
        goes_on = bool(path) and not self._blank and not _BOLD_START.match(line)
        inside = bool(path) and path[-1].kind != "prose" and indent > path[-1].indent
        if not (goes_on or inside):
            self._path = []
            self._add("prose", number, 0)
        self._path[-1].words.append(line)
        self._blank = False

    def _add(self, kind: Kind, number: int, indent: int) -> _Draft:
        draft = _Draft(kind, number, indent, tuple(title for _, title in self._headings))
        (self._path[-1].children if self._path else self.top).append(draft)
        self._path.append(draft)
        return draft


def items(text: str) -> tuple[Item, ...]:
    """The items of a note, in order.

    A list belongs to the paragraph right before it, or one before it that ends in a colon. Front
    matter, tables and rules are left out. Lists nested deeper than 16 levels stay at level 16.
    """
    reader = _Reader()
    for number, line in _body(text):
        reader.read(number, line)
    return tuple(draft.finished() for draft in reader.top)


def _body(text: str) -> list[tuple[int, str]]:
    lines = list(enumerate(text.splitlines(), start=1))
    if lines and lines[0][1].strip() == "---":
        end = next((number for number, line in lines[1:60] if line.strip() in {"---", "..."}), 0)
        return lines[end:]
    return lines
