"""The layers of the configuration: their places and their content.

Blocks of profClaw's and ScalyClaw's memory settings are read as our settings. What has no
counterpart here is left out: settings of embeddings without a word, keys that these systems do not
have either with a warning.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ..errors import reason_of
from .checking import Fault, Pairs, dotted, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .settings import Json, KeyPath

SYSTEM_FILE: Final = Path("/etc/thermocline/config.json")
DEFAULT: Final = "default"
SET: Final = "--set"

_NAME = "config.json"
_MAX_BYTES = 1_048_576
_MAX_DIGITS = 30
_KEY = re.compile(r'("(?:[^"\\]|\\.)*"|[^."=]+)(\.|=|\Z)')


class Layer(msgspec.Struct, frozen=True):
    """A file or `--set`, parsed but not yet checked: an object as `Pairs`."""

    name: str
    document: Json
    warnings: tuple[Fault, ...] = ()


def layer_files(
    env: Mapping[str, str], config_file: Path | None = None, system_file: Path = SYSTEM_FILE
) -> tuple[Path, ...]:
    """Every file that is a layer if it exists, lowest first, `config_file` last.

    `$CONFIGURATION_DIRECTORY` replaces the folder of `system_file`; of several folders in it the
    first counts. A relative `$XDG_CONFIG_HOME` is ignored, as its specification asks. A service
    with a `$STATE_DIRECTORY` may write there, and nowhere else: its file is above the user's.
    """
    folder = env.get("CONFIGURATION_DIRECTORY", "").partition(":")[0]
    files = [Path(folder, _NAME) if folder else system_file]
    home, user = env.get("HOME", ""), env.get("XDG_CONFIG_HOME", "")
    if not user.startswith("/"):
        user = f"{home}/.config" if home.startswith("/") else ""
    if user:
        files.append(Path(user, "thermocline", _NAME))
    if state := env.get("STATE_DIRECTORY", "").partition(":")[0]:
        files.append(Path(state, _NAME))
    if config_file is not None:
        files.append(config_file)
    return tuple(file.absolute() for file in files)


def read(file: Path, *, required: bool) -> Layer | Fault | None:
    """The layer in `file`, the error in the file, or None if it does not exist.

    Never waits: a pipe or a device is a fault.
    """
    name = str(file)
    try:
        document = parse(_text(file))
    except (FileNotFoundError, NotADirectoryError):
        return Fault(name, "", "does not exist") if required else None
    except OSError as error:
        return Fault(name, "", f"cannot be read: {reason_of(error)}")
    except ValueError as error:
        return Fault(name, "", str(error))
    if not isinstance(document, Pairs):
        return Fault(name, "", f"expected an object, got {shown(document)}")
    return Layer(name, *translated(document, name))


def pair_of(text: str) -> tuple[KeyPath, Json] | Fault:
    """`key.path=value`: a value that is not JSON is text; a name with a dot is a JSON string."""
    path, rest = split(text)
    if not path or rest is None:
        return Fault(SET, "", f"expected key.path=value, got {shown(text)}")
    try:
        return path, parse(rest)
    except ValueError:
        return path, rest


def assignment(text: str) -> Layer | Fault:
    """The layer of one `--set`."""
    pair = pair_of(text)
    if isinstance(pair, Fault):
        return pair
    path, document = pair
    if any(name.startswith("_") for name in path):
        return Fault(SET, dotted(path), "a name with a leading underscore is a comment")
    for name in reversed(path):
        document = Pairs([(name, document)])
    return Layer(SET, document)


def parse(text: str) -> Json:
    """JSON with its objects as `Pairs`; `ValueError` says where it is not JSON."""
    if not text.strip():
        raise ValueError("is empty; expected an object, at least {}")
    try:
        return json.loads(text, object_pairs_hook=Pairs, parse_int=_integer)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise ValueError(f"line {error.lineno}, column {error.colno}: {what}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def split(text: str) -> tuple[KeyPath, str | None]:
    """A dotted key's names, and the text after the first `=` that ends it; () if invalid."""
    path: list[str] = []
    at = 0
    while part := _KEY.match(text, at):
        try:
            path.append(json.loads(part[1]) if part[1].startswith('"') else part[1].strip())
        except json.JSONDecodeError:
            break
        at = part.end()
        if part[2] != ".":
            return tuple(path), text[at:] if part[2] == "=" else None
    return (), None


def _text(file: Path) -> str:
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("is not a regular file")
        content = opened.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"is larger than {_MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        raise ValueError(f"line {line}, byte {column}: is not UTF-8 text") from error


def _integer(digits: str) -> float:
    """An integer; a float if it is too long for Python's limit of digits."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


# Other systems' blocks

_BLOCK: Final = "memory"
# A token is four characters there.
_TOKEN: Final = 4
# The names of the program and of the document. None: it has no counterpart.
_PROFCLAW: Final[dict[KeyPath, KeyPath | None]] = {
    ("chunking", "tokens"): ("index", "chunk_chars"),
    ("chunking", "overlap"): ("index", "overlap_chars"),
    ("chunking", "maxChunkSize"): ("index", "chunk_chars"),
    ("chunking", "overlapSize"): ("index", "overlap_chars"),
    ("chunking", "splitOnHeaders"): ("index", "split_on_headings"),
    ("query", "maxResults"): ("index", "max_results"),
    ("query", "minScore"): ("index", "min_score"),
    ("query", "hybrid"): None,
    ("sync", "onSessionStart"): ("index", "on_session_start"),
    ("sync", "onSearch"): ("index", "on_search"),
    ("sync", "watch"): ("index", "watch"),
    ("sync", "watchDebounceMs"): ("index", "debounce_ms"),
    ("sync", "intervalMinutes"): ("index", "interval_minutes"),
    ("paths", "include"): ("index", "include"),
    ("paths", "exclude"): ("index", "exclude"),
    ("paths", "memoryDir"): None,
    ("paths", "memoryFile"): None,
    ("sources",): None,
    ("provider",): None,
    ("fallback",): None,
    ("model",): None,
}
_SCALYCLAW: Final[dict[KeyPath, KeyPath | None]] = {
    ("topK",): ("recall", "limit"),
    ("decayRate",): ("recall", "decay_per_day"),
    ("weights", "semantic"): ("recall", "weights", "match"),
    ("weights", "recency"): ("recall", "weights", "recency"),
    ("weights", "importance"): ("recall", "weights", "importance"),
    ("consolidation", "enabled"): ("merging", "enabled"),
    ("consolidation", "schedule"): ("upkeep", "merging"),
    ("consolidation", "maxClusterSize"): ("merging", "max_cluster"),
    # Distances of embeddings.
    ("consolidation", "similarityThreshold"): None,
    ("scoreThreshold",): None,
    ("embeddingModel",): None,
}
# Nor do its programs read them.
_EVOCLAW: Final[dict[KeyPath, KeyPath | None]] = {
    ("warm_eviction",): None,
    ("tree_prune",): None,
    ("tree_rebuild",): None,
}
_IN_TOKENS: Final = frozenset({("chunking", "tokens"), ("chunking", "overlap")})


def translated(document: Pairs, name: str) -> tuple[Pairs, tuple[Fault, ...]]:
    """A layer with another system's block `memory` (profClaw's also `index`) as our sections.

    Also a warning for each key of the block that neither we nor that system have. Keys outside of
    the block stay as they are, and so does a block that has no key of theirs.
    """
    rest: list[tuple[str, Json]] = []
    warnings: list[Fault] = []
    sections: dict[str, list[tuple[str, Json]]] = {}
    for key, value in document:
        names = _names_of(key, value)
        if names is None or not isinstance(value, Pairs):
            rest.append((key, value))
            continue
        for path, setting in _leaves(value, names):
            if path not in names:
                text = "no such key is known, here or there: it has no effect"
                warnings.append(Fault(name, ".".join((key, *path)), text))
            elif (ours := names[path]) is not None:
                is_tokens = path in _IN_TOKENS and isinstance(setting, int)
                nested = setting * _TOKEN if is_tokens else setting
                for part in reversed(ours[1:]):
                    nested = Pairs([(part, nested)])
                sections.setdefault(ours[0], []).extend(nested)
    for section, pairs in sections.items():
        own = [value for key, value in rest if key == section and isinstance(value, Pairs)]
        rest = [(key, value) for key, value in rest if key != section or value not in own]
        rest.append((section, _joined([*(pair for pairs in own for pair in pairs), *pairs])))
    return Pairs(rest), tuple(warnings)


def _joined(pairs: list[tuple[str, Json]]) -> Pairs:
    """The pairs with the objects of one name, such as `weights`, as one."""
    inner: dict[str, list[tuple[str, Json]]] = {}
    for name, value in pairs:
        if isinstance(value, Pairs):
            inner.setdefault(name, []).extend(value)
    plain = [(name, value) for name, value in pairs if not isinstance(value, Pairs)]
    return Pairs([*plain, *((name, Pairs(values)) for name, values in inner.items())])


def _names_of(key: str, block: Json) -> dict[KeyPath, KeyPath | None] | None:
    if key == "consolidation":
        return _EVOCLAW
    if key not in {_BLOCK, "index"} or not isinstance(block, Pairs):
        return None
    present = {name for name, _ in block}
    objects = {name for name, value in block if isinstance(value, Pairs)}
    if objects & {path[0] for path in _PROFCLAW if len(path) > 1}:
        return _PROFCLAW
    is_theirs = key == _BLOCK and present & {path[0] for path in _SCALYCLAW}
    return _SCALYCLAW if is_theirs else None


def _leaves(
    block: Pairs, names: dict[KeyPath, KeyPath | None], above: KeyPath = ()
) -> Iterator[tuple[KeyPath, Json]]:
    """The settings of a block; an object that a system has no names in is one setting."""
    for name, value in block:
        path = (*above, name)
        if name.startswith("_"):
            continue
        if isinstance(value, Pairs) and any(known[:-1] == path for known in names):
            yield from _leaves(value, names, path)
        else:
            yield path, value
