"""Questions with one answer: a word that confirms, one of a list, the name of a place."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.suggester import SuggestFromList
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from .dialog import Dialog


class ConfirmScreen(Dialog[bool]):
    """Asks for a word before an action that cannot simply be undone; True once it was typed.

    Args:
        title: what will be done, such as `Forget 3 memories`.
        effects: what that means, a line each.
        word: to be typed.
    """

    DEFAULT_CSS = """
    ConfirmScreen > VerticalScroll { border: round $error; }
    ConfirmScreen Input { margin-top: 1; }
    """

    def __init__(self, title: str | Text, effects: Sequence[str | Text], word: str) -> None:
        super().__init__()
        self._title = title
        self._effects = effects
        self._word = word

    def compose(self) -> ComposeResult:
        """Title, effects, and the line for the word."""
        yield self.box(
            self._title,
            *(Static(Text.assemble(effect)) for effect in self._effects),
            Static(f"\nType [b]{self._word}[/b] to do it, escape to leave it."),
            Input(placeholder=self._word),
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        if event.value.strip() == self._word:
            self.dismiss(True)
        else:
            event.input.value = ""
            self.app.bell()


class ChooseScreen(Dialog[str]):
    """A list; the value that was taken.

    Args:
        title: what is chosen.
        choices: value and text of each.
        chosen: the value that the list begins with.
    """

    DEFAULT_CSS = """
    ChooseScreen > VerticalScroll { width: 50; max-height: 80%; padding: 0; }
    """

    def __init__(
        self, title: str, choices: Sequence[tuple[str, str]], chosen: str | None = None
    ) -> None:
        super().__init__()
        self._title = title
        self._values = [value for value, _ in choices]
        self._texts = [text for _, text in choices]
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """The list."""
        options = OptionList(*(Option(Text(text)) for text in self._texts))
        if self._chosen in self._values:
            options.highlighted = self._values.index(self._chosen)
        yield self.box(self._title, options)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, or a click."""
        event.stop()
        self.dismiss(self._values[event.option_index])


class JumpScreen(Dialog[str]):
    """The line after `:`; the word that was entered, completed.

    Args:
        words: what can be entered.
    """

    DEFAULT_CSS = """
    JumpScreen { align: left bottom; background: transparent; }
    """

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """The line."""
        yield Input(
            placeholder=f"go to: {', '.join(self._words[:3])} ...",
            suggester=SuggestFromList(self._words, case_sensitive=False),
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter takes the first word with this beginning."""
        event.stop()
        typed = event.value.strip().lower()
        found = (word for word in self._words if typed and word.lower().startswith(typed))
        self.dismiss(next(found, event.value.strip()))
