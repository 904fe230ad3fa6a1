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
from thermocline.daemon.schemas.files import IndexedChunk

from .view import View

# Lines that are read before and after a chunk.
_AROUND: Final = 60
_MAX_LINES: Final = 400


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The file that is shown, its chunks, and which of them; `title` is its harmless name."""

    path: str
    title: Text
    query: str
    chunks: Sequence[IndexedChunk]
    at: int

    @property
    def chunk(self) -> IndexedChunk | None:
        return self.chunks[self.at] if self.chunks else None

    @property
    def line(self) -> int:
        return self.chunk.start_line if self.chunk is not None else 1


class FilePane(VerticalScroll, can_focus=True):
    """The lines before a chunk, its own lines behind a bar, and those after it, with numbers."""

    DEFAULT_CSS = """
    FilePane {
        scrollbar-size-vertical: 1; border-top: solid $border-blurred;
        border-title-color: $secondary; border-title-style: bold;
    }
    FilePane:focus { border-top: solid $primary; }
    FilePane > Static { height: auto; padding-left: 1; }
    FilePane > #chunk { padding-left: 0; border-left: thick $accent; }
    """

    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view
        self.file: OpenFile | None = None
        # What is on the screen: drawn again, it would scroll.
        self._drawn: object = None
        self._texts = {name: Static(id=name) for name in ("before", "chunk", "after")}

    def compose(self) -> ComposeResult:
        yield from self._texts.values()

    def close(self, why: str | Text = "") -> None:
        self.file = self._drawn = None
        for name, text in self._texts.items():
            text.display = name == "after"
        self._texts["after"].update(why)
        self.border_title = None
        self.scroll_home(animate=False)

    async def open(self, path: str, line: int, title: Text, query: str) -> None:
        """Show the chunk that begins in a line, or has it; the words of `query` are marked."""
        before = self.file
        answer = await self._view.call(Client.files_chunks, path)
        if answer is None:
            return
        chunks = answer.results
        starts = [chunk.start_line for chunk in chunks]
        # Chunks overlap: take the chunk that begins at the line, else the first that contains it.
        having = (at for at, chunk in enumerate(chunks) if chunk.end_line >= line)
        at = starts.index(line) if line in starts else next(having, 0)
        if self.file is not None and self.file is not before and self.file.path == path:
            # Somebody has turned to another chunk meanwhile.
            at = max(0, min(self.file.at, len(chunks) - 1))
        await self._read(OpenFile(path, title, query, chunks, at))

    async def turn(self, step: int) -> None:
        if self.file is not None and self.file.chunks:
            at = (self.file.at + step) % len(self.file.chunks)
            await self._read(replace(self.file, at=at))

    async def _read(self, file: OpenFile) -> None:
        self.file, chunk = file, file.chunk
        first = max(1, chunk.start_line - _AROUND) if chunk is not None else 1
        last = chunk.end_line + _AROUND if chunk is not None else _MAX_LINES
        last = min(last, first + _MAX_LINES)
        read = await self._view.call(
            lambda client: client.files_get(file.path, from_line=first, to_line=last)
        )
        # Another file may have been opened meanwhile.
        if read is None or self.file is not file:
            return
        lines = [self._view.shown(line.expandtabs(4)) for line in read.text.splitlines()]
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

    def _draw(self, lines: Sequence[Text], first: int, chunk: IndexedChunk | None) -> None:
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
            self._texts[name].update(table)
            self._texts[name].display = bool(numbers)

        def go_to_chunk() -> None:
            # A line or two before it show where it stands.
            top = self._texts["chunk"].virtual_region.y if self.file and self.file.chunk else 0
            self.scroll_to(y=max(0, top - 2), animate=False, force=True)

        self.call_after_refresh(go_to_chunk)
