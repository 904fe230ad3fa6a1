"""The actions on a memory: the keys, the questions, and the changes with their undo."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from rich.text import Text

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.client.wording import OWN_WORD, number_of, one_line
from thermocline.daemon.schemas.memory import MemoryView

from ..dialogs import Field
from ..feed import Done, Undo
from .memory_text import grade
from .view import Action, View

TYPES: Final = ("semantic", "episodic", "procedural")
# What is stored again when forgetting is undone.
_STORED: Final = (
    *("text", "type", "event", "subject", "outcome", "category", "tags", "importance", "pinned"),
    *("source", "actor", "group", "position", "data", "created_at"),
)


async def add(view: View, category: str = "") -> None:
    """Enter a memory, and store it."""

    async def save(values: dict[str, str]) -> None:
        fields = _entered(values)

        async def change(client: AsyncClient) -> Done:
            stored = await client.store(**fields)
            if not stored.stored:
                words = "already known: counted a use"
                return Done(words)
            words = _with_warning("stored a memory", stored)
            return Done(words, lambda again: again.forget(stored.id))

        await view.change(change)

    await view.enter("Add a memory", _fields_for(None, await categories(view), category), save)


async def edit(view: View, memory: MemoryView) -> None:
    """Change what a memory says."""

    async def save(values: dict[str, str]) -> None:
        if fields := _entered(values, memory):
            words = f"changed {', '.join(fields)}"
            await view.change(partial(_update, key=memory.id, fields=fields, words=words))

    title, fields = f"Edit {memory.id[:8]}", _fields_for(memory, await categories(view), "")
    await view.enter(title, fields, save)


async def pin(view: View, memory: MemoryView) -> None:
    """Pin or unpin it."""
    pinned = not memory.pinned
    words = "pinned it, so that it stays hot" if pinned else "unpinned it"
    await view.do(partial(_update, key=memory.id, fields={"pinned": pinned}, words=words))


async def vouch(view: View, memory: MemoryView) -> None:
    """Stand for what came from outside: it is no longer quoted, and may be standing."""
    words = "it is your own word now"
    await view.do(partial(_update, key=memory.id, fields={"source": OWN_WORD}, words=words))


async def reinforce(view: View, memory: MemoryView) -> None:
    """Count a use."""

    async def change(client: AsyncClient) -> Done:
        await client.reinforce(memory.id)
        now = await client.get(memory.id)
        words = f"used {number_of(now.access_count, 'time', 'times')}, score {now.score:.2f}"
        return Done(words)

    await view.do(change)


async def forget(view: View, memory: MemoryView) -> bool:
    """Forget it, once the word was typed; whether it was."""
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


# Of every screen that shows memories.
ACTIONS: Final = (
    Action("e", "Edit", edit, writes=True, row=True),
    Action("p", "Pin", pin, writes=True, row=True),
    Action("r", "Reinforce", reinforce, writes=True, row=True),
    Action("d", "Forget", forget, writes=True, row=True),
)


async def categories(view: View) -> list[str]:
    """The paths of the tree."""
    tree = await view.call(AsyncClient.tree)
    return [] if tree is None else [path for path in tree.tree if not path.startswith("_")]


# Changes


async def put_back(client: AsyncClient, key: str, number: int) -> Done:
    """Put an earlier version back."""
    await client.undo(id=key, number=number)
    return Done("put an earlier version back", await _back(client, key))


async def unmerge(client: AsyncClient, merged: MemoryView) -> Done:
    """Undo the merge of a memory into another."""
    await client.unmerge(merged.id)
    into = merged.merged_into or ""
    return Done("parted 2 memories", lambda again: again.merge(merged.id, into))


async def _update(client: AsyncClient, key: str, fields: dict[str, Any], words: str) -> Done:
    """Change fields; undoing puts back the version before, whatever happened since."""
    changed = await client.update(key, **fields)
    return Done(_with_warning(words, changed), await _back(client, key))


async def _forget(client: AsyncClient, memory: MemoryView) -> Done:
    """Forget a memory; undoing stores it again, under another id and without its versions."""
    forgotten = await client.forget(memory.id)
    freed = forgotten.unmerged if isinstance(forgotten.unmerged, tuple) else ()

    async def restore(again: AsyncClient) -> None:
        fields: dict[str, Any] = {name: getattr(memory, name) for name in _STORED}
        fields["tags"] = [*memory.tags]
        fields["standing"] = memory.standing is True
        lists = ("urls", "commands", "paths")
        fields["metadata"] = {name: [*getattr(memory.metadata, name)] for name in lists}
        if memory.expires_at is not None:
            fields["expires"] = memory.expires_at
        stored = await again.store(**fields, force=True)
        for key in freed:
            await again.merge(key, stored.id)

    return Done("forgot 1 memory", restore)


def _with_warning(words: str, memory: MemoryView) -> str:
    return f"{words}, but {memory.warning}" if isinstance(memory.warning, str) else words


async def _back(client: AsyncClient, key: str) -> Undo:
    """The undo that restores the version just replaced."""
    versions = (await client.history(key, limit=1)).results
    number = versions[0].number if versions else None
    return lambda again: again.undo(id=key, number=number)


# The form


def _fields_for(memory: MemoryView | None, paths: list[str], category: str) -> list[Field]:
    text, kind, subject, importance, tags = "", TYPES[0], "", 0.6, ""
    if memory is not None:
        text, kind, category, subject = memory.text, memory.type, memory.category, memory.subject
        importance, tags = memory.importance, ", ".join(memory.tags)
    return [
        Field("text", "Text", text, lines=5),
        Field("type", "Type", kind, ", ".join(TYPES), words=TYPES),
        Field("category", "Category", category, "general", words=paths),
        Field("subject", "Subject", subject, "what it is about"),
        Field("tags", "Tags", tags, "words, with commas between"),
        importance_field(f"{importance:g}"),
    ]


def _entered(values: dict[str, str], memory: MemoryView | None = None) -> dict[str, Any]:
    """The fields that were entered; for an existing memory, those that differ."""
    kind = values["type"].strip().lower() or TYPES[0]
    fields: dict[str, Any] = {
        "text": values["text"].strip(),
        "type": next((name for name in TYPES if name.startswith(kind)), kind),
        "category": values["category"].strip() or "general",
        "subject": values["subject"].strip(),
        "importance": importance_of(values["importance"]),
    }
    if fields["type"] not in TYPES:
        raise ValueError(f"the type is one of {', '.join(TYPES)}")
    if memory is not None:
        # Blanks around a text that is there already are no change of it.
        before = {name: getattr(memory, name) for name in fields}
        before = {name: v.strip() if isinstance(v, str) else v for name, v in before.items()}
        fields = {name: value for name, value in fields.items() if value != before[name]}
    # A tag may itself hold a comma, and stays as it is while nothing is changed here.
    if memory is None or values["tags"] != ", ".join(memory.tags):
        fields["tags"] = [tag for word in values["tags"].split(",") if (tag := word.strip())]
    return fields


def importance_field(value: str) -> Field:
    """The entry of an importance, with its word beside it."""
    return Field("importance", "Importance", value, "0 to 1", meaning=_graded)


def importance_of(entry: str) -> float:
    """The importance that was entered. Raises `ValueError`: it is not a number."""
    try:
        return float(entry.strip().replace(",", "."))
    except ValueError:
        raise ValueError("the importance is a number from 0 to 1, such as 0.6") from None


def _graded(entry: str) -> str:
    try:
        value = importance_of(entry)
    except ValueError:
        return ""
    return grade(value)[0] if 0 <= value <= 1 else "0 to 1"
