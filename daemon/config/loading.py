"""From the layers to the settings: merge, check what spans keys, and remember origins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..errors import ConfigInvalid
from .cron import cron_fault
from .faults import Fault, dotted, found
from .layers import DEFAULT, SET, SYSTEM_FILE, Layer, assignment, default_layer, layer_files, read
from .settings import Settings, leaves
from .walk import check, typed_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .kinds import Json

    Values = dict[str, Json]

_MAX_SOCKET_PATH = 107


class Loaded(msgspec.Struct, frozen=True):
    """Settings, and where they came from.

    Attributes:
        origins: for each dotted key the file that gave it, `default` or `--set`.
        files: the files that were read, lowest layer first; the defaults are not among them.
    """

    settings: Settings
    origins: dict[str, str]
    files: tuple[Path, ...]


def load(
    env: Mapping[str, str],
    config_file: Path | None = None,
    sets: Sequence[str] = (),
    system_file: Path = SYSTEM_FILE,
) -> Loaded:
    """Read all layers, lowest first: defaults, system, user, `config_file`, `sets`.

    A later layer wins key by key. Paths that begin with `~` are made absolute with `$HOME`.

    Args:
        env: the environment.
        config_file: must exist; the system's and the user's file need not.
        sets: `key.path=value` each, the last the strongest.
        system_file: stands in for `/etc/thermocline/config.json`.

    Raises:
        ConfigInvalid: anything is at fault; the message lists every fault, a line each.
    """
    layers, faults = _layers(env, config_file, sets, system_file)
    tree = typed_tree()
    values: Values = {}
    origins: dict[str, str] = {}
    for layer in layers:
        valid, wrong = check(tree, layer.document, layer.name)
        faults += wrong
        merge(values, valid)
        origins.update((dotted(path), layer.name) for path, _ in leaves(valid))
    faults += _settle(values, origins, env.get("HOME", ""), {fault.key for fault in faults})
    if faults:
        raise ConfigInvalid("\n".join(map(str, faults)))
    settings = msgspec.convert(values, Settings)
    present = [dotted(path) for path, _ in leaves(settings)]
    files = tuple(Path(layer.name) for layer in layers if layer.name not in {DEFAULT, SET})
    return Loaded(settings, {key: origins[key] for key in present}, files)


def describe(loaded: Loaded) -> list[tuple[str, Json, str]]:
    """Every key with its value, as JSON would hold it, and its origin, in the tree's order."""
    return [
        (dotted(path), msgspec.to_builtins(value), loaded.origins[dotted(path)])
        for path, value in leaves(loaded.settings)
    ]


def document(loaded: Loaded) -> dict[str, Json]:
    """All of it as one JSON object: the nested `values`, and `origins` by dotted key."""
    return {"values": msgspec.to_builtins(loaded.settings), "origins": loaded.origins}


def merge(lower: Values, upper: Values) -> None:
    """Lay `upper` over `lower`, in place; only dicts are merged, all else is replaced."""
    for name, value in upper.items():
        below = lower.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merge(below, value)
        else:
            lower[name] = value


def _layers(
    env: Mapping[str, str], config_file: Path | None, sets: Sequence[str], system_file: Path
) -> tuple[list[Layer], list[Fault]]:
    """All layers that can be read, and the faults of those that cannot."""
    files = layer_files(env, config_file, system_file)
    required = files[-1] if config_file is not None else None
    sources = [
        default_layer(),
        *(read(file, required=file == required) for file in files),
        *map(assignment, sets),
    ]
    layers = [source for source in sources if isinstance(source, Layer)]
    return layers, [source for source in sources if isinstance(source, Fault)]


def _settle(
    values: Values, origins: Mapping[str, str], home: str, known: set[str]
) -> Iterator[Fault]:
    """Make paths absolute, in place, and find what is wrong only between keys.

    A fault is held back while one of its keys is itself at fault (`known`): the value that
    it would speak of is not the one that was meant.
    """
    for keys, text in (*_paths(values, home), *_crons(values), *_contradictions(values)):
        if not known.intersection(keys):
            blamed = next((key for key in keys if origins[key] != DEFAULT), keys[0])
            yield Fault(origins[blamed], blamed, text)


def _paths(values: Values, home: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Expand each path and find those that cannot be used.

    Agents may share a workspace, as EvoClaw's do: each has files of its own name there.
    """
    socket = values["socket"]
    places = [("socket.path", socket, "path")] if socket["path"] is not None else []
    for agent, entry in values["agents"].items():
        places.append((dotted(("agents", agent, "workspace")), entry, "workspace"))
    for key, holder, name in places:
        if holder[name].startswith("~") and not home.startswith("/"):
            yield (key,), "begins with ~ but $HOME is not set; give an absolute path"
        elif holder[name].startswith("~"):
            holder[name] = home.rstrip("/") + holder[name][1:] or "/"
    size = len(os.fsencode(socket["path"] or ""))
    if size > _MAX_SOCKET_PATH:
        why = f"is {size} bytes long; a socket's path has at most {_MAX_SOCKET_PATH}"
        yield ("socket.path",), why


def _crons(values: Values) -> Iterator[tuple[tuple[str, ...], str]]:
    """The cron expressions that name no time."""
    for name, text in values["upkeep"].items():
        if isinstance(text, str) and (fault := cron_fault(text)):
            yield (f"upkeep.{name}",), f"{fault}, got {found(text)}"


def _contradictions(values: Values) -> Iterator[tuple[tuple[str, ...], str]]:
    """What two or more valid values are together that none of them is alone."""
    weights = values["recall"]["weights"]
    if not any(weights.values()):
        yield tuple(f"recall.weights.{name}" for name in weights), "all weights are 0; raise one"
    text, body = values["limits"]["max_text_bytes"], values["socket"]["max_body_bytes"]
    if text > body:
        why = f"a text of {text} bytes cannot arrive in a body of {body}"
        yield (
            ("limits.max_text_bytes", "socket.max_body_bytes"),
            f"{why}; raise socket.max_body_bytes or lower limits.max_text_bytes",
        )
