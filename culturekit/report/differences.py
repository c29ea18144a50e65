"""Which differences between models are more than chance."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import polars as pl
from babel import Locale, UnknownLocaleError

from culturekit.core import roles
from culturekit.core.schemas import SCORES
from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.report.countries import over_all_concepts
from culturekit.report.plots import Chart, plot
from culturekit.report.run_folders import Figure, Rows, RunFolders, figure, larger_first, rows_of, with_params
from culturekit.scores.catalog import Metric
from culturekit.scores.family import parsed
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
        pl.col("of_metric").replace_strict({name: index for index, name in enumerate(COMPARED)}),
        -pl.col("value").abs(), "model",
    )  # fmt: skip
    for row in ordered.to_dicts():
        first, second, difference = larger_first(row)
        yield DifferenceLine(
            first=first, second=second, concept=row["concept"], metric=row["of_metric"], labels=row["of_labels"],
            difference=difference, p=row["p_corrected"], common=row["common"] or 0, left_out=row["left_out"] or 0,
            differ_in=tuple(row["differ_in"] or ()),
        )  # fmt: skip


# How much more the countries of one group score than those of another, or prompts in one language than in another.

GAPS_OF = {"vs": "diversity within countries, VS", "qvs": "quality times diversity, qVS", "quality": "quality"}
LANGUAGES_OF = {"vs": "diversity, VS", "qvs": "quality times diversity, qVS"}

FULL = {"GN": "Global North", "GS": "Global South"}


def gap_table(run: RunFolders, scores: pl.DataFrame, metric: str = "group_gap") -> pl.DataFrame:
    """Keep the differences of groups, `a` less `b`, that rest on mapped or corrected labels, with what they are of."""
    of = with_params(
        scores.with_row_index("row").filter(pl.col("model").is_in(run.models), metric=metric), "a", "b", "scheme",
        "target", "prompts", "of", p="p_corrected", score="metric", labels="of.labels", kernel="of.kernel",
    )  # fmt: skip
    p = pl.col("p").cast(pl.Float64)
    return of.filter(pl.col("labels").ne_missing("truth")).with_columns(
        pl.col("labels").fill_null(""), pl.col("prompts").cast(pl.Int64), p,
        first=pl.col("a").replace(FULL), second=pl.col("b").replace(FULL), beyond_chance=(p < 0.05).fill_null(False),
    )  # fmt: skip


def gaps_in(run: RunFolders) -> Rows | None:
    """Read the gaps between groups of countries, over all concepts where there are several; None where nobody asked.

    Each has model, score, concept, labels, first, second, gap, p, beyond_chance, prompts, target, and the countries of
    both groups.
    """
    found = run.read(roles.GAPS, SCORES)
    if found is None:
        return None
    about = gap_table(run, found).filter(pl.col("score").is_in(list(GAPS_OF)))
    shown = over_all_concepts(about, "model", "score", "labels", "group")
    places = {metric: index for index, metric in enumerate(GAPS_OF)}
    order = pl.col("score").replace_strict(places), "scheme", "group", "labels", "concept", "model", "row"
    rows = rows_of(shown.sort(*order, nulls_last=True).with_columns(pl.col("score").replace(GAPS_OF)), gap="")
    for row in rows:
        countries = parsed(row.params)["countries"]
        row.countries = countries[row.a], countries[row.b]
    return rows


def gap_chart(lines: Rows) -> str:
    """Draw each gap as a dot with its interval, those beyond chance apart from those that could be chance."""
    rows = []
    for line in lines:
        point = (line.gap.value, line.gap.low, line.gap.high)
        rows.append((f"{line.model}, {line.score}", [point, None] if line.beyond_chance else [None, point]))
    title, columns = "Gaps between groups of countries", ("beyond chance", "could be chance")
    return plot(Chart("dots", "difference of scores"), "gap-chart-title", title, columns, rows)


@dataclass(frozen=True, slots=True)
class Languages:
    """Differences of languages, and of each language which words of its prompts nobody verified."""

    lines: Rows  # like gaps, with the score of each language in `sides`
    marks: tuple[tuple[str, str, int, int], ...]  # language and mark: in how many prompts, of how many


def languages_in(run: RunFolders) -> Languages | None:
    """Read what prompts in several languages show; None where they are in one."""
    scores = run.read(roles.LANGUAGES, SCORES)
    if scores is None:
        return None
    means = {(*_scope(row), row.group): row.mean for row in rows_of(gap_table(run, scores, "group_mean"), mean="")}
    gaps = gap_table(run, scores).filter(pl.col("kernel").is_null() | (pl.col("kernel") == run.kernel))
    lines = rows_of(over_all_concepts(gaps, "model", "score", "of").sort("row"), gap="")
    for row in lines:
        row.sides = tuple(means.get((*_scope(row), side)) for side in (row.a, row.b))
        row.score = LANGUAGES_OF.get(row.score, row.score.replace("_", " "))
        row.first, row.second = in_english(row.a), in_english(row.b)
    prompts = pl.read_parquet(run.table(roles.PROMPTS), columns=["language", "marks"])
    sizes = dict(prompts.group_by("language").len().iter_rows())
    marks = prompts.explode("marks").drop_nulls().group_by("language", "marks").len().sort("language", "marks")
    unverified = tuple((in_english(code), mark, count, sizes[code]) for code, mark, count in marks.iter_rows())
    return Languages(lines, unverified)


def _scope(row: SimpleNamespace) -> tuple[str | None, ...]:
    return row.concept, row.model, row.score, row.of


def in_english(language: str) -> str:
    """Call a language as CLDR does; its code where that does not know it."""
    try:
        return Locale.parse(language, sep="-").get_display_name("en") or language
    except (UnknownLocaleError, ValueError):
        return language


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
                part = about.filter(pl.col("model") == model)
                cells = tuple(
                    tuple(figure(part, concept=concept, labels=each) for each in labels) for concept in concepts
                )
                if any(score is not None for cell in cells for score in cell):
                    rows.append((model, cells))
            if rows:
                limits = tuple(limits_of(about, concepts))
                orders = with_params(about, "q")["q"].drop_nulls().cast(pl.Float64).unique().sort().to_list()
                order = f"q = {' and '.join(f'{each:g}' for each in orders) or '1'}"  # Shannon's where they say nothing
                values = [each.value for _, cells in rows for cell in cells for each in cell if each is not None]
                most = max((value for value in values if not math.isnan(value)), default=1.0)
                top = max(math.ceil(most * 10 - 1e-9), 1) / 10  # the first tenth above every score
                title = TITLES[metric].format(size=size)
                yield KernelTable(kernel, metric, title, order, concepts, labels, tuple(rows), top, limits)


def concepts_of(scores: pl.DataFrame) -> tuple[str | None, ...]:
    """List the concepts that were scored, all together first where that was scored too."""
    named = tuple(scores["concept"].drop_nulls().unique().sort())
    return (None, *named) if scores.filter(pl.col("metric") == "vs")["concept"].null_count() else named


def limits_of(about: pl.DataFrame, concepts: Sequence[str | None]) -> Iterator[tuple[str, tuple[Figure | None, ...]]]:
    """Give floor and ceiling below the scores of a kernel, concept by concept."""
    for model, title in LIMITS.items():
        part = about.filter(pl.col("model") == model)
        if part.is_empty():
            continue
        yield title, tuple(figure(part, concept=concept) for concept in concepts)


def breakdown_of(scores: pl.DataFrame, models: Sequence[str], *, kernel: str) -> Breakdown:
    """Put quality, diversity and their product side by side."""
    concepts = concepts_of(scores)
    about = scores.filter(pl.col("country").is_null())
    metrics = ("quality", "vs", "qvs")

    def cell(model: str, concept: str | None, metric: str) -> Beside:
        part = about.filter(pl.col("model") == model, pl.col("metric") == metric)
        of = {"concept": concept, "kernel": None if metric == "quality" else kernel}
        mapped, corrected = (figure(part, labels=labels, **of) for labels in ("mapped", "corrected"))
        return (mapped, None) if corrected is None else (corrected, mapped)

    rows = (
        (model, tuple(tuple(cell(model, concept, metric) for metric in metrics) for concept in concepts))
        for model in models
    )
    return Breakdown(concepts, metrics, tuple(rows))


# Metrics that a recipe names, each as a table: what is only a table needs no section of its own.


@dataclass(frozen=True, slots=True)
class MetricTable:
    """The scores of one family, the folder they lie in, and what its metrics are."""

    name: str
    folder: str
    lines: Rows  # the scores, each with its title, place, how it was scored, and figure
    metrics: tuple[Metric, ...]


def metric_tables(run: RunFolders) -> Iterator[MetricTable]:
    """Read the scores of every family that the recipe of a run names under `metrics`."""
    names = run.variants(roles.METRIC)
    known = all_metrics() if names else {}
    titles = {name: metric.title for name, metric in known.items()}  # one whose package is not here goes by its name
    where = pl.concat_str("concept", "country", "group", separator=", ", ignore_nulls=True)
    for name in names:
        scores = run.needed(roles.METRIC, SCORES, variant=name).with_row_index("row")
        lines = rows_of(scores.with_columns(title=pl.col("metric").replace(titles), place=where), figure="")
        for row in lines:
            params = parsed(row.params).items()
            row.shown = ", ".join(f"{key} {value}" for key, value in params if not isinstance(value, dict | list))
        metrics = tuple(known[metric] for metric in scores["metric"].unique(maintain_order=True) if metric in known)
        yield MetricTable(name, roles.METRIC.folder(variant=name), lines, metrics)
