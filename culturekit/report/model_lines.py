"""The headline of each model: what its images score over all prompts, and what people saw on some of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.scoring.value_sets import parsed
from culturekit.report.figures import Figure, figure, figure_in
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["ModelLine", "Rank", "Seen", "in_order", "model_lines"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What people saw on some images of a model.

    Attributes:
        images: how many they looked at.
        nothing: the share on which they saw no artifact of any culture.
        accuracy: by level, the share that is mapped to what they saw.
    """

    images: int
    nothing: Figure
    accuracy: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a model by corrected diversity, and the places it may have, of so many."""

    place: Figure
    models: int


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in the headline: its mapped diversity, the corrected one after an audit, the true one where known."""

    model: str
    backend: str
    images: int
    mapped: Figure
    corrected: Figure | None
    truth: Figure | None
    quality: Figure | None
    culture_free: int | None
    similarity: Mapping[str, float]
    seen: Seen | None = None
    rank: Rank | None = None

    @property
    def reality(self) -> Figure | None:
        """The diversity of what its images really show: known, or found out by an audit."""
        return self.truth or self.corrected

    @property
    def shows_nothing(self) -> bool | None:
        """Tell whether most of its images show no culture; None where neither truth nor people tell surely."""
        if self.culture_free is not None:
            return self.culture_free > self.images / 2
        if self.seen is None or self.seen.nothing.low is None or self.seen.nothing.high is None:
            return None
        if self.seen.nothing.low <= 0.5 <= self.seen.nothing.high:
            return None
        return self.seen.nothing.low > 0.5


def in_order(lines: Iterable[ModelLine]) -> tuple[ModelLine, ...]:
    """Put the most diverse first: by corrected diversity, those without it behind by the mapped one."""
    return tuple(sorted(lines, key=lambda line: (line.corrected is None, -(line.corrected or line.mapped).value)))


def model_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[ModelLine]:
    """Give the headline of each model, over all its prompts."""
    seen, ranks, kernel = seen_by_people(run), ranks_of(run), run.kernel
    for model in run.models:
        about = scores.filter(pl.col("model") == model)
        overall = overall_of(about)
        vs = overall.filter(pl.col("metric") == "vs", pl.col("kernel") == kernel)
        mapped = figure(vs, labels="mapped")
        if mapped is None:
            continue
        truth = run.manifest(roles.TRUTH, model).counts if model in run.truthful else {}
        yield ModelLine(
            model=model,
            backend=str(run.manifest(roles.IMAGES, model).options["backend"]),
            images=run.manifest(roles.IMAGES, model).counts["ok"],
            mapped=mapped,
            corrected=figure(vs, labels="corrected"),
            truth=figure(vs, labels="truth") if model in run.truthful else None,
            quality=figure(overall.filter(pl.col("metric") == "quality"), labels="mapped"),
            culture_free=truth.get("culture_free"),
            similarity=run.manifest(roles.MATCHES, model).notes["similarity"],
            seen=seen.get(model),
            rank=ranks.get(model),
        )


def overall_of(about: pl.DataFrame) -> pl.DataFrame:
    """Keep what one model scores over all concepts, or on the only one it has."""
    concept = None if about["concept"].null_count() or about.is_empty() else about["concept"][0]
    return about.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))


def seen_by_people(run: RunFolders) -> dict[str, Seen]:
    """Read what people saw on images of each model, where there was an audit."""
    table = run.numbered(roles.AUDITED)
    found = {}
    for own in () if table is None else table.partition_by("model", maintain_order=True):
        about = overall_of(own).with_columns(level=pl.col("params").str.json_path_match("$.level"))
        nothing = figure(about.filter(metric="share_without_culture"))
        rates = about.filter(metric="mapping_accuracy").to_dicts()
        if nothing is not None:
            looked_at = int(parsed(about.filter(metric="share_without_culture")["params"][0])["audited"])
            found[own["model"][0]] = Seen(looked_at, nothing, {row["level"]: figure_in(row) for row in rates})
    return found


def ranks_of(run: RunFolders) -> dict[str, Rank]:
    """Read the place of each model by corrected diversity, where that was compared."""
    table = run.ranks("model_rank")
    if table is None:
        return {}
    ranks = table.filter(of_metric="vs", of_kernel=run.kernel)
    found = {}
    for own in ranks.partition_by("model"):
        for row in overall_of(own).to_dicts():
            found[row["model"]] = Rank(figure_in(row), row["models"])
    return found
