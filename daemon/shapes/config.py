"""The configuration: every key with its allowed values, and changes."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .common import Json


class ConfigKey(Struct, frozen=True):
    """One key: its value, and the values that it accepts.

    Attributes:
        key: dotted, as `--set` takes it.
        origin: the file that gives the value, `default` or `--set`.
        default: the value if no layer gives one; also null for an entry of a map.
        expected: the allowed values in words; `schema` is the same as JSON Schema.
        needs_restart: whether a change takes effect only when the daemon starts.
    """

    key: str
    value: Json
    origin: str
    default: Json
    help: str
    expected: str
    schema: dict[str, Any]
    needs_restart: bool


class ConfigPage(Struct, frozen=True):
    """Every key, the files that were read (lowest layer first), and the file that changes go to."""

    results: list[ConfigKey]
    files: list[str]
    writes: str | None


class ConfigChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of the user's layer. `null` is a value; `unset` removes a key.

    Attributes:
        set: values by dotted key; the value of a section is an object of the keys to set in it.
        unset: dotted keys to remove from the layer, so that lower layers apply again.
    """

    set: dict[str, Json] = {}
    unset: tuple[str, ...] = ()


class ConfigChanged(Struct, frozen=True):
    """The file that was written, and the keys that changed, by when they take effect."""

    file: str
    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]
