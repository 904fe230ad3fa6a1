"""Tables of shares, in aligned columns."""

from collections.abc import Mapping

_COUNTS = frozenset({"questions"})

Figures = Mapping[str, float | str]


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
    value = row.get(column, "")
    if isinstance(value, str):
        return value
    if column in _COUNTS:
        return f"{value:.0f}"
    return f"{value:.3f}".removeprefix("0") if value < 10 else f"{value:.1f}"
