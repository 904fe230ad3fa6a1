"""One file, read at one of its chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.files import ChunkPlace

from .view import View

# Lines that are read before and after a chunk.
_AROUND: Final = 60
_MOST_LINES: Final = 400


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The file that is shown, its chunks, and which of them; `title` is its harmless name."""

    path: str
    title: Text
    query: str
    chunks: Sequence[ChunkPlace]
    at: int

    @property
    def chunk(self) -> ChunkPlace | None:
        """The chunk."""
        return self.chunks[self.at] if self.chunks else None

    @property
    def line(self) -> int:
        """The first line of the chunk."""
        return self.chunk.start_line if self.chunk is not None else 1


class FilePane(VerticalScroll, can_focus=True):
    """The lines before a chunk, its own lines behind a bar, and those after it, with numbers.

    Attributes:
        file: what is shown; None: nothing.
    """

    DEFAULT_CSS = """
    FilePane {
        scrollbar-size-vertical: 1; border-top: solid $border-blurred;
        border-title-color: $secondary; border-title-style: bold;
    }
    FilePane:focus { border-top: solid $primary; }
    FilePane > Static { height: auto; padding-left: 1; }
    FilePane > #chunk { padding-left: 0; border-left: thick $accent; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.file: OpenFile | None = None
        # What is on the screen: drawn again, it would scroll.
        self._drawn: object = None
        self._parts = {name: Static(id=name) for name in ("before", "chunk", "after")}

    def compose(self) -> ComposeResult:
        """Three texts."""
        yield from self._parts.values()

    def close(self, why: str | Text) -> None:
        """Show a text in place of a file."""
        self.file = self._drawn = None
        for name, part in self._parts.items():
            part.display = name == "after"
        self._parts["after"].update(why)
        self.border_title = None
        self.scroll_home(animate=False)

    async def open(self, path: str, line: int, title: Text, query: str) -> None:
        """Show the chunk that begins in a line, or has it; the words of `query` are marked."""
        listed = await self._view.call(Client.files_chunks, path)
        if listed is None:
            return
        chunks = listed.results
        starts = [one.start_line for one in chunks]
        # Chunks overlap: take the chunk that begins at the line, else the first that contains it.
        held = (at for at, one in enumerate(chunks) if one.end_line >= line)
        at = starts.index(line) if line in starts else next(held, 0)
        self.file = OpenFile(path, title, query, chunks, at)
        await self._read(self.file)

    async def turn(self, step: int) -> None:
        """Show another chunk of the file."""
        if self.file is not None and self.file.chunks:
            at = (self.file.at + step) % len(self.file.chunks)
            self.file = replace(self.file, at=at)
            await self._read(self.file)

    async def _read(self, file: OpenFile) -> None:
        chunk = file.chunk
        first = max(1, chunk.start_line - _AROUND) if chunk is not None else 1
        last = chunk.end_line + _AROUND if chunk is not None else _MOST_LINES
        last = min(last, first + _MOST_LINES)
        read = await self._view.call(
            lambda client: client.files_get(file.path, from_line=first, to_line=last)
        )
        # Another file may have been opened meanwhile.
        if read is None or self.file is not file:
            return
        lines = [self._view.shown(one.expandtabs(4)) for one in read.text.splitlines()]
        words = [word for word in file.query.split() if len(word) > 2]
        for line in lines:
            line.highlight_words(words, "bold underline", case_sensitive=False)
        title = file.title.copy()
        if chunk is not None:
            title.append(f"  chunk {file.at + 1} of {len(file.chunks)}")
            title.append(f", lines {chunk.start_line}-{chunk.end_line} of {read.total_lines}")
        else:
            title.append(f"  {number_of(read.total_lines, 'line', 'lines')}, no chunk")
        drawn = (title.plain, [(line.plain, line.spans) for line in lines])
        if drawn != self._drawn:
            self._drawn = drawn
            self._draw(lines, first, chunk)
            self.border_title = title

    def _draw(self, lines: Sequence[Text], first: int, chunk: ChunkPlace | None) -> None:
        """Show lines, of which the number of the first is `first`, and go to those of the chunk."""
        end = first + len(lines)
        start, after = (chunk.start_line, chunk.end_line + 1) if chunk is not None else (end, end)
        parts = {
            "before": range(first, min(start, end)),
            "chunk": range(start, min(after, end)),
            "after": range(after, end),
        }
        for name, numbers in parts.items():
            table = Table.grid(padding=(0, 1))
            table.add_column(justify="right", width=len(str(end)), no_wrap=True)
            table.add_column(overflow="fold")
            for number in numbers:
                table.add_row(Text(str(number), "dim"), lines[number - first])
            self._parts[name].update(table)
            self._parts[name].display = bool(numbers)
        self.call_after_refresh(self._go_to_chunk, chunk is not None)

    def _go_to_chunk(self, there: bool) -> None:
        if not there:
            self.scroll_home(animate=False)
            return
        # A line or two before it show where it stands.
        top = self._parts["chunk"].virtual_region.y
        self.scroll_to(y=max(0, top - 2), animate=False, force=True)

    @property
    def _view(self) -> View:
        return next(one for one in self.ancestors if isinstance(one, View))
