"""Changes the hot state by the keys of EvoClaw's `hot --update`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, cast

import msgspec

from ...errors import InvalidInput, NotFound
from ..checks import (
    check_category,
    check_data,
    check_importance,
    check_short,
    check_text,
    check_time,
    shown,
)
from ..records import Json
from .state import DEFAULT_LESSON_CATEGORY, DEFAULT_TASK_STATUS, LISTS, HotState, Item, Section
from .values import Cleaning

_Change: TypeAlias = Callable[[HotState, Item, float], HotState]

VALUE_BYTES: Final = 16_384
NAME_CHARACTERS: Final = 200
STATUS_CHARACTERS: Final = 64
DEFAULT_LESSON_IMPORTANCE: Final = 0.7


def update(state: HotState, key: str, value: Json, now: float) -> HotState:
    """`state` with `value` merged in under `key`.

    `identity` and `owner_profile` set the keys of an object. `lesson` {text, category?,
    importance?, timestamp?} and `task` {text, status?, timestamp?} replace the entry with the same
    text but keep its other keys; `event` {text, timestamp?} is appended; `project` {name, …} is
    merged into the project of that name. Other keys are kept. `now` is the default timestamp.

    Raises:
        InvalidInput: no such key, or a value of the wrong shape.
        TooLarge: the value has more than 16 KiB as JSON.
    """
    change = _change(key, "update")
    given = checked(key, value)
    return change(state, given, now)


def remove(state: HotState, key: str, name: str) -> HotState:
    """`state` without an entry.

    `name` is the name of a value of `identity` or `owner_profile`, of a project, or the exact
    text of a lesson or task, or of one or more events.

    Raises:
        InvalidInput: no such key.
        NotFound: no such entry.
    """
    _change(key, "remove from")
    field, by = LISTS.get(cast(Section, key), (key, ""))
    held = getattr(state, field)
    if not by:
        kept: Json = {other: value for other, value in held.items() if other != name}
    else:
        kept = tuple(item for item in held if _stripped(item.get(by)) != name.strip())
    if len(kept) == len(held):
        raise NotFound(
            f"cannot remove {shown(name)}: the hot state has no such {key}",
            field="name",
            hint=f"give {'its exact text' if by == 'text' else 'its exact name'}",
        )
    return msgspec.structs.replace(state, **{field: kept})


def _change(key: str, verb: str) -> _Change:
    if key not in _UPDATES:
        raise InvalidInput(
            f"cannot {verb} {shown(key)}: the keys of the hot state are {', '.join(_UPDATES)}",
            field="key",
        )
    return _UPDATES[key]


def checked(key: str, value: Json) -> Item:
    """`value` as an object that the hot state can hold under one of its keys.

    Raises:
        InvalidInput: it is not a valid object, or cannot be stored as JSON.
        TooLarge: it has more than 16 KiB as JSON.
    """
    if not isinstance(value, dict):
        raise InvalidInput(
            f"give {key} an object (got {shown(value)})",
            field=key,
            hint=f"such as {_EXAMPLES[key]}",
        )
    cleaning = Cleaning()
    # At its depth in the document, so that the document can be read back.
    cleaning.clean(value, key, depth=3)
    if cleaning.faults:
        raise InvalidInput(f"cannot store {cleaning.faults[0]}", field=key)
    check_data(value, VALUE_BYTES, field=key)
    return value


def _set(section: str, state: HotState, given: Item, _now: float) -> HotState:
    for name in given:
        if not name.strip():
            raise InvalidInput(f"give each value of {section} a name: one is blank", field=section)
        check_short(name, section, NAME_CHARACTERS)
    return msgspec.structs.replace(state, **{section: {**getattr(state, section), **given}})


def _learn(state: HotState, given: Item, now: float) -> HotState:
    text = _text(given)
    older, others = _split(state.lessons, text)
    category = _first(given, older, "category", DEFAULT_LESSON_CATEGORY)
    importance = _first(given, older, "importance", DEFAULT_LESSON_IMPORTANCE)
    lesson = _entry(
        given,
        older,
        now,
        text=text,
        category=check_category(_as_text(category, "category")),
        importance=check_importance(_as_number(importance, "importance")),
    )
    return msgspec.structs.replace(state, lessons=(*others, lesson))


def _happen(state: HotState, given: Item, now: float) -> HotState:
    event = _entry(given, {}, now, text=_text(given))
    return msgspec.structs.replace(state, events=(*state.events, event))


def _take_on(state: HotState, given: Item, now: float) -> HotState:
    text = _text(given)
    older, others = _split(state.tasks, text)
    task = _entry(given, older, now, text=text, status=_status(given) or DEFAULT_TASK_STATUS)
    return msgspec.structs.replace(state, tasks=(*others, task))


def _work_on(state: HotState, given: Item, _now: float) -> HotState:
    name = check_short(_as_text(given.get("name"), "name"), "name", NAME_CHARACTERS)
    if not name:
        raise InvalidInput("give the project a name: it is blank", field="name")
    _status(given)
    if given.get("description") is not None:
        _as_text(given["description"], "description")
    changes = {**given, "name": name}
    projects = tuple(
        {**project, **changes} if _stripped(project.get("name")) == name else project
        for project in state.projects
    )
    known = any(_stripped(project.get("name")) == name for project in state.projects)
    return msgspec.structs.replace(state, projects=projects if known else (*projects, changes))


def _split(items: tuple[Item, ...], text: str) -> tuple[Item, tuple[Item, ...]]:
    """The entry with that text, or an empty one, and the other entries."""
    older = next((item for item in items if _stripped(item.get("text")) == text), {})
    return older, tuple(item for item in items if _stripped(item.get("text")) != text)


def _entry(given: Item, older: Item, now: float, **checked: Json) -> Item:
    """All keys of both, with the checked values at the beginning, and then the time."""
    first = {**checked, "timestamp": _time(given, now)}
    return {**dict.fromkeys(first), **older, **given, **first}


def _first(given: Item, older: Item, key: str, default: Json) -> Json:
    found = given.get(key)
    if found is None:
        found = older.get(key)
    return default if found is None else found


def _text(given: Item) -> str:
    return check_text(_as_text(given.get("text"), "text"), VALUE_BYTES).strip()


def _status(given: Item) -> str | None:
    status = given.get("status")
    if status is None:
        return None
    return check_short(_as_text(status, "status"), "status", STATUS_CHARACTERS)


def _time(given: Item, now: float) -> float:
    time = given.get("timestamp")
    if time is None:
        return now
    return check_time(
        time if isinstance(time, str) else _as_number(time, "timestamp"), field="timestamp"
    )


def _as_text(value: Json, field: str) -> str:
    if not isinstance(value, str):
        found = "nothing" if value is None else shown(value)
        raise InvalidInput(f"give '{field}' a text (got {found})", field=field)
    return value


def _as_number(value: Json, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"give '{field}' a number (got {shown(value)})", field=field)
    return value


def _stripped(value: Json) -> Json:
    return value.strip() if isinstance(value, str) else value


_UPDATES: Final[dict[str, _Change]] = {
    "identity": partial(_set, "identity"),
    "owner_profile": partial(_set, "owner_profile"),
    "lesson": _learn,
    "event": _happen,
    "task": _take_on,
    "project": _work_on,
}
_EXAMPLES: Final = {
    "identity": '{"agent_name": "Alex"}',
    "owner_profile": '{"timezone": "Europe/Berlin"}',
    "lesson": '{"text": "…", "category": "general", "importance": 0.7}',
    "event": '{"text": "…"}',
    "task": '{"text": "…", "status": "pending"}',
    "project": '{"name": "…", "status": "active"}',
}
