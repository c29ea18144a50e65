"""Answers to tables: ratings and shares by model, concept and country, agreement, and metrics held against people."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.annotate.rating_page import rating_page
from culturekit.annotate.rating_tables import careful, choice_table, in_pools, named, rating_table
from culturekit.annotate.set_aside import NOTHING_ASIDE, SetAside
from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.families.agreement import AgreementOptions, score_agreement
from culturekit.families.meta import MetaOptions, score_meta
from culturekit.metrics.scoring.rating_pools import PoolsBy, pool_of
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import ANNOTATIONS, CHOICE_TABLE, RATING_TABLE, SCORES, VALUES
from culturekit.records.work import Outcome, Work
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import canonical_json
from culturekit.storage.tables import write_table

__all__ = ["PAGE", "AggregateOptions", "aggregate_answers", "values_of_quality"]

PAGE = "ratings.html"


@dataclass(frozen=True, slots=True)
class AggregateOptions:
    """How answers are put together.

    Attributes:
        by: what makes a pool of annotators; pools are never merged.
        keep: flags whose answers count all the same.
        confidence: of the intervals.
        resamples: of each bootstrap.
        seed: of the bootstrap.
        only: the pools whose answers count; all, without any.
    """

    by: PoolsBy = "region"
    keep: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    resamples: int = 2000
    seed: int = 0
    only: tuple[str, ...] = ()


def aggregate_answers(
    work: Work,
    annotations: pl.DataFrame,
    items: pl.DataFrame,
    values: pl.DataFrame | None,
    options: AggregateOptions,
    aside: SetAside = NOTHING_ASIDE,
) -> Outcome:
    """Write the tables of what people said.

    Args:
        work: where to write.
        annotations: conforms to ANNOTATIONS.
        items: conforms to RATED_ITEMS.
        values: conforms to VALUES: metrics of the same items, or None.
        options: how to put answers together.
        aside: what was set aside before, to be told beside the tables.
    """
    kept, drops = careful(annotations, options.keep)
    kept, elsewhere = of_pools(kept, options)
    if kept.is_empty():
        raise UsageError(
            "no answer is left", expected="answers without flags, or --keep", found=f"{annotations.height} answers"
        )
    answers, strange = named(in_pools(kept, options.by), items)
    ratings, choices = rating_table(answers), choice_table(answers)
    said = agreement(kept, options)
    correlated = None if values is None else correlations(kept, values, options)
    drops |= {"of other pools": elsewhere, "answers about unknown items": strange, **said.left_out, **aside.quarantine}
    drops = {reason: count for reason, count in sorted(drops.items()) if count}
    write_table(work.out, RATING_TABLE, ratings)
    write_table(work.out, CHOICE_TABLE, choices)
    write_table(work.out, ANNOTATIONS, kept)
    scores = said.scores if correlated is None else pl.concat([said.scores, correlated.scores])
    write_table(work.out, SCORES, scores)
    write_table(work.out, VALUES, said.values)
    schemes = ", ".join(sorted(annotations["scheme"].unique()))
    notes = [f"{reason}: {count:,}" for reason, count in drops.items()]
    write_atomically(work.out / PAGE, rating_page(ratings, choices, scheme=schemes, notes=notes).encode())
    counts = {
        RATING_TABLE.name: ratings.height,
        CHOICE_TABLE.name: choices.height,
        ANNOTATIONS.name: kept.height,
        SCORES.name: scores.height,
        VALUES.name: said.values.height,
    }
    return Outcome(counts, drops, aside.notes)


def of_pools(annotations: pl.DataFrame, options: AggregateOptions) -> tuple[pl.DataFrame, int]:
    """Leave out the answers of pools that do not count, and count them; a pool that nobody is in is a mistake."""
    if not options.only:
        return annotations, 0
    found = set(in_pools(annotations, options.by)["annotator_region"])
    absent = sorted(set(options.only) - found)
    if absent:
        raise UsageError("nobody is in a pool", found=", ".join(absent), expected=", ".join(sorted(found)))
    kept = annotations.filter(pool_of(options.by).is_in(options.only))
    return kept, annotations.height - kept.height


def agreement(kept: pl.DataFrame, options: AggregateOptions) -> Scored:
    """Score how far people agree, within each pool and between pools."""
    return score_agreement(
        kept,
        options=AgreementOptions(
            by=options.by, confidence=options.confidence, resamples=options.resamples, seed=options.seed
        ),
    )


def correlations(kept: pl.DataFrame, values: pl.DataFrame, options: AggregateOptions) -> Scored:
    """Hold metrics against the ratings of each pool."""
    return score_meta(
        values,
        annotations=kept,
        options=MetaOptions(
            by=options.by, confidence=options.confidence, resamples=options.resamples, seed=options.seed
        ),
    )


def values_of_quality(quality: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Turn scores of single images into values, with the model and the place of each."""
    known: Mapping[str, Mapping[str, str | None]] = {row["item_id"]: row for row in items.iter_rows(named=True)}
    rows = [
        {
            **{name: known[image][name] for name in ("concept", "country", "group", "prompt_id")},
            "model": known[image]["model"] or "(no model)",
            "metric": "quality",
            "benchmark": "annotations",
            "params": canonical_json({"scorer": scorer}).decode(),
            "item": image,
            "value": value,
        }
        for image, scorer, value in quality.select("image_id", "scorer", "value").iter_rows()
        if image in known
    ]
    return pl.DataFrame(rows, schema=VALUES.schema).sort(VALUES.key)
