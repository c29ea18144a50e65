"""Tables of models by kernels, one for each concept and metric, with floor and ceiling below."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
from culturekit.report.figures import Figure, figure

__all__ = ["KernelTable", "kernel_tables"]

LABELS = ("mapped", "corrected", "truth")
"""The kinds of labels, in the order in which their scores stand."""

TITLES = {"vs": "Diversity VS/8", "qvs": "Quality times diversity, qVS"}

LIMITS = {
    "ceiling": "ceiling: every artifact equally often",
    "floor-culture-free": "floor: pictures of nothing",
    "floor-shuffled": "floor: shuffled images",
}
"""The models in the scores that nobody is asked to judge, and how the page calls them."""


@dataclass(frozen=True, slots=True)
class KernelTable:
    """One metric of one concept: models down, kernels across, and for each kernel a score per kind of labels.

    `limits` are floor and ceiling: what pictures that show nothing score, and pictures that show everything.
    """

    concept: str
    metric: str
    title: str
    kernels: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Figure | None, ...], ...]], ...]
    limits: tuple[tuple[str, tuple[Figure | None, ...]], ...] = ()


def kernel_tables(scores: pl.DataFrame, models: Sequence[str]) -> Iterator[KernelTable]:
    """Give the tables of models by kernels, for each concept and metric."""
    kernels = [kernel for kernel in STANDARD_KERNELS if kernel in set(scores["kernel"].drop_nulls())]
    labels = [label for label in LABELS if label in set(scores["labels"].drop_nulls())]
    for concept in scores["concept"].drop_nulls().unique().sort():
        for metric in ("qvs", "vs"):
            about = scores.filter(pl.col("concept") == concept, pl.col("metric") == metric)
            rows = []
            for model in models:
                own = about.filter(pl.col("model") == model)
                cells = [tuple(figure(own, kernel=kernel, labels=label) for label in labels) for kernel in kernels]
                if all(cell[0] is not None for cell in cells):
                    rows.append((model, tuple(cells)))
            if rows:
                limits = tuple(limits_of(about, kernels))
                yield KernelTable(concept, metric, TITLES[metric], tuple(kernels), tuple(labels), tuple(rows), limits)


def limits_of(about: pl.DataFrame, kernels: Sequence[str]) -> Iterator[tuple[str, tuple[Figure | None, ...]]]:
    """Give floor and ceiling beside the scores of one concept and metric, kernel by kernel."""
    for model, title in LIMITS.items():
        own = about.filter(pl.col("model") == model)
        if own.is_empty():
            continue
        yield title, tuple(figure(own, kernel=kernel) for kernel in kernels)
