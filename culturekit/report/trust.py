"""From a finished run to what its report says of the mapping: floor, ceiling, countries, hubs, bounds, stability."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import DISAGREEMENTS, HUBS, RECOGNITION, SCORES
from culturekit.metrics.diversity.kernel_diversity import STANDARD_KERNELS
from culturekit.report.countries import country_names
from culturekit.report.run_folders import Figure, Rows, RunFolders, figure, rows_of, with_params
from culturekit.scores.image_collections import parsed

# Nearest artifacts and a vision model's tags side by side: scores, agreement, and where they part.

LEVELS = ("continent", "country", "artifact")
SIDES = ("mapped", "tagged")
PARTINGS_SHOWN = 12
TITLES = {"vs": "Diversity VS/8", "qvs": "Quality times diversity, qVS"}


@dataclass(frozen=True, slots=True)
class RouteTable:
    """One metric of one concept, None for all: models down, kernels across, for each kernel both routes."""

    concept: str | None
    title: str
    kernels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Figure | None, Figure | None], ...]], ...]


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """How far the routes agree on the images of a model and concept."""

    model: str
    concept: str | None
    # for continent, country and artifact the share of equal labels, and kappa
    levels: tuple[tuple[Figure | None, Figure | None], ...]
    # `common` images, those of each route, and what each says of the common ones, such as `no_answer_b`
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TwoRoutes:
    """What the page says of the two routes."""

    judge: str  # who tagged
    sample: int | None  # how many images of each model and concept were drawn for it, at most; None for all
    tables: tuple[RouteTable, ...]  # scores side by side
    agreement: tuple[AgreementLine, ...]  # image by image
    partings: Rows  # countries most often disagreed on: model, mapped, tagged, images, and their share
    ranking: Rows  # of the models, route against route: metric, concept, kernel, n, value (tau), stable
    left_out: Mapping[str, int]  # what did not enter, counted by reason
    caveats: tuple[str, ...]  # what the tagging says must be known

    @property
    def stable(self) -> bool | None:
        """Tell whether both routes rank the models alike everywhere; None where there are too few models."""
        return all(line.stable for line in self.ranking) if self.ranking else None


def routes_in(run: RunFolders, models: Sequence[str]) -> TwoRoutes | None:
    """Collect what a run says of its two routes; None for a run without tags."""
    scores, apart = run.numbered(roles.ROUTES), run.read(roles.ROUTES, DISAGREEMENTS)
    if scores is None or apart is None:
        return None
    rows = with_params(scores, "kernel", "labels", "level", "scorer")
    notes = [run.manifest(roles.TAGS, model).notes for model in models]
    sample = notes[0].get("sample") if notes else None
    return TwoRoutes(
        judge=", ".join(dict.fromkeys(str(note["judge"]) for note in notes)),
        sample=None if sample is None else int(sample["images"]),
        tables=tuple(route_tables(rows, models)),
        agreement=tuple(agreement_lines(rows, models)),
        partings=partings(apart, models, country_names(run)),
        ranking=rankings(scores.filter(metric="ranking_stability"), "metric", "concept", "kernel"),
        left_out=run.manifest(roles.ROUTES).drops,
        caveats=tuple(dict.fromkeys(str(note["caveat"]) for note in notes)),
    )


def concepts_in(rows: pl.DataFrame) -> list[str | None]:
    """List the concepts, all of them together first."""
    return rows["concept"].unique().sort(nulls_last=False).to_list()


def route_tables(rows: pl.DataFrame, models: Sequence[str]) -> Iterator[RouteTable]:
    """Give the tables of both routes' scores: qVS where quality was scored, and VS."""
    kernels = tuple(kernel for kernel in STANDARD_KERNELS if kernel in set(rows["kernel"].drop_nulls()))
    for metric in ("vs", "qvs"):
        scores = rows.filter(pl.col("metric") == metric)
        for concept in concepts_in(scores):
            about = scores.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))
            lines = []
            for model in models:
                own = about.filter(pl.col("model") == model)
                cells = tuple(
                    (figure(own, kernel=kernel, labels=SIDES[0]), figure(own, kernel=kernel, labels=SIDES[1]))
                    for kernel in kernels
                )
                if any(cell != (None, None) for cell in cells):
                    lines.append((model, cells))
            if lines:
                yield RouteTable(concept, TITLES[metric], kernels, tuple(lines))


def agreement_lines(rows: pl.DataFrame, models: Sequence[str]) -> Iterator[AgreementLine]:
    """Give the agreement of each model, over all its concepts first."""
    for model in models:
        own = rows.filter(pl.col("model") == model)
        shares = own.filter(pl.col("metric") == "route_agreement")
        kappas = own.filter(pl.col("metric") == "route_kappa")
        for concept in concepts_in(shares):
            place = pl.col("concept").eq_missing(pl.lit(concept, pl.String))
            levels = tuple(
                (figure(shares.filter(place), level=level), figure(kappas.filter(place), level=level))
                for level in LEVELS
            )
            yield AgreementLine(model, concept, levels, parsed(shares.filter(place)["params"][0]))


def partings(apart: pl.DataFrame, models: Sequence[str], names: Mapping[str, str]) -> Rows:
    """Give the pairs of countries most often disagreed on, over all concepts."""
    about = apart.filter(pl.col("level") == "country", pl.col("model").is_in(list(models)))
    whole = about.filter(pl.col("concept").is_null())
    chosen = whole if whole.height else about
    first = chosen.sort(-pl.col("images").cast(pl.Int64), "model", "label_a", "label_b").head(PARTINGS_SHOWN)
    return rows_of(first.with_columns(mapped=pl.col("label_a").replace(names), tagged=pl.col("label_b").replace(names)))


def rankings(scores: pl.DataFrame, *order: str) -> Rows:
    """Read how far two ways of scoring agree on the order of the models, the worst first."""
    named = with_params(scores, "metric", "kernel", "between", "stable").with_columns(
        pl.col("kernel").fill_null(""), pl.col("stable") == "true",
        pl.col("between").str.json_decode(pl.List(pl.String)),
    )  # fmt: skip
    return rows_of(named.sort("value", *order, nulls_last=True))


HUBS_SHOWN = 5  # of each model; the table has more


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the mapping can be trusted; `why` no reference could be held out."""

    countries: Rows  # on held-out references: country (None: over all), shown, recall, mapped, precision
    hubs: Rows  # artifacts near to many images of a model: model, artifact, artifact_id, country, share, nearest
    skew: Mapping[str, float]  # of how often each artifact is a neighbour
    bounds: Rows  # how far unknown images could move a score: model, concept, worst, best, unknown, images
    stability: Rows  # of the order of the models: between, metric, concept, kernel, value (tau), stable
    why: str = ""

    @property
    def stable(self) -> bool | None:
        """Tell whether all rankings compared are stable; None where none was compared."""
        return all(line.stable for line in self.stability) if self.stability else None


def trust_in(run: RunFolders, scores: pl.DataFrame) -> Trust | None:
    """Collect what is known of the mapping; None for a run without a diagnosis."""
    recognition, hubs = run.read(roles.DIAGNOSIS, RECOGNITION), run.read(roles.DIAGNOSIS, HUBS)
    if recognition is None or hubs is None:
        return None
    stability, place = run.read(roles.STABILITY, SCORES), pl.col("country").replace(country_names(run))
    worst_first = recognition.sort("recall", "country", nulls_last=True).sort(pl.col("country").is_not_null())
    of_models = pl.DataFrame({"model": run.models}).join(hubs, on="model", maintain_order="left_right")
    return Trust(
        countries=rows_of(worst_first.with_columns(place)),
        hubs=rows_of(of_models.filter(pl.col("rank") <= HUBS_SHOWN).with_columns(place)),
        skew=run.manifest(roles.DIAGNOSIS).notes["neighbour_skew"],
        bounds=bounds(scores.filter(pl.col("model").is_in(run.models))),
        stability=() if stability is None else rankings(stability),
        why=str(run.manifest(roles.DIAGNOSIS).notes.get("no_recognition", "")),
    )


def bounds(scores: pl.DataFrame) -> Rows:
    """Pair the worst and the best case of each model and concept, at the kernel that is furthest apart."""
    worst = with_params(scores.filter(metric="vs_worst"), "unknown", "images")
    keys = ("model", "concept")
    pairs = worst.with_columns(pl.col("unknown", "images").cast(pl.Int64)).join(
        scores.filter(metric="vs_best"), on=[*keys, "kernel", "country"], nulls_equal=True, suffix="_best",
        maintain_order="left",
    )  # fmt: skip
    apart = pl.col("value_best") - pl.col("value")
    widest = pairs.filter(apart == apart.max().over(keys)).unique(keys, keep="first", maintain_order=True)
    return rows_of(widest, worst="", best="_best")
