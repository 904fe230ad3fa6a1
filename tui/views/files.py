"""Watched files, their chunks and what is wrong with them; a chunk in its file; searching them."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.files import FilesStats, FileView, FoundChunk

from ..dialogs.form import Field, FormScreen
from ..text import plain
from ..widgets.paint import paint
from ..widgets.rows import Rows
from .file_lists import (
    COLUMNS,
    EMPTY,
    Mode,
    Row,
    file_rows,
    found_rows,
    path_rows,
    problem_rows,
    state_line,
)
from .file_pane import FilePane, OpenFile
from .view import PATIENCE_SECONDS, View

_AT_ONCE: Final = 500
_PAUSE_SECONDS: Final = 0.15


class FilesView(View):
    """A list at the left or above, the file at the right or below."""

    DEFAULT_CSS = """
    FilesView { layout: vertical; }
    FilesView #state { height: 1; padding: 0 1; color: $secondary; }
    FilesView #body { layout: horizontal; height: 1fr; }
    FilesView #list { width: 1fr; }
    FilesView FilePane { width: 1fr; margin-left: 1; }
    FilesView #query, FilesView #query:focus {
        height: 1; border: none; padding: 0 1; background: $panel;
    }
    FilesView #query { display: none; }
    FilesView.-searching #query { display: block; }
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
        self._stats: FilesStats | None = None
        self._files: list[FileView] = []
        self._found: list[FoundChunk] = []
        self._total = 0
        self._typed: Timer | None = None
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
                yield Input(placeholder="search the watched files", id="query")
                yield Rows(*COLUMNS["files"], empty="reading ...", id="rows")
            yield FilePane()

    def first_focus(self) -> Widget:
        """The list."""
        return self.query_one(Rows)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys mean something here."""
        if action == "remove" and self.mode != "paths":
            return False
        if action == "chunk" and self.open is None:
            return False
        if action == "back" and self.mode == "files" and not self.has_class("-open"):
            return False
        return super().check_action(action, parameters)

    # What is shown

    async def update(self) -> None:
        """Read the state, the list, and the file that is open, as they are now."""
        if self._agent != self.app.agent:
            self._agent = self.app.agent
            self.query_one(FilePane).close("")
        self._stats = await self.call(Client.files_stats) or self._stats
        if self.mode == "found":
            await self._search()
        else:
            await self._list()
        self._draw_state()
        if self.open is None:
            await self._preview()
        else:
            await self._open_file(self.open.path, self.open.line)

    async def _list(self) -> None:
        if self.mode in ("files", "problems"):
            left_out = self.mode == "problems"
            page = await self.call(
                lambda client: client.files_list(limit=_AT_ONCE, left_out=left_out)
            )
            if page is None:
                return
            self._files, self._total = page.results, page.total
        self._draw_rows()

    async def _search(self) -> None:
        query = self.query_one("#query", Input).value.strip()
        if query:
            found = await self.call(lambda client: client.files_search(query, max_results=50))
            if found is None:
                return
            self._found = found.chunks
            self._total = len(found.chunks)
        else:
            self._found, self._total = [], 0
        self._draw_rows(EMPTY["found"] if query else "type what to search for")

    def _draw_rows(self, empty: str = "") -> None:
        rows = self.query_one(Rows)
        rows.lay_out(*COLUMNS[self.mode], empty=empty or EMPTY[self.mode])
        rows.fill(self._list_rows())
        self.refresh_bindings()

    def _list_rows(self) -> list[Row]:
        if self.mode == "paths":
            return path_rows(self._stats.paths if self._stats is not None else (), self.shown)
        if self.mode == "found":
            return found_rows(self._found, self._short, self.shown)
        if self.mode == "problems":
            return problem_rows(self._files, self._short, self.shown)
        return file_rows(self._files, self._short, self.shown, self.app.now())

    def _draw_state(self) -> None:
        if self._stats is not None:
            shown = self.query_one(Rows).count
            line = state_line(self._stats, self.mode, shown, self._total, self._style)
            self.query_one("#state", Static).update(line)

    async def _preview(self) -> None:
        """Show what is under the cursor beside the list."""
        rows = self.query_one(Rows)
        key = rows.selected
        if self.mode == "paths" or not key:
            self.query_one(FilePane).close("")
        elif self.mode == "found":
            hit = next((one for one in self._found if one.id == key), None)
            if hit is not None:
                await self._open_file(hit.path, hit.start_line)
        else:
            await self._open_file(key, 1)
        self.refresh_bindings()

    async def _open_file(self, path: str, line: int) -> None:
        reason = next((one.reason for one in self._files if one.path == path), "")
        pane = self.query_one(FilePane)
        if reason:
            pane.close(Text(f"It is not indexed: {plain(reason)}"))
            return
        query = self.query_one("#query", Input).value if self.mode == "found" else ""
        await pane.open(path, line, self.shown(self._short(path)), query)

    def _short(self, path: str) -> str:
        """A path below what is watched, from there on."""
        roots = [one.path for one in (self._stats.paths if self._stats is not None else [])]
        root = max((one for one in roots if path.startswith(f"{one}/")), key=len, default="")
        return path[len(root.rpartition("/")[0]) + 1 :] if root else path

    def _style(self, name: str) -> Style:
        return paint(self.app, name)

    # Keys

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show what is under the cursor, once the cursor stays there."""
        event.stop()
        if self._moved is not None:
            self._moved.stop()
        self._moved = self.set_timer(_PAUSE_SECONDS, self._preview_now)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter or a click: go into the file."""
        event.stop()
        self.action_open()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while it is typed."""
        event.stop()
        if self._typed is not None:
            self._typed.stop()
        self._typed = self.set_timer(_PAUSE_SECONDS, self.refresh_data)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the results."""
        event.stop()
        self.query_one(Rows).focus()

    @work
    async def action_open(self) -> None:
        """Read the file under the cursor."""
        if self.mode == "paths" or not self.query_one(Rows).selected:
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
        self.query_one(Rows).focus()
        self.refresh_bindings()

    def action_mode(self, mode: Mode) -> None:
        """Show another list, or the files again."""
        self._change_mode("files" if mode == self.mode else mode)

    def action_search(self) -> None:
        """Search the chunks of all files."""
        self._change_mode("found")
        query = self.query_one("#query", Input)
        query.focus()
        query.action_select_all()

    @work
    async def action_chunk(self, step: int) -> None:
        """Go to the next chunk of the file, or to the one before."""
        await self.query_one(FilePane).turn(step)

    @work
    async def action_add(self) -> None:
        """Watch another folder or file."""

        async def save(values: dict[str, str]) -> str:
            try:
                added = await self.app.calls.run(
                    lambda client: client.files_add(values["path"].strip()), PATIENCE_SECONDS
                )
            except ClientError as error:
                return plain(str(error))
            said = f"watching {added.path}" if added.added else f"{added.path} was watched before"
            more = "" if added.in_step else f", {added.to_read:,} to read"
            self.app.did(
                f"{said}: {number_of(added.files, 'file', 'files')}{more}",
                undo=(lambda client: client.files_remove(added.path)) if added.added else None,
            )
            return ""

        fields = [Field("path", "Path on the daemon's machine", "", "such as /home/me/notes")]
        note = "Markdown and text files in it are indexed, and found by recall."
        if await self.app.push_screen_wait(
            FormScreen("Watch a folder or file", fields, save, note)
        ):
            self.refresh_data()

    @work
    async def action_remove(self) -> None:
        """Stop watching the path under the cursor."""
        path = self.query_one(Rows).selected
        one = next((one for one in self._stats.paths if one.path == path), None)  # type: ignore[union-attr]
        if one is None:
            return
        if one.origin != "added":
            self.app.flash(f"{path} is watched by the {one.origin}: change that", "warning")
            return
        if await self.call(Client.files_remove, path) is not None:
            self.app.did(f"no longer watching {path}", undo=lambda client: client.files_add(path))
            self.refresh_data()

    @work
    async def action_look(self) -> None:
        """Look at every file now."""
        self.app.flash("looking at every file", seconds=60)
        done = await self.call_long(Client.files_sync)
        if done is not None:
            changed = f"{done.added} added, {done.updated} changed, {done.removed} removed"
            self.app.did(f"looked at {number_of(done.files, 'file', 'files')}: {changed}")
            self.refresh_data()

    async def show(self, what: str) -> None:
        """Open a file, `PATH` or `PATH:LINE-LINE`, as search results name it."""
        path, _, lines = what.rpartition(":")
        start = lines.partition("-")[0]
        found = (path, int(start)) if path and start.isdigit() else (what, 1)
        self._change_mode("files")
        self.query_one(Rows).select(found[0])
        self.add_class("-open")
        await self._open_file(*found)
        self.query_one(FilePane).focus()

    def copied(self) -> str:
        """The path, with the line of the chunk where a file is open."""
        if self.open is None:
            return self.query_one(Rows).selected
        return f"{self.open.path}:{self.open.line}"

    def _change_mode(self, mode: Mode) -> None:
        self.mode = mode
        self.query_one(FilePane).close("")
        self.remove_class("-open")
        self.set_class(mode == "found", "-searching")
        if mode == "found":
            self._found, self._total = [], 0
        else:
            self._files = [] if mode == "problems" else self._files
            self.query_one(Rows).focus()
        self.refresh_data()

    @work(exclusive=True, group="preview")
    async def _preview_now(self) -> None:
        if not self.app.is_running:
            return
        rows = self.query_one(Rows)
        here = self.open is not None and self.mode != "found" and self.open.path == rows.selected
        if not here:
            await self._preview()
