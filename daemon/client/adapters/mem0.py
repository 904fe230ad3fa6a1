"""mem0's `Memory` over the daemon, with mem0's calls and answers; needs no other package.

from thermocline.daemon.client.adapters.mem0 import Memory  # in place of: from mem0 import Memory
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from .steps import AsyncSteps, BlockingSteps, Steps, in_steps, unless_missing

if TYPE_CHECKING:
    from ...schemas.memory import MemoryView

Messages: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Filters: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]

PROGRAM: Final = "mem0"
IDS: Final = ("user_id", "agent_id", "run_id")
# An `agent_id` is a tag of this and the id.
AGENT_TAG: Final = "agent:"

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda value, other: bool(value == other),
    "ne": lambda value, other: bool(value != other),
    "gt": lambda value, other: value is not None and bool(value > other),
    "gte": lambda value, other: value is not None and bool(value >= other),
    "lt": lambda value, other: value is not None and bool(value < other),
    "lte": lambda value, other: value is not None and bool(value <= other),
    "in": lambda value, other: value in other,
    "nin": lambda value, other: value not in other,
    "contains": lambda value, other: value is not None and other in value,
    "icontains": lambda value, other: str(other).lower() in str(value).lower(),
}
# Of a conversation that has no `run_id`.
_UNNAMED: Final = "mem0/"
_TURNS: Final = 500
_PAGE: Final = 500
_RECALLED: Final = 100
_SAME: Final = object()


class _Calls:
    """mem0's calls and answers."""

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """A memory; mem0's configuration of models and stores has no meaning here."""
        del config_dict
        return cls()

    @in_steps
    def add(self, messages: Messages, *, infer: bool = True, **options: Any) -> Steps[Answer]:
        """Store what messages say: `{"results": [{"id", "memory", "event"}]}`.

        Args:
            messages: a text of the user, a message, or several.
            infer: False stores the messages as they are.
            options: `user_id`, `agent_id` and `run_id`, at least one of them; `metadata`;
                `expiration_date` as YYYY-MM-DD.

        Raises:
            ValueError: no id is given, or `timestamp` or `memory_type`.
        """
        for name in options.keys() - {*IDS, "metadata", "expiration_date", "prompt"}:
            if options[name] is not None:
                raise ValueError(f"cannot add with '{name}': leave it out")
        ids = ids_of(options)
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        spoken = [messages] if isinstance(messages, Mapping) else [*messages]
        adding = _observed if infer else _stored
        stored = yield from adding(spoken, ids, _extra(ids, options))
        results = [{"id": memory.id, "memory": memory.text, "event": "ADD"} for memory in stored]
        return {"results": results}

    @in_steps
    def get(self, memory_id: str) -> Steps[Answer | None]:
        """A memory; None if it does not exist."""
        memory = yield from _lookup(memory_id)
        return None if memory is None else _item(memory)

    @in_steps
    def get_all(
        self, *, filters: Filters | None = None, top_k: int = 20, show_expired: bool = False
    ) -> Steps[Answer]:
        """The newest memories that pass the filters, which name at least one id."""
        memories = yield from _listed(filters, _count(top_k), show_expired)
        return {"results": [_item(memory) for memory in memories]}

    @in_steps
    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Filters | None = None,
        threshold: float = 0.1,
        rerank: bool = False,
        explain: bool = False,
        show_expired: bool = False,
    ) -> Steps[Answer]:
        """The memories that answer a question, best first, with `score`.

        `explain` adds `score_details`. There is nothing to rerank with.
        """
        del rerank
        conditions, rest = conditions_of(filters)
        if not query.strip():
            raise ValueError("cannot search for an empty query: give it some words")
        if not 0 <= threshold <= 1:
            raise ValueError(f"give 'threshold' a number from 0 to 1 (got {threshold})")
        if not (limit := _count(top_k)):
            return {"results": []}
        answer = yield methodcaller(
            "recall",
            query,
            limit=_RECALLED if rest else min(limit, _RECALLED),
            min_relevance=threshold,
            include=["expired"] if show_expired else [],
            explain=explain,
            fields="full",
            **{"tags" if name == "tag" else name: value for name, value in conditions.items()},
        )
        results = []
        for result in answer.results:
            if result.source != "memory" or not _passes(result.memory, rest):
                continue
            item = {**_item(result.memory), "score": result.relevance}
            if explain:
                item["score_details"] = dict(result.parts.signals)
            results.append(item)
        return {"results": results[:limit]}

    @in_steps
    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _SAME,
        data: str | None = None,
    ) -> Steps[Answer]:
        """Change a memory; `data` is mem0's older name for `text`."""
        text = text or data
        if text is None and metadata is None and expiration_date is _SAME:
            raise ValueError("cannot update nothing: give text, metadata or expiration_date")
        memory = yield from _existing(memory_id)
        changes: Answer = {} if text is None else {"text": text}
        if metadata is not None:
            stored = _data(memory)
            added = {key: value for key, value in metadata.items() if key not in IDS}
            changes["data"] = {**stored, "metadata": {**stored.get("metadata", {}), **added}}
        if expiration_date is not _SAME:
            changes["expires"] = None if expiration_date is None else _expiry(expiration_date)
        yield methodcaller("update", memory.id, **changes)
        return {"message": "Memory updated successfully!"}

    @in_steps
    def delete(self, memory_id: str) -> Steps[Answer]:
        """Delete a memory for good; raises `ValueError` if it does not exist."""
        memory = yield from _existing(memory_id)
        yield methodcaller("forget", memory.id)
        return {"message": "Memory deleted successfully!"}

    @in_steps
    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Steps[Answer]:
        """Delete all memories of these ids for good."""
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        filters = {name: value for name, value in ids.items() if value is not None}
        memories = yield from _listed(filters, None, show_expired=True)
        for memory in memories:
            yield methodcaller("forget", memory.id)
        return {"message": "Memories deleted successfully!"}

    @in_steps
    def history(self, memory_id: str) -> Steps[list[Answer]]:
        """The changes of a memory's text, oldest first."""
        memory = yield from _lookup(memory_id)
        if memory is None:
            return []
        versions = yield methodcaller("history", memory.id, limit=_PAGE)
        texts = [(version.data["text"], version.at) for version in reversed(versions.results)]
        changes: list[Answer] = []
        before, at = None, memory.created_at
        # A version was replaced at the time when the next one was written.
        for number, (text, until) in enumerate([*texts, (memory.text, None)]):
            if text != before:
                event = "ADD" if before is None else "UPDATE"
                changes.append(
                    {
                        "id": f"{memory.id}-{number}",
                        "memory_id": memory.id,
                        "old_memory": before,
                        "new_memory": text,
                        "event": event,
                        "created_at": _time(memory.created_at),
                        "updated_at": _time(at),
                        "is_deleted": False,
                        "actor_id": memory.actor or None,
                        "role": None,
                    }
                )
            before, at = text, until
        return changes


class Mem0Memory(_Calls, BlockingSteps):
    """mem0's open-source class over the memory of one agent of the daemon.

    `user_id` is who said a memory, `run_id` its conversation, `agent_id` a tag `agent:ID`. What is
    added is read by the daemon, with its model or by rules (`infer`), and known facts are not
    added again. Deleting is for good: it leaves no history.
    """

    program = PROGRAM


class AsyncMem0Memory(_Calls, AsyncSteps):
    """The same as coroutines, in place of mem0's `AsyncMemory`."""

    program = PROGRAM


def _extra(ids: Mapping[str, str], options: Mapping[str, Any]) -> Answer:
    """The fields of memories besides those that the messages determine."""
    extra: Answer = {}
    if "agent_id" in ids:
        extra["tags"] = [AGENT_TAG + ids["agent_id"]]
    if metadata := options.get("metadata"):
        extra["data"] = {"metadata": {k: v for k, v in metadata.items() if k not in IDS}}
    if (expiration := options.get("expiration_date")) is not None:
        extra["expires"] = _expiry(expiration)
    return extra


def _observed(
    messages: list[Mapping[str, Any]], ids: Mapping[str, str], extra: Answer
) -> Steps[list[MemoryView]]:
    stored: list[MemoryView] = []
    group = ids.get("run_id") or f"{_UNNAMED}{uuid.uuid4().hex}"
    whole = {"wait": True, "end": True}
    for at in range(0, len(messages), _TURNS):
        part = messages[at : at + _TURNS]
        observed = yield methodcaller("observe", group, messages=part, user=_actor(ids), **whole)
        stored += observed.stored
        for known in observed.known:
            stored += yield from _also(known, group, _actor(ids))
    for memory in stored if extra else ():
        data = {"data": {**_data(memory), **extra["data"]}} if "data" in extra else {}
        yield methodcaller("update", memory.id, **{**extra, **data})
    return stored


def _also(memory_id: str, group: str, actor: str) -> Steps[list[MemoryView]]:
    """Store for this user too what is known of another one."""
    known = yield from _lookup(memory_id)
    if known is None or known.actor == actor:
        return []
    same = {"text": known.text, "category": known.category, "source": known.source}
    memory = yield methodcaller("store", **same, actor=actor, group=group)
    return [memory] if memory.stored else []


def _stored(
    messages: list[Mapping[str, Any]], ids: Mapping[str, str], extra: Answer
) -> Steps[list[MemoryView]]:
    stored: list[MemoryView] = []
    for message in messages:
        if message.get("role") == "system" or not (text := _text(message)):
            continue
        about = {"actor": str(message.get("name") or _actor(ids)), "group": ids.get("run_id", "")}
        role = str(message.get("role") or "observed")
        source = {"user": "user-stated", "assistant": "observed"}.get(role, role)
        memory = yield methodcaller("store", text=text, source=source, **extra, **about)
        stored.append(memory)
    return stored


def _actor(ids: Mapping[str, str]) -> str:
    return ids.get("user_id") or ids.get("agent_id") or ""


def _lookup(memory_id: str) -> Steps[MemoryView | None]:
    call = methodcaller("get", memory_id)
    memory: MemoryView | None = yield from unless_missing(call, ("not_found", "invalid"))
    return memory


def _existing(memory_id: str) -> Steps[MemoryView]:
    memory = yield from _lookup(memory_id)
    if memory is None:
        raise ValueError(f"Memory with id {memory_id} not found")
    return memory


def _listed(
    filters: Filters | None, limit: int | None, show_expired: bool
) -> Steps[list[MemoryView]]:
    conditions, rest = conditions_of(filters)
    include = ["expired"] if show_expired else []
    memories: list[MemoryView] = []
    at, total = 0, 1
    while at < total and (limit is None or len(memories) < limit):
        page = yield methodcaller("list", **conditions, limit=_PAGE, offset=at, include=include)
        memories += [memory for memory in page.results if _passes(memory, rest)]
        at, total = at + _PAGE, page.total
    return memories[:limit]


def _passes(memory: MemoryView, filters: Filters) -> bool:
    fields = {**_data(memory).get("metadata", {}), **_item(memory)} if filters else {}
    return meets(fields, filters)


def _count(top_k: int) -> int:
    if isinstance(top_k, bool) or top_k < 0:
        raise ValueError(f"Invalid top_k: {top_k}. Must be a non-negative integer.")
    return top_k


# Between mem0's shapes and ours


def _item(memory: MemoryView) -> Answer:
    item: Answer = {
        "id": memory.id,
        "memory": memory.text,
        "hash": hashlib.md5(memory.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": _data(memory).get("metadata"),
        "created_at": _time(memory.created_at),
        "updated_at": _time(memory.updated_at),
    }
    agents = [tag.removeprefix(AGENT_TAG) for tag in memory.tags if tag.startswith(AGENT_TAG)]
    if memory.actor and memory.actor not in agents:
        item["user_id"] = memory.actor
    if agents:
        item["agent_id"] = agents[0]
    if memory.group and not memory.group.startswith(_UNNAMED):
        item["run_id"] = memory.group
    if memory.expires_at is not None:
        last = datetime.fromtimestamp(memory.expires_at, UTC) - timedelta(seconds=1)
        item["expiration_date"] = last.date().isoformat()
    return item


def _data(memory: MemoryView) -> Answer:
    return memory.data if isinstance(memory.data, dict) else {}


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "\n".join(text for text in parts if isinstance(text, str))
    return content.strip() if isinstance(content, str) else ""


def _expiry(value: Any) -> float:
    """The end of the day of a date YYYY-MM-DD, in UTC."""
    if isinstance(value, datetime):
        value = value.date()
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError(f"cannot read expiration_date '{value}': write YYYY-MM-DD") from error
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86_400


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


# So that only the module of an import changes.
Memory = Mem0Memory
AsyncMemory = AsyncMem0Memory


# Ids, and filters in mem0's notation, on the fields of a memory.


def ids_of(values: Mapping[str, Any]) -> dict[str, str]:
    """The ids among the values, as texts; at least one."""
    ids: dict[str, str] = {}
    for name in IDS:
        if values.get(name) is None:
            continue
        value = str(values[name]).strip()
        if not value or any(map(str.isspace, value)):
            raise ValueError(f"Invalid {name}: give an identifier without spaces (got {value!r})")
        ids[name] = value
    if not ids:
        raise ValueError(f"filters must contain at least one of: {', '.join(IDS)}.")
    return ids


def conditions_of(filters: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The daemon's filters for the ids, and what else is to be met."""
    values = {**(filters or {})}
    plain = {name: value for name, value in values.items() if not isinstance(value, Mapping)}
    ids = ids_of({name: value for name, value in plain.items() if value != "*"})
    conditions: dict[str, Any] = {}
    if "user_id" in ids:
        conditions["actor"] = ids["user_id"]
    if "run_id" in ids:
        conditions["group"] = ids["run_id"]
    if "agent_id" in ids:
        conditions["tag"] = [AGENT_TAG + ids["agent_id"]]
    return conditions, {name: value for name, value in values.items() if name not in ids}


def meets(fields: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Whether fields meet all conditions; raises `ValueError` for an unknown operator."""
    for name, condition in filters.items():
        if name == "AND":
            met = all(meets(fields, each) for each in condition)
        elif name == "OR":
            met = any(meets(fields, each) for each in condition)
        elif name == "NOT":
            met = not any(meets(fields, each) for each in condition)
        elif condition == "*":
            met = fields.get(name) is not None
        elif isinstance(condition, Mapping):
            met = all(_compared(fields.get(name), *each) for each in condition.items())
        else:
            met = fields.get(name) == condition
        if not met:
            return False
    return True


def _compared(value: Any, operator: str, other: Any) -> bool:
    if operator not in _OPERATORS:
        raise ValueError(f"Unsupported metadata filter operator: {operator}")
    return _OPERATORS[operator](value, other)
