"""Watched files and what is wrong with them; searching their chunks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from rich.text import Text

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.client.wording import number_of, size
from thermocline.daemon.schemas.files import FilesStats, FoundChunk, IndexedFile, WatchedPath

from ..dialogs import Field
from ..feed import LONG_SECONDS, Done, doing
from ..table import Column
from ..text import plain
from .resource import Part, ResourceView
from .view import Action

_MAX_FILES: Final = 500


# Actions


def _search(view: FilesView) -> None:
    view.show_part("found")
    view.open_filter()
    view.filter_line.action_select_all()


async def _add(view: FilesView) -> None:
    async def save(values: dict[str, str]) -> None:
        async def change(client: AsyncClient) -> Done:
            added = await client.files_add(values["path"].strip())
            words = f"watching {added.path}" if added.added else f"{added.path} was watched before"
            more = "" if added.in_step else f", {added.to_read:,} to read"
            undo = (lambda again: again.files_remove(added.path)) if added.added else None
            return Done(f"{words}: {number_of(added.files, 'file', 'files')}{more}", undo)

        await view.change(change, LONG_SECONDS)

    fields = [Field("path", "Path on the daemon's machine", "", "such as /home/me/notes")]
    note = "Markdown and text files in it are indexed, and found by recall."
    await view.enter("Watch a folder or file", fields, save, note)


async def _remove(view: FilesView, watched: WatchedPath) -> None:
    path = watched.path
    if watched.origin != "added":
        view.app.flash(f"{path} is watched by the {watched.origin}: change that", "warning")
        return
    remove, add = (
        partial(AsyncClient.files_remove, path=path),
        partial(AsyncClient.files_add, path=path),
    )
    await view.do(doing(f"no longer watching {path}", remove, add))


async def _rescan(view: FilesView) -> None:
    async def change(client: AsyncClient) -> Done:
        done = await client.files_sync()
        changed = f"{done.added} added, {done.updated} changed, {done.removed} removed"
        return Done(f"looked at {number_of(done.files, 'file', 'files')}: {changed}")

    view.app.flash("looking at every file", seconds=60)
    await view.do(change, LONG_SECONDS)


class FilesView(ResourceView):
    """The files, those not indexed, what is watched, and what a search finds."""

    FILTER = "search the watched files"
    WATCHES = frozenset({"files."})
    ACTIONS = (
        Action("slash", "Search", _search, display="/"),
        Action(
            "escape",
            "All files",
            lambda view: view.leave_filter(),
            when=lambda view: view.part == "found",
        ),
        Action("a", "Add", _add, writes=True),
        Action("x", "Stop watching", _remove, writes=True, row=True, part="paths"),
        Action("r", "Look now", _rescan, writes=True, show=False),
    )

    def parts(self) -> Mapping[str, Part[Any]]:
        return {
            "files": Part[IndexedFile](
                "Files",
                [
                    Column("File", 0, self._file, keep_end=True),
                    # A file that is not indexed has a mark in place of the number.
                    Column("Chunks", 6, lambda r: "!" if r.reason else f"{r.chunks:,}", right=True),
                    Column("Lines", 7, lambda row: f"{row.lines:,}", least=62, right=True),
                    Column("Size", 9, lambda row: size(row.size), least=70, right=True),
                    Column("Changed", 10, self._changed, least=44, right=True),
                ],
                lambda row: row.path,
                "no file is watched: a adds a folder",
                rows=lambda: self._files,
                copied=lambda row: row.path,
                count=lambda: f" {self._total:,}",
            ),
            "problems": Part[IndexedFile](
                "Not indexed",
                [
                    Column("File", 24, self._file, keep_end=True),
                    Column("Not indexed because", 0, lambda row: plain(row.reason)),
                ],
                lambda row: row.path,
                "every watched file is indexed",
                rows=lambda: self._problems,
                copied=lambda row: row.path,
                count=lambda: f" {len(self._problems):,}",
            ),
            "paths": Part[WatchedPath](
                "Watched",
                [
                    Column("Watched path", 0, lambda row: self.shown(row.path), keep_end=True),
                    Column("By", 9, lambda row: row.origin),
                    Column("State", 9, lambda row: "! missing" if row.missing else "✓ there"),
                ],
                lambda row: row.path,
                "nothing is watched: a adds a folder",
                rows=lambda: self._stats.paths if self._stats else (),
                copied=lambda row: row.path,
                count=lambda: f" {len(self._stats.paths):,}" if self._stats else "",
            ),
            "found": Part[FoundChunk](
                "Search",
                [
                    Column("Score", 5, lambda row: f"{row.score:.2f}", right=True),
                    Column("Where", 26, self._where, keep_end=True),
                    Column("Heading", 0, lambda row: self.shown(row.heading or row.text)),
                ],
                lambda row: row.id,
                "no part of a file answers: / searches",
                rows=lambda: self._chunks,
                copied=lambda row: f"{row.path}:{row.start_line}",
                detail=self._text,
                count=lambda: f" {len(self._chunks)}" if self.typed else "",
            ),
        }

    def _file(self, row: IndexedFile) -> Text:
        return self.shown(self._short(row.path))

    def _changed(self, row: IndexedFile) -> str:
        # Of a link or a pipe nothing is known.
        return self.ago(row.modified_at) if row.modified_at else ""

    def _where(self, row: FoundChunk) -> Text:
        return self.shown(f"{self._short(row.path)}:{row.start_line}")

    def _text(self, row: FoundChunk) -> Text:
        """A chunk that was found; the words of the search are marked."""
        text = self.shown(row.heading).append("\n") if row.heading else Text()
        text.stylize("bold")
        body = self.shown(row.text, keep="\n")
        words = [word for word in self.typed.split() if len(word) > 2]
        body.highlight_words(words, "bold underline", case_sensitive=False)
        return text.append_text(body)

    def reset(self) -> None:
        self._stats: FilesStats | None = None
        self._files: list[IndexedFile] = []
        self._problems: list[IndexedFile] = []
        self._chunks: list[FoundChunk] = []
        self._total = 0

    # Reading

    async def update(self) -> None:
        self._stats = await self.call(AsyncClient.files_stats) or self._stats
        for left_out in (False, True) if self._stats and self._stats.left_out else (False,):
            page = await self.call(
                lambda client, which: client.files_list(limit=_MAX_FILES, left_out=which), left_out
            )
            if page is not None and left_out:
                self._problems = [*page.results]
            elif page is not None:
                self._files, self._total, self._problems = [*page.results], page.total, []
        if query := self.typed:
            answer = await self.call(lambda client: client.files_search(query, max_results=50))
            self._chunks = [*answer.chunks] if answer is not None else self._chunks
        else:
            self._chunks = []
        self.draw()

    def line(self) -> Text:
        line, stats = Text(), self._stats
        if stats is None:
            return line
        if self._total > len(self._files):
            files = number_of(self._total, "file", "files")
            line.append(f"first {len(self._files)} of {files}, / searches  ")
        line.append(f"{number_of(stats.files, 'file', 'files')}, ")
        line.append(f"{number_of(stats.chunks, 'chunk', 'chunks')}")
        if stats.state.to_read:
            line.append(f", ⟳ {stats.state.to_read:,} to read", self.paint("accent"))
        elif stats.state.dirty or stats.state.syncing:
            line.append(", ⟳ reading", self.paint("accent"))
        else:
            line.append(", ✓ up to date", self.paint("success"))
        if stats.left_out:
            line.append(f", ! {stats.left_out:,} not indexed", self.paint("warning"))
        if missing := sum(path.missing for path in stats.paths):
            line.append(f", ! {number_of(missing, 'path', 'paths')} missing", self.paint("error"))
        if stats.paths and not stats.state.watching:
            line.append(", ! hears of no changes", self.paint("warning"))
        return line.append(f", index {size(stats.index_bytes)}")

    def _short(self, path: str) -> str:
        """A path below what is watched, from there on."""
        roots = [watched.path for watched in (self._stats.paths if self._stats else [])]
        root = max((root for root in roots if path.startswith(f"{root}/")), key=len, default="")
        return path[len(root.rpartition("/")[0]) + 1 :] if root else path

    def leave_filter(self) -> None:
        super().leave_filter()
        self.show_part("files")

    def redraw(self) -> None:
        self.refresh_data()
