"""The export of ChatGPT's data: conversations as trees of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...memory.records import Json
from ..found import Found, GivenPath, Origin, spoken_text
from ..values import seconds
from . import exports

NAME: Final = "chatgpt"
_SAID: Final = frozenset({"text", "multimodal_text"})


def detect(look: GivenPath) -> bool:
    """Whether its conversations have a mapping of messages."""
    return exports.begins_with(look, "mapping")


def read(look: GivenPath) -> Iterator[Found]:
    """What user and assistant said, along the branch that was shown last."""
    for place, number, conversation in exports.conversations(look):
        origin = Origin(look, NAME, place, look.stat.st_mtime)
        mapping = conversation.get("mapping")
        if not isinstance(mapping, dict):
            look.fault(place, f"conversation {number}: it has no mapping")
            continue
        shown, why = _shown(mapping, conversation.get("current_node"))
        if why:
            look.fault(place, f"conversation {number}: {why}")
        group = str(
            conversation.get("conversation_id") or conversation.get("id") or f"{place} {number}"
        )
        for position, key in enumerate(shown):
            message = mapping[key]["message"]
            yield from origin.turn(
                f"{group}/{message.get('id') or key}", _text(message),
                role=_field(message, "author", "role"), group=group, position=position,
                subject=conversation.get("title"),
                created_at=seconds(message.get("create_time"), conversation.get("create_time")),
                updated_at=seconds(message.get("update_time")),
            )  # fmt: skip


def _shown(mapping: dict[str, Any], current: Json) -> tuple[list[str], str]:
    """The keys of the messages from the first to the last shown one, and a fault or ""."""
    key = current if isinstance(current, str) and current in mapping else _last(mapping)
    path: list[str] = []
    seen: set[str] = set()
    why = ""
    while isinstance(key, str) and isinstance(node := mapping.get(key), dict):
        if key in seen:
            why = "its messages follow each other in a circle"
            break
        seen.add(key)
        if isinstance(node.get("message"), dict):
            path.append(key)
        key = node.get("parent")
    told = sum(isinstance(n, dict) and bool(_text(n.get("message"))) for n in mapping.values())
    kept = sum(bool(_text(mapping[one]["message"])) for one in path)
    if kept < told and not why:
        why = f"{told - kept} messages of other branches are left out"
    return path[::-1], why


def _last(mapping: dict[str, Any]) -> str | None:
    """The newest message without children."""
    leaves = {
        key: seconds(_field(node, "message", "create_time")) or 0.0
        for key, node in mapping.items()
        if isinstance(node, dict) and not node.get("children")
    }
    return max(leaves, key=lambda key: leaves[key], default=next(iter(mapping), None))


def _text(message: Json) -> str:
    """The text of a message; empty if it was hidden, a thought, or for a tool."""
    if not isinstance(message, dict):
        return ""
    hidden = _field(message, "metadata", "is_visually_hidden_from_conversation")
    if hidden or message.get("recipient", "all") != "all":
        return ""
    if _field(message, "author", "role") not in {"user", "assistant"}:
        return ""
    content = message.get("content")
    if not isinstance(content, dict) or content.get("content_type") not in _SAID:
        return ""
    return spoken_text(content.get("parts")).strip()


def _field(value: Json, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
