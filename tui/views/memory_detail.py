"""One memory in full: its text, why it answers, its origin and its history."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

import msgspec
from rich.console import Group
from rich.text import Text
from textual import getters, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import OptionList, Static

from thermocline.daemon.client import AsyncClient, ClientError
from thermocline.daemon.client.wording import ago, moment, one_line
from thermocline.daemon.schemas.memory import MemoryView, VersionList
from thermocline.daemon.schemas.recall import HitView

from ..dialogs import Dialog
from ..session import Session
from . import memory_actions, memory_text
from .view import Action, View

_MAX_MERGED: Final = 50
_MAX_VALUE: Final = 160
# What an earlier version lacks has the value that it has by default.
_DEFAULTS: Final[dict[str, Any]] = {
    "type": "semantic",
    "event": "fact_stored",
    "category": "general",
    "importance": 0.5,
    "pinned": False,
    "standing": False,
    "tags": [],
}


class MemoryDetail(Dialog[None]):
    """The page; the view does what is asked for, and is drawn again afterwards."""

    DEFAULT_CSS = """
    MemoryDetail { align: center top; }
    MemoryDetail > VerticalScroll {
        width: 100%; max-width: 116; margin: 1 2 2 2;
    }
    MemoryDetail.-narrow > VerticalScroll, MemoryDetail.-low > VerticalScroll { margin: 0 0 2 0; }
    MemoryDetail #facts {
        layout: grid; grid-size: 2; grid-columns: 3fr 2fr; grid-rows: auto; grid-gutter: 0 1;
        height: auto; margin-top: 1;
    }
    MemoryDetail #facts > Static { height: auto; }
    MemoryDetail.-narrow #facts { grid-size: 1; grid-columns: 1fr; }
    MemoryDetail #text { height: auto; }
    MemoryDetail #why { height: auto; margin-top: 1; }
    MemoryDetail .title { color: $text-muted; text-style: bold; margin-top: 1; }
    MemoryDetail OptionList { max-height: 14; background: transparent; }
    MemoryDetail OptionList > .option-list--option-highlighted {
        background: transparent; color: $foreground; text-style: none;
    }
    MemoryDetail OptionList:focus > .option-list--option-highlighted { text-style: reverse; }
    MemoryDetail #hint { dock: bottom; color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close", key_display="esc"),
        *(
            Binding(action.key, f"do('{action.key}')", action.label)
            for action in memory_actions.ACTIONS
        ),
        Binding("u", "app.undo", "Undo"),
        Binding("y", "copy", "Copy", show=False),
    ]
    app = getters.app(Session)

    def __init__(self, view: View, memory: MemoryView) -> None:
        super().__init__("Memory", reads=True)
        self._view = view
        self.memory = memory
        self._versions = VersionList([])
        self._merged: list[MemoryView] = []
        self._drawn: object = None
        self._seen = view.updates

    def compose(self) -> ComposeResult:
        with self._box:
            yield Static(id="text")
            yield Static(id="why")
            with Container(id="facts"):
                yield Static(id="known")
                yield Static(id="from")
            for name, title in (
                ("versions", "Earlier versions: enter puts one back"),
                ("merged", "Merged into it: enter parts them again"),
            ):
                yield Static(title, id=f"{name}-title", classes="title")
                yield OptionList(id=name)
        actions = () if self.app.read_only else memory_actions.ACTIONS
        keys = [(action.key, action.label.lower()) for action in actions] + [("u", "undo")] * bool(
            actions
        )
        hint = Text(" ")
        for key, words in [*keys, ("esc", "close")]:
            hint.append(key, self._view.paint("accent", bold=True)).append(f" {words}  ")
        yield Static(hint, id="hint")

    def on_mount(self) -> None:
        self._draw()
        self.query_one(VerticalScroll).focus()
        self.read()
        # What happens elsewhere, also undoing, is followed as long as the page is open.
        self.set_interval(1.0, self._follow)

    @work(exclusive=True)
    async def read(self) -> None:
        answers = await self._view.call(_all_of, self.memory.id)
        if not (self.is_attached and self.app.is_running):
            return
        if answers is None:
            self.dismiss(None)
            return
        memory, self._versions, self._merged = answers
        if not isinstance(self.memory, HitView) or memory.text != self.memory.text:
            self.memory = memory
        else:
            fields = {name: getattr(memory, name) for name in MemoryView.__struct_fields__}
            self.memory = msgspec.structs.replace(self.memory, **fields)
        self._draw()

    def _follow(self) -> None:
        if self._view.updates != self._seen:
            self._seen = self._view.updates
            self.read()

    # Drawing

    def _draw(self) -> None:
        view, memory = self._view, self.memory
        box = self.query_one(VerticalScroll)
        box.border_title = Text("Memory ").append(memory.id[:8])
        # A long text takes a moment to lay out, and rarely changes.
        if self._drawn != (drawn := (memory.text, self.app.hide_texts)):
            self._drawn = drawn
            text = view.shown(memory.text, keep="\n\t")
            memory_text.mark(text, memory_text.words_of(memory), view)
            self.query_one("#text", Static).update(text)
        self.query_one("#why").display = isinstance(memory, HitView)
        if isinstance(memory, HitView):
            bars = memory_text.explained(memory, view, self.size.width - 8)
            more = memory_text.lined(memory_text.reasons(memory, view))
            self.query_one("#why", Static).update(Group(bars, more))
        facts = memory_text.lined(memory_text.facts(memory, view))
        self.query_one("#known", Static).update(facts)
        device = self._versions.device
        origin = memory_text.provenance(memory, device if isinstance(device, str) else "", view)
        self.query_one("#from", Static).update(memory_text.lined(origin))
        self._fill("versions", [self._version(n) for n in range(len(self._versions.results))])
        self._fill("merged", [self._merged_line(merged) for merged in self._merged])

    def _fill(self, name: str, lines: list[Text]) -> None:
        options = self.query_one(f"#{name}", OptionList)
        at = options.highlighted or 0
        options.set_options(lines)
        options.highlighted = min(at, len(lines) - 1) if lines else None
        options.display = self.query_one(f"#{name}-title").display = bool(lines)

    def _version(self, at: int) -> Text:
        version, now = self._versions.results[at], self.app.now()
        after: dict[str, Any] = (
            self._versions.results[at - 1].data
            if at
            else {name: getattr(self.memory, name, None) for name in version.replaced}
        )
        shown = self._view.shown
        line = Text(f"{moment(version.at, now)}  ").append(ago(version.at, now), "dim")
        line.append("  by ").append_text(shown(version.writer))
        line.append(" on ").append_text(shown(version.device[:12]))
        if version.why:
            line.append("  ").append_text(shown(version.why))
        for name in version.replaced:
            line.append(f"\n  {name}: ", "dim")
            if name not in self.memory.__struct_fields__:
                line.append("changed")
                continue
            line.append_text(self._value(name, version.data)).append(" → ", "dim")
            line.append_text(self._value(name, after))
        return line

    def _value(self, name: str, data: dict[str, Any]) -> Text:
        value = data.get(name, _DEFAULTS.get(name, ""))
        if isinstance(value, (list, tuple)):
            value = ", ".join(map(str, value))
        text = one_line(str(value)[: 4 * _MAX_VALUE])
        cut = text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"
        return self._view.shown(cut) if cut else Text("nothing", "dim")

    def _merged_line(self, merged: MemoryView) -> Text:
        line = Text(f"{merged.id[:8]}  ").append(ago(merged.created_at, self.app.now()), "dim")
        return line.append("  ").append_text(self._view.shown(one_line(merged.text[:400])))

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        return not (self.app.read_only and action == "do")

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.memory.text)
        self.app.flash("copied")

    @work
    async def action_do(self, key: str) -> None:
        action = next(item for item in memory_actions.ACTIONS if item.key == key)
        if await action.run(self._view, self.memory) and action.run is memory_actions.forget:
            self.dismiss(None)
        elif self.is_attached:
            self.read()

    @work
    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.app.read_only:
            return
        if event.option_list.id == "merged":
            merged = self._merged[event.option_index]
            change = partial(memory_actions.unmerge, merged=merged)
        else:
            number = self._versions.results[event.option_index].number
            change = partial(memory_actions.put_back, key=self.memory.id, number=number)
        if await self._view.do(change) and self.is_attached:
            self.read()


async def _all_of(
    client: AsyncClient, memory_id: str
) -> tuple[MemoryView, VersionList, list[MemoryView]]:
    memory = await client.get(memory_id)
    try:
        versions = await client.history(memory_id, limit=100)
    except ClientError:
        versions = VersionList([])
    merged = await client.list(merged_into=memory_id, limit=_MAX_MERGED)
    return memory, versions, list(merged.results)


OPEN: Final = Action(
    "", "Open", lambda view, memory: view.app.push_screen(MemoryDetail(view, memory)), row=True
)
