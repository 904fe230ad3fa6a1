"""Tables of shares, in aligned columns."""

from __future__ import annotations

from collections.abc import Mapping

_COUNTS = frozenset({"questions", "overtaken"})

Figures = Mapping[str, float]


def table(title: str, rows: Mapping[str, Figures]) -> None:
    """Print a row for each name, with a column for whatever any of them has."""
    if not rows:
        return
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [[title, *columns]]
    lines += [[name, *(_cell(row, column) for column in columns)] for name, row in rows.items()]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns) + 1)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        first = f"{line[0]:<{widths[0]}}"
        rest = (f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        print("  ".join((first, *rest)).rstrip())
    print(flush=True)


def _cell(row: Figures, column: str) -> str:
    if column not in row:
        return ""
    if column in _COUNTS:
        return f"{row[column]:.0f}"
    return f"{row[column]:.3f}".removeprefix("0") if row[column] < 10 else f"{row[column]:.1f}"
