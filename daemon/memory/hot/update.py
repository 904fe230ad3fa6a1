"""Changes the hot state by the keys of EvoClaw's `hot --update`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, cast

import msgspec

from ...errors import InvalidInput, NotFound
from ..checks import (
    check_data,
    check_importance,
    check_short,
    check_text,
    check_time,
    filed_category,
    shown,
)
from ..records import Json
from .state import (
    DEFAULT_LESSON_CATEGORY,
    DEFAULT_TASK_STATUS,
    LISTS,
    Cleaning,
    HotState,
    Item,
    Section,
)

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
    merged into the project of that name, which becomes the newest. Other keys are kept. `now` is
    the default timestamp.

    Raises:
        InvalidInput: no such key, or a value of the wrong shape.
        TooLarge: the value has more than 16 KiB as JSON.
    """
    change = _change(key, "update")
    fields = checked(key, value)
    return change(state, fields, now)


def remove(state: HotState, key: str, name: str) -> HotState:
    """`state` without an entry; `NotFound` if it has no such entry.

    `name` is the name of a value of `identity` or `owner_profile`, of a project, or the exact text
    of a lesson or task, or of one or more events.
    """
    _change(key, "remove from")
    field, by = LISTS.get(cast(Section, key), (key, ""))
    held = getattr(state, field)
    if not by:
        items: Json = {other: value for other, value in held.items() if other != name}
    else:
        items = tuple(item for item in held if _stripped(item.get(by)) != name.strip())
    if len(items) == len(held):
        raise NotFound(
            f"cannot remove {shown(name)}: the hot state has no such {key}",
            field="name",
            hint=f"give {'its exact text' if by == 'text' else 'its exact name'}",
        )
    return msgspec.structs.replace(state, **{field: items})


def _change(key: str, verb: str) -> _Change:
    if key not in _UPDATES:
        raise InvalidInput(
            f"cannot {verb} {shown(key)}: the keys of the hot state are {', '.join(_UPDATES)}",
            field="key",
        )
    return _UPDATES[key]


def checked(key: str, value: Json) -> Item:
    """`value` as an object that the hot state can hold under one of its keys, of at most 16 KiB."""
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


def _set(section: str, state: HotState, item: Item, _now: float) -> HotState:
    for name in item:
        if not name.strip():
            raise InvalidInput(f"give each value of {section} a name: one is blank", field=section)
        check_short(name, section, NAME_CHARACTERS)
    return msgspec.structs.replace(state, **{section: {**getattr(state, section), **item}})


def _learn(state: HotState, item: Item, now: float) -> HotState:
    text = _text(item)
    older, others = _split(state.lessons, text)
    category = _first(item, older, "category", DEFAULT_LESSON_CATEGORY)
    importance = _first(item, older, "importance", DEFAULT_LESSON_IMPORTANCE)
    lesson = _entry(
        item,
        older,
        now,
        text=text,
        category=filed_category(_as_text(category, "category")),
        importance=check_importance(_as_number(importance, "importance")),
    )
    return msgspec.structs.replace(state, lessons=(*others, lesson))


def _happen(state: HotState, item: Item, now: float) -> HotState:
    event = _entry(item, {}, now, text=_text(item))
    return msgspec.structs.replace(state, events=(*state.events, event))


def _take_on(state: HotState, item: Item, now: float) -> HotState:
    text = _text(item)
    older, others = _split(state.tasks, text)
    task = _entry(item, older, now, text=text, status=_status(item) or DEFAULT_TASK_STATUS)
    return msgspec.structs.replace(state, tasks=(*others, task))


def _work_on(state: HotState, item: Item, _now: float) -> HotState:
    name = check_short(_as_text(item.get("name"), "name"), "name", NAME_CHARACTERS)
    if not name:
        raise InvalidInput("give the project a name: it is blank", field="name")
    _status(item)
    if item.get("description") is not None:
        _as_text(item["description"], "description")
    older, others = _split(state.projects, name, "name")
    project = {**older, **item, "name": name}
    return msgspec.structs.replace(state, projects=(*others, project))


def _split(items: tuple[Item, ...], text: str, by: str = "text") -> tuple[Item, tuple[Item, ...]]:
    """The entry with that text or name, or an empty one, and the other entries."""
    older = next((item for item in items if _stripped(item.get(by)) == text), {})
    return older, tuple(item for item in items if _stripped(item.get(by)) != text)


def _entry(item: Item, older: Item, now: float, **checked: Json) -> Item:
    """All keys of both, with the checked values at the beginning, and then the time."""
    first = {**checked, "timestamp": _time(item, now)}
    return {**dict.fromkeys(first), **older, **item, **first}


def _first(item: Item, older: Item, key: str, default: Json) -> Json:
    values = (item.get(key), older.get(key))
    return next((value for value in values if value is not None), default)


def _text(item: Item) -> str:
    return check_text(_as_text(item.get("text"), "text"), VALUE_BYTES).strip()


def _status(item: Item) -> str | None:
    status = item.get("status")
    if status is None:
        return None
    return check_short(_as_text(status, "status"), "status", STATUS_CHARACTERS)


def _time(item: Item, now: float) -> float:
    time = item.get("timestamp")
    if time is None:
        return now
    return check_time(
        time if isinstance(time, str) else _as_number(time, "timestamp"), field="timestamp"
    )


def _as_text(value: Json, field: str) -> str:
    if not isinstance(value, str):
        result = "nothing" if value is None else shown(value)
        raise InvalidInput(f"give '{field}' a text (got {result})", field=field)
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
