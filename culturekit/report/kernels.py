"""Heat maps of models by concepts, one for each kernel and metric, with floor and ceiling below."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
from culturekit.report.figures import Figure, figure

__all__ = ["Breakdown", "KernelTable", "breakdown_of", "kernel_tables"]

LABELS = ("corrected", "mapped", "truth")
"""The kinds of labels, in the order in which their scores stand: what people put right leads."""

TITLES = {"vs": "Diversity VS/{size}", "qvs": "Quality times diversity, qVS"}

LIMITS = {
    "ceiling": "ceiling: every artifact equally often",
    "floor-culture-free": "floor: pictures of nothing",
    "floor-shuffled": "floor: shuffled images",
}
"""The models in the scores that nobody is asked to judge, and how the page calls them."""

Beside = tuple[Figure | None, Figure | None]
"""The score that leads, and the mapped one where another leads."""

Cells = tuple[tuple[Figure | None, ...], ...]
"""For each concept a score per kind of labels."""


@dataclass(frozen=True, slots=True)
class KernelTable:
    """One metric under one kernel: models down, concepts across, and for each concept a score per kind of labels.

    Attributes:
        concepts: across; None stands for all prompts together.
        top: the end of the scale of colours, which begins at 0.
        limits: floor and ceiling: what pictures that show nothing score, and pictures that show everything.
    """

    kernel: str
    metric: str
    title: str
    concepts: tuple[str | None, ...]
    labels: tuple[str, ...]
    rows: tuple[tuple[str, Cells], ...]
    top: float
    limits: tuple[tuple[str, tuple[Figure | None, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Quality, diversity and their product: models down, concepts across.

    Attributes:
        rows: by model and concept, for each metric its score, corrected where people looked, and the mapped one beside.
    """

    concepts: tuple[str | None, ...]
    metrics: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Beside, ...], ...]], ...]


def kernel_tables(scores: pl.DataFrame, models: Sequence[str], *, size: int) -> Iterator[KernelTable]:
    """Give the heat maps of batches of a size, diversity first, kernel by kernel, the standard ones first."""
    labels = tuple(label for label in LABELS if label in set(scores["labels"].drop_nulls()))
    concepts = concepts_of(scores)
    for kernel in dict.fromkeys([*STANDARD_KERNELS, *scores["kernel"].drop_nulls()]):
        for metric in ("vs", "qvs"):
            about = scores.filter(pl.col("kernel") == kernel, pl.col("metric") == metric, pl.col("country").is_null())
            rows = []
            for model in models:
                own = about.filter(pl.col("model") == model)
                cells = tuple(
                    tuple(figure(own, concept=concept, labels=each) for each in labels) for concept in concepts
                )
                if any(score is not None for cell in cells for score in cell):
                    rows.append((model, cells))
            if rows:
                limits = tuple(limits_of(about, concepts))
                title = f"{TITLES[metric].format(size=size)}{order_of(about)}"
                yield KernelTable(kernel, metric, title, concepts, labels, tuple(rows), top_of(rows), limits)


def order_of(about: pl.DataFrame) -> str:
    """Name the order of some scores, where it is not that of Shannon."""
    orders = about["params"].str.json_path_match("$.q").drop_nulls().unique().to_list()
    named = [f"{float(order):g}" for order in orders]
    return "" if named in ([], ["1"]) else f", order q = {' and '.join(sorted(named))}"


def concepts_of(scores: pl.DataFrame) -> tuple[str | None, ...]:
    """List the concepts that were scored, all together first where that was scored too."""
    named = tuple(scores["concept"].drop_nulls().unique().sort())
    return (None, *named) if scores.filter(pl.col("metric") == "vs")["concept"].null_count() else named


def top_of(rows: Sequence[tuple[str, Cells]]) -> float:
    """Find the first tenth above every score."""
    found = [each.value for _, cells in rows for cell in cells for each in cell if each is not None]
    known = [value for value in found if not math.isnan(value)]
    return max(math.ceil(max(known, default=1.0) * 10 - 1e-9), 1) / 10


def limits_of(about: pl.DataFrame, concepts: Sequence[str | None]) -> Iterator[tuple[str, tuple[Figure | None, ...]]]:
    """Give floor and ceiling below the scores of a kernel, concept by concept."""
    for model, title in LIMITS.items():
        own = about.filter(pl.col("model") == model)
        if own.is_empty():
            continue
        yield title, tuple(figure(own, concept=concept) for concept in concepts)


def breakdown_of(scores: pl.DataFrame, models: Sequence[str], *, kernel: str) -> Breakdown:
    """Put quality, diversity and their product side by side."""
    concepts = concepts_of(scores)
    about = scores.filter(pl.col("country").is_null())
    metrics = ("quality", "vs", "qvs")

    def cell(model: str, concept: str | None, metric: str) -> Beside:
        own = about.filter(pl.col("model") == model, pl.col("metric") == metric)
        of = {"concept": concept, "kernel": None if metric == "quality" else kernel}
        mapped, corrected = (figure(own, labels=labels, **of) for labels in ("mapped", "corrected"))
        return (mapped, None) if corrected is None else (corrected, mapped)

    rows = (
        (model, tuple(tuple(cell(model, concept, metric) for metric in metrics) for concept in concepts))
        for model in models
    )
    return Breakdown(concepts, metrics, tuple(rows))
