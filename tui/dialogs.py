"""Dialogs over the view: pages to read, questions with one answer, and forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Label, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from thermocline.daemon.client import ClientError

from .text import plain, why

T = TypeVar("T")
Title = str | Text


class Dialog(ModalScreen[T | None]):
    """Widgets in a box over the view; the result is what it dismisses, or None if Escape left it.

    A `str` in the title is not markup.
    """

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > VerticalScroll {
        width: 64; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    Dialog Input, Dialog Input:focus { border: none; height: 1; padding: 0 1; background: $boost; }
    Dialog OptionList, Dialog OptionList:focus {
        border: none; padding: 0; height: auto; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave it")]

    def __init__(self, title: Title, *children: Widget, reads: bool = False) -> None:
        super().__init__()
        self._box = VerticalScroll(*children, can_focus=reads)
        self._box.border_title = Text.assemble(title)

    def compose(self) -> ComposeResult:
        yield self._box

    def action_leave(self) -> None:
        self.dismiss(None)


class PageScreen(Dialog[None]):
    """A page to read, such as all fields of an event; its content is harmless (`Session.shown`)."""

    DEFAULT_CSS = """
    PageScreen > VerticalScroll { width: 80; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,question_mark,q", "leave", "Close", key_display="esc")
    ]

    def __init__(self, title: Title, content: RenderableType) -> None:
        super().__init__(title, Static(content), reads=True)


class KeysScreen(PageScreen):
    """The valid keys and what they do: those of the view first, then those of the app."""

    DEFAULT_CSS = """
    KeysScreen > VerticalScroll { width: 60; }
    """

    def __init__(self, screen: Screen[Any], app: App[Any]) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for node, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.description and not binding.system:
                name = "Everywhere" if node in (app, screen) else (node.name or "").capitalize()
                groups.setdefault(name or "Here", []).append(
                    (app.get_key_display(binding), binding.description)
                )
        # Those of the tab first: a low screen shows no more.
        last = ("Here", "Everywhere")
        self.groups = sorted(
            groups.items(), key=lambda group: last.index(group[0]) if group[0] in last else -1
        )
        table = Table.grid(padding=(0, 2))
        for name, keys in self.groups:
            for key, words in [("", f"[b]{name}[/b]"), *keys, ("", "")]:
                table.add_row(key, words)
        super().__init__("Keys", table)


class ConfirmScreen(Dialog[bool]):
    """Asks for a word before an action that cannot simply be undone; True once it was typed."""

    DEFAULT_CSS = """
    ConfirmScreen > VerticalScroll { border: round $error; }
    ConfirmScreen Input { margin-top: 1; }
    """

    def __init__(self, title: Title, effects: Sequence[Title], word: str) -> None:
        super().__init__(
            title,
            *(Static(Text.assemble(effect)) for effect in effects),
            Static(f"\nType [b]{word}[/b] to do it, escape to leave it."),
            Input(placeholder=word),
        )
        self._word = word

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip() == self._word:
            self.dismiss(True)
        else:
            event.input.value = ""
            self.app.bell()


class ChooseScreen(Dialog[str]):
    """A list of values and their texts; the value that was taken."""

    DEFAULT_CSS = """
    ChooseScreen > VerticalScroll { width: 50; max-height: 80%; padding: 0; }
    """

    def __init__(
        self, title: str, choices: Sequence[tuple[str, str]], chosen: str | None = None
    ) -> None:
        self._values = [value for value, _ in choices]
        self._chosen = chosen
        super().__init__(title, OptionList(*(Option(Text(text)) for _, text in choices)))

    def on_mount(self) -> None:
        if self._chosen in self._values:
            self.query_one(OptionList).highlighted = self._values.index(self._chosen)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._values[event.option_index])


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a form, as text."""

    name: str
    label: str
    value: str = ""
    about: str = ""  # what to enter, shown while it is empty
    lines: int = 1  # its height; with more than one, Enter begins a new line
    words: Sequence[str] = ()  # what completes the entry with the right arrow
    meaning: Callable[[str], str] | None = None  # shown beside the label as one types


class FormScreen(Dialog[bool]):
    """A form for several values; it stays open until `save` accepts them, and then is True.

    A `ValueError` or an error of the daemon in `save` says why it cannot.
    """

    DEFAULT_CSS = """
    FormScreen > VerticalScroll { width: 76; }
    FormScreen Label { color: $text-muted; width: 1fr; height: auto; }
    FormScreen Input { background: $panel; }
    FormScreen TextArea { border: none; padding: 0 1; background: $panel; }
    FormScreen Input:focus, FormScreen TextArea:focus {
        background: $primary-muted; border: none;
    }
    FormScreen #notes { color: $text-muted; margin-top: 1; height: auto; }
    FormScreen #fault { color: $text-error; text-style: bold; height: auto; display: none; }
    FormScreen #keys { color: $text-muted; margin-top: 1; }
    Screen.-low FormScreen #notes, FormScreen.-low #keys { margin-top: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "save", "Save", priority=True)]

    def __init__(
        self,
        title: Title,
        fields: Sequence[Field],
        save: Callable[[dict[str, str]], Awaitable[object]],
        *notes: str,
    ) -> None:
        keys = "[b]ctrl+s[/b] save   [b]tab[/b] next field   [b]esc[/b] leave it"
        super().__init__(
            title,
            *(widget for field in fields for widget in self._entry(field)),
            Static(Text("\n".join(notes)), id="notes"),
            Static(id="fault"),
            Static(keys, id="keys"),
        )
        self._fields = fields
        self._save = save
        self._has_notes = bool(notes)
        self._leaving = False
        self._saving = False

    @staticmethod
    def _entry(field: Field) -> Iterator[Widget]:
        name = f"field-{field.name}"
        yield Label(id=f"label-{field.name}")
        if field.lines > 1:
            area = TextArea(field.value, id=name, tab_behavior="focus")
            area.styles.height = field.lines
            yield area
        else:
            words = SuggestFromList(field.words) if field.words else None
            yield Input(field.value, field.about, suggester=words, select_on_focus=False, id=name)

    def on_mount(self) -> None:
        self.query_one("#notes").display = self._has_notes
        self._label()
        # At once: what is typed meanwhile would be lost.
        self.set_focus(self.query_one(f"#field-{self._fields[0].name}"))

    @property
    def values(self) -> dict[str, str]:
        entries = {field.name: self.query_one(f"#field-{field.name}") for field in self._fields}
        return {
            name: entry.text if isinstance(entry, TextArea) else entry.value
            for name, entry in entries.items()
            if isinstance(entry, (Input, TextArea))
        }

    def on_input_changed(self) -> None:
        self._leaving = False
        self._label()

    def on_text_area_changed(self) -> None:
        self.on_input_changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on, and from the last field saves."""
        event.stop()
        if event.input.id == f"field-{self._fields[-1].name}":
            self.action_save()
        else:
            self.focus_next()

    @work
    async def action_save(self) -> None:
        if self._saving:
            return
        self._saving = True
        try:
            await self._save(self.values)
        except (ValueError, ClientError) as error:
            self._fault(why(error))
            self.app.bell()
        else:
            self.dismiss(True)
        finally:
            self._saving = False

    def action_leave(self) -> None:
        """Close it; only a second escape discards what was entered."""
        if self._leaving or self.values == {field.name: field.value for field in self._fields}:
            super().action_leave()
            return
        self._leaving = True
        self._fault("not saved: escape again to leave it, ctrl+s to save it")

    def _fault(self, text: str) -> None:
        line = self.query_one("#fault", Static)
        line.update(Text(f"✗ {plain(text)}"))
        line.display = True
        line.scroll_visible(animate=False)

    def _label(self) -> None:
        values = self.values
        for field in self._fields:
            label = Text(field.label)
            if field.meaning is not None and (meaning := field.meaning(values[field.name])):
                label.append(f"  {meaning}", "bold")
            self.query_one(f"#label-{field.name}", Label).update(label)
