"""The actions on a memory: the questions, the change, and its undo for a minute."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from rich.text import Text

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryView

from ..dialogs.form import Field, FormScreen
from . import memory_changes as changes
from .memory_changes import Undo
from .view import View

Change: TypeAlias = Callable[[Client], tuple[MemoryView, Undo]]


class MemoryActions:
    """The actions of a view on memories; those that ask are awaited in a worker.

    Each returns the changed memory, or None if nothing was done.

    Args:
        view: asks, and is drawn again afterwards.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._done: MemoryView | None = None

    async def add(self, category: str = "") -> MemoryView | None:
        """Enter a memory, and store it."""
        fields = changes.fields_for(None, await self._categories(), category)
        return await self._form("Add a memory", fields, None)

    async def edit(self, memory: MemoryView) -> MemoryView | None:
        """Change what a memory says."""
        fields = changes.fields_for(memory, await self._categories(), "")
        return await self._form(f"Edit {memory.id[:8]}", fields, memory)

    async def forget(self, memory: MemoryView) -> MemoryView | None:
        """Forget it, once the word was typed."""
        view = self._view
        merged = await view.call(lambda client: client.list(merged_into=memory.id, limit=1))
        effects: list[str | Text] = [
            view.shown(" ".join(memory.text[:200].split())),
            "",
            "It is erased here and on every device, with its earlier versions.",
            "If undone within a minute, it is stored again, with a new id and no uses.",
        ]
        if merged is not None and merged.total:
            back = number_of(merged.total, "memory that was merged into it", "merged memories")
            effects.append(f"It frees {back}.")
        if not await view.app.confirm("Forget this memory", *effects, word="forget"):
            return None
        return await self._do(partial(changes.forget, memory=memory), "forgot 1 memory")

    async def reinforce(self, memory: MemoryView) -> MemoryView | None:
        """Count a use."""
        done = await self._do(partial(changes.reinforce, memory_id=memory.id), "")
        if done is not None:
            self._say(
                f"used {number_of(done.access_count, 'time', 'times')}, score {done.score:.2f}"
            )
        return done

    async def pin(self, memory: MemoryView) -> MemoryView | None:
        """Pin or unpin it."""
        pinned = not memory.pinned
        told = "pinned it, so that it stays hot" if pinned else "unpinned it"
        change = partial(changes.change, memory_id=memory.id, changes={"pinned": pinned})
        return await self._do(change, told)

    async def put_back(self, memory: MemoryView, number: int) -> MemoryView | None:
        """Put an earlier version back."""
        change = partial(changes.put_back, memory_id=memory.id, number=number)
        return await self._do(change, "put an earlier version back")

    async def unmerge(self, merged: MemoryView) -> MemoryView | None:
        """Undo the merge of a memory into another."""
        return await self._do(partial(changes.unmerge, memory=merged), "parted 2 memories")

    async def _categories(self) -> list[str]:
        tree = await self._view.call(Client.tree)
        return [] if tree is None else [path for path in tree.tree if not path.startswith("_")]

    async def _form(
        self, title: str, fields: list[Field], memory: MemoryView | None
    ) -> MemoryView | None:
        self._done = None

        async def save(values: dict[str, str]) -> str:
            try:
                found = changes.entered(values, memory)
            except ValueError as error:
                return str(error)
            if not found:
                return ""
            if memory is None:
                change, told = partial(changes.add, fields=found), "stored a memory"
            else:
                change = partial(changes.change, memory_id=memory.id, changes=found)
                told = f"changed {', '.join(found)}"
            try:
                self._done, undo = await self._view.app.calls.run(change, 30.0)
            except ClientError as error:
                return str(error)
            self._did(told, undo)
            return ""

        await self._view.app.push_screen_wait(FormScreen(title, fields, save))
        return self._done

    async def _do(self, change: Change, told: str) -> MemoryView | None:
        found = await self._view.call(change)
        if found is None:
            return None
        self._done, undo = found
        self._undo = undo
        if told:
            self._did(told, undo)
        return self._done

    def _say(self, told: str) -> None:
        self._did(told, self._undo)

    def _did(self, told: str, undo: Undo) -> None:
        if self._done is not None and isinstance(self._done.warning, str):
            told = f"{told}, but {self._done.warning}"
        self._view.app.did(told, undo)
        self._view.refresh_data()
