"""The actions on a memory: the keys, the questions, and the change."""

from __future__ import annotations

from functools import partial
from typing import Final

from rich.text import Text
from textual.binding import Binding

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryView

from ..text import one_line
from . import memory_changes as changes
from .view import View

# Of every screen that shows memories; its `action_memory` calls the method of that name.
KEYS: Final = (
    Binding("e", "memory('edit')", "Edit"),
    Binding("p", "memory('pin')", "Pin"),
    Binding("r", "memory('reinforce')", "Reinforce"),
    Binding("d", "memory('forget')", "Forget"),
)


class MemoryActions:
    """The actions of a view on memories; each tells whether something was changed.

    They ask, and are therefore awaited in a worker.

    Args:
        view: asks, and is drawn again afterwards.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    async def add(self, category: str = "") -> bool:
        """Enter a memory, and store it."""

        async def save(values: dict[str, str]) -> None:
            await self._view.change(partial(changes.add, fields=changes.entered(values)))

        fields = changes.fields_for(None, await categories(self._view), category)
        return await self._view.enter("Add a memory", fields, save)

    async def edit(self, memory: MemoryView) -> bool:
        """Change what a memory says."""

        async def save(values: dict[str, str]) -> None:
            if found := changes.entered(values, memory):
                told = f"changed {', '.join(found)}"
                await self._view.change(
                    partial(changes.change, memory_id=memory.id, fields=found, told=told)
                )

        fields = changes.fields_for(memory, await categories(self._view), "")
        return await self._view.enter(f"Edit {memory.id[:8]}", fields, save)

    async def forget(self, memory: MemoryView) -> bool:
        """Forget it, once the word was typed."""
        view = self._view
        merged = await view.call(lambda client: client.list(merged_into=memory.id, limit=1))
        effects: list[str | Text] = [
            view.shown(one_line(memory.text[:200])),
            "",
            "It is erased here and on every device, with its earlier versions.",
            "If undone within a minute, it is stored again, with a new id and no uses.",
        ]
        if merged is not None and merged.total:
            back = number_of(merged.total, "memory that was merged into it", "merged memories")
            effects.append(f"It frees {back}.")
        if not await view.app.confirm("Forget this memory", *effects, word="forget"):
            return False
        return await view.do(partial(changes.forget, memory=memory))

    async def reinforce(self, memory: MemoryView) -> bool:
        """Count a use."""
        return await self._view.do(partial(changes.reinforce, memory_id=memory.id))

    async def pin(self, memory: MemoryView) -> bool:
        """Pin or unpin it."""
        pinned = not memory.pinned
        told = "pinned it, so that it stays hot" if pinned else "unpinned it"
        fields = {"pinned": pinned}
        return await self._view.do(
            partial(changes.change, memory_id=memory.id, fields=fields, told=told)
        )

    async def put_back(self, memory: MemoryView, number: int) -> bool:
        """Put an earlier version back."""
        return await self._view.do(partial(changes.put_back, memory_id=memory.id, number=number))

    async def unmerge(self, merged: MemoryView) -> bool:
        """Undo the merge of a memory into another."""
        return await self._view.do(partial(changes.unmerge, memory=merged))


async def categories(view: View) -> list[str]:
    """The paths of the tree."""
    tree = await view.call(Client.tree)
    return [] if tree is None else [path for path in tree.tree if not path.startswith("_")]
