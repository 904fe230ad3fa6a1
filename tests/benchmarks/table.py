"""The table: a line for each row, as soon as it is measured."""

from collections.abc import Iterable

from measuring import Row

_COLUMNS = ("what", "p50", "p99", "beside", "ratio", "budget", "")
_WIDTHS = (52, 10, 10, 26, 6, 15, 4)


def show(rows: Iterable[Row]) -> None:
    """Print the rows as they come."""
    _line(_COLUMNS)
    _line(["-" * width for width in _WIDTHS])
    for row in rows:
        _line(_cells(row))


def _cells(row: Row) -> list[str]:
    beside = f"{row.beside[0]} {_figure(row.beside[1])}" if row.beside else ""
    ratio = f"{row.ratio:.1f}x" if row.ratio is not None else ""
    p50, p99 = (_with_unit(value, row.unit) for value in (row.p50, row.p99))
    return [row.what, p50, p99, beside, ratio, _budget(row), row.verdict]


def _budget(row: Row) -> str:
    if row.budget is None:
        return ""
    bounds = [_figure(bound) for bound in (row.budget, row.budget_p99) if bound is not None]
    return f"{'>=' if row.at_least else '<='} {' / '.join(bounds)} {row.unit}"


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_figure(value)} {unit}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _line(cells: Iterable[str]) -> None:
    padded = (f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    print("  ".join(padded).rstrip(), flush=True)
