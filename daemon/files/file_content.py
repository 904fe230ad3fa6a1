"""What of a file is indexed: its text, its title, its front matter and its chunks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ..config.settings import IndexSettings
from ..store import chunk_tables, memory_md
from ..store.chunk_tables import FileContent, Piece
from .chunking import Cutting, cut

_DESCRIBING: Final = ("description", "summary", "aliases", "tags", "keywords", "category")
_NOT_MARKDOWN: Final = (".txt", ".text")


def text_of(content: bytes, *, own: bool) -> tuple[str, str]:
    """The text of a file, or the reason why it has none; without the daemon's own section."""
    if b"\0" in content:
        return "", "it is not a text"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "", "it is not valid UTF-8"
    return (memory_md.outside_section(text, keep_lines=True) if own else text), ""


def keeps_title(db: sqlite3.Connection, old: str, path: str) -> bool:
    """Whether a file that moves is called as before: without a title it has that of its name."""
    before, after = Path(old).stem, Path(path).stem
    return before == after or chunk_tables.title_of(db, old) != before


def content_of(path: str, text: str, digest: str, rules: IndexSettings) -> FileContent:
    """What a file says. Each chunk has the title of the file before its headings."""
    how = Cutting(rules.chunk_chars, rules.overlap_chars, rules.split_on_headings)
    found = cut(text, how, markdown=not path.lower().endswith(_NOT_MARKDOWN))
    title = found.title or Path(path).stem
    extra = " ".join(_words_of(found.meta))
    pieces: list[Piece] = []
    for chunk in found.chunks:
        heading = chunk.heading
        if not heading.startswith(title):
            heading = f"{title} › {heading}" if heading else title
        pieces.append(
            Piece(chunk.first, chunk.last, heading, chunk.text, extra if not pieces else "")
        )
    return FileContent(digest, title, found.meta, found.lines, pieces)


def _words_of(meta: Mapping[str, Any]) -> Iterable[str]:
    """What the front matter says of the whole file, to find its first chunk by."""
    for name in _DESCRIBING:
        value = meta.get(name, ())
        yield from [value] if isinstance(value, str) else value


def signature(rules: IndexSettings) -> str:
    """What the chunks of a file depend on beside its text."""
    return f"{rules.chunk_chars}/{rules.overlap_chars}/{rules.split_on_headings}"
