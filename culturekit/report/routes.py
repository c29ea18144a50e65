"""Nearest artifacts and a vision model's tags side by side: scores, agreement, and where they part."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
from culturekit.records.schemas import DISAGREEMENTS
from culturekit.report.countries import country_names
from culturekit.report.figures import Figure, figure
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["AgreementLine", "Parting", "RankLine", "RouteTable", "TwoRoutes", "routes_in"]

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
    """How far the routes agree on the images of a model and concept.

    Attributes:
        levels: for continent, country and artifact the share of equal labels, and kappa.
        counts: `common` images, those of each route, and what each says of the common ones, such as `no_answer_b`.
    """

    model: str
    concept: str | None
    levels: tuple[tuple[Figure | None, Figure | None], ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Parting:
    """A country that the one route gives where the other gives another."""

    model: str
    mapped: str
    tagged: str
    images: int
    share: float


@dataclass(frozen=True, slots=True)
class RankLine:
    """Whether both routes put the models in one order."""

    metric: str
    concept: str | None
    kernel: str
    models: int
    tau: float
    stable: bool


@dataclass(frozen=True, slots=True)
class TwoRoutes:
    """What the page says of the two routes.

    Attributes:
        judge: who tagged.
        sample: how many images of each model and concept were drawn for it, at most; None for all.
        tables: scores side by side.
        agreement: image by image.
        partings: countries most often disagreed on.
        ranking: of the models, route against route.
        left_out: what did not enter, counted by reason.
        caveats: what the tagging says must be known.
    """

    judge: str
    sample: int | None
    tables: tuple[RouteTable, ...]
    agreement: tuple[AgreementLine, ...]
    partings: tuple[Parting, ...]
    ranking: tuple[RankLine, ...]
    left_out: Mapping[str, int]
    caveats: tuple[str, ...]

    @property
    def stable(self) -> bool | None:
        """Tell whether both routes rank the models alike everywhere; None where there are too few models."""
        return all(line.stable for line in self.ranking) if self.ranking else None


def routes_in(run: RunFolders, models: Sequence[str]) -> TwoRoutes | None:
    """Collect what a run says of its two routes; None for a run without tags."""
    scores, apart = run.numbered(roles.ROUTES), run.read(roles.ROUTES, DISAGREEMENTS)
    if scores is None or apart is None:
        return None
    params = pl.Struct(dict.fromkeys(("kernel", "labels", "level", "scorer"), pl.String))
    rows = scores.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    notes = [run.manifest(roles.TAGS, model).notes for model in models]
    sample = notes[0].get("sample") if notes else None
    return TwoRoutes(
        judge=", ".join(dict.fromkeys(str(note["judge"]) for note in notes)),
        sample=None if sample is None else int(sample["images"]),
        tables=tuple(route_tables(rows, models)),
        agreement=tuple(agreement_lines(rows, models)),
        partings=tuple(partings(apart, models, country_names(run))),
        ranking=tuple(rank_lines(scores)),
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
            yield AgreementLine(model, concept, levels, counts_in(shares.filter(place)["params"][0]))


def counts_in(params: str) -> dict[str, int]:
    """Read the counts of a row of agreement."""
    names = [f"{said}_{side}" for said in ("named", "abstained", "none_shown", "no_answer", "images") for side in "ab"]
    fields = pl.Struct(dict.fromkeys(("common", *names), pl.Int64))
    found: dict[str, int] = pl.Series([params]).str.json_decode(fields)[0]
    return found


def partings(apart: pl.DataFrame, models: Sequence[str], names: Mapping[str, str]) -> Iterator[Parting]:
    """Give the pairs of countries most often disagreed on, over all concepts."""
    about = apart.filter(pl.col("level") == "country", pl.col("model").is_in(list(models)))
    whole = about.filter(pl.col("concept").is_null())
    chosen = whole if whole.height else about
    for row in (
        chosen.sort(-pl.col("images").cast(pl.Int64), "model", "label_a", "label_b").head(PARTINGS_SHOWN).to_dicts()
    ):
        a, b = (names.get(code, code) for code in (row["label_a"], row["label_b"]))
        yield Parting(row["model"], a, b, row["images"], row["share"])


def rank_lines(scores: pl.DataFrame) -> Iterator[RankLine]:
    """Read whether the routes rank the models alike, the worst first."""
    about = scores.filter(pl.col("metric") == "ranking_stability").drop("metric")
    params = pl.Struct({"metric": pl.String, "kernel": pl.String, "stable": pl.Boolean})
    found = about.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    for row in found.sort("value", "metric", "concept", "kernel", nulls_last=True).to_dicts():
        yield RankLine(row["metric"], row["concept"], row["kernel"] or "", row["n"], row["value"], row["stable"])
