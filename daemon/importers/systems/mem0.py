"""What mem0's `get_all()` returned, saved as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...memory.records import Json
from ..found import Found, GivenPath, category

NAME: Final = "mem0"
_OWN: Final = frozenset({"category", "categories", "tags"})


def detect(look: GivenPath) -> bool:
    """Whether it is a list of objects with a `memory`, alone or as `results`."""
    if look.is_folder or look.head.lstrip()[:1] not in (b"{", b"[") or b'"memory"' not in look.head:
        return False
    return bool(_results(look.document()))


def read(look: GivenPath) -> Iterator[Found]:
    """Each memory under its id; a run is a group."""
    origin = look.origin(NAME, look.path)
    for number, one in enumerate(_results(look.document())):
        text = one.get("memory") if isinstance(one, dict) else None
        if not isinstance(text, str) or not text.strip():
            look.fault(look.path, f"result {number + 1}: it has no 'memory'")
            continue
        given = one.get("metadata")
        metadata = given if isinstance(given, dict) else {}
        categories = one.get("categories") or metadata.get("categories") or metadata.get("category")
        first = categories[0] if isinstance(categories, list) and categories else categories
        user = one.get("user_id") or one.get("agent_id") or ""
        rest = {name: value for name, value in metadata.items() if name not in _OWN}
        yield from origin.memory(
            str(one.get("id") or text), text,
            category=category(first or NAME), actor=one.get("actor_id") or user,
            group=one.get("run_id"), tags=metadata.get("tags"),
            created_at=one.get("created_at"), updated_at=one.get("updated_at"),
            data={"metadata": rest} if rest else None,
        )  # fmt: skip


def _results(document: Json) -> list[Json]:
    """The memories, in the shape of any release."""
    if isinstance(document, dict):
        document = document.get("results", document.get("memories"))
    listed = document if isinstance(document, list) else []
    return listed if any(isinstance(one, dict) and "memory" in one for one in listed[:20]) else []
