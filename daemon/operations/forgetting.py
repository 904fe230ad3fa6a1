"""Forgetting all matching memories, or only counting them."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import InvalidInput, NotFound
from ..language.secrets import cleared, secrets_in, secrets_of
from ..memory.own_files import EPISODES, REFLECTIONS
from ..memory.records import Memory
from ..shapes.memory import ForgetBody, Forgotten
from ..store import (
    apply,
    atomic,
    key_values,
    line_file,
    memories,
    memory_rows,
    rows,
    secret_rows,
)
from ..store.agent_store import AgentStore
from ..store.kinds import kind_of
from ..store.secret_rows import Held
from ..store.selecting import Filters, where
from ..store.transaction import Transaction
from .operation import Operation
from .scope import Scope
from .views import memory_view

# The maximum for one transaction, so that other writers get their turn.
_TOGETHER: Final = 200
_SHOWN: Final = 10
# The files to which the daemon adds reported texts.
_LOGS: Final = (EPISODES, REFLECTIONS)


@Operation("POST", "/api/memory/forget", role="write")
async def forget(scope: Scope, body: ForgetBody) -> Forgotten:
    """Forget all memories of a category, that contain words, or that hold secrets."""
    words = None if body.query is None else body.query.casefold().split()
    category = scope.category(body.category)
    if words == [] or (words is None and category is None and not body.secrets):
        raise InvalidInput(
            "say what to forget: a 'category', a 'query' or both, or 'secrets'",
            field="category" if words is None else "query",
        )
    everywhere = body.secrets and words is None and category is None

    def read(db: sqlite3.Connection) -> tuple[list[str], list[Memory], list[Held]]:
        found = _fitting(db, category, words or (), scope.now)
        if body.secrets:
            found = [key for key in found if secrets_of(memories.find(db, key))]
        shown = [memories.find(db, key) for key in found[: _SHOWN if body.dry_run else 0]]
        held = secret_rows.holding(db, _LOGS) if everywhere else []
        # The texts of forgotten memories are also removed from the summaries.
        return found, shown, [one for one in held if one.id not in found]

    async with scope.store() as store:
        found, newest, held = await store.read(read)
        elsewhere = [_place(one) for one in held]
        for log in _LOGS if everywhere else ():
            file = (store.place.workspace or store.place.folder) / log
            if await asyncio.to_thread(_rewrite, file, _cleared_line, dry_run=body.dry_run):
                elsewhere.append(f"file {log}")
        if not body.dry_run:
            texts = await _forget_all(store, found)
            await forget_in_episodes(scope, store, texts)
            for one in held:
                await store.write(partial(secret_rows.remove, held=one))
            if store.exists:
                await scope.daemon.own_files.bring(store)
    shown = [memory_view(scope, memory) for memory in newest]
    return Forgotten(len(found), not body.dry_run, shown, elsewhere if everywhere else UNSET)


def _place(held: Held) -> str:
    kind = f"{held.kind}/" if held.where == "history" else ""
    return f"{held.where} {kind}{held.id}"


def _rewrite(path: Path, change: Callable[[bytes], bytes | None], *, dry_run: bool = False) -> bool:
    """Change the lines of a file, or remove them (None); whether any was changed. Blocking."""
    if not path.exists():
        return False
    # A line added meanwhile must not be lost.
    with line_file.locked(path.parent):
        data = path.read_bytes()
        lines = map(change, data.split(b"\n"))
        clean = b"\n".join(line for line in lines if line is not None)
        if clean != data and not dry_run:
            atomic.write(path, clean, path.stat().st_mode & 0o777)
    return clean != data


def _cleared_line(line: bytes) -> bytes:
    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line
    return msgspec.json.encode(cleared(told)) if secrets_in(told) else line


async def forget_in_episodes(scope: Scope, store: AgentStore, texts: Sequence[str]) -> None:
    """Remove the texts of forgotten memories from the summaries of conversations."""
    file = (store.place.workspace or store.place.folder) / EPISODES
    if not texts:
        return
    if await asyncio.to_thread(_rewrite, file, partial(_without_said, texts=texts)):
        await scope.daemon.own_files.bring(store)


def _without_said(line: bytes, texts: Sequence[str]) -> bytes | None:
    """A line without some statements and their tags; None if nothing else is left."""
    try:
        told = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line
    summary = told.get("summary")
    if not isinstance(summary, str):
        return line
    rest = summary
    for text in texts:
        said = re.escape(text.strip().rstrip(".!"))
        rest = re.sub(rf"(?<!\w){said}(?!\w)[.!]?\s*", "", rest)
    if rest == summary:
        return line
    tags, gone = told.get("tags"), "\n".join(texts).casefold()
    if isinstance(tags, list):
        told["tags"] = [
            tag for tag in tags if not (_has(gone, tag) and not _has(rest.casefold(), tag))
        ]
    told["summary"] = rest.strip()
    return msgspec.json.encode(told) if rest.strip() else None


def _has(text: str, tag: object) -> bool:
    return isinstance(tag, str) and tag.casefold() in text


async def _forget_all(store: AgentStore, ids: Sequence[str]) -> list[str]:
    """Forget memories by their ids, ignoring missing ones; return the texts of grouped ones."""
    texts: list[str] = []

    def apply(tx: Transaction, some: Sequence[str]) -> None:
        for key in some:
            try:
                memory = memories.find(tx.db, key)
            except NotFound:
                continue
            if memory.group:
                texts.append(memory.text)
            memories.delete(tx, memory)

    for start in range(0, len(ids), _TOGETHER):
        await store.write(partial(apply, some=ids[start : start + _TOGETHER]))
    return texts


async def forget_everything(store: AgentStore) -> tuple[int, int]:
    """Forget every row; return the numbers of memories and key-value pairs."""
    names = await store.read(lambda db: [row.key for row in apply.every(db) if row.data])
    kinds = [kind for kind, _ in names]
    for start in range(0, len(names), _TOGETHER):
        await store.write(partial(_forget_rows, names=names[start : start + _TOGETHER]))
    return kinds.count(memory_rows.KIND.name), kinds.count(key_values.KIND.name)


def _forget_rows(tx: Transaction, names: Sequence[tuple[str, str]]) -> None:
    for kind, key in names:
        rows.write(tx, kind_of(kind), key, None)


def everything(db: sqlite3.Connection) -> list[str]:
    """The ids of all memories, newest first."""
    return _fitting(db, None, (), 0.0)


def _fitting(
    db: sqlite3.Connection, category: str | None, words: Sequence[str], now: float
) -> list[str]:
    condition, arguments = where(Filters(category=category, merged=True, expired=True), now)
    sql = f"SELECT id, text, subject, outcome FROM memories WHERE {condition}"  # noqa: S608
    found = db.execute(f"{sql} ORDER BY created_at DESC, row DESC", arguments)
    return [
        key
        for key, *texts in found
        if not words or all(word in "\n".join(filter(None, texts)).casefold() for word in words)
    ]
