"""The lists of the view of files: their columns, and the line above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rich.style import Style
from rich.text import Text

from thermocline.daemon.client.wording import ago, number_of, size
from thermocline.daemon.shapes.files import FilesStats

from ..text import plain
from ..widgets.paged import Column

Mode: TypeAlias = Literal["files", "problems", "paths", "found"]


@dataclass(frozen=True, slots=True)
class FileList:
    """One list: its title, what is said when it has no row, and its columns."""

    title: str
    empty: str
    columns: Sequence[Column[Any]]


def lists_of(
    short: Callable[[str], str], shown: Callable[[str], Text], now: Callable[[], float]
) -> Mapping[Mode, FileList]:
    """The lists; a path below what is watched is shown as `short` makes it."""

    def file(one: Any) -> Text:
        return shown(short(one.path))

    return {
        "files": FileList(
            "Files",
            "no file is watched: a adds a folder",
            [
                Column("File", 0, file, keep_end=True),
                # A file that is not indexed has a mark in place of the number.
                Column(
                    "Chunks", 6, lambda one: "!" if one.reason else f"{one.chunks:,}", right=True
                ),
                Column("Lines", 7, lambda one: f"{one.lines:,}", least=62, right=True),
                Column("Size", 9, lambda one: size(one.size), least=70, right=True),
                Column(
                    "Changed", 10, lambda one: ago(one.modified_at, now()), least=44, right=True
                ),
            ],
        ),
        "problems": FileList(
            "Not indexed",
            "every watched file is indexed",
            [
                Column("File", 24, file, keep_end=True),
                Column("Not indexed because", 0, lambda one: plain(one.reason)),
            ],
        ),
        "paths": FileList(
            "Watched",
            "nothing is watched: a adds a folder",
            [
                Column("Watched path", 0, lambda one: shown(one.path), keep_end=True),
                Column("By", 9, lambda one: one.origin),
                Column("State", 9, lambda one: "! missing" if one.missing else "✓ there"),
            ],
        ),
        "found": FileList(
            "Found",
            "no part of a file answers",
            [
                Column("Score", 5, lambda one: f"{one.score:.2f}", right=True),
                Column(
                    "Where",
                    26,
                    lambda one: shown(f"{short(one.path)}:{one.start_line}"),
                    keep_end=True,
                ),
                Column("Heading", 0, lambda one: shown(one.heading or one.text)),
            ],
        ),
    }


def state_line(
    stats: FilesStats, mode: Mode, title: str, shown: int, total: int, style: Callable[[str], Style]
) -> Text:
    """How much is indexed, and what is wrong with it; `shown` of `total` rows are in the list."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if mode == "files" and total > shown:
        line.append(f"first {shown} of {number_of(total, 'file', 'files')}, / searches  ")
    elif mode != "files":
        line.append(f"{title} {shown}", "bold").append(" of ")
    line.append(f"{number_of(stats.files, 'file', 'files')}, ")
    line.append(f"{number_of(stats.chunks, 'chunk', 'chunks')}")
    if stats.state.to_read:
        line.append(f", ⟳ {stats.state.to_read:,} to read", style("accent"))
    elif stats.state.dirty or stats.state.syncing:
        line.append(", ⟳ reading", style("accent"))
    else:
        line.append(", ✓ in step", style("success"))
    if stats.left_out:
        line.append(f", ! {stats.left_out:,} not indexed", style("warning"))
    if missing := sum(one.missing for one in stats.paths):
        line.append(f", ! {number_of(missing, 'path', 'paths')} missing", style("error"))
    if stats.paths and not stats.state.watching:
        line.append(", ! hears of no changes", style("warning"))
    return line.append(f", index {size(stats.index_bytes)}")
