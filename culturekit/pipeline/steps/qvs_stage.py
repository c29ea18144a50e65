"""The stage from matches and quality to the scores of diversity."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl

from culturekit.families.family_stage import write_scored
from culturekit.families.made_alike import noted, traits_by_model
from culturekit.families.public_files import prompts_table
from culturekit.metrics.scoring.score_bounds import score_bounds
from culturekit.metrics.scoring.score_corrected import NO_CORRECTION, Correction, score_corrected
from culturekit.metrics.scoring.score_qvs import QvsOptions, score_qvs
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import AUDITS, IMAGES, MATCHES, PROMPTS, QUALITY
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["score_stage"]

ASSUMED = (
    "Corrected diversity takes the mapping to err alike under every prompt. With 150 audited images, errors twice as "
    "frequent in a third of the prompts would bias it by about .02, and would seldom be noticed."
)


def score_stage(
    matches: Mapping[str, Path],
    quality: Mapping[str, Path],
    options: QvsOptions,
    *,
    truth: Mapping[str, Path] | None = None,
    audits: Mapping[str, Path] | None = None,
    images: Mapping[str, Path] | None = None,
    limits: Mapping[str, Path] | None = None,
    correction: Correction = NO_CORRECTION,
    prompts: Path | None = None,
    name: str = "scores",
) -> Stage:
    """Score the diversity of what images show: by mapping, corrected by audits, and in truth where it is known.

    With the tables of images, those that were refused, or of which the mapping abstained, give bounds. `limits` are
    matches of pictures that show nothing or everything: floor and ceiling, of which only the diversity is scored.
    """
    truth, audits, images, limits = truth or {}, audits or {}, images or {}, limits or {}

    def run(work: Work) -> Outcome:
        judged = pl.concat([read_table(path, QUALITY) for path in quality.values()]) if quality else None
        mapped = [read_table(path, MATCHES) for path in matches.values()]
        true = [read_table(path, MATCHES) for path in truth.values()]
        said = pl.concat([read_table(path, AUDITS) for path in audits.values()]) if audits else None
        countries = None if prompts is None else countries_of(prompts_table(prompts, work.scratch))
        asked = [read_table(path, IMAGES) for path in images.values()]
        beside = [read_table(path, MATCHES) for path in limits.values()]
        return score(work, Labelled(mapped, true, beside), said, judged, asked, options, correction, countries)

    return Stage(
        name,
        "score-qvs",
        8,
        run,
        {
            **matches,
            **truth,
            **quality,
            **audits,
            **images,
            **limits,
            **({} if prompts is None else {"prompts": prompts}),
        },
        {**asdict(options), **(asdict(correction) if audits else {})},
        {"correction": correction.seed} if audits else {},
        packages=("numpy", "polars", "scipy"),
    )


@dataclass(frozen=True, slots=True)
class Labelled:
    """Matches by where their labels come from: a mapping, the truth, or a mapping of floor and ceiling."""

    mapped: Sequence[pl.DataFrame]
    truth: Sequence[pl.DataFrame]
    limits: Sequence[pl.DataFrame]


def score(
    work: Work,
    labelled: Labelled,
    audits: pl.DataFrame | None,
    quality: pl.DataFrame | None,
    images: Sequence[pl.DataFrame],
    options: QvsOptions,
    correction: Correction,
    countries: Mapping[str, str] | None,
) -> Outcome:
    """Score every table of matches together with the quality of its images.

    In truth a culture-free image shows none of the artifacts, and all such images are alike in that.
    """
    none_alike = replace(options, missing="equal")
    tables = [(table, quality, options) for table in labelled.mapped]
    tables += [(table, quality, none_alike) for table in labelled.truth]
    tables += [(table, None, options) for table in labelled.limits]
    work.progress.begin(len(tables), "tables of matches")
    several = len({concept for table, *_ in tables for concept in table["concept"].unique()}) > 1
    found, left_out = [], Counter[str]()
    for table, judged, how in tables:
        found.append(score_qvs(table, judged, options=how, countries=countries))
        left_out.update(found[-1].left_out)
        if several and table.height:  # also of a model that has images of one concept only: the others have more
            found.append(score_qvs(over_all_prompts(table), judged, options=how, countries=countries))
        work.progress.advance(1)
    if images:
        asked = pl.concat([with_prompts(table) for table in images])
        found.append(score_bounds(pl.concat(labelled.mapped), asked, options=options))
    if audits is not None:
        found.append(score_corrected(pl.concat(labelled.mapped), audits, quality, options=correction.of(options)))
        left_out.update(found[-1].left_out)
    scores, values = pl.concat([each.scores for each in found]), pl.concat([each.values for each in found])
    outcome = write_scored(work, Scored(scores, values, dict(sorted(left_out.items()))))
    if audits is not None:
        outcome = replace(outcome, notes={**outcome.notes, "caveat": ASSUMED})
    return noted(outcome, traits_by_model(images))


def countries_of(prompts: Path) -> dict[str, str]:
    """Read which country each prompt names; those that name none are left out."""
    return dict(read_table(prompts, PROMPTS).select("prompt_id", "country").drop_nulls().iter_rows())


def over_all_prompts(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the prompts of all concepts together: their scores have no concept."""
    return matches.with_columns(concept=pl.lit(None, pl.String))


def with_prompts(images: pl.DataFrame) -> pl.DataFrame:
    """Keep what bounds read of images; a table that does not say their concept has null there."""
    missing = [] if "concept" in images.columns else [pl.lit(None, pl.String).alias("concept")]
    return images.with_columns(missing).select(*IMAGES.columns, "concept")
