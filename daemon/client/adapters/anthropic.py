"""Anthropic's memory tool over the daemon: needs the package `anthropic`.

from thermocline.daemon.client.adapters.anthropic import MemoryTool

runner = client.beta.messages.tool_runner(tools=[MemoryTool(agent="assistant")], …)
"""

from __future__ import annotations

import asyncio
from operator import methodcaller
from typing import TYPE_CHECKING, Final

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from ..errors import ApiError
from .steps import AsyncSteps, BlockingSteps, Steps, in_steps, unless_missing

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from ...schemas.tiers import Pair

PROGRAM: Final = "anthropic-memory"
_ROOT: Final = "/memories"
# Of the key of a pair.
_PATH_CHARS: Final = 256
_PAGE: Final = 100
_NUMBER_WIDTH: Final = 6
# Lines shown before and after a replacement, and levels of a listing.
_AROUND: Final = 2
_LEVELS: Final = 2


class _Commands:
    """The commands, with the answers that the SDK's own tool gives."""

    @in_steps
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> Steps[str]:
        """Show a file with line numbers, or list a folder."""
        path, lines, key = command.path, command.view_range, _key(command.path)
        content = yield from _content(key)
        if content is None:
            return (yield from _listing(path, key))
        numbered = content.split("\n")
        first, last = 1, len(numbered)
        if lines and len(lines) == 2:
            first = max(1, lines[0])
            last = last if lines[1] == -1 else lines[1]
        return (
            f"Here's the content of {path} with line numbers:\n{_numbered(numbered, first, last)}"
        )

    @in_steps
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> Steps[str]:
        path, key = command.path, _key(command.path)
        yield from _require_free(path, key, f"File {path} already exists")
        warning = yield from _put(key, command.file_text)
        return f"File created successfully at: {path}{warning}"

    @in_steps
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> Steps[str]:
        path, old, new = command.path, command.old_str, command.new_str
        key = _key(path)
        content = yield from _file(path, key)
        if not old or old not in content:
            raise ToolError(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            )
        if content.find(old, content.find(old) + 1) != -1:
            places = (at for at in range(len(content)) if content.startswith(old, at))
            lines = ", ".join(str(content.count("\n", 0, at) + 1) for at in places)
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
                f" {lines}. Please ensure it is unique"
            )
        changed = content.replace(old, new)
        warning = yield from _put(key, changed)
        line, numbered = content[: content.find(old)].count("\n") + 1, changed.split("\n")
        shown = _numbered(numbered, max(1, line - _AROUND), line + _AROUND)
        return (
            "The memory file has been edited. Here is the snippet showing the change"
            f" (with line numbers):\n{shown}{warning}"
        )

    @in_steps
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> Steps[str]:
        path, at, key = command.path, command.insert_line, _key(command.path)
        content = yield from _file(path, key)
        lines = content.removesuffix("\n").split("\n") if content else []
        if not 0 <= at <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {at}."
                f" It should be within the range [0, {len(lines)}]."
            )
        lines.insert(at, command.insert_text.rstrip("\n"))
        changed = "\n".join(lines)
        warning = yield from _put(key, changed if changed.endswith("\n") else f"{changed}\n")
        return f"The file {path} has been edited.{warning}"

    @in_steps
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> Steps[str]:
        """Delete a file, or a folder with all in it."""
        path, key = command.path, _key(command.path)
        if path.rstrip("/") == _ROOT:
            raise ToolError(f"Cannot delete the {_ROOT} directory itself")
        keys = yield from _keys(key)
        if not keys:
            raise ToolError(f"The path {path} does not exist")
        yield from _remove(keys)
        return f"Successfully deleted {path}"

    @in_steps
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> Steps[str]:
        old, new = command.old_path, command.new_path
        old_key, new_key = _key(old), _key(new)
        if old.rstrip("/") == _ROOT:
            raise ToolError(f"Cannot rename the {_ROOT} directory itself")
        yield from _require_free(new, new_key, f"The destination {new} already exists")
        keys = yield from _keys(old_key)
        if not keys:
            raise ToolError(f"The path {old} does not exist")
        if new_key.startswith(f"{old_key}/"):
            raise ToolError(f"Cannot move {old} into itself")
        for key in keys:
            content = yield from _content(key)
            yield from _put(_key(f"/{new_key}{key[len(old_key) :]}"), content or "")
        yield from _remove(keys)
        return f"Successfully renamed {old} to {new}"

    @in_steps
    def clear_all_memory(self) -> Steps[str]:
        pairs = yield from _below(_ROOT[1:])
        yield from _remove([pair.key for pair in pairs])
        return "All memory cleared"


class MemoryTool(_Commands, BlockingSteps, BetaAbstractMemoryTool):
    """Claude's files below `/memories`, as key-value pairs of one agent.

    The pair of `/memories/notes.md` has the key `memories/notes.md`: each change is in its history
    (`thermocline history --kind pair memories/notes.md`), recall finds it, and it is replicated. A
    file has at most 64 KB. What the tool cannot do is a `ToolError`, which the model reads.

    Args:
        agent: whose memory; default: the daemon's `default`.
        socket_path: the daemon's socket; default: as of `Client`.
        cache_control: as of the base class.
    """

    program = PROGRAM

    def __init__(
        self,
        agent: str | None = None,
        socket_path: str | os.PathLike[str] | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        BetaAbstractMemoryTool.__init__(self, cache_control=cache_control)
        BlockingSteps.__init__(self, agent, socket_path)

    def _run(self, steps: Steps[str]) -> str:
        answer: str = super()._run(_refused_for_the_model(steps))
        return answer


class AsyncMemoryTool(_Commands, AsyncSteps, BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    program = PROGRAM

    def __init__(
        self,
        agent: str | None = None,
        socket_path: str | os.PathLike[str] | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        BetaAsyncAbstractMemoryTool.__init__(self, cache_control=cache_control)
        AsyncSteps.__init__(self, agent, socket_path)
        self._lock = asyncio.Lock()

    async def _run(self, steps: Steps[str]) -> str:
        async with self._lock:
            answer: str = await super()._run(_refused_for_the_model(steps))
        return answer


def _refused_for_the_model(steps: Steps[str]) -> Steps[str]:
    try:
        return (yield from steps)
    except ApiError as error:
        raise ToolError(str(error)) from error


def _listing(path: str, key: str) -> Steps[str]:
    pairs = yield from _below(key)
    if not pairs and path.rstrip("/") != _ROOT:
        raise _missing(path)
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    for pair in pairs:
        parts = tuple(pair.key[len(key) + 1 :].split("/"))
        if any(part.startswith(".") for part in parts):
            continue
        for level in range(min(len(parts), _LEVELS + 1)):
            name = parts[:level]
            folders.add(name)
            sizes[name] = sizes.get(name, 0) + len(pair.value.encode())
        if len(parts) <= _LEVELS:
            sizes[parts] = len(pair.value.encode())
    top = f"{_size(sizes.pop((), 0))}\t{path}"
    shown = [
        f"{_size(size)}\t{path}/{'/'.join(name)}{'/' if name in folders else ''}"
        for name, size in sorted(sizes.items())
    ]
    head = (
        f"Here're the files and directories up to {_LEVELS} levels deep in {path},"
        " excluding hidden items:"
    )
    return "\n".join([head, top, *shown])


# Files as pairs


def _key(path: str) -> str:
    """The key of a path below `/memories`, or of the folder that it names."""
    plain = path.rstrip("/")
    if plain != _ROOT and not plain.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path must start with {_ROOT}, got: {path}")
    if any(part in ("", ".", "..") for part in plain[1:].split("/")):
        raise ToolError(f"Path {path} would escape {_ROOT} directory")
    if not plain.isprintable() or len(plain) > _PATH_CHARS:
        raise ToolError(f"Path {path!r} is too long, or has characters that cannot be printed")
    return plain[1:]


def _content(key: str) -> Steps[str | None]:
    pair: Pair | None = yield from unless_missing(methodcaller("kv_get", key))
    return None if pair is None else pair.value


def _file(path: str, key: str) -> Steps[str]:
    content = yield from _content(key)
    if content is None:
        if (yield from _keys(key)) or path.rstrip("/") == _ROOT:
            raise ToolError(f"The path {path} is not a file.")
        raise _missing(path)
    return content


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _below(key: str) -> Steps[list[Pair]]:
    pairs: list[Pair] = []
    total = 1
    while len(pairs) < total:
        page = yield methodcaller("kv_list", f"{key}/", limit=_PAGE, offset=len(pairs))
        pairs += page.results
        total = page.total if page.results else 0
    return pairs


def _keys(key: str) -> Steps[list[str]]:
    """A file, or the files below a folder; none if there is neither."""
    if (yield from _content(key)) is not None:
        return [key]
    return [pair.key for pair in (yield from _below(key))]


def _require_free(path: str, key: str, message: str) -> Steps[None]:
    if path.rstrip("/") == _ROOT or (yield from _keys(key)):
        raise ToolError(message)
    parts = key.split("/")
    for level in range(2, len(parts)):
        parent = "/".join(parts[:level])
        if (yield from _content(parent)) is not None:
            raise ToolError(f"/{parent} is a file, not a directory")


def _put(key: str, text: str) -> Steps[str]:
    """Write a file; return what the model should know of it."""
    stored = yield methodcaller("kv_set", key, text)
    return f"\nwarning: {stored.warning}" if stored.warning else ""


def _remove(keys: Sequence[str]) -> Steps[None]:
    for key in keys:
        yield from unless_missing(methodcaller("kv_delete", key))


# What a model reads


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    shown = enumerate(lines[first - 1 : last], first)
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in shown)


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"
