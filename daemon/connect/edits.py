"""Edits of other programs' files: what each enters and removes, and how a file is replaced."""

from __future__ import annotations

import glob
import os
import shlex
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ..errors import Conflict, InvalidInput, TooLarge
from ..runtime import atomic
from . import jsonc, toml

NAME: Final = "thermocline"
_COPY: Final = ".before-thermocline"
_BEGIN: Final = "<!-- thermocline:connect:begin -->"
_END: Final = "<!-- thermocline:connect:end -->"
_MOST: Final = 8 << 20
_EMPTY: Final = frozenset({"", "{}"})
# The places of what is ours in a list of a JSON file, each with what is there.
_Places: TypeAlias = list[tuple[tuple[Any, ...], Any]]
_Ours: TypeAlias = Callable[[Sequence[Any]], _Places]


class Launch(msgspec.Struct, frozen=True):
    """The words that start the command, without a verb, and the options of every verb."""

    command: tuple[str, ...]
    options: tuple[str, ...] = ()

    def words(self, *verb: str) -> list[str]:
        return [*self.command, *verb, *self.options]

    def line(self, *verb: str) -> str:
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
    """The text of a file before and after; None: no file.

    Attributes:
        is_first: whether nothing of ours was in it before.
    """

    path: Path
    before: str | None
    after: str | None
    is_first: bool = False

    def make(self, *, undo: bool = False) -> Path | None:
        """Replace the file in one step, keeping its mode; return the copy of what was there.

        The first copy stays, as the file was before any change of ours, until an undo leads back to
        it. A link is followed.

        Raises:
            Conflict: another program has changed the file since it was read; it is as that left it.
            OSError: it cannot be written; the file is as it was.
        """
        path = Path(os.path.realpath(self.path))
        after = self.after
        if after is None or after.strip() in _EMPTY:
            earlier = _earlier(path)
            # A file that was there before stays, as empty as it was.
            after = earlier if (earlier or "").strip() in _EMPTY else after
        new = None
        if after is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = atomic.Replacement(path, after.encode(), _mode(path))
        try:
            if new is not None:
                new.sync_alone()
            # As late as possible: some programs rewrite their file all the time.
            self._refuse_changed(path)
            copy = self._copy(path) if self.before is not None and not undo else _copy_of(path)
            if new is None:
                path.unlink(missing_ok=True)
            else:
                new.finish()
        except BaseException:
            if new is not None:
                new.discard()
            raise
        if path.parent.is_dir():
            atomic.sync_folder(path.parent)
        if undo and copy is not None and _read(copy) == after:
            copy.unlink()
        return copy if copy is not None and copy.exists() else None

    def _refuse_changed(self, path: Path) -> None:
        if _read(path) != self.before:
            raise Conflict(
                f"cannot change '{self.path}': it was changed meanwhile by another program",
                hint="call it again",
            )

    def _copy(self, path: Path) -> Path | None:
        """The copy of the file as it was; an older copy is somebody else's, ours has none."""
        text = self.before or ""
        copy = _copy_of(path)
        if not self.is_first or (copy is not None and _read(copy) == text):
            return copy
        free = atomic.numbered(path.with_name(path.name + _COPY))
        atomic.write(free, text.encode(), _mode(path))
        return free


def changes_of(
    edits: Sequence[Edit], *, undo: bool = False, project: Path | None = None
) -> list[Change]:
    """The changes that some edits make, one for each file; unchanged files are left out.

    A `project` may be somebody else's: its links may not lead out of it.

    Raises:
        InvalidInput: a file cannot be read, or has another format.
    """
    changes: dict[Path, Change] = {}
    for edit in edits:
        if project is not None:
            real = Path(os.path.realpath(edit.path))
            if not real.is_relative_to(os.path.realpath(project)):
                raise InvalidInput(
                    f"cannot change '{edit.path}': it is a link to '{real}', which is not in the"
                    " project",
                    hint="remove the link, or change that file by hand with --print",
                )
        known = changes.get(edit.path)
        before = known.before if known else _read(edit.path)
        now = known.after if known else before
        if now is None and (undo or edit.only_existing):
            continue
        if now is None:
            _refuse_dangling(edit.path)
        try:
            without = _with_its_line_ends(edit.leave, now or "")
            after = without if undo else _with_its_line_ends(edit.enter, now or "")
        except (jsonc.Malformed, toml.CannotEdit, tomllib.TOMLDecodeError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise InvalidInput(
                f"cannot change '{edit.path}': {why}", hint="correct the file, or use --print"
            ) from error
        is_first = without == (now or "") and (known is None or known.is_first)
        changes[edit.path] = Change(edit.path, before, after, is_first)
    return [change for change in changes.values() if change.before != change.after]


def _with_its_line_ends(change: Callable[[str], str], text: str) -> str:
    """A changed text; one with the line ends of Windows keeps them."""
    if "\r\n" not in text or text.count("\r\n") < text.count("\n"):
        return change(text)
    return change(text.replace("\r\n", "\n")).replace("\n", "\r\n")


def _copy_of(path: Path) -> Path | None:
    """The last copy of a file that is there; only regular files are copies."""
    copies = path.parent.glob(f"{glob.escape(path.name)}{_COPY}*")
    numbered = {
        int(rest.removeprefix("-") or 1): copy
        for copy in copies
        if ((rest := copy.name.removeprefix(path.name + _COPY)) == "" or rest[1:].isdecimal())
        # Anybody may have put something of that name there.
        and stat.S_ISREG(copy.lstat().st_mode)
    }
    return numbered[max(numbered)] if numbered else None


def _earlier(path: Path) -> str | None:
    """The text of the last copy of a file, whose links are followed."""
    copy = _copy_of(Path(os.path.realpath(path)))
    return None if copy is None else _read(copy)


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o600


def _refuse_dangling(path: Path) -> None:
    """What a link leads to may be on a disk that is not mounted: nothing is made in its place."""
    for link in (path, *path.parents):
        if link.is_symlink() and not link.exists():
            raise InvalidInput(
                f"cannot change '{path}': '{link}' is a link to '{link.readlink()}', which does"
                " not exist",
                hint="make what it leads to, or remove the link",
            )


def _read(path: Path) -> str | None:
    """The text of a file, whose links are followed; None: it does not exist."""
    try:
        return atomic.read(Path(os.path.realpath(path)), _MOST)[0].decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot change '{path}': it is not UTF-8 text") from error
    except (Conflict, TooLarge) as error:
        raise InvalidInput(f"cannot change '{path}': {error}") from error


def member(path: Path, keys: Sequence[str], value: Any, *, shared: bool = False) -> Edit:
    """A member of a JSON file; of a `shared` one our value gives way to that of the copy."""

    def leave(text: str) -> str:
        if not shared:
            return jsonc.remove(text, keys)
        if _at(text, keys) != value:
            return text
        earlier = _at(_earlier(path) or "", keys)
        is_theirs = earlier is not None and earlier != value
        return jsonc.put(text, keys, earlier) if is_theirs else jsonc.remove(text, keys)

    def enter(text: str) -> str:
        return text if _at(text, keys) == value else jsonc.put(text, keys, value)

    return Edit(path, enter, leave)


def table(path: Path, name: str, values: Mapping[str, Any]) -> Edit:
    """A table of a TOML file."""

    def enter(text: str) -> str:
        present: Any = tomllib.loads(text)
        for key in name.split("."):
            present = present.get(key, {}) if isinstance(present, Mapping) else {}
        return text if present == values else toml.put(text, name, values)

    return Edit(path, enter, lambda text: toml.remove(text, name))


def listed(path: Path, keys: Sequence[str], value: str, mark: str) -> Edit:
    """A text in a list of a JSON file; `mark` occurs in every text of ours."""

    def ours(texts: Sequence[Any]) -> _Places:
        return [((at,), text) for at, text in enumerate(texts) if mark in str(text)]

    return Edit(
        path,
        lambda text: _with_item(text, keys, value, ours),
        lambda text: _without_items(text, keys, ours),
    )


def hooks(
    path: Path, wanted: Mapping[str, Mapping[str, Any]], head: Mapping[str, Any] | None = None
) -> Edit:
    """Hooks of a JSON file: under `hooks`, a list of groups for each event.

    Hooks of other programs keep their text and place, in a group of ours too. `head` is what a new
    file also needs.
    """

    def enter(text: str) -> str:
        for name, value in (head or {}).items():
            text = text if _at(text, (name,)) is not None else jsonc.put(text, (name,), value)
        for event, group in wanted.items():
            text = _with_item(text, ("hooks", event), dict(group), _our_groups)
        return text

    def leave(there: str) -> str:
        text = there
        events = _at(text, ("hooks",))
        for event in events if isinstance(events, Mapping) else ():
            text = _without_items(text, ("hooks", event), _our_groups)
        if text == there:
            return there
        earlier = _earlier(path)
        if earlier is None:
            return "" if jsonc.load(text) == head else text
        for name in head or ():
            if _at(earlier, (name,)) is None:
                text = jsonc.remove(text, (name,))
        return text

    return Edit(path, enter, leave)


def _our_groups(groups: Sequence[Any]) -> _Places:
    """A group of which only some hooks are ours counts for each of these, with that hook alone."""
    places: _Places = []
    for at, group in enumerate(groups):
        entries = group.get("hooks") if isinstance(group, Mapping) else None
        # Cursor has no groups.
        inner = entries if isinstance(entries, list) else [group]
        ours = [number for number, entry in enumerate(inner) if _is_ours(entry)]
        if ours and len(ours) == len(inner):
            places.append(((at,), group))
        else:
            places += [((at, "hooks", n), {**group, "hooks": [inner[n]]}) for n in ours]
    return places


def _is_ours(entry: object) -> bool:
    """Whether a hook runs our command, wherever that was installed."""
    command = entry.get("command") if isinstance(entry, Mapping) else None
    return isinstance(command, str) and NAME in command and " hook" in command


def _with_item(text: str, keys: Sequence[str], item: Any, ours: _Ours) -> str:
    """The text with an item of ours in a list: in place of the first, or at the end."""
    places = ours(_items(text, keys))
    if [value for _, value in places] == [item]:
        return text
    is_replaced = bool(places) and len(places[0][0]) == 1
    for place, _ in reversed(places[1:] if is_replaced else places):
        text = jsonc.remove(text, (*keys, *place))
    at = places[0][0][0] if is_replaced else len(_items(text, keys))
    return jsonc.put(text, (*keys, at), item)


def _without_items(text: str, keys: Sequence[str], ours: _Ours) -> str:
    for place, _ in reversed(ours(_items(text, keys))):
        text = jsonc.remove(text, (*keys, *place))
    return text


def _items(text: str, keys: Sequence[str]) -> list[Any]:
    items = _at(text, keys)
    return items if isinstance(items, list) else []


def _at(text: str, keys: Sequence[str]) -> Any:
    value = jsonc.load(text)
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


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
        rest = leave(there)
        gap = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
        return f"{rest}{gap}{whole}"

    return Edit(path, enter, leave)


def replacement(path: Path, text: str, mark: str) -> Edit:
    """A file of another program, where it exists, replaced as a whole; the copy brings it back.

    Every text of ours has the `mark` in it, whatever command it runs.
    """

    def leave(there: str) -> str:
        if mark not in there:
            return there
        return _earlier(path) or there

    return Edit(path, lambda _: text, leave, only_existing=True)
