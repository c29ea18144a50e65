"""How generated images stand beside real ones: a table of distances and shares, and what must be known of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.metrics.realism.features import called, licence_of
from culturekit.report.countries import country_names, over_all_concepts
from culturekit.report.run_folders import Figure, RunFolders, figure_in
from culturekit.scores.catalog import CATALOG
from culturekit.scores.family import parsed

SHOWN = (
    "frechet_distance", "kernel_distance", "inception_score", "prdc_precision", "prdc_recall", "prdc_density",
    "prdc_coverage",
)  # fmt: skip
"""The metrics, in the order of the columns."""

DISTANCES = {"frechet_distance", "kernel_distance"}  # which are called by the vectors they compare


@dataclass(frozen=True, slots=True)
class Cell:
    """One score as the page writes it; `why` is said where there is no interval, or no value."""

    text: str
    limits: str
    n: int
    row: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class RealismColumn:
    """One metric: what it is called on these vectors, and which values are better."""

    metric: str
    title: str
    better: str


@dataclass(frozen=True, slots=True)
class RealismTable:
    """The scores of all models, over all concepts or of one."""

    concept: str | None
    images: int
    real: int
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class RealismTables:
    """What is known of realism."""

    extractor: str  # its name, and what exactly it is
    licence: str  # of its weights
    columns: tuple[RealismColumn, ...]  # of all tables
    tables: tuple[RealismTable, ...]  # the one over all concepts first
    cautions: tuple[str, ...]  # what a reader must know of these numbers
    left_out: Mapping[str, int]  # images that entered no score, by reason


def realism_in(run: RunFolders, models: Sequence[str]) -> RealismTables | None:
    """Collect the scores of realism; None for a run without them."""
    scores = run.numbered(roles.REALISM)
    if scores is None or scores.is_empty():
        return None
    whole = scores.filter(pl.col("concept").is_null())
    metrics = [metric for metric in SHOWN if metric in set(whole["metric"])]
    known = parsed(whole.filter(pl.col("metric") == metrics[0])["params"][0])
    encoder: dict[str, Any] = known["encoder"]
    concepts = scores["concept"].drop_nulls().unique().sort().to_list()
    parts = [None, *(concepts if len(concepts) > 1 else [])]
    tables = tuple(table_of(scores, concept, metrics, models) for concept in parts)
    return RealismTables(
        extractor=words(encoder), licence=licence_of(encoder),
        columns=tuple(
            RealismColumn(metric, called(metric, encoder) if metric in DISTANCES else CATALOG[metric].title,
                          CATALOG[metric].direction)
            for metric in metrics
        ), tables=tables,
        cautions=tuple(cautions(encoder, known, tables, run)), left_out=left_out(run, models),
    )  # fmt: skip


def words(identity: Mapping[str, Any]) -> str:
    """Say what made vectors or distances: name, revision, preprocessing, and the beginning of the weights' hash."""
    weights = str(identity.get("weights", "unknown"))
    hashed = "no weights" if weights == "none" else f"weights {weights[:12]}"
    parts = [identity.get("name"), identity.get("revision"), identity.get("backbone"), identity.get("preprocessing")]
    return ", ".join([*(str(part) for part in parts if part), hashed])


def table_of(scores: pl.DataFrame, concept: str | None, metrics: Sequence[str], models: Sequence[str]) -> RealismTable:
    """Collect the scores of one concept, or over all."""
    about = scores.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))
    rows = []
    for model in models:
        found = [about.filter(model=model, metric=metric).to_dicts() for metric in metrics]
        rows.append((model, tuple(cell_of(one[0]) if len(one) == 1 else None for one in found)))
    settings = [parsed(text) for text in about.filter(pl.col("metric") == "frechet_distance")["params"]]
    images = min((int(one["n_fake"]) for one in settings), default=0)
    return RealismTable(concept, images, min((int(one["n_real"]) for one in settings), default=0), tuple(rows))


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Write one score with its interval, or why there is none."""
    settings = parsed(row["params"])
    low, high = row["ci_low"], row["ci_high"]
    limits = "" if low is None or high is None else f"{significant(low)} to {significant(high)}"
    why = str(settings.get("no_value") or ("" if limits else settings.get("no_interval", "no interval holds")))
    return Cell(significant(row["value"]), limits, row["n"], row["row"], str(settings.get("few_images") or why))


def significant(value: float | None) -> str:
    """Write a number of any size shortly."""
    if value is None or math.isnan(value):
        return "–"
    size = abs(value)
    if size >= 0.001 or value == 0:
        digits = 3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0
    else:
        digits = min(1 - math.floor(math.log10(size)), 12)
    text = f"{value:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def cautions(
    encoder: Mapping[str, Any], stated: Mapping[str, Any], tables: Sequence[RealismTable], run: RunFolders
) -> Iterator[str]:
    """Say what the numbers do not tell."""
    name = str(encoder.get("name"))
    if not name.startswith("inception"):
        yield (
            f"{name} is no Inception: these distances are no FID and no KID, and compare with no published number. "
            "They compare the models of this page with each other, through the eyes of that encoder."
        )
    caveat = run.manifest(roles.VECTORS, run.models[0]).notes.get("caveat")
    if caveat:
        yield str(caveat)
    if "equal" in stated:
        yield (
            f"A Fréchet distance grows as images get fewer, so all models are scored on equally many: "
            f"{stated['equal']}, drawn by seed {stated['equal_seed']}."
        )
    dim, images = int(encoder.get("dim", 0)), min(tables[0].images, tables[0].real)
    if images <= dim:
        yield (
            f"With {images:,} images and vectors of {dim:,} numbers a large part of each Fréchet distance is bias: "
            "the order of the models may be read, the size may not."
        )
    if stated.get("references") == "balanced":
        yield (
            f"Real images: {stated['per_concept']:,} of each concept, countries taking turns, drawn by seed "
            f"{stated['seed']}. What they lack counts as unreal."
        )
    else:
        yield "Real images: all that were given, in whatever proportion. What they lack counts as unreal."
    fewest = run.manifest(roles.REALISM).options.get("fewest")
    if len(tables) > 1:
        yield f"A concept is scored where there are at least {fewest} images of the model and {fewest} real ones."


def left_out(run: RunFolders, models: Sequence[str]) -> dict[str, int]:
    """Count what has no vector, and what entered no score."""
    found: dict[str, int] = {}
    embedded = [run.manifest(roles.VECTORS, model) for model in (roles.REAL_IMAGES, *models)]
    for manifest in (*embedded, run.manifest(roles.REALISM)):
        for reason, count in manifest.drops.items():
            found[reason] = found.get(reason, 0) + count
    return dict(sorted(found.items()))


# How unlike images look beside how many cultures they show, and how diverse they are inside one country.

TITLES: Mapping[str, str] = {"mean_lpips": "mean LPIPS", "mean_cosine": "mean cosine"}
MORE_VARIED: Mapping[str, str] = {"mean_lpips": "more is more varied", "mean_cosine": "less is more varied"}


@dataclass(frozen=True, slots=True)
class VarietyColumn:
    """One way to see variety: title, which way it goes, what measured it, and each model's score and rank."""

    title: str
    reads: str
    by: str
    cells: Mapping[str, Cell]
    ranks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Variety:
    """The ways side by side, and where looks and cultures disagree."""

    models: tuple[str, ...]  # in the order of the page
    columns: tuple[VarietyColumn, ...]  # diversity first
    disagreements: tuple[str, ...]  # one sentence for each way that looks at pictures
    left_out: Mapping[str, int]  # images that entered no batch, by reason
    licences: tuple[str, ...]  # of the weights that measured


@dataclass(frozen=True, slots=True)
class WithinCountries:
    """Diversity by artifact inside each country that prompts name."""

    models: tuple[str, ...]  # in the order of the page
    means: Mapping[str, Cell]  # of each model over its countries
    over: Mapping[str, int]  # how many countries that is, for each model
    rows: tuple[tuple[str, Mapping[str, tuple[Cell, Figure]]], ...]  # name of the country, and the score of each model
    unscored: tuple[str, ...]  # what is said of countries that some model has no score of


def variety_in(run: RunFolders, scores: pl.DataFrame, models: Sequence[str]) -> Variety | None:
    """Put VS beside the measures of looks; None for a run without those."""
    spread = run.numbered(roles.SPREAD)
    if spread is None or spread.is_empty():
        return None
    overall = [over_all_concepts(spread.filter(pl.col("metric") == metric)).sort("model") for metric in TITLES]
    looks = [looks_column(part) for part in overall if part.height]
    diversity = list(diversity_columns(scores, models, (run.kernel, "artifact")))
    drops = dict(run.manifest(roles.SPREAD).drops)
    for model in models:
        measured = run.found(roles.PAIRS, model)
        for reason, count in ({} if measured is None else measured.drops).items():
            drops[f"LPIPS: {reason}"] = drops.get(f"LPIPS: {reason}", 0) + count
    licences = {str(parsed(part["params"][0]).get("measure", {}).get("licence", "")) for part in overall if part.height}
    return Variety(
        models=tuple(models), columns=(*diversity, *looks),
        disagreements=tuple(disagreements(diversity[0], looks)) if diversity else (),
        left_out=dict(sorted(drops.items())), licences=tuple(sorted(filter(None, licences))),
    )  # fmt: skip


def looks_column(rows: pl.DataFrame) -> VarietyColumn:
    """Read one measure of looks."""
    metric, settings = rows["metric"][0], parsed(rows["params"][0])
    identity: Mapping[str, Any] = settings.get("encoder") or settings.get("measure") or {}
    values = dict(rows.select("model", "value").iter_rows())
    return VarietyColumn(
        TITLES[metric], MORE_VARIED[metric], words(identity), {row["model"]: cell_of(row) for row in rows.to_dicts()},
        ranks(values, descending=metric == "mean_lpips"),
    )  # fmt: skip


def diversity_columns(scores: pl.DataFrame, models: Sequence[str], kernels: Sequence[str]) -> Iterator[VarietyColumn]:
    """Read VS by some kernels, corrected where it was corrected."""
    for kernel in dict.fromkeys(kernels):
        for labels in ("corrected", "mapped"):
            here = scores.filter(pl.col("country").is_null(), metric="vs", kernel=kernel, labels=labels)
            part = over_all_concepts(here).sort("model")
            found = {model: row for row in part.to_dicts() if (model := row["model"]) in models}
            if not found or set(found) != set(models):
                continue
            values = {model: row["value"] for model, row in found.items()}
            cells = {model: cell_of(row) for model, row in found.items()}
            title = f"VS/{parsed(part['params'][0]).get('size')}, {kernel}, {labels}"
            yield VarietyColumn(title, "more is more varied", f"{labels} labels", cells, ranks(values, descending=True))
            break


def ranks(values: Mapping[str, float], *, descending: bool) -> dict[str, int]:
    """Rank models, the most varied first; equal values share a rank."""
    sign = -1 if descending else 1
    return {model: 1 + sum(sign * other < sign * value for other in values.values()) for model, value in values.items()}


def disagreements(diversity: VarietyColumn, looks: Sequence[VarietyColumn]) -> Iterator[str]:
    """Name for each measure of looks the model that it sees most otherwise, rather above than below what it shows."""
    for column in looks:
        both = [model for model in diversity.ranks if model in column.ranks]
        if len(both) < 2:
            continue
        above = {model: diversity.ranks[model] - column.ranks[model] for model in both}
        furthest = max(both, key=lambda model: (abs(above[model]), above[model]))
        seen, shown = column.ranks[furthest], diversity.ranks[furthest]
        if seen == shown:
            yield f"By {column.title} the models rank as by {diversity.title}."
        else:
            yield (
                f"By {column.title} {furthest} is number {seen} of {len(both)} in variety, by {diversity.title} "
                f"number {shown}."
            )


def within_in(run: RunFolders, models: Sequence[str]) -> WithinCountries | None:
    """Collect diversity within countries; None for a run without it."""
    scores = run.numbered(roles.WITHIN)
    if scores is None or scores.is_empty():
        return None
    overall = over_all_concepts(run.of_main_order(scores, roles.WITHIN))
    means = overall.filter(pl.col("country").is_null())
    by_country = overall.drop_nulls("country")
    known = country_names(run)
    rows = []
    for (code,), part in by_country.sort("country").group_by("country", maintain_order=True):
        name = known.get(str(code), str(code))
        cells = {row["model"]: (cell_of(row), figure_in(row)) for row in part.to_dicts()}
        rows.append((name, cells))
    names = [model for model in models if model in set(means["model"])]
    settings = {row["model"]: parsed(row["params"]) for row in means.to_dicts()}
    return WithinCountries(
        models=tuple(names), means={row["model"]: cell_of(row) for row in means.to_dicts()},
        over={model: int(settings[model]["countries"]) for model in names},
        rows=tuple(sorted(rows, key=lambda row: row[0])), unscored=tuple(unscored(settings, models)),
    )  # fmt: skip


def unscored(settings: Mapping[str, Mapping[str, Any]], models: Sequence[str]) -> Iterator[str]:
    """Name the countries that a model has no score of, and the models that have none at all."""
    for model in models:
        without = settings.get(model, {}).get("countries_without", [])
        if model not in settings:
            yield f"{model}: no image of a prompt that names a country."
        elif without:
            yield f"{model}: no full batch of images of {', '.join(without)}, so its mean leaves {len(without)} out."
