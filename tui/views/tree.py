"""The categories: how full each is, how near the tree is to its limits, and what is filed where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rich.text import Text
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Static

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.schemas.memory import MemoryView

from ..charts import Gauge
from ..dialogs import Field
from ..feed import Done, doing
from ..table import Column
from .memory_detail import OPEN
from .memory_text import age, columns_of
from .resource import Part, ResourceView
from .view import Action, redraw

ROOT: Final = "root"
_LABEL: Final = 9
# Paths with their descriptions.
Described = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Category:
    """One category for display."""

    path: str
    desc: str
    guide: str  # the lines before its name
    # The memories filed in it or below it.
    warm: int
    cold: int
    children: int  # the number of categories directly below it
    last_access: float  # 0 for never

    @property
    def name(self) -> str:
        return "all memories" if self.path == ROOT else self.path.rpartition("/")[2]


def categories_of(tree: dict[str, Any]) -> list[Category]:
    """The categories of EvoClaw's document, each before those below it."""
    rows: list[Category] = []

    def children_of(path: str) -> list[str]:
        return [child for child in tree[path]["children"] if child in tree]

    def total(path: str, name: str) -> int:
        below = () if path == ROOT else children_of(path)
        return int(tree[path][name]) + sum(total(child, name) for child in below)

    def walk(path: str, before: str, branch: str) -> None:
        node, children = tree[path], children_of(path)
        warm, cold = total(path, "warm_count"), total(path, "cold_count")
        used = float(node["last_access"])
        row = (path, node["desc"], before + branch, warm, cold, len(children), used)
        rows.append(Category(*row))
        deeper = before + ("" if not branch else "   " if branch == "└─ " else "│  ")
        for number, child in enumerate(children, 1):
            walk(child, deeper, "└─ " if number == len(children) else "├─ ")

    if ROOT in tree:
        walk(ROOT, "", "")
    return rows


# Actions


async def _add(view: TreeView) -> None:
    above = "" if view.category is None or view.category.path == ROOT else view.category.path
    fields = [
        Field("path", "Path", f"{above}/" if above else "", "such as projects/boat"),
        Field("desc", "What belongs there", "", "one line, which models read"),
    ]

    async def save(values: dict[str, str]) -> None:
        path, desc = values["path"].strip().strip("/"), values["desc"].strip()
        await view.change(partial(_added, path=path, desc=desc))

    await view.enter("Add a category", fields, save)


async def _added(client: AsyncClient, path: str, desc: str) -> Done:
    """Add a category; undoing removes it, with the parents that came with it."""
    known = (await client.tree()).tree
    added = await client.tree_add(path, desc)
    if not added.made:
        before = str(known[path]["desc"]) if path in known else ""
        return Done(f"added {path}", lambda again: again.tree_add(path, before))
    steps = added.path.split("/")
    paths = ["/".join(steps[:end]) for end in range(1, len(steps) + 1)]
    first = next((path for path in paths if path not in known), added.path)
    return Done(f"added {path}", lambda again: again.tree_remove(first))


async def _describe(view: TreeView, row: Category) -> None:
    async def save(values: dict[str, str]) -> None:
        if not (desc := values["desc"].strip()):
            raise ValueError("say in a few words what belongs there")

        await view.change(
            doing(
                f"described {row.path}",
                lambda client: client.tree_add(row.path, desc),
                lambda client: client.tree_add(row.path, row.desc),
            )
        )

    if view.below_root(row):
        fields = [Field("desc", "What belongs there", row.desc, "one line, which models read")]
        await view.enter(Text.assemble("Describe ", view.shown(row.path)), fields, save)


async def _rename(view: TreeView, row: Category) -> None:
    async def save(values: dict[str, str]) -> None:
        to = values["to"].strip().strip("/")
        if to != row.path:
            rename = partial(AsyncClient.tree_rename, path=row.path, to=to)
            await view.change(doing(f"renamed it {to}", rename, AsyncClient.tree_undo))

    if view.below_root(row):
        moved = number_of(row.warm + row.cold, "memory goes", "memories go")
        title = Text.assemble("Rename ", view.shown(row.path))
        fields = [Field("to", "New path", row.path)]
        await view.enter(title, fields, save, f"{moved} along, and all below it.")


async def _remove(view: TreeView, row: Category) -> None:
    if not view.below_root(row):
        return
    if number := row.warm + row.cold:
        filed = number_of(number, "memory is", "memories are")
        view.app.flash(f"{filed} filed there: rename it, or forget them first", "warning")
        return
    removed = view.described(path for path in view.nodes if f"{path}/".startswith(f"{row.path}/"))
    effects = (view.shown(row.path), f"{number_of(len(removed), 'category', 'categories')} go.")
    if await view.app.confirm("Remove this category", *effects, word="remove"):
        remove = partial(AsyncClient.tree_remove, path=row.path)
        await view.do(doing(f"removed {row.path}", remove, partial(_restore, removed=removed)))


async def _prune(view: TreeView) -> None:
    async def change(client: AsyncClient) -> Done:
        paths = (await client.tree_prune()).paths
        if not paths:
            return Done("no category is empty and long unused")
        pruned = f"pruned {number_of(len(paths), 'category', 'categories')}"
        return Done(pruned, partial(_restore, removed=view.described(paths)))

    effect = "Removes every category without memories that was not used for long."
    if await view.app.confirm("Prune the tree", effect, word="prune"):
        await view.do(change)


async def _restore(client: AsyncClient, removed: Described) -> None:
    for path, desc in removed:
        await client.tree_add(path, desc)


async def _list(view: TreeView) -> None:
    if view.category is not None:
        await view.app.show_in("memories", f"category:{view.category.path}")


class TreeView(ResourceView):
    """The limits, the categories, and the memories of the one under the cursor."""

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
    TreeView.-beside #parts { grid-size: 2 1; grid-columns: 6fr 7fr; }
    TreeView #about { height: auto; max-height: 3; padding: 0 1; color: $text-muted; }
    """
    BESIDE = (80, 12)
    WATCHES = frozenset({"memory.", "category.", "tree."})
    ACTIONS = (
        Action("a", "Add", _add, writes=True),
        Action("r", "Rename", _rename, writes=True, row=True, part="categories"),
        Action("e", "Describe", _describe, writes=True, row=True, part="categories"),
        Action("d", "Remove", _remove, writes=True, row=True, part="categories"),
        Action("x", "Prune", _prune, writes=True),
        Action("l", "List in Memories", _list, show=False),
    )

    def head(self) -> Iterable[Widget]:
        names = ("Nodes", "Size", "Levels", "Children")
        yield Container(
            *(Gauge(name, label_columns=_LABEL, id=name.lower()) for name in names), id="limits"
        )

    def parts(self) -> Mapping[str, Part[Any]]:
        def count(number: int) -> Text:
            return Text(f"{number:,}", "" if number else "dim")

        def used(row: Category) -> Text:
            return Text(age(row.last_access, self.app.now()) if row.last_access > 0 else "", "dim")

        return {
            "categories": Part[Category](
                "Categories",
                [
                    Column("Category", 0, self._label),
                    Column("Warm", 5, lambda row: count(row.warm), right=True),
                    Column("Archive", 7, lambda row: count(row.cold), right=True),
                    Column("Used", 6, used, least=50, right=True),
                ],
                lambda row: row.path,
                "no categories yet",
                rows=lambda: categories_of(self.nodes),
                copied=lambda row: row.path,
                open=Action("", "Open", lambda view: view.show_part("filed")),
            ),
            "filed": Part[MemoryView](
                "Memories",
                [column for column in columns_of(self) if column.label in {"Tier", "Text", "Age"}],
                lambda memory: memory.id,
                "no memories in it",
                pages=AsyncClient.list,
                copied=lambda memory: memory.text,
                open=OPEN,
                count=lambda: Text(" of ").append_text(self._path) if self._path else "",
                above=[Static(id="about")],
            ),
        }

    def reset(self) -> None:
        self.nodes: dict[str, Any] = {}
        self._filed_of = ""
        self._path = Text()

    @property
    def category(self) -> Category | None:
        return self.table_of("categories").row

    def below_root(self, row: Category) -> bool:
        """Whether it is a category that can be changed; else it is said."""
        if row.path == ROOT:
            self.app.flash("choose a category below the root", "warning")
        return row.path != ROOT

    def described(self, paths: Iterable[str]) -> Described:
        """The categories with their descriptions, parents first."""
        return [
            (path, str(self.nodes[path]["desc"])) for path in sorted(paths) if path in self.nodes
        ]

    async def update(self) -> None:
        answer = await self.call(AsyncClient.tree)
        if answer is None:
            return
        self.nodes = answer.tree
        widest = max((row.children for row in categories_of(self.nodes)), default=0)
        self.query_one("#nodes", Gauge).set_count(answer.nodes, answer.max_nodes)
        self.query_one("#size", Gauge).set_bytes(answer.size_bytes, answer.max_size_bytes)
        self.query_one("#levels", Gauge).set_count(answer.depth, answer.max_depth)
        self.query_one("#children", Gauge).set_count(widest, answer.max_children)
        self.draw()
        row = self.category
        if row is None:
            return
        self._path = self.shown(row.path) if row.path != ROOT else Text()
        about = self.query_one("#about", Static)
        about.display = row.path != ROOT and bool(row.desc)
        redraw(about, self.shown(row.desc))
        self.name_parts()
        if row.path != self._filed_of:
            self._filed_of = row.path
            self.table_of("filed").to_top()
        await self.read_pages("filed", category=row.path)

    def moved(self) -> None:
        """Another category has other memories."""
        if self.category is not None and self.category.path != self._filed_of:
            self.refresh_data()

    def _label(self, row: Category) -> Text:
        name = self.shown(row.name) if row.path != ROOT else Text(row.name)
        return Text().append(row.guide, "dim").append_text(name)
