"""Changing the user's layer of the configuration: the highest file in force.

That is the `--config FILE`, else `config.json` in a service's `$STATE_DIRECTORY`, else that of
`$XDG_CONFIG_HOME/thermocline`. The rest of the file stays as it is, comments included.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..errors import ConfigInvalid
from ..runtime import atomic
from ..schemas.status import ConfigChange, ConfigKey
from .checking import Fault, Pairs, allowed, dotted, is_section, shown, type_at, unknown
from .layers import SET, SYSTEM_FILE, Layer, layer_files, pair_of, parse, read, split
from .loading import Loaded, load
from .settings import Settings, at_start, for_owners, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .settings import Json, KeyPath


def keys(loaded: Loaded) -> list[ConfigKey]:
    """Every key of the configuration, in the tree's order."""
    helps, defaults = _helps(), dict(leaves(Settings()))
    return [
        ConfigKey(
            key=dotted(path),
            value=msgspec.to_builtins(value),
            origin=loaded.origins[dotted(path)],
            default=msgspec.to_builtins(defaults.get(path)),
            # An entry of a map is explained with the map.
            help=next((helps[path[:n]] for n in range(len(path), 0, -1) if path[:n] in helps), ""),
            expected=allowed(type_at(path)),
            needs_restart=at_start(path),
        )
        for path, value in leaves(loaded.settings)
    ]


def change_of(sets: Sequence[str], unset: Sequence[str]) -> ConfigChange:
    """`key.path=value` texts and keys as a change; `ConfigInvalid`: a text has another form."""
    values: dict[str, Json] = {}
    faults = []
    for pair in map(pair_of, sets):
        if isinstance(pair, Fault):
            faults.append(pair)
        else:
            values[dotted(pair[0])] = _plain(pair[1])
    if faults:
        raise ConfigInvalid("\n".join(map(str, faults)))
    return ConfigChange(set=values, unset=tuple(unset))


def user_file(
    env: Mapping[str, str], config_file: Path | None = None, system_file: Path = SYSTEM_FILE
) -> Path | None:
    """The file that changes are written to; None: the environment names none."""
    _, *files = layer_files(env, config_file, system_file)
    return files[-1] if files else None


def edit(
    change: ConfigChange,
    env: Mapping[str, str],
    config_file: Path | None = None,
    sets: Sequence[str] = (),
    system_file: Path = SYSTEM_FILE,
) -> tuple[Path, Loaded]:
    """Change the user's layer, durably; return its file, and the configuration with it. Blocking.

    Raises:
        ConfigInvalid: the change or a layer has an error; nothing was written.
        OSError: the disk refused; nothing was written.
    """
    file = user_file(env, config_file, system_file)
    if file is None:
        raise ConfigInvalid("cannot find a file to write: set $HOME, or give --config FILE")
    before = read(file, required=False)
    if isinstance(before, Fault):
        raise ConfigInvalid(str(before))
    layer, faults = _changed(before or Layer(str(file), Pairs()), change)
    try:
        loaded = load(env, config_file, sets, system_file, instead=layer)
    except ConfigInvalid as error:
        raise ConfigInvalid("\n".join([*map(str, faults), error.message])) from error
    overridden = (
        dotted(path) for path in _paths(change) if loaded.origins.get(dotted(path)) == SET
    )
    faults += (
        Fault(str(file), key, "is given by --set of the daemon's command line; change it there")
        for key in overridden
    )
    if faults:
        raise ConfigInvalid("\n".join(map(str, faults)))
    # A link stays a link: some people keep all their settings in one folder.
    place = file.resolve()
    mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
    atomic.make_folder(place.parent)
    atomic.write(place, f"{_written(layer.document)}\n".encode(), mode)
    return file, loaded


def _changed(layer: Layer, change: ConfigChange) -> tuple[Layer, list[Fault]]:
    faults: list[Fault] = []
    document = layer.document
    for key in change.unset:
        path, _ = split(key)
        known = next((end for end in range(len(path)) if type_at(path[: end + 1]) is None), None)
        if not is_key(key):
            faults.append(Fault(layer.name, "", f"expected a key, got {shown(key)}"))
        elif known is not None:
            faults.append(Fault(layer.name, key, unknown(path[known], path[:known])))
        else:
            document = _dropped(document, path)
    for key, value in change.set.items():
        path, _ = split(key)
        if not is_key(key):
            faults.append(Fault(layer.name, "", f"expected a key, got {shown(key)}"))
        elif any(name.startswith("_") for name in path):
            faults.append(Fault(layer.name, key, "a name with a leading underscore is a comment"))
        else:
            for inner, leaf in _leaves_of(path, value):
                if _has_members(inner) and leaf == ():
                    text = "an empty object changes nothing; unset the key to remove its entries"
                    faults.append(Fault(layer.name, dotted(inner), text))
                document = _put(document, inner, leaf)
    return Layer(layer.name, document), faults


def _paths(change: ConfigChange) -> Iterator[KeyPath]:
    for key, value in change.set.items():
        for path, _ in _leaves_of(split(key)[0], value):
            yield path


def field_without_key(change: ConfigChange) -> str | None:
    """The field of a change, `set` or `unset`, that has something that is no key; or None."""
    fields = {"set": change.set, "unset": change.unset}
    return next((name for name, keys in fields.items() if not all(map(is_key, keys))), None)


def is_key(text: str) -> bool:
    """Whether a text is a dotted key, whatever it names."""
    path, rest = split(text)
    return bool(path) and rest is None


def owners_keys(change: ConfigChange) -> list[str]:
    """The keys of a change that only root and the daemon's own user may change."""
    paths = [*_paths(change), *(split(key)[0] for key in change.unset)]
    return [dotted(path) for path in paths if path and for_owners(path)]


def _leaves_of(path: KeyPath, value: Json) -> Iterator[tuple[KeyPath, Json]]:
    """The values to set: those in a non-empty object where the tree has a section or a map."""
    if isinstance(value, dict) and value and _has_members(path):
        for name, inner in value.items():
            yield from _leaves_of((*path, name), inner)
    else:
        # Parsed as a file's text is.
        yield path, parse(json.dumps(value))


def _has_members(path: KeyPath) -> bool:
    kind = type_at(path)
    return is_section(kind) or getattr(kind, "__origin__", None) is dict


def _put(pairs: Json, path: KeyPath, value: Json) -> Pairs:
    """The object with a value at a key, in the place that the key has or at the end."""
    name, *rest = path
    known = pairs if isinstance(pairs, Pairs) else Pairs()
    inner = next((inner for key, inner in known if key == name), None)
    new = _put(inner, tuple(rest), value) if rest else value
    if any(key == name for key, _ in known):
        return Pairs((key, new if key == name else inner) for key, inner in known)
    return Pairs((*known, (name, new)))


def _dropped(pairs: Json, path: KeyPath) -> Json:
    name, *rest = path
    if not isinstance(pairs, Pairs):
        return pairs
    if not rest:
        return Pairs(pair for pair in pairs if pair[0] != name)
    dropped = (
        (key, _dropped(inner, tuple(rest)) if key == name else inner) for key, inner in pairs
    )
    return Pairs((key, inner) for key, inner in dropped if key != name or inner != ())


def _written(value: Json, indent: str = "") -> str:
    if not isinstance(value, Pairs) or not value:
        text = json.dumps(_plain(value), ensure_ascii=False)
        # A lone surrogate cannot be encoded in UTF-8.
        return text if text.isprintable() else json.dumps(_plain(value))
    deeper = f"{indent}  "
    lines = (f"{deeper}{_written(name)}: {_written(inner, deeper)}" for name, inner in value)
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _plain(value: Json) -> Json:
    """A parsed value with its objects, as in a comment's list, as dicts."""
    if isinstance(value, Pairs):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _helps() -> dict[KeyPath, str]:
    """The help line of each key, from the comments of the shipped file."""

    def gathered(pairs: Pairs, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
        for name, value in pairs:
            if name.startswith("_") and isinstance(value, str):
                yield (*path, name[1:]), value
            elif isinstance(value, Pairs):
                yield from gathered(value, (*path, name))

    text = Path(__file__).with_name("config.json").read_text("utf-8")
    return dict(gathered(parse(text), ()))
