"""Metrics that a recipe names, each as a table: what is only a table needs no section of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.families.listing import all_metrics
from culturekit.metrics.catalog import Metric
from culturekit.metrics.scoring.value_sets import parsed
from culturekit.records.schemas import SCORES
from culturekit.report.figures import Figure, figure_in
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["MetricLine", "MetricTable", "metric_tables"]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One score: whose, of what, and how it was scored."""

    model: str
    metric: str
    place: str
    params: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class MetricTable:
    """The scores of one family, the folder they lie in, and what its metrics are."""

    name: str
    folder: str
    lines: tuple[MetricLine, ...]
    metrics: tuple[Metric, ...]


def metric_tables(run: RunFolders) -> Iterator[MetricTable]:
    """Read the scores of every family that the recipe of a run names under `metrics`."""
    names = run.variants(roles.METRIC)
    known = all_metrics() if names else {}
    for name in names:
        rows = run.needed(roles.METRIC, SCORES, variant=name).with_row_index("row").to_dicts()
        metrics = [known[metric] for metric in dict.fromkeys(row["metric"] for row in rows) if metric in known]
        yield MetricTable(name, roles.METRIC.folder(variant=name), tuple(lines_of(rows, known)), tuple(metrics))


def lines_of(rows: Sequence[Mapping[str, Any]], known: Mapping[str, Metric]) -> Iterator[MetricLine]:
    """Give a line per score; a metric whose package is not here goes by its name."""
    for row in rows:
        title = known[row["metric"]].title if row["metric"] in known else row["metric"]
        place = ", ".join(row[name] for name in ("concept", "country", "group") if row[name] is not None)
        params = parsed(row["params"]).items()
        said = ", ".join(f"{key} {value}" for key, value in params if not isinstance(value, dict | list))
        yield MetricLine(row["model"], title, place or "all", said, figure_in(row))
