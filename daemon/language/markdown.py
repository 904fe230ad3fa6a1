"""Parses a text in Markdown into items: list items with their nested items, and paragraphs.

Only bold marks and struck-out words around whole words are removed from a line; what may be
something else stays: `**kwargs`, `src/**/*.ts`, `__init__`, single asterisks, escapes, links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from ..memory.front_matter import front_matter
from .vocabulary import words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

Kind: TypeAlias = Literal["checked", "open", "bullet", "prose"]
Bold: TypeAlias = Literal["start", "whole", ""]

# A text without any of these is nothing but paragraphs.
_ANY: Final = re.compile(
    r"^[ \t]*(?:[-+*>#|•‣–]|\d{1,9}[.)][ \t]|`{3}|~{3})|\*\*|__|~~", re.MULTILINE
)
_OTHER_BULLETS: Final = re.compile(r"^([ \t]*)[•‣–](?=[ \t])", re.MULTILINE)
_BOX: Final = re.compile(r"\[([ xX])\]\s+(?=\S)")
_NO_WORDS: Final = re.compile(r"[\s|:=*_-]{3,}$|\s*\|")
# The title of a note does not describe its parts.
_TITLE: Final = re.compile(r"[0-9]{4}|\b(?:daily|notes?|journal|log)\b", re.IGNORECASE)
_NESTING: Final = 100
_MARKS: Final = frozenset({"strong", "s"})
# What a bold mark may stand between, beside blanks.
_BEFORE: Final = "([{–—:"
_AFTER: Final = ".,;:!?)]}…。，；：！？–—'’-"
_OPENING: Final = "\"'“„«([`#@"
_CLOSING: Final = ".,;:!?)]\"'”»%`…。！？：€$"


class Item(msgspec.Struct):
    """A paragraph, or an item of a list with its content.

    Attributes:
        kind: "checked" and "open" have a check box.
        line: where it begins, from 1.
        headings: the headings above it, outermost first, without the note's title.
        lines: its own lines without marks; an empty one between paragraphs.
        source: its own lines with all marks.
        bold: "start" if it begins in bold, "whole" if nothing but a colon follows, or "".
        code: the fenced code in it or right after it.
        children: its nested items; of a paragraph, the list after it.
    """

    kind: Kind
    line: int
    headings: tuple[str, ...] = ()
    lines: list[str] = []
    source: list[str] = []
    bold: Bold = ""
    code: list[str] = []
    children: list[Item] = []

    @property
    def text(self) -> str:
        """Its own text on one line."""
        return " ".join(filter(None, self.lines))


def items(text: str) -> list[Item]:
    """The items of a text, in order.

    A list belongs to the paragraph right before it, or one before it that ends in a colon. Front
    matter, tables and rules are left out, and what is nested more than 50 levels deep.
    """
    lines, front = text.splitlines(), front_matter(text)[1]
    lines[:front] = [""] * front
    text = "\n".join(lines)
    if not _ANY.search(text):
        return list(_paragraphs(lines))
    # Imported with the first text that needs it.
    from markdown_it.tree import SyntaxTreeNode  # noqa: PLC0415

    reader = _Reader(lines)
    tree = SyntaxTreeNode(_parser().parse(_OTHER_BULLETS.sub(r"\1-", text)))
    reader.read(tree.children, None)
    return reader.top


def leaves(text: str) -> Iterator[Item]:
    """All items of a text in order, also the nested ones."""
    waiting = items(text)[::-1]
    while waiting:
        item = waiting.pop()
        yield item
        waiting += item.children[::-1]


class _Reader:
    """Reads the blocks of a text; `top` has the outermost items so far."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.top: list[Item] = []
        self._source = lines
        self._headings: list[tuple[int, str]] = []
        self._last: Item | None = None

    def read(self, blocks: Sequence[SyntaxTreeNode], item: Item | None) -> None:
        """Read the blocks of an item, or those outside of any."""
        above = 0
        for block in blocks:
            begin, end = block.map or (0, 0)
            if block.type == "heading":
                level, title = int(block.tag[1]), block.children[0].content
                self._headings = [pair for pair in self._headings if pair[0] < level]
                if level > 1 or not _TITLE.search(title):
                    self._headings.append((level, title))
                self._last = None
            elif block.type == "paragraph":
                self._read_words(block.children[0], begin, item)
            elif block.type == "blockquote":
                self._read_quoted(block)
            elif block.type == "fence" and self._last is not None:
                self._last.code.append(block.content)
            elif item is not None and item.line == begin + 1 and not item.lines:
                # "* * * * * job" is no list of lists.
                item.lines += self._source[begin:end]
            elif block.type in {"bullet_list", "ordered_list"}:
                owner = item or self._introduction(adjacent=begin == above)
                for entry in block.children:
                    self._read_entry(entry, owner)
                self._last = owner or self._last
            above = end

    def _read_quoted(self, block: SyntaxTreeNode) -> None:
        for quoted in block.walk(include_self=False):
            if quoted.type == "paragraph" and quoted.map:
                self._read_words(quoted.children[0], quoted.map[0], None)

    def _read_entry(self, entry: SyntaxTreeNode, owner: Item | None) -> None:
        item = self._add("bullet", entry.map[0] if entry.map else 0, owner)
        if not _numbers_a_list(entry):
            item.lines.append(f"{entry.info}{entry.markup}")
        self.read(entry.children, item)

    def _introduction(self, *, adjacent: bool) -> Item | None:
        """The paragraph that a list belongs to."""
        last = self._last
        introduces = last and last.kind == "prose" and (adjacent or last.lines[-1].endswith(":"))
        return last if introduces else None

    def _read_words(self, words: SyntaxTreeNode, begin: int, item: Item | None) -> None:
        owner = item or self._add("prose", begin, None)
        if owner.source:
            owner.lines.append("")
        for number, (source, (line, bold)) in enumerate(
            zip(words.content.split("\n"), _plain(words.children), strict=False)
        ):
            if bold and number:
                owner = self._add("prose", begin + number, None)
            if not owner.source:
                owner.bold = bold
                if owner.kind == "bullet" and (box := _BOX.match(line)):
                    owner.kind = "open" if box[1] == " " else "checked"
                    line = line[box.end() :]  # noqa: PLW2901
                # The number of an item may be part of its text.
                line = " ".join((*owner.lines, line))  # noqa: PLW2901
                owner.lines.clear()
            owner.source.append(source)
            owner.lines.append("" if _NO_WORDS.match(line) else " ".join(line.split()))

    def _add(self, kind: Kind, line: int, owner: Item | None) -> Item:
        item = Item(kind, line + 1, tuple(title for _, title in self._headings))
        (self.top if owner is None else owner.children).append(item)
        self._last = item
        return item


def _plain(parts: Sequence[SyntaxTreeNode]) -> Iterator[tuple[str, Bold]]:
    """The lines of a paragraph without bold marks, and whether each begins in bold."""
    line = ""
    bold: Bold = ""
    for at, part in enumerate(parts):
        marked = part.type in _MARKS and _is_mark(parts, at)
        if marked and part.type == "s":
            continue
        if marked and not line.strip():
            rest = "".join(map(_written, parts[at + 1 :])).strip()
            bold = "start" if rest.strip(":") else "whole"
        first, *others = _written(part, marks=not marked).split("\n")
        line += first
        for other in others:
            yield line, bold
            line, bold = other, ""
    yield line, bold


def _is_mark(parts: Sequence[SyntaxTreeNode], at: int) -> bool:
    """Whether the marks of a part stand around words."""
    inner = _written(parts[at], marks=False)
    before = _written(parts[at - 1])[-1:] if at else ""
    after = _written(parts[at + 1])[:1] if at + 1 < len(parts) else ""
    return (
        (not before.strip() or before in _BEFORE)
        and (inner[0].isalnum() or inner[0] in _OPENING or not inner[0].isascii())
        and (inner[-1].isalnum() or inner[-1] in _CLOSING or not inner[-1].isascii())
        and (not after.strip() or after in _AFTER)
        # "__init__"
        and (parts[at].markup != "__" or " " in inner)
    )


def _written(part: SyntaxTreeNode, *, marks: bool = True) -> str:
    """A part of a paragraph as it was written, with or without its marks."""
    if part.type in {"softbreak", "hardbreak"}:
        return "\n"
    inner = "".join(map(_written, part.children)) if part.children else part.content
    return f"{part.markup}{inner}{part.markup}" if marks else inner


def _numbers_a_list(entry: SyntaxTreeNode) -> bool:
    """Whether the number of an item is no part of its text, as in "20. Juni"."""
    if not entry.info:
        return True
    first = next((node.content for node in entry.walk() if node.type == "inline"), "")
    if first.partition(" ")[0].strip(",.;").casefold() in words("ordinal_months"):
        return False
    beside = (entry.previous_sibling, entry.next_sibling)
    number = int(entry.info)
    return number == 1 or any(item and abs(int(item.info) - number) == 1 for item in beside)


def _paragraphs(lines: Sequence[str]) -> Iterator[Item]:
    paragraph: list[str] = []
    for number, line in enumerate((*lines, ""), 1):
        plain = "" if _NO_WORDS.match(line) else " ".join(line.split())
        if plain:
            paragraph.append(plain)
        elif paragraph:
            yield Item("prose", number - len(paragraph), (), paragraph, paragraph)
            paragraph = []


@cache
def _parser() -> MarkdownIt:
    # Imported with the first text that needs it.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    blocks = ("fence", "heading", "list", "blockquote", "hr", "table")
    marks = ("backticks", "emphasis", "strikethrough", "balance_pairs", "newline")
    return MarkdownIt("zero", {"maxNesting": _NESTING}).enable([*blocks, *marks])
