"""One file, read at one of its chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.text import Text

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.files import ChunkPlace

from ..widgets.excerpt import Excerpt
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
    def line(self) -> int:
        """The first line of the chunk."""
        return self.chunks[self.at].start_line if self.chunks else 1


class FilePane(Excerpt):
    """Reads the lines around a chunk, and goes to the next one.

    Attributes:
        file: what is shown; None: nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.file: OpenFile | None = None
        # What is on the screen: drawn again, it would scroll.
        self._drawn: object = None

    def close(self, why: str | Text) -> None:
        """Show a text in place of a file."""
        self.file = self._drawn = None
        self.say(why)

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
        await self._draw()

    async def turn(self, step: int) -> None:
        """Show another chunk of the file."""
        if self.file is not None and self.file.chunks:
            at = (self.file.at + step) % len(self.file.chunks)
            self.file = replace(self.file, at=at)
            await self._draw()

    async def _draw(self) -> None:
        file = self.file
        if file is None:
            return
        chunk = file.chunks[file.at] if file.chunks else None
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
            place = None
            if chunk is not None:
                place = (chunk.start_line, min(chunk.end_line, read.to_line))
            self.show(lines, first, place)
            self.border_title = title

    @property
    def _view(self) -> View:
        return next(one for one in self.ancestors if isinstance(one, View))
