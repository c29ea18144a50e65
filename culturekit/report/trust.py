"""From a finished run to what its report says of the mapping: floor, ceiling, countries, hubs, bounds, stability."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import DISAGREEMENTS, HUBS, RECOGNITION, SCORES
from culturekit.metrics.diversity.kernel_diversity import STANDARD_KERNELS
from culturekit.report.countries import country_names
from culturekit.report.run_folders import Figure, RunFolders, figure, figure_in

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
    """What the page says of the two routes."""

    judge: str  # who tagged
    sample: int | None  # how many images of each model and concept were drawn for it, at most; None for all
    tables: tuple[RouteTable, ...]  # scores side by side
    agreement: tuple[AgreementLine, ...]  # image by image
    partings: tuple[Parting, ...]  # countries most often disagreed on
    ranking: tuple[RankLine, ...]  # of the models, route against route
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


HUBS_SHOWN = 5  # of each model; the table has more


@dataclass(frozen=True, slots=True)
class CountryLine:
    """How well the mapping tells a country's artifacts, on held-out references; None is the line over all."""

    country: str | None
    shown: int
    recall: float | None
    mapped: int
    precision: float | None


@dataclass(frozen=True, slots=True)
class HubLine:
    """An artifact that is near to many images of a model."""

    model: str
    artifact: str
    artifact_id: str
    country: str
    share: float
    nearest: int


@dataclass(frozen=True, slots=True)
class BoundLine:
    """How far unknown images could move a model's score."""

    model: str
    concept: str | None
    worst: Figure
    best: Figure
    unknown: int
    images: int


@dataclass(frozen=True, slots=True)
class StabilityLine:
    """How far two instruments agree on the order of the models."""

    between: tuple[str, ...]
    metric: str
    concept: str | None
    kernel: str
    tau: float
    stable: bool


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the mapping can be trusted; `why` no reference could be held out."""

    countries: tuple[CountryLine, ...]
    hubs: tuple[HubLine, ...]
    skew: Mapping[str, float]
    bounds: tuple[BoundLine, ...]
    stability: tuple[StabilityLine, ...]
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
    stability, names = run.read(roles.STABILITY, SCORES), country_names(run)
    return Trust(
        countries=tuple(country_lines(recognition, names)),
        hubs=tuple(hub_lines(hubs, run.models, names)),
        skew=run.manifest(roles.DIAGNOSIS).notes["neighbour_skew"],
        bounds=tuple(bound_lines(scores, run.models)),
        stability=() if stability is None else tuple(stability_lines(stability)),
        why=str(run.manifest(roles.DIAGNOSIS).notes.get("no_recognition", "")),
    )


def country_lines(recognition: pl.DataFrame, names: Mapping[str, str]) -> Iterator[CountryLine]:
    """Give the line over all, then the countries that are told worst first."""
    for row in recognition.sort("recall", "country", nulls_last=True).sort(pl.col("country").is_not_null()).to_dicts():
        yield CountryLine(
            names.get(row["country"], row["country"]), row["shown"], row["recall"], row["mapped"], row["precision"]
        )


def hub_lines(hubs: pl.DataFrame, models: Sequence[str], names: Mapping[str, str]) -> Iterator[HubLine]:
    """Give the largest hubs of each model."""
    for model in models:
        for row in hubs.filter(pl.col("model") == model).sort("rank").head(HUBS_SHOWN).to_dicts():
            place = names.get(row["country"], row["country"])
            yield HubLine(model, row["artifact"], row["artifact_id"], place, row["share"], row["nearest"])


def bound_lines(scores: pl.DataFrame, models: Sequence[str]) -> Iterator[BoundLine]:
    """Pair the worst and the best case of each model and concept, at the kernel that is furthest apart."""
    counts = pl.Struct({"unknown": pl.Int64, "images": pl.Int64})
    about = scores.filter(pl.col("metric").is_in(["vs_worst", "vs_best"]), pl.col("model").is_in(list(models)))
    about = about.with_columns(c=pl.col("params").str.json_decode(counts)).unnest("c")
    for (model, concept), own in about.group_by("model", "concept", maintain_order=True):
        pairs = own.filter(pl.col("metric") == "vs_worst").join(
            own.filter(pl.col("metric") == "vs_best"), on=["kernel", "country"], nulls_equal=True, suffix="_best"
        )
        widest = pairs.sort(pl.col("value_best") - pl.col("value"), descending=True).head(1).to_dicts()
        for row in widest:
            worst, best = figure_in(row), figure_in(row, suffix="_best")
            yield BoundLine(
                str(model), None if concept is None else str(concept), worst, best, row["unknown"], row["images"]
            )


def stability_lines(scores: pl.DataFrame) -> Iterator[StabilityLine]:
    """Read how far instruments agree."""
    params = pl.Struct({"between": pl.List(pl.String), "metric": pl.String, "kernel": pl.String, "stable": pl.Boolean})
    about = scores.drop("metric").with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    for row in about.sort("value").to_dicts():
        yield StabilityLine(
            tuple(row["between"]), row["metric"], row["concept"], row["kernel"] or "", row["value"], row["stable"]
        )
