"""Makes settings from the layers: merges, checks combinations of keys, and keeps origins."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from cronsim import CronSim, CronSimError

from ..errors import ConfigInvalid
from .checking import Fault, check, dotted, shown
from .layers import DEFAULT, SET, SYSTEM_FILE, Layer, assignment, layer_files, read
from .settings import EMBED, STATIC, Settings, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .settings import Json

    Values = dict[str, Json]
    # The keys of a combination, of which the first non-default one is named, and its fault.
    Finding = tuple[tuple[str, ...], str]

_MAX_SOCKET_PATH: Final = 107


class Loaded(msgspec.Struct, frozen=True):
    """Settings and their origins.

    Attributes:
        origins: for each dotted key the file that gave it, `default` or `--set`.
        files: the files that were read, lowest layer first.
        warnings: keys of other systems' blocks that have no effect.
    """

    settings: Settings
    origins: dict[str, str]
    files: tuple[Path, ...]
    warnings: tuple[Fault, ...] = ()


def load(
    env: Mapping[str, str],
    config_file: Path | None = None,
    sets: Sequence[str] = (),
    system_file: Path = SYSTEM_FILE,
    *,
    instead: Layer | None = None,
) -> Loaded:
    """Read all layers, lowest first: `layer_files`, then `sets`, over the defaults.

    A later layer wins key by key. Paths that begin with `~` are made absolute with `$HOME`. Only
    `config_file` must exist; `instead` replaces the file that it is named after.

    Raises:
        ConfigInvalid: anything has a fault; the message lists every fault, a line each.
    """
    files = layer_files(env, config_file, system_file)
    required = files[-1] if config_file is not None else None
    sources = [
        instead if instead and instead.name == str(file) else read(file, required=file == required)
        for file in files
    ]
    sources += map(assignment, sets)
    faults = [source for source in sources if isinstance(source, Fault)]
    layers = [source for source in sources if isinstance(source, Layer)]
    values: Values = {
        name: msgspec.to_builtins(value)
        for name, value in msgspec.structs.asdict(Settings()).items()
    }
    origins = {dotted(path): DEFAULT for path, _ in leaves(values)}
    for layer in layers:
        valid, wrong = check(layer.document, layer.name)
        faults += wrong
        _merge(values, valid)
        origins.update((dotted(path), layer.name) for path, _ in leaves(valid))
    faults += _check_settings(values, origins, env.get("HOME", ""), {fault.key for fault in faults})
    if faults:
        raise ConfigInvalid("\n".join(map(str, faults)))
    settings = msgspec.convert(values, Settings)
    present = [dotted(path) for path, _ in leaves(settings)]
    read_files = tuple(Path(layer.name) for layer in layers if layer.name != SET)
    warnings = tuple(warning for layer in layers for warning in layer.warnings)
    return Loaded(settings, {key: origins[key] for key in present}, read_files, warnings)


def describe(loaded: Loaded) -> list[tuple[str, Json, str]]:
    """Every key with its value, as JSON, and its origin, in the tree's order."""
    return [
        (dotted(path), msgspec.to_builtins(value), loaded.origins[dotted(path)])
        for path, value in leaves(loaded.settings)
    ]


def _merge(lower: Values, upper: Values) -> None:
    """Lay `upper` over `lower`, in place; only dicts are merged, all else is replaced."""
    for name, value in upper.items():
        below = lower.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            _merge(below, value)
        else:
            lower[name] = value


def _check_settings(
    values: Values, origins: Mapping[str, str], home: str, known: set[str]
) -> Iterator[Fault]:
    """Make paths absolute, in place, and check combinations of keys.

    A fault is not reported if one of its keys is itself at fault (`known`): its value is not the
    intended one.
    """
    findings = (_paths(values, home), _encoder(values, home), _crons(values))
    for keys, text in (*chain.from_iterable(findings), *_contradictions(values)):
        if not known.intersection(keys):
            blamed = next((key for key in keys if origins[key] != DEFAULT), keys[0])
            yield Fault(origins[blamed], blamed, text)


def _paths(values: Values, home: str) -> Iterator[Finding]:
    """Expand each path and find those that cannot be used.

    Agents may share a workspace, as EvoClaw's do: each has files of its own name there.
    """
    socket = values["socket"]
    places: list[tuple[str, Json, Json]] = []
    places += [("socket.path", socket, "path")] if socket["path"] is not None else []
    for agent, entry in values["agents"].items():
        if entry["workspace"] is not None:
            places.append((dotted(("agents", agent, "workspace")), entry, "workspace"))
        entry["paths"] = list(entry["paths"])
        key = dotted(("agents", agent, "paths"))
        places += [(key, entry["paths"], number) for number in range(len(entry["paths"]))]
    for key, holder, name in places:
        if holder[name].startswith("~") and not home.startswith("/"):
            yield (key,), "begins with ~ but $HOME is not set; give an absolute path"
        elif holder[name].startswith("~"):
            holder[name] = home.rstrip("/") + holder[name][1:] or "/"
    size = len(os.fsencode(socket["path"] or ""))
    if size > _MAX_SOCKET_PATH:
        why = f"is {size} bytes long; a socket's path has at most {_MAX_SOCKET_PATH}"
        yield ("socket.path",), why


def _encoder(values: Values, home: str) -> Iterator[Finding]:
    """Expand the folder of a static model, and find what cannot encode."""
    models, key = values["llm"]["models"], dotted(("llm", "models", EMBED))
    names = [*models.get(EMBED, ())]
    if len(names) > 1:
        yield (key,), "names several models, but vectors of two models cannot be compared; name one"
    for place, name in enumerate(names):
        folder = name.removeprefix(STATIC)
        if name.startswith(f"{STATIC}~/") and home.startswith("/"):
            names[place] = STATIC + home.rstrip("/") + folder[1:]
            models[EMBED] = names
        elif name.startswith(STATIC) and not folder.startswith("/"):
            yield (key,), f"expected {STATIC} and the absolute path of a folder, got {shown(name)}"


def _crons(values: Values) -> Iterator[Finding]:
    for name, text in values["upkeep"].items():
        if not isinstance(text, str):
            continue
        key = f"upkeep.{name}"
        try:
            next(CronSim(text, datetime(2024, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            fault = f"is not a cron expression ({str(error).lower()})"
            yield (key,), f"{fault}, got {shown(text)}"
        except StopIteration:
            yield (key,), f"names a time that never comes, got {shown(text)}"


def _contradictions(values: Values) -> Iterator[Finding]:
    weights = values["recall"]["weights"]
    if not any(weights.values()):
        yield tuple(f"recall.weights.{name}" for name in weights), "all weights are 0; raise one"
    chunk, overlap = values["index"]["chunk_chars"], values["index"]["overlap_chars"]
    if 2 * overlap > chunk:
        why = f"an overlap of {overlap} characters is over half of a chunk of {chunk}"
        yield ("index.overlap_chars", "index.chunk_chars"), why
    text, body = values["limits"]["max_text_bytes"], values["socket"]["max_body_bytes"]
    if text > body:
        why = f"a text of {text} bytes cannot arrive in a body of {body}"
        yield (
            ("limits.max_text_bytes", "socket.max_body_bytes"),
            f"{why}; raise socket.max_body_bytes or lower limits.max_text_bytes",
        )
