"""How unlike images look beside how many cultures they show, and how diverse they are inside one country."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.metrics.scoring.value_sets import parsed
from culturekit.report.countries import country_names, over_all_concepts
from culturekit.report.figures import Figure, figure_in
from culturekit.report.realism import Cell, cell_of, words
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["Variety", "VarietyColumn", "WithinCountries", "variety_in", "within_in"]

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
    """The ways side by side, and where looks and cultures disagree.

    Attributes:
        models: in the order of the page.
        columns: diversity first.
        disagreements: one sentence for each way that looks at pictures.
        left_out: images that entered no batch, by reason.
        licences: of the weights that measured.
    """

    models: tuple[str, ...]
    columns: tuple[VarietyColumn, ...]
    disagreements: tuple[str, ...]
    left_out: Mapping[str, int]
    licences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WithinCountries:
    """Diversity by artifact inside each country that prompts name.

    Attributes:
        models: in the order of the page.
        means: of each model over its countries.
        over: how many countries that is, for each model.
        rows: name of the country, and the score of each model.
        unscored: what is said of countries that some model has no score of.
    """

    models: tuple[str, ...]
    means: Mapping[str, Cell]
    over: Mapping[str, int]
    rows: tuple[tuple[str, Mapping[str, tuple[Cell, Figure]]], ...]
    unscored: tuple[str, ...]


def variety_in(run: RunFolders, scores: pl.DataFrame, models: Sequence[str]) -> Variety | None:
    """Put VS beside the measures of looks; None for a run without those."""
    spread = run.numbered(roles.SPREAD)
    if spread is None or spread.is_empty():
        return None
    overall = [over_all_concepts(spread.filter(pl.col("metric") == metric)).sort("model") for metric in TITLES]
    looks = [looks_column(own) for own in overall if own.height]
    diversity = list(diversity_columns(scores, models, (run.kernel, "artifact")))
    drops = dict(run.manifest(roles.SPREAD).drops)
    for model in models:
        measured = run.found(roles.PAIRS, model)
        for reason, count in ({} if measured is None else measured.drops).items():
            drops[f"LPIPS: {reason}"] = drops.get(f"LPIPS: {reason}", 0) + count
    licences = {str(parsed(own["params"][0]).get("measure", {}).get("licence", "")) for own in overall if own.height}
    return Variety(
        models=tuple(models),
        columns=(*diversity, *looks),
        disagreements=tuple(disagreements(diversity[0], looks)) if diversity else (),
        left_out=dict(sorted(drops.items())),
        licences=tuple(sorted(filter(None, licences))),
    )


def looks_column(rows: pl.DataFrame) -> VarietyColumn:
    """Read one measure of looks."""
    metric, told = rows["metric"][0], parsed(rows["params"][0])
    identity: Mapping[str, Any] = told.get("encoder") or told.get("measure") or {}
    values = dict(rows.select("model", "value").iter_rows())
    return VarietyColumn(
        TITLES[metric],
        MORE_VARIED[metric],
        words(identity),
        {row["model"]: cell_of(row) for row in rows.to_dicts()},
        ranks(values, descending=metric == "mean_lpips"),
    )


def diversity_columns(scores: pl.DataFrame, models: Sequence[str], kernels: Sequence[str]) -> Iterator[VarietyColumn]:
    """Read VS by some kernels, corrected where it was corrected."""
    for kernel in dict.fromkeys(kernels):
        for labels in ("corrected", "mapped"):
            own = over_all_kernels(scores, kernel, labels)
            found = {model: row for row in own.to_dicts() if (model := row["model"]) in models}
            if not found or set(found) != set(models):
                continue
            values = {model: row["value"] for model, row in found.items()}
            cells = {model: cell_of(row) for model, row in found.items()}
            title = f"VS/{parsed(own['params'][0]).get('size')}, {kernel}, {labels}"
            yield VarietyColumn(title, "more is more varied", f"{labels} labels", cells, ranks(values, descending=True))
            break


def over_all_kernels(scores: pl.DataFrame, kernel: str, labels: str) -> pl.DataFrame:
    """Keep the VS of each model over all its concepts."""
    own = scores.filter(
        pl.col("metric") == "vs", pl.col("kernel") == kernel, pl.col("labels") == labels, pl.col("country").is_null()
    )
    return over_all_concepts(own).sort("model")


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
    for (code,), own in by_country.sort("country").group_by("country", maintain_order=True):
        name = known.get(str(code), str(code))
        cells = {row["model"]: (cell_of(row), figure_in(row)) for row in own.to_dicts()}
        rows.append((name, cells))
    names = [model for model in models if model in set(means["model"])]
    told = {row["model"]: parsed(row["params"]) for row in means.to_dicts()}
    return WithinCountries(
        models=tuple(names),
        means={row["model"]: cell_of(row) for row in means.to_dicts()},
        over={model: int(told[model]["countries"]) for model in names},
        rows=tuple(sorted(rows, key=lambda row: row[0])),
        unscored=tuple(unscored(told, models)),
    )


def unscored(told: Mapping[str, Mapping[str, Any]], models: Sequence[str]) -> Iterator[str]:
    """Name the countries that a model has no score of, and the models that have none at all."""
    for model in models:
        without = told.get(model, {}).get("countries_without", [])
        if model not in told:
            yield f"{model}: no image of a prompt that names a country."
        elif without:
            yield f"{model}: no full batch of images of {', '.join(without)}, so its mean leaves {len(without)} out."
