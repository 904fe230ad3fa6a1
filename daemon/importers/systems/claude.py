"""The export of claude.ai's data: conversations."""

from __future__ import annotations

from typing import Final

from ..found import GivenPath, Origin, ReadFault, Reading, spoken_text
from . import exports

NAME: Final = "claude"
_UNREAD: Final = ("projects.json", "memories.json")


def detect(look: GivenPath) -> bool:
    """Whether its conversations have messages of a chat."""
    return exports.begins_with(look, "chat_messages")


def read(look: GivenPath) -> Reading:
    """What the human and the assistant said."""
    origin = Origin(NAME, look.stat.st_mtime)
    for name in exports.others_in(look):
        if name in _UNREAD:
            yield ReadFault(str(look.path), f"{name} is not read")
    for one in exports.conversations(look):
        if isinstance(one, ReadFault):
            yield one
            continue
        place, number, conversation = one
        messages = conversation.get("chat_messages")
        if not isinstance(messages, list):
            yield ReadFault(place, f"conversation {number}: it has no messages")
            continue
        group = str(conversation.get("uuid") or f"{place} {number}")
        for position, message in enumerate(messages):
            if not isinstance(message, dict):
                yield ReadFault(
                    place, f"conversation {number}: message {position + 1} is not an object"
                )
                continue
            said = spoken_text(message.get("content")) or spoken_text(message.get("text"))
            yield from origin.turn(
                place, f"{group}/{message.get('uuid') or position}", said,
                role=str(message.get("sender") or ""), group=group, position=position,
                subject=str(conversation.get("name") or "")[:500],
                created_at=message.get("created_at") or conversation.get("created_at"),
                updated_at=message.get("updated_at"),
            )  # fmt: skip
