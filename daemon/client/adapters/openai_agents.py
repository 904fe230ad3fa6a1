"""A `Session` of the OpenAI Agents SDK over the daemon; the package is `openai-agents`.

from thermocline.daemon.client.adapters.openai_agents import ThermoclineSession

await Runner.run(agent, "Hello", session=ThermoclineSession("chat-7", agent="assistant"))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import ApiError
from .steps import AsyncSteps

if TYPE_CHECKING:
    import os

    from ...schemas.memory import MemoryView

Item: TypeAlias = dict[str, Any]

PROGRAM: Final = "openai-agents"
# The key of `data` in the memories of items.
_PART: Final = "openai_agents"
_PAGE: Final = 500
_TEXT_CHARS: Final = 16_000
# Half of what `data` holds: quotes and backslashes take two bytes there.
_PART_CHARS: Final = 30_000
_SPEAKERS: Final = {"user": "user-stated", "assistant": "observed"}


class ThermoclineSession(AsyncSteps):
    """The items of one conversation, which come back exactly; facts in it are remembered.

    Each item is a memory of the conversation `session_id`, so that recall finds what was said. What
    tools and systems said is kept with the source `tool` or `system`, is found by no question, and
    nothing is learned from it. `clear_session` deletes the items, and keeps the facts.

    Args:
        session_id: the conversation.
        agent: whose memory; default: the daemon's `default`.
        socket_path: the daemon's socket; default: as of `Client`.
        user: the name of the user, who then said what is learned.
        observe: whether facts are remembered.
        session_settings: the SDK's; its `limit` is that of `get_items`.
    """

    program = PROGRAM

    def __init__(
        self,
        session_id: str,
        agent: str | None = None,
        socket_path: str | os.PathLike[str] | None = None,
        *,
        user: str = "",
        observe: bool = True,
        session_settings: Any = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        super().__init__(agent, socket_path)
        self._user, self._observes = user, observe
        self._lock = asyncio.Lock()

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The latest items, all without a limit, oldest first."""
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        if limit == 0:
            return []
        async with self._lock:
            parts = await self._parts(None if limit is None or limit < 0 else limit)
        items = [item for item, _ in _items(parts)]
        return items if limit is None or limit < 0 else items[-limit:]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items, all or none of up to 500; they are on the disk when it returns."""
        if not items:
            return
        async with self._lock:
            last = await self._parts(1)
            position = 1 + max((_position(part) for part in last), default=-1)
            memories: list[Item] = []
            for item in items:
                memories += self._memories({**item}, position + len(memories))
            for at in range(0, len(memories), _PAGE):
                await self._client.batch(memories[at : at + _PAGE], force=True)
        spoken = [_message(item) for item in items if item.get("role") in _SPEAKERS]
        spoken = [message for message in spoken if message["content"]]
        for at in range(0, len(spoken) if self._observes else 0, _PAGE):
            messages = spoken[at : at + _PAGE]
            await self._client.observe(self.session_id, messages=messages, user=self._user)

    async def pop_item(self) -> Item | None:
        """Remove the latest item and return it; None without items."""
        async with self._lock:
            items = _items(await self._parts(1))
            if not items:
                return None
            item, parts = items[-1]
            await self._forget(parts)
        return item

    async def clear_session(self) -> None:
        """Delete all items for good."""
        async with self._lock:
            await self._forget(await self._parts(None))

    async def _parts(self, items: int | None) -> list[MemoryView]:
        """The memories of at least `items` of the latest items, by default of all, in order."""
        parts: list[MemoryView] = []
        at, total, ends = 0, 1, 0
        # The end of an item before shows that the last one is whole.
        while at < total and (items is None or ends <= items):
            page = await self._client.list(
                group=self.session_id, order="newest", include=["merged"], limit=_PAGE, offset=at
            )
            of_items = [memory for memory in page.results if _is_part(memory)]
            ends += sum(bool(memory.data[_PART]["last"]) for memory in of_items)
            parts += of_items
            at, total = at + _PAGE, page.total
        return sorted(parts, key=lambda memory: (_position(memory), memory.created_at))

    def _memories(self, item: Item, position: int) -> Iterator[Item]:
        """An item as the bodies of its memories: one, or several if it is large."""
        whole = json.dumps(item)
        pieces = [whole[at : at + _PART_CHARS] for at in range(0, len(whole), _PART_CHARS)]
        message = _message(item)
        # What stands for an item that nobody reads.
        label = f"({item.get('type') or item.get('role') or 'item'})"
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            yield {
                "text": message["content"] if last and message["content"] else label,
                "actor": message["role"] if message["role"] != "user" else self._user or "user",
                "source": _SPEAKERS.get(message["role"], message["role"]),
                "group": self.session_id,
                "position": position + number,
                "type": "episodic",
                "data": {_PART: {"json": piece, "last": last}},
            }

    async def _forget(self, parts: Sequence[MemoryView]) -> None:
        async def forget(memory_id: str) -> None:
            try:
                await self._client.forget(memory_id)
            except ApiError as error:
                if error.code != "not_found":
                    raise

        await asyncio.gather(*[forget(part.id) for part in parts])


def _is_part(memory: MemoryView) -> bool:
    return isinstance(memory.data, dict) and _PART in memory.data and memory.position is not None


def _position(memory: MemoryView) -> int:
    return memory.position or 0


def _items(parts: Sequence[MemoryView]) -> list[tuple[Item, list[MemoryView]]]:
    items: list[tuple[Item, list[MemoryView]]] = []
    open_parts: list[MemoryView] = []
    for part in parts:
        open_parts.append(part)
        if not part.data[_PART]["last"]:
            continue
        try:
            item = json.loads("".join(each.data[_PART]["json"] for each in open_parts))
        except ValueError:
            # Only its end was read, or a part was forgotten.
            item = None
        if item is not None:
            items.append((item, open_parts))
        open_parts = []
    return items


def _message(item: Mapping[str, Any]) -> dict[str, str]:
    """Who says an item, and what a person would read of it: nothing of tools and systems."""
    role = str(item.get("role") or ("tool" if "call" in str(item.get("type")) else "system"))
    content = item.get("content") if role in _SPEAKERS else ""
    if isinstance(content, Sequence) and not isinstance(content, str):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "\n".join(text for text in texts if isinstance(text, str))
    plain = content if isinstance(content, str) else ""
    clean = plain.encode("utf-8", "replace").decode().replace("\0", "")
    return {"role": role, "content": clean.strip()[:_TEXT_CHARS]}
