"""The lists of the view of files: their columns, and how each row is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from rich.style import Style
from rich.text import Text

from thermocline.daemon.client.wording import ago, number_of, size
from thermocline.daemon.shapes.files import FilesStats, FileView, FoundChunk, WatchedPath

from ..text import plain
from ..widgets.rows import Column

Mode: TypeAlias = Literal["files", "problems", "paths", "found"]
COLUMNS: Final[dict[Mode, tuple[Column, ...]]] = {
    "files": (
        Column("File", keep_end=True),
        Column("Chunks", 6, right=True),
        Column("Lines", 7, least=62, right=True),
        Column("Size", 9, least=70, right=True),
        Column("Changed", 10, least=44, right=True),
    ),
    "problems": (Column("File", 24, keep_end=True), Column("Not indexed because")),
    "paths": (
        Column("Watched path", keep_end=True),
        Column("By", 9),
        Column("State", 8),
    ),
    "found": (
        Column("Score", 5, right=True),
        Column("Where", 26, keep_end=True),
        Column("Heading"),
    ),
}
EMPTY: Final[dict[Mode, str]] = {
    "files": "no file is watched: a adds a folder",
    "problems": "every watched file is indexed",
    "paths": "nothing is watched: a adds a folder",
    "found": "no part of a file answers",
}
TITLES: Final[dict[Mode, str]] = {
    "files": "Files",
    "problems": "Not indexed",
    "paths": "Watched",
    "found": "Found",
}
Row: TypeAlias = tuple[str, list[Text | str]]
Shown: TypeAlias = Callable[[str], Text]
Short: TypeAlias = Callable[[str], str]


def state_line(
    stats: FilesStats, mode: Mode, shown: int, total: int, style: Callable[[str], Style]
) -> Text:
    """How much is indexed, and what is wrong with it; `shown` of `total` rows are in the list."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if mode == "files" and total > shown:
        line.append(f"first {shown} of {number_of(total, 'file', 'files')}, / searches  ")
    elif mode != "files":
        line.append(f"{TITLES[mode]} {shown}", "bold").append(" of ")
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


def file_rows(files: Iterable[FileView], short: Short, shown: Shown, now: float) -> list[Row]:
    """All files; those not indexed have a mark in place of the number of chunks."""
    return [
        (
            one.path,
            [
                shown(short(one.path)),
                f"{one.chunks:,}" if not one.reason else "!",
                f"{one.lines:,}",
                size(one.size),
                ago(one.modified_at, now),
            ],
        )
        for one in files
    ]


def problem_rows(files: Iterable[FileView], short: Short, shown: Shown) -> list[Row]:
    """Files that are not indexed, and why."""
    return [(one.path, [shown(short(one.path)), plain(one.reason)]) for one in files]


def path_rows(paths: Iterable[WatchedPath], shown: Shown) -> list[Row]:
    """What is watched, and by which origin."""
    return [
        (one.path, [shown(one.path), one.origin, "! missing" if one.missing else "✓ there"])
        for one in paths
    ]


def found_rows(found: Iterable[FoundChunk], short: Short, shown: Shown) -> list[Row]:
    """What answers a search, best first."""
    return [
        (
            one.id,
            [
                f"{one.score:.2f}",
                shown(f"{short(one.path)}:{one.start_line}"),
                shown(one.heading or one.text),
            ],
        )
        for one in found
    ]
