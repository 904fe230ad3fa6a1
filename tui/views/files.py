"""Watched files, their chunks and what is wrong with them; a chunk in its file; searching them."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.files import FilesStats, FileView, FoundChunk, WatchedPath

from ..calls import LONG_SECONDS, Done
from ..dialogs.form import Field
from ..text import plain
from ..widgets.paged import PagedTable
from .file_lists import Mode, lists_of, state_line
from .file_pane import FilePane, OpenFile
from .filtered import FilteredView

_AT_ONCE: Final = 500
_PAUSE_SECONDS: Final = 0.15


class FilesView(FilteredView[Any]):
    """A list at the left or above, the file at the right or below."""

    DEFAULT_CSS = """
    FilesView #state { height: 1; padding: 0 1; color: $secondary; }
    FilesView #body { layout: horizontal; height: 1fr; }
    FilesView #list { width: 1fr; }
    FilesView FilePane { width: 1fr; margin-left: 1; }
    Screen.-normal FilesView #body { layout: vertical; }
    Screen.-normal FilesView #list, Screen.-narrow FilesView #list { width: 1fr; }
    Screen.-normal FilesView FilePane, Screen.-narrow FilesView FilePane {
        width: 1fr; height: 1fr; margin-left: 0;
    }
    Screen.-narrow FilesView FilePane, Screen.-normal.-low FilesView FilePane { display: none; }
    Screen.-narrow FilesView.-open FilePane, Screen.-normal.-low FilesView.-open FilePane {
        display: block;
    }
    Screen.-narrow FilesView.-open #list, Screen.-normal.-low FilesView.-open #list {
        display: none;
    }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset({"files."})
    WRITES: ClassVar[frozenset[str]] = frozenset({"add", "remove", "look"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("escape", "back", "Back"),
        Binding("n", "chunk(1)", "Next chunk"),
        Binding("N", "chunk(-1)", "Chunk before", show=False, key_display="N"),
        Binding("p", "mode('problems')", "Problems"),
        Binding("w", "mode('paths')", "Watched"),
        Binding("a", "add", "Add"),
        Binding("x", "remove", "Stop watching"),
        Binding("r", "look", "Look now", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.mode: Mode = "files"
        self._lists = lists_of(self._short, self.shown, self._now)
        self._stats: FilesStats | None = None
        # What is listed: files, watched paths, or what a search found, of how many.
        self._listed: list[Any] = []
        self._total = 0
        self._moved: Timer | None = None
        self._agent: str | None = None

    @property
    def open(self) -> OpenFile | None:
        """The file that is read, and which of its chunks."""
        panes = self.query(FilePane)
        return panes.first().file if panes else None

    def compose(self) -> ComposeResult:
        """State, list and file."""
        yield Static(id="state")
        with Container(id="body"):
            with Vertical(id="list"):
                yield Input(placeholder="search the watched files")
                yield PagedTable[Any](
                    self._lists["files"].columns, _key_of, empty="reading ...", id="rows"
                )
            yield FilePane()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys mean something here."""
        possible = {
            "remove": self.mode == "paths",
            "chunk": self.open is not None,
            "back": self.mode != "files" or self.has_class("-open"),
        }
        return possible.get(action, True) and super().check_action(action, parameters)

    # What is shown

    async def update(self) -> None:
        """Read the state, the list, and the file that is open, as they are now."""
        if self._agent != self.app.agent:
            self._agent = self.app.agent
            self.query_one(FilePane).close("")
        self._stats = await self.call(Client.files_stats) or self._stats
        await self._list()
        if self._stats is not None:
            title, shown = self._lists[self.mode].title, self.table.total
            line = state_line(self._stats, self.mode, title, shown, self._total, self.paint)
            self.query_one("#state", Static).update(line)
        if self.open is None:
            await self._preview()
        else:
            await self._open_file(self.open.path, self.open.line)

    async def _list(self) -> None:
        mode, query = self.mode, self.typed
        empty = self._lists[mode].empty
        if mode == "paths":
            self._listed = [*self._stats.paths] if self._stats is not None else []
        elif mode == "found" and not query:
            self._listed, empty = [], "type what to search for"
        elif mode == "found":
            found = await self.call(lambda client: client.files_search(query, max_results=50))
            if found is None:
                return
            self._listed = [*found.chunks]
        else:
            left_out = mode == "problems"
            page = await self.call(
                lambda client: client.files_list(limit=_AT_ONCE, left_out=left_out)
            )
            if page is None:
                return
            self._listed, self._total = [*page.results], page.total
        self.table.columns = self._lists[mode].columns
        self.table.empty = Text(empty)
        self.table.fill(self._listed)
        self.refresh_bindings()

    async def _preview(self) -> None:
        """Show what is under the cursor beside the list."""
        one = self.table.here
        if isinstance(one, FoundChunk):
            await self._open_file(one.path, one.start_line)
        elif isinstance(one, FileView):
            await self._open_file(one.path, 1)
        else:
            self.query_one(FilePane).close("")
        self.refresh_bindings()

    async def _open_file(self, path: str, line: int) -> None:
        files = (one for one in self._listed if isinstance(one, FileView))
        reason = next((one.reason for one in files if one.path == path), "")
        pane = self.query_one(FilePane)
        if reason:
            pane.close(Text(f"It is not indexed: {plain(reason)}"))
            return
        query = self.typed if self.mode == "found" else ""
        await pane.open(path, line, self.shown(self._short(path)), query)

    def _now(self) -> float:
        return self.app.now()

    def _short(self, path: str) -> str:
        """A path below what is watched, from there on."""
        roots = [one.path for one in (self._stats.paths if self._stats is not None else [])]
        root = max((one for one in roots if path.startswith(f"{one}/")), key=len, default="")
        return path[len(root.rpartition("/")[0]) + 1 :] if root else path

    # Keys

    def on_paged_table_moved(self) -> None:
        """Show what is under the cursor, once the cursor stays there."""
        if self._moved is not None:
            self._moved.stop()
        self._moved = self.set_timer(_PAUSE_SECONDS, self._preview_now)

    def on_paged_table_chosen(self) -> None:
        """Enter or a second click: go into the file."""
        self.action_open()

    def redraw(self) -> None:
        """Search while it is typed."""
        self.refresh_data()

    @work
    async def action_open(self) -> None:
        """Read the file under the cursor."""
        if self.mode == "paths" or self.table.here is None:
            return
        self.add_class("-open")
        await self._preview()
        self.query_one(FilePane).focus()

    def action_back(self) -> None:
        """From the file to the list, from other lists to that of the files."""
        if self.has_class("-open"):
            self.remove_class("-open")
        elif self.mode != "files":
            self._change_mode("files")
        self.table.focus()
        self.refresh_bindings()

    def action_mode(self, mode: Mode) -> None:
        """Show another list, or the files again."""
        self._change_mode("files" if mode == self.mode else mode)

    def action_search(self) -> None:
        """Search the chunks of all files."""
        self._change_mode("found")
        self.action_filter()
        self.line.action_select_all()

    @work
    async def action_chunk(self, step: int) -> None:
        """Go to the next chunk of the file, or to the one before."""
        await self.query_one(FilePane).turn(step)

    @work
    async def action_add(self) -> None:
        """Watch another folder or file."""

        async def save(values: dict[str, str]) -> None:
            await self.change(partial(_watch, path=values["path"].strip()), LONG_SECONDS)

        fields = [Field("path", "Path on the daemon's machine", "", "such as /home/me/notes")]
        note = "Markdown and text files in it are indexed, and found by recall."
        await self.enter("Watch a folder or file", fields, save, note)

    @work
    async def action_remove(self) -> None:
        """Stop watching the path under the cursor."""
        one = self.table.here
        if not isinstance(one, WatchedPath):
            return
        if one.origin != "added":
            self.app.flash(f"{one.path} is watched by the {one.origin}: change that", "warning")
            return

        def change(client: Client) -> Done:
            client.files_remove(one.path)
            return Done(f"no longer watching {one.path}", lambda again: again.files_add(one.path))

        await self.do(change)

    @work
    async def action_look(self) -> None:
        """Look at every file now."""
        self.app.flash("looking at every file", seconds=60)
        await self.do(_look, LONG_SECONDS)

    async def show(self, what: str) -> None:
        """Open a file, `PATH` or `PATH:LINE-LINE`, as search results name it."""
        path, _, lines = what.rpartition(":")
        start = lines.partition("-")[0]
        found = (path, int(start)) if path and start.isdigit() else (what, 1)
        self._change_mode("files")
        self.table.select(found[0])
        self.add_class("-open")
        await self._open_file(*found)
        self.query_one(FilePane).focus()

    def copied(self) -> str:
        """The path, with the line of the chunk where a file is open."""
        if self.open is None:
            return "" if self.table.here is None else str(_key_of(self.table.here))
        return f"{self.open.path}:{self.open.line}"

    def _change_mode(self, mode: Mode) -> None:
        self.mode = mode
        self.query_one(FilePane).close("")
        self.remove_class("-open")
        self._listed = []
        if mode != "found":
            self.line.remove_class("-open")
            self.table.focus()
        self.refresh_data()

    @work(exclusive=True, group="preview")
    async def _preview_now(self) -> None:
        if not self.app.is_running:
            return
        one = self.table.here
        if self.open is None or not isinstance(one, FileView) or self.open.path != one.path:
            await self._preview()


def _key_of(one: FileView | WatchedPath | FoundChunk) -> str:
    return one.id if isinstance(one, FoundChunk) else one.path


def _watch(client: Client, path: str) -> Done:
    added = client.files_add(path)
    said = f"watching {added.path}" if added.added else f"{added.path} was watched before"
    more = "" if added.in_step else f", {added.to_read:,} to read"
    undo = (lambda again: again.files_remove(added.path)) if added.added else None
    return Done(f"{said}: {number_of(added.files, 'file', 'files')}{more}", undo)


def _look(client: Client) -> Done:
    done = client.files_sync()
    changed = f"{done.added} added, {done.updated} changed, {done.removed} removed"
    return Done(f"looked at {number_of(done.files, 'file', 'files')}: {changed}")
