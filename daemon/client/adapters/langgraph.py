"""LangGraph's `BaseStore` over the daemon: needs the package `langgraph`.

from thermocline.daemon.client.adapters.langgraph import ThermoclineStore

graph = builder.compile(store=ThermoclineStore(agent="assistant"))
"""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langgraph.store import base

from ..async_client import AsyncClient
from ..client import Client
from .steps import Steps, arun, run, unless_missing

if TYPE_CHECKING:
    import os

    from ...schemas.memory import MemoryPage, MemoryView

Namespace: TypeAlias = tuple[str, ...]

SOURCE: Final = "langgraph"
_PAGE: Final = 500
# The most that a recall returns, and that a query has.
_RECALLED: Final = 100
_QUERY_CHARS: Final = 8_000
_TEXT_CHARS: Final = 16_000
_CATEGORY_CHARS: Final = 200
_LABEL_CHARS: Final = 64
# What no name of the daemon has, and no text.
_UNFIT: Final = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_COMPARISONS: Final[dict[str, Any]] = {
    "$eq": lambda value, other: value == other,
    "$ne": lambda value, other: value != other,
    "$gt": lambda value, other: float(value) > float(other),
    "$gte": lambda value, other: float(value) >= float(other),
    "$lt": lambda value, other: float(value) < float(other),
    "$lte": lambda value, other: float(value) <= float(other),
}


class ThermoclineStore(base.BaseStore):
    """Items as memories of one agent: searched like all others, with history and replication.

    The value of an item is kept whole. Its text, by which it is found, are the fields named by
    `index`; its category follows from the namespace. An item is one memory whatever its category
    becomes. Two processes that create the same new item at once may leave two memories; the one
    changed last is the item, and the next `put` deletes the other.

    Any number of threads and tasks may use a store.

    Args:
        agent: whose memory; default: the daemon's `default`.
        socket_path: the daemon's socket; default: as of `Client`.
        fields: what of a value is searched, where `put` has no `index`: paths as LangGraph writes
            them; `$` is all of it.
        ttl: LangGraph's configuration of expiry; `put` takes a `ttl` without one too.
    """

    supports_ttl = True

    def __init__(
        self,
        agent: str | None = None,
        socket_path: str | os.PathLike[str] | None = None,
        *,
        fields: Sequence[str] = ("$",),
        ttl: base.TTLConfig | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._fields = fields
        self._client = Client(socket_path, agent, program=SOURCE)
        self._async_client = AsyncClient(socket_path, agent, program=SOURCE)
        self._lock = threading.Lock()

    def batch(self, ops: Iterable[base.Op]) -> list[Any]:
        """Carry out operations: what reads sees the state before what writes.

        New items are stored together or not at all.
        """
        with self._lock:
            return run(self._client, self._carried_out([*ops]))

    async def abatch(self, ops: Iterable[base.Op]) -> list[Any]:
        """The same as a coroutine."""
        return await arun(self._async_client, self._carried_out([*ops]))

    def close(self) -> None:
        """Close the connection of synchronous calls; the next call opens another."""
        self._client.close()

    async def aclose(self) -> None:
        """Close all connections."""
        self._client.close()
        await self._async_client.aclose()

    def _carried_out(self, ops: Sequence[base.Op]) -> Steps[list[Any]]:
        results: list[Any] = []
        # Of several writes of one item the last counts.
        puts: dict[tuple[Namespace, str], base.PutOp] = {}
        for op in ops:
            result: Any = None
            if isinstance(op, base.GetOp):
                result = yield from self._get(op)
            elif isinstance(op, base.SearchOp):
                result = yield from self._search(op)
            elif isinstance(op, base.ListNamespacesOp):
                result = yield from self._namespaces(op)
            elif isinstance(op, base.PutOp):
                puts[tuple(op.namespace), op.key] = op
            else:
                raise TypeError(f"cannot carry out {op!r}: it is no operation of a store")
            results.append(result)
        yield from self._put(puts)
        return results

    def _get(self, op: base.GetOp) -> Steps[base.Item | None]:
        memories = yield from _memories_of(tuple(op.namespace), op.key)
        if not memories:
            return None
        yield from _refreshed(op.refresh_ttl, memories[:1])
        return base.Item(**_item(memories[0]))

    def _put(self, puts: Mapping[tuple[Namespace, str], base.PutOp]) -> Steps[None]:
        new: list[dict[str, Any]] = []
        for (namespace, key), op in puts.items():
            known = yield from _memories_of(namespace, key)
            if op.value is not None:
                fields = self._fields_of(namespace, op)
                if not (known and (yield from _changed(known[0], fields))):
                    place = {"category": _category(namespace), "tags": [_tag(key)]}
                    new.append({**fields, **place, "source": SOURCE})
                known = known[1:]
            for memory in known:
                yield from unless_missing(methodcaller("forget", memory.id))
        for at in range(0, len(new), _PAGE):
            # Equal values of two items are two memories.
            yield methodcaller("batch", new[at : at + _PAGE], force=True)

    def _fields_of(self, namespace: Namespace, op: base.PutOp) -> dict[str, Any]:
        assert op.value is not None
        value = dict(op.value)
        data: dict[str, Any] = {"namespace": [*namespace], "key": op.key, "value": value}
        text = ""
        if op.index is not False:
            text = "\n".join(_texts(value, self._fields if op.index is None else op.index))
        if not text.strip():
            # It is found by its name alone, and by no search.
            data["indexed"] = False
            text = "/".join([*namespace, op.key])
        if op.ttl is not None:
            data["ttl"] = op.ttl
        expires = None if op.ttl is None else time.time() + op.ttl * 60
        return {"text": _UNSTORABLE.sub("", text)[:_TEXT_CHARS], "data": data, "expires": expires}

    def _search(self, op: base.SearchOp) -> Steps[list[base.SearchItem]]:
        prefix, wanted = tuple(op.namespace_prefix), op.offset + op.limit
        items: dict[tuple[Namespace, str], tuple[MemoryView, float | None]] = {}

        def take(memory: MemoryView, score: float | None = None) -> None:
            if _below(memory, prefix) and _matches(memory.data["value"], op.filter or {}):
                items.setdefault(_name(memory), (memory, score))

        if op.query and op.query.strip():
            answer = yield lambda client: client.recall(
                op.query and op.query[:_QUERY_CHARS],
                source=SOURCE,
                category=_category(prefix),
                include=["merged"],
                fields="full",
                limit=_RECALLED if op.filter else max(1, min(wanted, _RECALLED)),
            )
            for result in answer.results:
                if result.source == "memory" and result.memory.data.get("indexed", True):
                    take(result.memory, result.relevance)
        else:
            at, total = 0, 1
            while at < total and len(items) < wanted:
                page = yield _page(at, prefix)
                for memory in page.results:
                    take(memory)
                at, total = at + _PAGE, page.total
        chosen = [*items.values()][op.offset : wanted]
        yield from _refreshed(op.refresh_ttl, [memory for memory, _ in chosen])
        return [base.SearchItem(**_item(memory), score=score) for memory, score in chosen]

    def _namespaces(self, op: base.ListNamespacesOp) -> Steps[list[Namespace]]:
        conditions = op.match_conditions or ()
        prefix: list[str] = []
        for condition in conditions:
            if condition.match_type == "prefix" and not prefix:
                fixed = [*condition.path, "*"]
                prefix = fixed[: fixed.index("*")]
        namespaces: set[Namespace] = set()
        at, total = 0, 1
        while at < total:
            page = yield _page(at, tuple(prefix))
            namespaces.update(_name(memory)[0] for memory in page.results if _below(memory, ()))
            at, total = at + _PAGE, page.total
        chosen = {
            namespace[: op.max_depth]
            for namespace in namespaces
            if all(_fits(condition, namespace) for condition in conditions)
        }
        return sorted(chosen)[op.offset : op.offset + op.limit]


# The memory of an item


def _page(at: int, prefix: Namespace) -> Any:
    return lambda client: client.list(
        source=SOURCE, category=_category(prefix), include=["merged"], limit=_PAGE, offset=at
    )


def _memories_of(namespace: Namespace, key: str) -> Steps[list[MemoryView]]:
    """The memories of an item, the one changed last first: one, or none."""
    page: MemoryPage = yield lambda client: client.list(
        source=SOURCE, category=_category(namespace), tag=[_tag(key)], include=["merged"]
    )
    memories = [m for m in page.results if _below(m, ()) and _name(m) == (namespace, key)]
    return sorted(memories, key=lambda memory: memory.updated_at, reverse=True)


def _changed(memory: MemoryView, fields: dict[str, Any]) -> Steps[bool]:
    """Change a memory; False if it was forgotten meanwhile."""
    if memory.merged_into is not None:
        yield from unless_missing(methodcaller("unmerge", memory.id))
    call = methodcaller("update", memory.id, **fields)
    return (yield from unless_missing(call)) is not None


def _refreshed(wanted: bool, memories: Iterable[MemoryView]) -> Steps[None]:
    """Restart the time to live of these items."""
    for memory in memories:
        if wanted and (minutes := memory.data.get("ttl")):
            expires = time.time() + minutes * 60
            yield from _changed(memory, {"expires": expires})


def _below(memory: MemoryView, prefix: Namespace) -> bool:
    data = memory.data
    if not isinstance(data, dict) or not {"namespace", "key", "value"} <= data.keys():
        return False
    return bool(tuple(data["namespace"][: len(prefix)]) == prefix)


def _name(memory: MemoryView) -> tuple[Namespace, str]:
    return tuple(memory.data["namespace"]), memory.data["key"]


def _item(memory: MemoryView) -> dict[str, Any]:
    namespace, key = _name(memory)
    return {
        "namespace": namespace,
        "key": key,
        "value": memory.data["value"],
        "created_at": datetime.fromtimestamp(memory.created_at, UTC),
        "updated_at": datetime.fromtimestamp(memory.updated_at, UTC),
    }


# Names as the daemon takes them; they only narrow a search, as the data has the exact ones


def _category(namespace: Namespace) -> str | None:
    """The category of a namespace; of one below it a category below."""
    path = ""
    for label in namespace:
        clean = _printable(unicodedata.normalize("NFC", label)).strip(" _.")[:_LABEL_CHARS].strip()
        longer = f"{path}/{clean or '-'}" if path else clean or "-"
        if len(longer) > _CATEGORY_CHARS:
            break
        path = longer
    if path == "root" or path.startswith("root/"):
        path = f"{path[:4]}-{path[4:]}"
    return path or None


def _tag(key: str) -> str:
    return _printable(f"key:{key}")[:_LABEL_CHARS].strip()


def _printable(text: str) -> str:
    return _UNFIT.sub("-", text)


# Values


def _texts(value: Mapping[str, Any], fields: Iterable[str]) -> Iterator[str]:
    for field in fields:
        if field != "$":
            yield from base.get_text_at_path(value, field)
            continue
        leaves = [*_leaves(value)]
        if len(leaves) == 1:
            yield leaves[0][1]
        else:
            yield "\n".join(f"{name}: {text}" for name, text in leaves)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts and numbers in a value, with the last key on the way to each."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None:
        yield name, str(value)


def _matches(value: Any, condition: Any) -> bool:
    """Whether a value meets a filter: equal, or by LangGraph's operators, at any depth."""
    if isinstance(condition, Mapping):
        if any(str(key).startswith("$") for key in condition):
            return all(_compared(value, operator, other) for operator, other in condition.items())
        if not isinstance(value, Mapping):
            return False
        return all(_matches(value.get(key), inner) for key, inner in condition.items())
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(map(_matches, value, condition))
        )
    return bool(value == condition)


def _compared(value: Any, operator: str, other: Any) -> bool:
    comparison = _COMPARISONS.get(operator)
    if comparison is None:
        raise ValueError(f"cannot filter by '{operator}': use one of {', '.join(_COMPARISONS)}")
    if operator not in ("$eq", "$ne") and (value is None or isinstance(value, Mapping | list)):
        return False
    return bool(comparison(value, other))


def _fits(condition: base.MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins or ends with a path; `*` stands for any label."""
    path = condition.path
    if len(path) > len(namespace):
        return False
    if condition.match_type == "prefix":
        part = namespace[: len(path)]
    else:
        part = namespace[len(namespace) - len(path) :]
    return all(want in ("*", label) for want, label in zip(path, part, strict=True))
