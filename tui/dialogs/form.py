"""A form for several values; it stays open until they are accepted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Label, Static, TextArea

from thermocline.daemon.client import ClientError

from ..text import plain, why
from .dialog import Dialog


@dataclass(frozen=True, slots=True)
class Field:
    """One value, as text.

    Attributes:
        name: its key in the values.
        label: its name on the screen.
        value: its initial text.
        about: what to enter, shown while it is empty.
        lines: its height; with more than one, Enter begins a new line.
        words: what completes the entry with the right arrow.
        told: what the entry means, shown beside the label as one types.
    """

    name: str
    label: str
    value: str = ""
    about: str = ""
    lines: int = 1
    words: Sequence[str] = ()
    told: Callable[[str], str] | None = None


class FormScreen(Dialog[bool]):
    """The form; True once `save` accepted the values.

    Args:
        title: what is entered.
        fields: from the top down.
        save: takes the values; a `ValueError` or an error of the daemon says why it cannot.
        notes: lines below the fields.
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
        title: str | Text,
        fields: Sequence[Field],
        save: Callable[[dict[str, str]], Awaitable[object]],
        *notes: str,
    ) -> None:
        super().__init__()
        self._title = title
        self._fields = fields
        self._save = save
        self._notes = notes
        self._leaving = False
        self._saving = False

    def compose(self) -> ComposeResult:
        """A label and an entry for each field."""
        keys = "[b]ctrl+s[/b] save   [b]tab[/b] next field   [b]esc[/b] leave it"
        yield self.box(
            self._title,
            *(widget for field in self._fields for widget in self._entry(field)),
            Static(Text("\n".join(self._notes)), id="notes"),
            Static(id="fault"),
            Static(keys, id="keys"),
        )

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
        """The first empty field can be filled in at once, else the first."""
        self.query_one("#notes").display = bool(self._notes)
        self._tell()
        first = next((one for one in self._fields if not one.value), self._fields[0])
        self.query_one(f"#field-{first.name}").focus()

    @property
    def values(self) -> dict[str, str]:
        """The text of each field."""
        found: dict[str, str] = {}
        for field in self._fields:
            entry = self.query_one(f"#field-{field.name}")
            if isinstance(entry, TextArea):
                found[field.name] = entry.text
            elif isinstance(entry, Input):
                found[field.name] = entry.value
        return found

    def on_input_changed(self) -> None:
        """Show what the entry means."""
        self._leaving = False
        self._tell()

    def on_text_area_changed(self) -> None:
        """Likewise."""
        self.on_input_changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on, and from the last field saves."""
        event.stop()
        if event.input.id == f"field-{self._fields[-1].name}":
            self.action_save()
        else:
            self.focus_next()

    @work(exclusive=True)
    async def action_save(self) -> None:
        """Save the values."""
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
        before = {field.name: field.value for field in self._fields}
        if self._leaving or self.values == before:
            super().action_leave()
            return
        self._leaving = True
        self._fault("not saved: escape again to leave it, ctrl+s to save it")

    def _fault(self, text: str) -> None:
        line = self.query_one("#fault", Static)
        line.update(Text(f"✗ {plain(text)}"))
        line.display = True
        line.scroll_visible(animate=False)

    def _tell(self) -> None:
        values = self.values
        for field in self._fields:
            label = Text(field.label)
            if field.told is not None and (told := field.told(values[field.name])):
                label.append(f"  {told}", "bold")
            self.query_one(f"#label-{field.name}", Label).update(label)
