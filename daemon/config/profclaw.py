"""profClaw's memory settings as settings of the section `index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .faults import Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .kinds import Json, KeyPath

_SECTION: Final = "index"
_THEIRS: Final = "memory"
# A token is four characters there.
_TOKEN: Final = 4
_NAMES: Final[dict[KeyPath, str]] = {
    ("chunking", "tokens"): "chunk_chars",
    ("chunking", "overlap"): "overlap_chars",
    ("query", "maxResults"): "max_results",
    ("query", "minScore"): "min_score",
    ("sync", "onSessionStart"): "on_session_start",
    ("sync", "onSearch"): "on_search",
    ("sync", "watch"): "watch",
    ("sync", "watchDebounceMs"): "debounce_ms",
    ("sync", "intervalMinutes"): "interval_minutes",
}
# Settings of embeddings, which do not exist here, and names that are fixed.
_UNUSED: Final = frozenset({"sources", "provider", "fallback", "model", "paths", "hybrid"})
_GROUPS: Final = frozenset({"chunking", "query", "sync"})


def translated(document: Pairs) -> Pairs:
    """A layer in which profClaw's block, under `memory` or `index`, is a section `index`.

    Keys that are not profClaw's stay as they are.
    """
    return Pairs(
        (_SECTION, Pairs(_settings(value)))
        if name in {_SECTION, _THEIRS} and isinstance(value, Pairs) and _is_theirs(value)
        else (name, value)
        for name, value in document
    )


def _is_theirs(block: Pairs) -> bool:
    return any(name in _GROUPS and isinstance(value, Pairs) for name, value in block)


def _settings(block: Pairs) -> Iterator[tuple[str, Json]]:
    for name, value in block:
        if name in _GROUPS and isinstance(value, Pairs):
            for inner, setting in value:
                ours = _NAMES.get((name, inner))
                is_tokens = name == "chunking" and isinstance(setting, int)
                if ours is not None:
                    yield ours, setting * _TOKEN if is_tokens else setting
                elif inner not in _UNUSED:
                    yield f"{name}.{inner}", setting
        elif name not in _UNUSED:
            yield name, value
