"""Charts of the report for notebooks and pages: `dots`, `curves` and `bars`.

Example:
    >>> own = ck.Run("runs/cube").scores("scores").filter(metric="vs", param_kernel="country", param_labels="mapped")
    >>> chart = ck.plot.dots(own, axis="diversity, VS/8")
    >>> chart.save("chart.html")
    >>> "<svg" in ck.plot.curves({"flux": [0.2, 0.5]}, ["q = 1", "q = 2"])
    True
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError
from culturekit.metrics.statistics.intervals import Interval
from culturekit.report.plots import Chart, ChartKind, Point, plot
from culturekit.report.write import template_text

Given = float | Interval | tuple[float, float, float]


class Picture(str):
    """A chart as HTML: a notebook shows it, `save` writes a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def save(self, path: Path | str) -> None:
        """Write a page with the chart alone."""
        write_atomically(Path(path), f"<!doctype html><meta charset=utf-8>{self}".encode())


def dots(rows: Mapping[str, Given] | pl.DataFrame, *, axis: str = "", title: str = "") -> Picture:
    """Draw each value as a dot with its interval.

    Args:
        rows: values by name, numbers, intervals or (value, low, high); or scores, such as `ck.Run(...).scores()`.
        axis: what the numbers are.
        title: what is read out.
    """
    if isinstance(rows, pl.DataFrame):
        rows = {
            ", ".join(str(row[name]) for name in ("model", "concept", "country", "group") if row.get(name)): (
                row["value"], row["ci_low"], row["ci_high"]
            )
            for row in rows.to_dicts()
        }  # fmt: skip
    return _drawn("dots", {name: [value] for name, value in rows.items()}, ("score",), axis, title)


def curves(rows: Mapping[str, Sequence[Given]], columns: Sequence[str], *, axis: str = "", title: str = "") -> Picture:
    """Draw a line a row over the columns, with a band where values have intervals."""
    return _drawn("curves", rows, columns, axis, title)


def bars(rows: Mapping[str, Sequence[Given]], columns: Sequence[str], *, axis: str = "", title: str = "") -> Picture:
    """Draw a histogram a row, with one bar a column."""
    return _drawn("bars", rows, columns, axis, title)


def _drawn(
    kind: ChartKind, rows: Mapping[str, Sequence[Given]], columns: Sequence[str], axis: str, title: str
) -> Picture:
    """Draw rows of values under the style of the report."""
    if not rows or any(len(values) != len(columns) for values in rows.values()):
        raise UsageError("a chart needs rows", expected=f"{len(columns)} values in each, one a column")
    lines = [(name, [_point(value) for value in values]) for name, values in rows.items()]
    chart = plot(Chart(kind, axis), "chart", title or axis, columns, lines)
    return Picture(f"<style>{template_text('report.css')}</style>{chart}")


def _point(value: Given) -> Point:
    """Read a value with its interval, where it has one."""
    if isinstance(value, Interval):
        return value.value, value.low, value.high
    return value if isinstance(value, tuple) else (float(value), None, None)
