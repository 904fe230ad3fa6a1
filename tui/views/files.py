"""Watched files, their chunks and what is wrong with them; a chunk in its file; searching them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from rich.text import Text
from textual.timer import Timer
from textual.widget import Widget

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of, size
from thermocline.daemon.schemas.files import FilesStats, FoundChunk, IndexedFile, WatchedPath

from ..dialogs import Field
from ..feed import LONG_SECONDS, Done, doing
from ..table import Column
from ..text import plain
from .file_pane import FilePane, OpenFile
from .resource import Part, ResourceView
from .view import Action

_MAX_FILES: Final = 500
_PAUSE_SECONDS: Final = 0.15


# Actions


def _search(view: FilesView) -> None:
    view.show_part("found")
    view.open_filter()
    view.filter_line.action_select_all()


def _back(view: FilesView) -> None:
    """From the file to the list, from other lists to that of the files."""
    if view.has_class("-open"):
        view.remove_class("-open")
        view.table.focus()
        view.refresh_bindings()
    else:
        view.close_filter()
        view.show_part("files")


async def _turn(view: FilesView, step: int = 1) -> None:
    await view.file_pane.turn(step)


async def _add(view: FilesView) -> None:
    async def save(values: dict[str, str]) -> None:
        def change(client: Client) -> Done:
            added = client.files_add(values["path"].strip())
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
    remove, add = partial(Client.files_remove, path=path), partial(Client.files_add, path=path)
    await view.do(doing(f"no longer watching {path}", remove, add))


async def _look(view: FilesView) -> None:
    def change(client: Client) -> Done:
        done = client.files_sync()
        changed = f"{done.added} added, {done.updated} changed, {done.removed} removed"
        return Done(f"looked at {number_of(done.files, 'file', 'files')}: {changed}")

    view.app.flash("looking at every file", seconds=60)
    await view.do(change, LONG_SECONDS)


async def _open(view: FilesView, row: Any) -> None:
    view.add_class("-open")
    await view.preview(row)
    view.file_pane.focus()


_OPEN: Final = Action("", "Open", _open, row=True)


class FilesView(ResourceView):
    """A list at the left or above, the file at the right or below."""

    DEFAULT_CSS = """
    Screen.-wide FilesView #body { layout: horizontal; }
    FilesView FilePane { width: 1fr; height: 1fr; margin-left: 1; }
    Screen.-normal FilesView FilePane, Screen.-narrow FilesView FilePane { margin-left: 0; }
    Screen.-narrow FilesView FilePane, Screen.-normal.-low FilesView FilePane { display: none; }
    Screen.-narrow FilesView.-open FilePane, Screen.-normal.-low FilesView.-open FilePane {
        display: block;
    }
    Screen.-narrow FilesView.-open #parts, Screen.-normal.-low FilesView.-open #parts {
        display: none;
    }
    """
    # One list at a time: the file is beside it.
    BESIDE = (10_000, 0)
    FILTER = "search the watched files"
    WATCHES = frozenset({"files."})
    ACTIONS = (
        Action("slash", "Search", _search, display="/"),
        Action(
            *("escape", "Back", _back),
            when=lambda view: view.part != "files" or view.has_class("-open"),
        ),
        Action("n", "Next chunk", _turn, when=lambda view: view.file is not None),
        Action(
            *("N", "Chunk before", partial(_turn, step=-1)),
            when=lambda view: view.file is not None,
            show=False,
            display="N",
        ),
        Action("p", "Problems", lambda view: view.toggle_part("problems")),
        Action("w", "Watched", lambda view: view.toggle_part("paths")),
        Action("a", "Add", _add, writes=True),
        Action("x", "Stop watching", _remove, writes=True, row=True, part="paths"),
        Action("r", "Look now", _look, writes=True, show=False),
    )

    def parts(self) -> Mapping[str, Part[Any]]:
        self.reset()
        self._moving: Timer | None = None
        return {
            "files": self._files_part(),
            "problems": self._problems_part(),
            "paths": self._paths_part(),
            "found": self._results_part(),
        }

    def _files_part(self) -> Part[IndexedFile]:
        return Part[IndexedFile](
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
            open=_OPEN,
            count=lambda: f" {self._total:,}",
        )

    def _problems_part(self) -> Part[IndexedFile]:
        return Part[IndexedFile](
            "Not indexed",
            [
                Column("File", 24, self._file, keep_end=True),
                Column("Not indexed because", 0, lambda row: plain(row.reason)),
            ],
            lambda row: row.path,
            "every watched file is indexed",
            rows=lambda: self._problems,
            copied=lambda row: row.path,
            open=_OPEN,
            count=lambda: f" {len(self._problems):,}",
        )

    def _paths_part(self) -> Part[WatchedPath]:
        return Part[WatchedPath](
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
        )

    def _results_part(self) -> Part[FoundChunk]:
        return Part[FoundChunk](
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
            open=_OPEN,
            count=lambda: f" {len(self._chunks)}" if self.typed else "",
        )

    def _file(self, row: IndexedFile) -> Text:
        return self.shown(self._short(row.path))

    def _changed(self, row: IndexedFile) -> str:
        # Of a link or a pipe nothing is known.
        return self.ago(row.modified_at) if row.modified_at else ""

    def _where(self, row: FoundChunk) -> Text:
        return self.shown(f"{self._short(row.path)}:{row.start_line}")

    def pane(self) -> Iterable[Widget]:
        yield FilePane(self)

    def reset(self) -> None:
        self._stats: FilesStats | None = None
        self._files: list[IndexedFile] = []
        self._problems: list[IndexedFile] = []
        self._chunks: list[FoundChunk] = []
        self._total = 0
        for pane in self.query(FilePane) if self.is_attached else ():
            pane.close()

    @property
    def file_pane(self) -> FilePane:
        return self.query_one(FilePane)

    @property
    def file(self) -> OpenFile | None:
        return self.file_pane.file if self.is_mounted else None

    # Reading

    async def update(self) -> None:
        self._stats = await self.call(Client.files_stats) or self._stats
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
        if self.file is None:
            await self.preview(self.row)
        else:
            await self._open_file(self.file.path, self.file.line)

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

    async def preview(self, row: Any) -> None:
        if isinstance(row, FoundChunk):
            await self._open_file(row.path, row.start_line)
        elif isinstance(row, IndexedFile):
            await self._open_file(row.path, 1)
        else:
            self.file_pane.close()
        self.refresh_bindings()

    async def _open_file(self, path: str, line: int) -> None:
        files = (*self._problems, *self._files)
        reason = next((row.reason for row in files if row.path == path), "")
        if reason:
            self.file_pane.close(Text(f"It is not indexed: {plain(reason)}"))
        else:
            query = self.typed if self.part == "found" else ""
            await self.file_pane.open(path, line, self.shown(self._short(path)), query)

    def _short(self, path: str) -> str:
        """A path below what is watched, from there on."""
        roots = [watched.path for watched in (self._stats.paths if self._stats else [])]
        root = max((root for root in roots if path.startswith(f"{root}/")), key=len, default="")
        return path[len(root.rpartition("/")[0]) + 1 :] if root else path

    # The lists

    def toggle_part(self, part: str) -> None:
        self.show_part("files" if part == self.part else part)

    def show_part(self, part: str) -> None:
        if part != self.part:
            self.remove_class("-open")
            self.file_pane.close()
        super().show_part(part)
        self.moved()

    def moved(self) -> None:
        def preview() -> None:
            row, file = self.row, self.file
            same = isinstance(row, IndexedFile) and file is not None and file.path == row.path
            if self.app.is_running and not same:
                self.run_worker(self.preview(row), exclusive=True, group="preview")

        if self._moving is not None:
            self._moving.stop()
        self._moving = self.set_timer(_PAUSE_SECONDS, preview)

    def redraw(self) -> None:
        self.refresh_data()

    async def show(self, key: str) -> None:
        """Open a file, `PATH` or `PATH:LINE-LINE`, as search results name it."""
        path, _, lines = key.rpartition(":")
        start = lines.partition("-")[0]
        path, line = (path, int(start)) if path and start.isdigit() else (key, 1)
        self.show_part("files")
        self.table.select(path)
        self.add_class("-open")
        await self._open_file(path, line)
        self.file_pane.focus()

    def copied(self) -> str:
        """The path, with the line of the chunk where a file is open."""
        return super().copied() if self.file is None else f"{self.file.path}:{self.file.line}"
