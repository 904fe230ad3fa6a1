"""Cuts a text into chunks: at headings, and never inside a block that fits."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from ..config.settings import IndexSettings
from ..memory.front_matter import front_matter
from ..store.records.indexed_files import FileContent, Piece

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LINE_ENDS: Final = re.compile(r"\r\n?")
_SENTENCE: Final = re.compile(r"[.!?…][\"'”’)\]*_]*(?=\s)\s+|[。！？]|\n[ \t]*\n\s*")
_BLANKS: Final = re.compile(r"(?:[ \t]*\n)+")
_SPACE: Final = re.compile(r"\s")
# The quality of a place to cut.
_AT_SENTENCE, _AT_LINE, _AT_BLOCK = range(3)


class _Heading(msgspec.Struct, frozen=True):
    start: int
    end: int
    level: int
    name: str


class _Text(msgspec.Struct):
    """A text with the places where it may be cut."""

    text: str
    lines: list[int]  # the start of each line; the last entry is the end of the text
    # Blocks that are not cut if they fit: code and tables, in order.
    whole: list[tuple[int, int]] = []
    cuts: dict[int, int] = {}  # the quality of each place; `places` has them in order
    places: list[int] = []
    headings: list[_Heading] = []

    def line_at(self, place: int) -> int:
        """The number of the line that a place is in, from 1."""
        return bisect_right(self.lines, place, hi=len(self.lines) - 1)

    def between(self, least: int, end: int) -> list[int]:
        """The places to cut from `least` on and before `end`, in order."""
        return self.places[bisect_left(self.places, least) : bisect_left(self.places, end)]

    def block_before(self, place: int) -> tuple[int, int] | None:
        """The last block of code or table that begins before a place."""
        at = bisect_left(self.whole, (place, 0))
        return self.whole[at - 1] if at else None

    def splits(self, place: int, rules: IndexSettings) -> bool:
        """Whether a place is inside a block that would fit."""
        block = self.block_before(place)
        if block is None or place >= block[1]:
            return False
        return len(self.text[block[0] : block[1]].rstrip()) <= rules.chunk_chars


def cut(text: str, rules: IndexSettings, *, markdown: bool) -> FileContent:
    """The chunks, title, front matter and number of lines of a text.

    With `markdown` the text may have headings, code and tables.
    """
    text = _LINE_ENDS.sub("\n", text.removeprefix("\ufeff"))
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    lines = len(starts) - text.endswith("\n") if text else 0
    if not text.strip():
        return FileContent(lines=lines)
    read = _Text(text, [*starts, len(text)])
    meta, number = front_matter(text)
    begin = read.lines[number]
    if markdown:
        _read_markdown(read, begin)
    else:
        _add_sentences(read, begin, len(text))
    read.places = sorted(read.cuts)
    title = str(meta.get("title") or "").strip()
    title = title or next((heading.name for heading in read.headings if heading.level == 1), "")
    pieces = [
        piece
        for start, end, name in _sections(read, begin, by_heading=rules.split_on_headings)
        for piece in _cut_section(read, start, end, name, rules)
    ]
    return FileContent(title=title, meta=meta, lines=lines, pieces=pieces)


def _read_markdown(read: _Text, begin: int) -> None:
    first = bisect_right(read.lines, begin, hi=len(read.lines) - 1) - 1
    tokens = _parser().parse(read.text[begin:])
    for at, token in enumerate(tokens):
        if not token.map or token.nesting < 0:
            continue
        start, end = (read.lines[min(first + line, len(read.lines) - 1)] for line in token.map)
        if token.type in {"fence", "code_block", "table_open"}:
            read.whole.append((start, end))
        if token.level:
            continue
        read.cuts[start] = _AT_BLOCK
        if token.type == "heading_open":
            name = " ".join(tokens[at + 1].content.split())
            read.headings.append(_Heading(start, end, int(token.tag[1]), name))
            continue
        if token.type not in {"fence", "code_block", "table_open"}:
            _add_sentences(read, start, end)
        if token.type != "paragraph_open":
            for line in range(bisect_right(read.lines, start), bisect_right(read.lines, end) - 1):
                place = read.lines[line]
                read.cuts[place] = max(read.cuts.get(place, _AT_LINE), _AT_LINE)


@cache
def _parser() -> MarkdownIt:
    # Imported with the first file, since many agents have none.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark").enable("table")
    # Inline parsing is not needed, and takes most of the time.
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.disable("reference")
    return parser


def _add_sentences(read: _Text, start: int, end: int) -> None:
    for match in _SENTENCE.finditer(read.text, start, end):
        quality = _AT_BLOCK if match[0].startswith("\n") else _AT_SENTENCE
        read.cuts.setdefault(match.end(), quality)


def _sections(read: _Text, begin: int, *, by_heading: bool) -> Iterator[tuple[int, int, str]]:
    """The start and end of each section, and the headings above it.

    A heading directly before a deeper heading is in the same section.
    """
    headings = read.headings if by_heading else []
    above: list[_Heading] = []
    start, name = begin, ""
    for at, heading in enumerate(headings):
        last = headings[at - 1] if at else None
        empty = last is not None and not read.text[last.end : heading.start].strip()
        if not (empty and last is not None and last.level < heading.level):
            yield start, heading.start, name
            start = heading.start
        above = [*(widget for widget in above if widget.level < heading.level), heading]
        name = " › ".join(item.name for item in above if item.name)
    yield start, len(read.text), name


def _cut_section(
    read: _Text, start: int, end: int, name: str, rules: IndexSettings
) -> Iterator[Piece]:
    text = read.text
    while True:
        start, end = _trimmed(text, start, end)
        if start >= end:
            return
        to = end if end - start <= rules.chunk_chars else _place(read, start, rules)
        first, last = _trimmed(text, start, to)
        yield Piece(read.line_at(first), read.line_at(last - 1), name, text[first:last])
        if to == end:
            return
        start = _overlapping(read, start, to, rules)


def _place(read: _Text, start: int, rules: IndexSettings) -> int:
    """The best place to end a chunk that begins at `start`."""
    # The chunk must be longer than its overlap with the chunk before.
    least, most = start + rules.overlap_chars + 1, start + rules.chunk_chars
    late = start + rules.chunk_chars // 2
    allowed = [place for place in read.between(least, most + 1) if not read.splits(place, rules)]
    # The last of the best places in the second half, else in the whole chunk.
    for among in ([place for place in allowed if place >= late], allowed):
        if among:
            return max(among, key=lambda place: (read.cuts[place], place))
    space = max((match.end() for match in _SPACE.finditer(read.text, late, most)), default=most)
    return most if read.splits(space, rules) else space


def _overlapping(read: _Text, start: int, to: int, rules: IndexSettings) -> int:
    """The begin of the chunk after a chunk that ends at `to`: an earlier sentence, if it fits."""
    block = read.block_before(to)
    if block is not None and to <= block[1]:
        return to
    after = read.block_before(to + 1)
    length = after[1] - to if after is not None and after[0] == to else 0
    for place in read.between(max(start + 1, to - rules.overlap_chars), to):
        crosses = block is not None and place < block[1]
        if not crosses and not rules.chunk_chars - (to - place) < length <= rules.chunk_chars:
            return place
    return to


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    blank = _BLANKS.match(text, start, end)
    start = blank.end() if blank else start
    return start, start + len(text[start:end].rstrip())
