"""The categories: how full each is, how near the tree is to its limits, and what is filed where."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget
from textual.widgets import Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryView
from thermocline.daemon.shapes.tree import TreeView as Categories

from ..calls import Done
from ..dialogs.form import Field
from ..widgets.gauge import Gauge
from ..widgets.paged import Column, PagedTable
from . import memory_columns
from .categories import ROOT, Category, add_category, categories_of, described, restore
from .memory_detail import MemoryDetail
from .memory_text import age
from .view import View

_LABEL: Final = 9


class TreeView(View):
    """The tab."""

    DEFAULT_CSS = """
    TreeView #limits {
        layout: grid; grid-size: 2; grid-rows: 1; grid-gutter: 0 3; height: auto; padding: 0 1;
        margin-bottom: 1;
    }
    Screen.-narrow TreeView #limits { grid-size: 1; }
    Screen.-low TreeView #limits { margin-bottom: 0; }
    Screen.-narrow TreeView #levels, Screen.-narrow TreeView #children { display: none; }
    Screen.-narrow.-tall TreeView #levels, Screen.-narrow.-tall TreeView #children {
        display: block;
    }
    Screen.-low.-narrow TreeView #limits { display: none; }
    TreeView #both { layout: horizontal; height: 1fr; }
    TreeView #both > #categories { width: 46%; min-width: 38; }
    TreeView #filed { width: 1fr; border-left: solid $border; }
    TreeView #filed > #about { height: auto; max-height: 3; padding: 0 1; color: $text-muted; }
    Screen.-narrow TreeView #both { layout: vertical; }
    Screen.-narrow TreeView #both > #categories { width: 1fr; height: 1fr; }
    Screen.-narrow TreeView #filed {
        width: 1fr; height: 1fr; border-left: none; border-top: solid $border;
    }
    Screen.-narrow.-low TreeView #filed { display: none; }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset({"memory.", "category.", "tree."})
    WRITES: ClassVar[frozenset[str]] = frozenset({"add", "describe", "rename", "remove", "prune"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add"),
        Binding("r", "rename", "Rename"),
        Binding("e", "describe", "Describe"),
        Binding("d", "remove", "Remove"),
        Binding("x", "prune", "Prune"),
        Binding("l", "list", "List in Memories", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tree: Categories | None = None
        self._filed_of = ""

    def compose(self) -> ComposeResult:
        """The limits, the categories, and the memories of the one under the cursor."""
        with Container(id="limits"):
            yield Gauge("Nodes", label_columns=_LABEL, id="nodes")
            yield Gauge("Size", label_columns=_LABEL, id="size")
            yield Gauge("Levels", label_columns=_LABEL, id="levels")
            yield Gauge("Children", label_columns=_LABEL, id="children")
        with Container(id="both"):
            yield PagedTable[Category](
                self._columns(), lambda one: one.path, empty="no categories yet", id="categories"
            )
            with Vertical(id="filed"):
                yield Static(id="about")
                yield PagedTable[MemoryView](
                    self._short_columns(),
                    lambda memory: memory.id,
                    empty="no memories in it",
                    id="memories-of",
                )

    def _columns(self) -> list[Column[Category]]:
        def name(one: Category) -> Text:
            text = Text().append(one.guide, "dim")
            return text.append_text(self.shown(one.name) if one.path != ROOT else Text(one.name))

        def count(number: int) -> Text:
            return Text(f"{number:,}", "" if number else "dim")

        def used(one: Category) -> Text:
            return Text(age(one.last_access, self.app.now()) if one.last_access > 0 else "", "dim")

        return [
            Column("Category", 0, name),
            Column("Warm", 5, lambda one: count(one.warm), right=True),
            Column("Cold", 6, lambda one: count(one.cold), right=True),
            Column("Used", 6, used, least=50, right=True),
        ]

    def _short_columns(self) -> list[Column[MemoryView]]:
        wanted = {"Tier", "Text", "Age"}
        return [one for one in memory_columns.listed(self) if one.label in wanted]

    @property
    def table(self) -> PagedTable[Category]:
        """The categories."""
        return self.query_one("#categories", PagedTable)

    @property
    def filed(self) -> PagedTable[MemoryView]:
        """The memories of the category under the cursor."""
        return self.query_one("#memories-of", PagedTable)

    @property
    def category(self) -> Category | None:
        """The category under the cursor."""
        return self.table.here

    def first_focus(self) -> Widget:
        """The categories."""
        return self.table

    def copied(self) -> str:
        """The path under the cursor."""
        return "" if self.category is None else self.category.path

    async def show(self, what: str) -> None:
        """Select a category."""
        if not self.table.rows:
            await self._read_tree()
        self.table.select(what)

    # Reading and drawing

    async def update(self) -> None:
        """Read the tree, and the memories of the category under the cursor."""
        if await self._read_tree():
            await self._read_filed()

    async def _read_tree(self) -> bool:
        found = await self.call(Client.tree)
        if found is None:
            return False
        self._tree = found
        rows = categories_of(found.tree)
        self._limits(found, rows)
        self.table.fill(rows)
        return True

    def _limits(self, tree: Categories, rows: list[Category]) -> None:
        widest = max((one.children for one in rows), default=0)
        self.query_one("#nodes", Gauge).set_count(tree.nodes, tree.max_nodes)
        self.query_one("#size", Gauge).set_bytes(tree.size_bytes, tree.max_size_bytes)
        self.query_one("#levels", Gauge).set_count(tree.depth, tree.max_depth)
        self.query_one("#children", Gauge).set_count(widest, tree.max_children)

    async def _read_filed(self) -> None:
        category, table = self.category, self.filed
        if category is None:
            return
        if category.path != self._filed_of:
            self._filed_of = category.path
            table.to_top()
        about = self.shown(category.path) if category.path != ROOT else Text("all memories")
        about.stylize("bold")
        if category.path != ROOT:
            about.append("  ").append(self.shown(category.desc))
        self.query_one("#about", Static).update(about)
        if not self.query_one("#filed").display:
            return
        await memory_columns.read(self, table, category=category.path)

    def on_paged_table_moved(self, event: PagedTable.Moved) -> None:
        """Another category has other memories; further pages are read."""
        if not self.app.is_running:
            return
        if event.table is self.table:
            if self.category is not None and self.category.path != self._filed_of:
                self.refresh_data()
        elif self.filed.lacks_page:
            self.refresh_data()

    async def on_paged_table_chosen(self, event: PagedTable.Chosen) -> None:
        """Go into the memories of a category, or open one."""
        if event.table is self.filed:
            if self.filed.here is not None:
                self.app.push_screen(MemoryDetail(self, self.filed.here))
        elif self.query_one("#filed").region.height > 0:
            self.filed.focus()
        else:
            await self.action_list()

    async def action_list(self) -> None:
        """Show the memories of the category in their own tab."""
        if self.category is not None:
            await self.app.show_in("memories", f"category:{self.category.path}")

    # Changes

    @work
    async def action_add(self) -> None:
        """Add a category."""
        above = "" if self.category is None or self.category.path == ROOT else self.category.path
        fields = [
            Field("path", "Path", f"{above}/" if above else "", "such as projects/boat"),
            Field("desc", "What belongs there", "", "one line, which models read"),
        ]

        async def save(values: dict[str, str]) -> None:
            path, desc = values["path"].strip().strip("/"), values["desc"].strip()
            await self.change(partial(add_category, path=path, desc=desc))

        await self.enter("Add a category", fields, save)

    @work
    async def action_describe(self) -> None:
        """Change the description of a category."""
        one = self._chosen()
        if one is None:
            return
        fields = [Field("desc", "What belongs there", one.desc, "one line, which models read")]

        async def save(values: dict[str, str]) -> None:
            if not (desc := values["desc"].strip()):
                raise ValueError("say in a few words what belongs there")

            def change(client: Client) -> Done:
                client.tree_add(one.path, desc)
                told = f"described {one.path}"
                return Done(told, lambda again: again.tree_add(one.path, one.desc))

            await self.change(change)

        await self.enter(Text.assemble("Describe ", self.shown(one.path)), fields, save)

    @work
    async def action_rename(self) -> None:
        """Rename or move a category with all below it."""
        one = self._chosen()
        if one is None:
            return

        async def save(values: dict[str, str]) -> None:
            to = values["to"].strip().strip("/")

            def change(client: Client) -> Done:
                client.tree_rename(one.path, to)
                return Done(f"renamed it {to}", Client.tree_undo)

            if to != one.path:
                await self.change(change)

        title = Text.assemble("Rename ", self.shown(one.path))
        note = f"{number_of(one.count, 'memory goes', 'memories go')} along, and all below it."
        await self.enter(title, [Field("to", "New path", one.path)], save, note)

    @work
    async def action_remove(self) -> None:
        """Remove a category that holds no memories, with those below it."""
        one, tree = self._chosen(), self._tree
        if one is None or tree is None:
            return
        if one.count:
            number = number_of(one.count, "memory is", "memories are")
            self.app.flash(f"{number} filed there: rename it, or forget them first", "warning")
            return
        gone = described(tree, [p for p in tree.tree if f"{p}/".startswith(f"{one.path}/")])
        effects = (self.shown(one.path), f"{number_of(len(gone), 'category', 'categories')} go.")

        def change(client: Client) -> Done:
            client.tree_remove(one.path)
            return Done(f"removed {one.path}", lambda again: restore(again, gone))

        if await self.app.confirm("Remove this category", *effects, word="remove"):
            await self.do(change)

    @work
    async def action_prune(self) -> None:
        """Remove all categories that are empty and long unused."""
        tree = self._tree
        if tree is None:
            return
        effects = ("Removes every category without memories that was not used for long.",)

        def change(client: Client) -> Done:
            paths = client.tree_prune().paths
            if not paths:
                return Done("no category is empty and long unused")
            gone = described(tree, paths)
            told = f"pruned {number_of(len(paths), 'category', 'categories')}"
            return Done(told, lambda again: restore(again, gone))

        if await self.app.confirm("Prune the tree", *effects, word="prune"):
            await self.do(change)

    def _chosen(self) -> Category | None:
        one = self.category
        if one is not None and one.path == ROOT:
            self.app.flash("choose a category below the root", "warning")
            return None
        return one
