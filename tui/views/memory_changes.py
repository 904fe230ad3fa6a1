"""Changes of a memory, each with its undo; they run on a thread. And the form for its fields."""

from __future__ import annotations

from typing import Any, Final

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryView

from ..calls import Done, Undo
from ..dialogs.form import Field
from .memory_text import grade

# What is stored again when forgetting is undone.
_KEPT: Final = (
    *("text", "type", "event", "subject", "outcome", "category", "tags", "importance", "pinned"),
    *("source", "actor", "group", "position", "data", "created_at"),
)
_TYPES: Final = ("semantic", "episodic", "procedural")


def add(client: Client, fields: dict[str, Any]) -> Done:
    """Store a memory; undoing forgets it."""
    stored = client.store(**fields)
    return Done(_warned("stored a memory", stored), lambda again: again.forget(stored.id))


def change(client: Client, memory_id: str, fields: dict[str, Any], told: str) -> Done:
    """Change fields; undoing puts back the version before, whatever happened since."""
    changed = client.update(memory_id, **fields)
    return Done(_warned(told, changed), _back(client, memory_id))


def put_back(client: Client, memory_id: str, number: int) -> Done:
    """Put back an earlier version."""
    client.undo(id=memory_id, number=number)
    return Done("put an earlier version back", _back(client, memory_id))


def reinforce(client: Client, memory_id: str) -> Done:
    """Count a use; undoing takes it back."""
    client.reinforce(memory_id)
    now = client.get(memory_id)
    told = f"used {number_of(now.access_count, 'time', 'times')}, score {now.score:.2f}"
    return Done(told, lambda again: again.unreinforce(memory_id))


def unmerge(client: Client, memory: MemoryView) -> Done:
    """Undo a merge; undoing that merges them again."""
    into = memory.merged_into or ""
    client.unmerge(memory.id)
    return Done("parted 2 memories", lambda again: again.merge(memory.id, into))


def forget(client: Client, memory: MemoryView) -> Done:
    """Forget a memory; undoing stores it again, under another id and without its versions."""
    gone = client.forget(memory.id)
    parted = gone.unmerged if isinstance(gone.unmerged, tuple) else ()

    def restore(again: Client) -> None:
        fields: dict[str, Any] = {name: getattr(memory, name) for name in _KEPT}
        fields["tags"] = [*memory.tags]
        lists = memory.metadata
        fields["metadata"] = {
            "urls": [*lists.urls], "commands": [*lists.commands], "paths": [*lists.paths]
        }  # fmt: skip
        if memory.expires_at is not None:
            fields["expires"] = memory.expires_at
        stored = again.store(**fields)
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


def fields_for(memory: MemoryView | None, categories: list[str], category: str) -> list[Field]:
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


def entered(values: dict[str, str], memory: MemoryView | None = None) -> dict[str, Any]:
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
