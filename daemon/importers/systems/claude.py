"""The export of claude.ai's data: conversations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..found import Found, GivenPath, Origin, spoken_text
from . import exports

NAME: Final = "claude"
_UNREAD: Final = ("projects.json", "memories.json")


def detect(look: GivenPath) -> bool:
    """Whether its conversations have messages of a chat."""
    return exports.begins_with(look, "chat_messages")


def read(look: GivenPath) -> Iterator[Found]:
    """What the human and the assistant said."""
    for name in exports.others_in(look):
        if name in _UNREAD:
            look.fault(look.path, f"{name} is not read")
    for place, number, conversation in exports.conversations(look):
        origin = Origin(look, NAME, place, look.stat.st_mtime)
        messages = conversation.get("chat_messages")
        if not isinstance(messages, list):
            look.fault(place, f"conversation {number}: it has no messages")
            continue
        group = str(conversation.get("uuid") or f"{place} {number}")
        for position, message in enumerate(messages):
            if not isinstance(message, dict):
                why = f"conversation {number}: message {position + 1} is not an object"
                look.fault(place, why)
                continue
            said = spoken_text(message.get("content")) or spoken_text(message.get("text"))
            yield from origin.turn(
                f"{group}/{message.get('uuid') or position}", said,
                role=message.get("sender"), group=group, position=position,
                subject=conversation.get("name"),
                created_at=message.get("created_at") or conversation.get("created_at"),
                updated_at=message.get("updated_at"),
            )  # fmt: skip
