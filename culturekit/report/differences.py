"""Which differences between models are more than chance."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import SCORES
from culturekit.metrics.diversity.kernel_diversity import STANDARD_KERNELS
from culturekit.report.countries import over_all_concepts
from culturekit.report.plots import Chart, plot
from culturekit.report.run_folders import Figure, RunFolders, figure, figure_in, larger_first
from culturekit.scores.catalog import Metric
from culturekit.scores.image_collections import parsed
from culturekit.scores.listing import all_metrics

COMPARED = ("vs", "qvs")


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """How far two models are apart on one score, and whether that is more than chance."""

    first: str  # the model with the larger score
    second: str  # the other
    concept: str | None
    metric: str
    labels: str  # whether mapped or corrected labels were compared
    difference: Figure  # on the common prompts
    p: float | None  # corrected for the number of comparisons; None where nothing says how much values scatter
    common: int  # prompts that both answered
    left_out: int  # prompts that only one answered
    differ_in: tuple[str, ...] = ()  # what their images differ in besides the model
    # where corrected labels are compared, the same by mapped ones; its first model may be the other
    mapped: "DifferenceLine | None" = None


def difference_lines(run: RunFolders, *, kernel: str) -> Iterator[DifferenceLine]:
    """Give the differences of every two models over all their prompts, the largest first; none for one model.

    Those of corrected scores come first, with the mapped ones beside them.
    """
    table, ranked = run.comparison(), run.ranks("model_difference")
    compared = () if table is None else lines_of(of_models(table, run), kernel=kernel)
    corrected = () if ranked is None else lines_of(of_models(ranked, run), kernel=kernel, labels="corrected")
    mapped = {pair_of(line): line for line in compared}
    for line in corrected:
        yield replace(line, mapped=mapped.pop(pair_of(line), None))
    yield from mapped.values()


def of_models(table: pl.DataFrame, run: RunFolders) -> pl.DataFrame:
    """Keep the differences of the models of a run."""
    return table.filter(pl.col("a").is_in(run.models), pl.col("b").is_in(run.models))


def pair_of(line: DifferenceLine) -> tuple[str, frozenset[str]]:
    """Name what is compared, whichever scores more."""
    return line.metric, frozenset((line.first, line.second))


def lines_of(table: pl.DataFrame, *, kernel: str, labels: str = "mapped") -> Iterator[DifferenceLine]:
    """Give the differences of a table, from the larger to the smaller score, the largest first."""
    over_all = table.filter(pl.col("concept").is_null())
    about = (over_all if over_all.height else table).filter(
        pl.col("of_metric").is_in(COMPARED), pl.col("of_kernel") == kernel, pl.col("of_labels") == labels
    )
    ordered = about.sort(
        pl.col("of_metric").replace_strict({name: place for place, name in enumerate(COMPARED)}),
        -pl.col("value").abs(),
        "model",
    )
    for row in ordered.to_dicts():
        first, second, difference = larger_first(row)
        yield DifferenceLine(
            first=first,
            second=second,
            concept=row["concept"],
            metric=row["of_metric"],
            labels=row["of_labels"],
            difference=difference,
            p=row["p_corrected"],
            common=row["common"] or 0,
            left_out=row["left_out"] or 0,
            differ_in=tuple(row["differ_in"] or ()),
        )


# Gaps between groups of countries, such as the Global North and South, read from their scores.

METRICS = {"vs": "diversity within countries, VS", "qvs": "quality times diversity, qVS", "quality": "quality"}

PARAMS = pl.Struct(
    [
        *(pl.Field(name, pl.String) for name in ("a", "b", "metric", "scheme", "target")),
        pl.Field("of", pl.Struct({"labels": pl.String, "kernel": pl.String})),
        pl.Field("prompts", pl.Int64),
        pl.Field("p_corrected", pl.Float64),
    ]
)

FULL = {"GN": "Global North", "GS": "Global South"}


@dataclass(frozen=True, slots=True)
class GapLine:
    """How much more the countries of one group score than those of another, for one model."""

    model: str
    metric: str
    concept: str | None
    labels: str
    first: str
    second: str
    scheme: str
    gap: Figure  # first less second
    p: float | None  # corrected for the number of gaps; None where nothing says how much values scatter
    prompts: int  # of both groups
    countries: tuple[tuple[str, ...], tuple[str, ...]]  # of the first group, and of the second
    target: str  # whether it speaks about other prompts (`population`) or about `these`

    @property
    def beyond_chance(self) -> bool:
        """Tell whether the gap is more than chance."""
        return self.p is not None and self.p < 0.05


def gaps_in(run: RunFolders) -> tuple[GapLine, ...] | None:
    """Read the gaps of a run; None for one that was not asked for them."""
    found = run.read(roles.GAPS, SCORES)
    return None if found is None else tuple(gap_lines(run, found))


def gap_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[GapLine]:
    """Give the gaps of each model, over all concepts where there are several."""
    found = scores.with_row_index("row").filter(pl.col("metric") == "group_gap", pl.col("model").is_in(run.models))
    about = found.drop("metric").with_columns(p=pl.col("params").str.json_decode(PARAMS)).unnest("p")
    about = about.with_columns(labels=pl.col("of").struct.field("labels"), kernel=pl.col("of").struct.field("kernel"))
    about = about.filter(pl.col("metric").is_in(list(METRICS)), pl.col("labels") != "truth")
    shown = over_all_concepts(about, "model", "metric", "labels", "group")
    places = {metric: place for place, metric in enumerate(METRICS)}
    order = pl.col("metric").replace_strict(places), "scheme", "group", "labels", "concept", "model", "row"
    for row in shown.sort(*order, nulls_last=True).to_dicts():
        said = parsed(row["params"])
        a, b = said["a"], said["b"]
        yield GapLine(
            model=row["model"],
            metric=METRICS[row["metric"]],
            concept=row["concept"],
            labels=row["labels"],
            first=FULL.get(a, a),
            second=FULL.get(b, b),
            scheme=row["scheme"],
            gap=figure_in(row),
            p=row["p_corrected"],
            prompts=row["prompts"],
            countries=(tuple(said["countries"][a]), tuple(said["countries"][b])),
            target=row["target"],
        )


def gap_chart(lines: Sequence[GapLine]) -> str:
    """Draw each gap as a dot with its interval, those beyond chance apart from those that could be chance."""
    rows = []
    for line in lines:
        point = (line.gap.value, line.gap.low, line.gap.high)
        rows.append((f"{line.model}, {line.metric}", [point, None] if line.beyond_chance else [None, point]))
    title, columns = "Gaps between groups of countries", ("beyond chance", "could be chance")
    return plot(Chart("dots", "difference of scores"), "gap-chart-title", title, columns, rows)


# Heat maps of models by concepts, one for each kernel and metric, with floor and ceiling below.

LABELS = ("corrected", "mapped", "truth")
"""The kinds of labels, in the order in which their scores stand: what people put right leads."""

TITLES = {"vs": "Diversity VS/{size}", "qvs": "Quality times diversity, qVS"}

LIMITS = {
    "ceiling": "ceiling: every artifact equally often",
    "floor-culture-free": "floor: pictures of nothing",
    "floor-shuffled": "floor: shuffled images",
}
"""The models in the scores that nobody is asked to judge, and how the page calls them."""

Beside = tuple[Figure | None, Figure | None]  # the score that leads, and the mapped one where another leads

Cells = tuple[tuple[Figure | None, ...], ...]  # for each concept a score per kind of labels


@dataclass(frozen=True, slots=True)
class KernelTable:
    """One metric under one kernel: models down, concepts across, and for each concept a score per kind of labels."""

    kernel: str
    metric: str
    title: str
    order: str  # of the diversity; scores of two orders share no table
    concepts: tuple[str | None, ...]  # across; None stands for all prompts together
    labels: tuple[str, ...]
    rows: tuple[tuple[str, Cells], ...]
    top: float  # the end of the scale of colours, which begins at 0
    # floor and ceiling: what pictures that show nothing score, and pictures that show everything
    limits: tuple[tuple[str, tuple[Figure | None, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Quality, diversity and their product: models down, concepts across."""

    concepts: tuple[str | None, ...]
    metrics: tuple[str, ...]
    # by model and concept, for each metric its score, corrected where people looked, and the mapped one beside
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
                title, order = TITLES[metric].format(size=size), order_of(about)
                yield KernelTable(kernel, metric, title, order, concepts, labels, tuple(rows), top_of(rows), limits)


def order_of(about: pl.DataFrame) -> str:
    """Name the order of some scores, which is that of Shannon where they say nothing of it."""
    orders = about["params"].str.json_path_match("$.q").drop_nulls().cast(pl.Float64).unique().sort().to_list()
    return f"q = {' and '.join(f'{order:g}' for order in orders) or '1'}"


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


# Metrics that a recipe names, each as a table: what is only a table needs no section of its own.


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
        yield MetricTable(name, roles.METRIC.folder(variant=name), tuple(metric_lines(rows, known)), tuple(metrics))


def metric_lines(rows: Sequence[Mapping[str, Any]], known: Mapping[str, Metric]) -> Iterator[MetricLine]:
    """Give a line per score; a metric whose package is not here goes by its name."""
    for row in rows:
        title = known[row["metric"]].title if row["metric"] in known else row["metric"]
        place = ", ".join(row[name] for name in ("concept", "country", "group") if row[name] is not None)
        params = parsed(row["params"]).items()
        said = ", ".join(f"{key} {value}" for key, value in params if not isinstance(value, dict | list))
        yield MetricLine(row["model"], title, place or "all", said, figure_in(row))
