"""Edits of other programs' files: what each enters and removes, and how a file is replaced."""

from __future__ import annotations

import os
import shlex
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..store import atomic
from . import jsonc, toml

NAME: Final = "thermocline"
_COPY: Final = ".before-thermocline"
_BEGIN: Final = "<!-- thermocline:connect:begin -->"
_END: Final = "<!-- thermocline:connect:end -->"
_MOST: Final = 8 << 20


class Launch(msgspec.Struct, frozen=True):
    """The words that start the command, without a verb, and the options of every verb."""

    command: tuple[str, ...]
    options: tuple[str, ...] = ()

    def words(self, *verb: str) -> list[str]:
        """The words that run a verb."""
        return [*self.command, *verb, *self.options]

    def line(self, *verb: str) -> str:
        """The same as a line for a shell."""
        return shlex.join(self.words(*verb))


class Edit(msgspec.Struct, frozen=True):
    """A change of one file that can be made, recognised and undone.

    Attributes:
        path: the file; it need not exist.
        enter: the text with the change; the same text when it is there already.
        leave: the text without it; the same text when it is not there.
        only_existing: the file is left alone if it does not exist.
    """

    path: Path
    enter: Callable[[str], str]
    leave: Callable[[str], str]
    only_existing: bool = False


class Change(msgspec.Struct, frozen=True):
    """The text of a file before and after; None: no file."""

    path: Path
    before: str | None
    after: str | None

    def make(self, *, undo: bool = False) -> Path | None:
        """Replace the file in one step, keeping its mode; return the copy of what was there.

        The first copy stays, as the file was before any change of ours, until an undo leads back to
        it. A link is followed.

        Raises:
            OSError: it cannot be written; the file is as it was.
        """
        path = Path(os.path.realpath(self.path))
        copy = _copy_of(path)
        if self.before is not None and not undo and not copy.exists():
            atomic.write(copy, self.before.encode(), _mode(path))
        if not self.after or self.after.strip() in {"", "{}"}:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(path, self.after.encode(), _mode(path))
        if undo and _read(copy) == self.after:
            copy.unlink()
        return copy if copy.exists() else None


def changes_of(edits: Sequence[Edit], *, undo: bool = False) -> list[Change]:
    """The changes that some edits make, one for each file; unchanged files are left out.

    Raises:
        InvalidInput: a file cannot be read, or has another format.
    """
    changes: dict[Path, Change] = {}
    for edit in edits:
        known = changes.get(edit.path)
        before = known.before if known else _read(edit.path)
        now = known.after if known else before
        if now is None and (undo or edit.only_existing):
            continue
        try:
            after = (edit.leave if undo else edit.enter)(now or "")
        except (jsonc.Malformed, tomllib.TOMLDecodeError) as error:
            raise InvalidInput(
                f"cannot change '{edit.path}': {error}", hint="correct the file, or use --print"
            ) from error
        changes[edit.path] = Change(edit.path, before, after)
    return [one for one in changes.values() if one.before != one.after]


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + _COPY)


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o600


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read(_MOST + 1)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot change '{path}': it is not UTF-8 text") from error
    if len(text) > _MOST:
        raise InvalidInput(f"cannot change '{path}': it is larger than 8 MiB")
    return text


def member(path: Path, keys: Sequence[str], value: Any, *, shared: bool = False) -> Edit:
    """A member of a JSON file; of a `shared` one, only our own value is removed."""

    def leave(text: str) -> str:
        is_ours = not shared or _at(text, keys) == value
        return jsonc.remove(text, keys) if is_ours else text

    def enter(text: str) -> str:
        return text if _at(text, keys) == value else jsonc.put(text, keys, value)

    return Edit(path, enter, leave)


def table(path: Path, name: str, values: Mapping[str, Any]) -> Edit:
    """A table of a TOML file."""

    def enter(text: str) -> str:
        found: Any = tomllib.loads(text)
        for key in name.split("."):
            found = found.get(key, {}) if isinstance(found, Mapping) else {}
        return text if found == values else toml.put(text, name, values)

    return Edit(path, enter, lambda text: toml.remove(text, name))


def listed(path: Path, keys: Sequence[str], value: str, mark: str) -> Edit:
    """A text in a list of a JSON file; `mark` occurs in every text of ours."""

    def others(text: str) -> list[Any]:
        found = _at(text, keys)
        return [one for one in found or () if not (isinstance(one, str) and mark in one)]

    def enter(text: str) -> str:
        wanted = [*others(text), value]
        return text if _at(text, keys) == wanted else jsonc.put(text, keys, wanted)

    def leave(text: str) -> str:
        kept = others(text)
        if kept == (_at(text, keys) or []):
            return text
        return jsonc.put(text, keys, kept) if kept else jsonc.remove(text, keys)

    return Edit(path, enter, leave)


def hooks(
    path: Path, wanted: Mapping[str, Mapping[str, Any]], head: Mapping[str, Any] | None = None
) -> Edit:
    """Hooks of a JSON file: under `hooks`, a list of groups for each event.

    Groups of other programs keep their text and place. `head` is what a new file also needs.
    """

    def enter(text: str) -> str:
        for name, value in (head or {}).items():
            text = text if _at(text, (name,)) is not None else jsonc.put(text, (name,), value)
        for event, group in wanted.items():
            there = _groups(text, event)
            others = [one for one in there if not _is_ours(one)]
            if [one for one in there if _is_ours(one)] != [group]:
                text = jsonc.put(text, ("hooks", event), [*others, dict(group)])
        return text

    def leave(text: str) -> str:
        document = jsonc.load(text)
        all_hooks = document.get("hooks") if isinstance(document, Mapping) else None
        for event in all_hooks if isinstance(all_hooks, Mapping) else ():
            there = _groups(text, event)
            others = [one for one in there if not _is_ours(one)]
            if others and others != there:
                text = jsonc.put(text, ("hooks", event), others)
            elif not others:
                text = jsonc.remove(text, ("hooks", event))
        return "" if jsonc.load(text) == head else text

    return Edit(path, enter, leave)


def _groups(text: str, event: str) -> list[Any]:
    found = _at(text, ("hooks", event))
    return found if isinstance(found, list) else []


def _is_ours(group: object) -> bool:
    """Whether a group of hooks runs our command, wherever that was installed."""
    inner = group.get("hooks") if isinstance(group, Mapping) else None
    # Cursor has no groups.
    inner = inner or [group]
    commands = [one.get("command") for one in inner if isinstance(one, Mapping)]
    return any(isinstance(one, str) and NAME in one and " hook" in one for one in commands)


def _at(text: str, keys: Sequence[str]) -> Any:
    found = jsonc.load(text)
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def block(path: Path, text: str) -> Edit:
    """A marked block at the end of a Markdown file."""
    whole = f"{_BEGIN}\n{text.strip()}\n{_END}\n"

    def leave(there: str) -> str:
        start, end = there.find(_BEGIN), there.find(_END)
        if start < 0 or end < start:
            return there
        rest = there[end + len(_END) :].removeprefix("\n")
        before = there[:start].rstrip("\n")
        return (before + "\n" if before else "") + rest

    def enter(there: str) -> str:
        if whole in there:
            return there
        kept = leave(there)
        gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
        return f"{kept}{gap}{whole}"

    return Edit(path, enter, leave)


def replacement(path: Path, text: str, mark: str) -> Edit:
    """A file of another program, where it exists, replaced as a whole; the copy brings it back.

    Args:
        path: the file.
        text: what replaces it.
        mark: what every text of ours has in it, whatever command it runs.
    """

    def leave(there: str) -> str:
        if mark not in there:
            return there
        return _read(_copy_of(path)) or there

    return Edit(path, lambda _: text, leave, only_existing=True)
