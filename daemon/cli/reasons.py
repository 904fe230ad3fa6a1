"""Why a memory was found, and how the question was understood, as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .. import shapes
from .memories import short
from .terminal import cut, visible, width

_INDENT: Final = " " * 6


def show_explained(found: shapes.recall.RecallResult) -> None:
    """Print the reasons for a memory's rank, one line for each kind of reason."""
    if parts := found.parts:
        _print(f"{_INDENT}{_sum(found.relevance, parts)}")
        _show(_reasons(found, parts), _INDENT)


def show_understood(understood: shapes.recall.Understood) -> None:
    """Print how the question was understood, without empty parts."""
    print("understood")
    _show(_understood(understood), "  ")


def show_reasoned(by_model: shapes.recall.ByModel) -> None:
    """Print where a model expected the answer, and why."""
    if by_model.tree:
        print("reasoned")
    _show((("tree", _reasoned(path)) for path in by_model.tree), "  ")


def _reasoned(path: shapes.recall.ReasonedPath) -> str:
    return f"{' > '.join(path.trace)}  {path.relevance:.2f} ({path.reason})"


def _sum(relevance: float, parts: shapes.recall.Explanation) -> str:
    shares = (f"{name} {getattr(parts, name):.3f}" for name in ("match", "recency", "importance"))
    return f"relevance {relevance:.3f}; order by {', '.join(shares)}"


def _reasons(
    found: shapes.recall.RecallResult, parts: shapes.recall.Explanation
) -> Iterator[tuple[str, str]]:
    yield "words", ", ".join(word for word in parts.words if word not in parts.by)
    yield "by", ", ".join(f"{word}: {own}" for word, own in parts.by.items())
    by_size = sorted(parts.signals.items(), key=lambda signal: -abs(signal[1]))
    yield "signals", "  ".join(f"{name} {added:+.2f}" for name, added in by_size)
    yield "lenders", ", ".join(map(short, parts.lenders))
    yield "path", parts.path
    yield "reason", parts.reason
    if found.memory:
        yield "superseded by", short(found.memory.superseded_by or "")


def _understood(understood: shapes.recall.Understood) -> Iterator[tuple[str, str]]:
    yield "words", ", ".join(understood.words)
    yield "common words", ", ".join(understood.common_words)
    yield "phrases", _phrases(understood.phrases)
    yield "excluded", _phrases(understood.excluded)
    yield "people", ", ".join(understood.people)
    yield "dates", ", ".join(understood.dates)
    for path in understood.tree:
        matched = ", ".join(path.words)
        yield "tree", f"{' > '.join(path.trace)}  {path.relevance:.3f} ({matched})"


def _phrases(phrases: Iterable[Sequence[str]]) -> str:
    return ", ".join(
        f'"{" ".join(phrase)}"' if len(phrase) > 1 else phrase[0] for phrase in phrases
    )


def _show(rows: Iterable[tuple[str, str]], indent: str) -> None:
    told = [(name, text) for name, text in rows if text]
    size = max((len(name) for name, _ in told), default=0)
    for name, text in told:
        _print(f"{indent}{name:<{size}}  {visible(text)}")


def _print(line: str) -> None:
    print(cut(line, width()))
