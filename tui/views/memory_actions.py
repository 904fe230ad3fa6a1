"""The actions on a memory: the keys, the questions, and the changes with their undo."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from rich.text import Text
from textual.binding import Binding

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryView

from ..calls import Done, Undo
from ..dialogs.form import Field
from ..text import one_line
from .memory_text import grade
from .view import View

# Of every screen that shows memories; its `action_memory` calls the method of that name.
KEYS: Final = (
    Binding("e", "memory('edit')", "Edit"),
    Binding("p", "memory('pin')", "Pin"),
    Binding("r", "memory('reinforce')", "Reinforce"),
    Binding("d", "memory('forget')", "Forget"),
)
# What is stored again when forgetting is undone.
_KEPT: Final = (
    *("text", "type", "event", "subject", "outcome", "category", "tags", "importance", "pinned"),
    *("source", "actor", "group", "position", "data", "created_at"),
)
_TYPES: Final = ("semantic", "episodic", "procedural")


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
            await self._view.change(partial(_add, fields=_entered(values)))

        fields = _fields_for(None, await categories(self._view), category)
        return await self._view.enter("Add a memory", fields, save)

    async def edit(self, memory: MemoryView) -> bool:
        """Change what a memory says."""

        async def save(values: dict[str, str]) -> None:
            if found := _entered(values, memory):
                told = f"changed {', '.join(found)}"
                await self._view.change(
                    partial(_change, memory_id=memory.id, fields=found, told=told)
                )

        fields = _fields_for(memory, await categories(self._view), "")
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
        return await view.do(partial(_forget, memory=memory))

    async def reinforce(self, memory: MemoryView) -> bool:
        """Count a use."""

        def change(client: Client) -> Done:
            client.reinforce(memory.id)
            now = client.get(memory.id)
            told = f"used {number_of(now.access_count, 'time', 'times')}, score {now.score:.2f}"
            return Done(told, lambda again: again.unreinforce(memory.id))

        return await self._view.do(change)

    async def pin(self, memory: MemoryView) -> bool:
        """Pin or unpin it."""
        pinned = not memory.pinned
        told = "pinned it, so that it stays hot" if pinned else "unpinned it"
        fields = {"pinned": pinned}
        return await self._view.do(partial(_change, memory_id=memory.id, fields=fields, told=told))

    async def put_back(self, memory: MemoryView, number: int) -> bool:
        """Put an earlier version back."""

        def change(client: Client) -> Done:
            client.undo(id=memory.id, number=number)
            return Done("put an earlier version back", _back(client, memory.id))

        return await self._view.do(change)

    async def unmerge(self, merged: MemoryView) -> bool:
        """Undo the merge of a memory into another."""

        def change(client: Client) -> Done:
            client.unmerge(merged.id)
            into = merged.merged_into or ""
            return Done("parted 2 memories", lambda again: again.merge(merged.id, into))

        return await self._view.do(change)


async def categories(view: View) -> list[str]:
    """The paths of the tree."""
    tree = await view.call(Client.tree)
    return [] if tree is None else [path for path in tree.tree if not path.startswith("_")]


# Changes, on a thread


def _add(client: Client, fields: dict[str, Any]) -> Done:
    """Store a memory; undoing forgets it, or takes back the use of a known one."""
    stored = client.store(**fields)
    if not stored.stored:
        return Done("already known: counted a use", lambda again: again.unreinforce(stored.id))
    return Done(_warned("stored a memory", stored), lambda again: again.forget(stored.id))


def _change(client: Client, memory_id: str, fields: dict[str, Any], told: str) -> Done:
    """Change fields; undoing puts back the version before, whatever happened since."""
    changed = client.update(memory_id, **fields)
    return Done(_warned(told, changed), _back(client, memory_id))


def _forget(client: Client, memory: MemoryView) -> Done:
    """Forget a memory; undoing stores it again, under another id and without its versions."""
    gone = client.forget(memory.id)
    parted = gone.unmerged if isinstance(gone.unmerged, tuple) else ()

    def restore(again: Client) -> None:
        fields: dict[str, Any] = {name: getattr(memory, name) for name in _KEPT}
        fields["tags"] = [*memory.tags]
        fields["standing"] = memory.standing is True
        lists = memory.metadata
        fields["metadata"] = {
            "urls": [*lists.urls], "commands": [*lists.commands], "paths": [*lists.paths]
        }  # fmt: skip
        if memory.expires_at is not None:
            fields["expires"] = memory.expires_at
        stored = again.store(**fields, force=True)
        for key in parted:
            again.merge(key, stored.id)

    return Done("forgot 1 memory", restore)


def _warned(told: str, memory: MemoryView) -> str:
    return f"{told}, but {memory.warning}" if isinstance(memory.warning, str) else told


def _back(client: Client, memory_id: str) -> Undo:
    """The undo that restores the version just replaced."""
    versions = client.history(memory_id, limit=1).results
    number = versions[0].number if versions else None
    return lambda again: again.undo(id=memory_id, number=number)


def _fields_for(memory: MemoryView | None, categories: list[str], category: str) -> list[Field]:
    """The form's fields: as a memory has them, or for a new one."""
    text, kind, subject, importance = "", "semantic", "", 0.6
    tags: tuple[str, ...] = ()
    if memory is not None:
        text, kind, category, subject = memory.text, memory.type, memory.category, memory.subject
        importance, tags = memory.importance, memory.tags
    return [
        Field("text", "Text", text, lines=5),
        Field("type", "Type", kind, ", ".join(_TYPES), words=_TYPES),
        Field("category", "Category", category, "general", words=categories),
        Field("subject", "Subject", subject, "what it is about"),
        Field("tags", "Tags", ", ".join(tags), "words, with commas between"),
        Field("importance", "Importance", f"{importance:g}", "0 to 1", told=graded),
    ]


def _entered(values: dict[str, str], memory: MemoryView | None = None) -> dict[str, Any]:
    """The fields that were entered; for an existing memory, those that differ.

    Raises:
        ValueError: a type or an importance that does not exist.
    """
    kind = values["type"].strip().lower() or _TYPES[0]
    fields: dict[str, Any] = {
        "text": values["text"].strip(),
        "type": next((one for one in _TYPES if one.startswith(kind)), kind),
        "category": values["category"].strip() or "general",
        "subject": values["subject"].strip(),
    }
    if fields["type"] not in _TYPES:
        msg = f"the type is one of {', '.join(_TYPES)}"
        raise ValueError(msg)
    try:
        fields["importance"] = float(values["importance"].strip().replace(",", "."))
    except ValueError:
        msg = "the importance is a number from 0 to 1, such as 0.6"
        raise ValueError(msg) from None
    # A tag may itself hold a comma, and stays as it is while nothing is changed here.
    if memory is None or values["tags"] != ", ".join(memory.tags):
        fields["tags"] = [tag for one in values["tags"].split(",") if (tag := one.strip())]
    if memory is not None:
        # Blanks around a text that is there already are no change of it.
        fields = {
            name: value
            for name, value in fields.items()
            if name == "tags" or value != _stripped(getattr(memory, name))
        }
    return fields


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def graded(entry: str) -> str:
    """The word for an importance that is being entered."""
    try:
        value = float(entry.replace(",", "."))
    except ValueError:
        return ""
    return grade(value)[0] if 0 <= value <= 1 else "0 to 1"
