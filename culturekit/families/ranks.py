"""Models compared and ranked by corrected diversity: differences from the intervals of both, and limits for each rank.

The audits of two models are independent, so each limit of a difference takes the distances of the two limits that it
depends on, in squares (Zou and Donner 2008: no normal shape is assumed, and no clipped limit is looked at).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.errors import NothingScored, UsageError
from culturekit.families.compare import Found, correct_families, in_families
from culturekit.families.family import Correction, Family, described, kept
from culturekit.families.family_stage import family_stage
from culturekit.families.handles.inputs import Numbered, roles_of
from culturekit.families.handles.mapped_alike import check_mapped_alike
from culturekit.metrics.scoring.score_rows import Row, Scored, check_ranges, scored, statistic_row
from culturekit.metrics.scoring.value_sets import parsed
from culturekit.metrics.statistics.comparisons import Comparison
from culturekit.metrics.statistics.intervals import Interval
from culturekit.records.schemas import SCORES
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.storage.digests import canonical_json
from culturekit.storage.tables import read_table

__all__ = ["RANKS", "RankOptions", "RankReads", "difference_of", "ranks", "score_ranks"]

OF_EACH_AUDIT = (
    "audited",
    "marked",
    "country_only",
    "continent_only",
    "no_continent",
    "cannot_tell",
    "if_alike",
    "if_different",
)
"""Parameters of corrected scores that say something of one model's audit; without them the scores are the same."""

PLACE = ("benchmark", "concept", "country", "group")


@dataclass(frozen=True, slots=True)
class RankReads:
    """Scores of models, of which those count that an audit corrected."""

    scores: Annotated[Numbered, Field(description="Table of scores with corrected ones; repeat it for more than one.")]


@dataclass(frozen=True, slots=True)
class RankOptions:
    """How the many comparisons behind ranks are corrected."""

    correction: Correction = "holm"


def ranks(given: RankReads, options: RankOptions, *, name: str = "ranks") -> Stage:
    """Rank models by corrected diversity, as far as it carries.

    Every two models are compared, and each has the ranks that it may have.
    """

    def score(_: Work) -> Scored:
        check_mapped_alike(given.scores.places)
        tables = [read_table(path, SCORES).select(list(SCORES.schema)) for path in given.scores.places]
        return score_ranks(pl.concat(tables), options=options)

    return family_stage("ranks", roles_of(given), kept(options), score, version=2, name=name)


RANKS = Family(
    ranks,
    metrics=described("model_difference model_rank"),
    example="--scores scores/scores.parquet --out ranks",
)


def score_ranks(scores: pl.DataFrame, *, options: RankOptions) -> Scored:
    """Compare and rank the models of each corrected score.

    P values are corrected over all pairs of models and all concepts of a score. Models that are not surely apart
    may have each other's ranks; how sure is the confidence of the intervals.

    Args:
        scores: conforms to SCORES; rows whose labels are not corrected, or that have no interval, are not looked at.
        options: how p values are corrected.

    Raises:
        NothingScored: no two models have the same corrected score.
    """
    found: list[Found] = []
    groups: list[tuple[list[dict[str, Any]], list[Found]]] = []
    for rows in same_scores(scores):
        pairs = [pair_of(first, second) for first, second in itertools.combinations(rows, 2)]
        found += pairs
        groups.append((rows, pairs))
    if not found:
        raise NothingScored(
            "nothing can be ranked",
            expected="two models with one score whose labels are corrected, with intervals",
            found=f"{scores.height} scores of {scores['model'].n_unique()} models",
        ).counting({})  # a run of one model lacks nothing
    differences = correct_families("model_difference", found, options.correction, "")
    surely = {id(one): p for one, p, _ in in_families(found, options.correction)}
    ranked = [row for rows, pairs in groups for row in rank_rows(rows, pairs, surely, options)]
    return scored([*differences, *ranked])


def same_scores(scores: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Give the rows of each corrected score that two models or more have, in the order of the models."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    check_ranges(scores)
    known = scores.filter(pl.col("value").is_finite()).sort("metric", "model", *PLACE, "params")
    for row in known.iter_rows(named=True):
        params = parsed(row["params"])
        if params.get("labels") != "corrected" or row["ci_low"] is None or row["ci_high"] is None:
            continue
        of = {name: value for name, value in params.items() if name not in OF_EACH_AUDIT}
        key = (row["metric"], *(row[name] for name in PLACE), canonical_json(of).decode())
        groups.setdefault(key, []).append({**row, "of": of, "marked": params.get("marked", [])})
    for rows in groups.values():
        models = [row["model"] for row in rows]
        if len(set(models)) < len(models):
            raise UsageError(
                "a model has one corrected score twice", found=max(models, key=models.count), expected="it once"
            )
        if len(rows) > 1:
            yield rows


def pair_of(first: dict[str, Any], second: dict[str, Any]) -> Found:
    """Compare two models on one score."""
    sides = [Interval(row["value"], row["ci_low"], row["ci_high"], row["n"], "these") for row in (first, second)]
    interval, p = difference_of(sides[0], sides[1], confidence=float(first["of"]["confidence"]))
    names = {"a": first["model"], "b": second["model"], **marks_of(first, second)}
    params: dict[str, object] = {"metric": first["metric"], "of": first["of"], **names, "target": "these"}
    place = {"model": f"{first['model']} - {second['model']}", **{name: first[name] for name in PLACE}}
    family = (first["metric"], first["benchmark"], canonical_json(first["of"]))
    return Found(family, place, params, Comparison(interval.value, interval, p, p, 2, 2, 0))


def marks_of(*rows: dict[str, Any]) -> dict[str, list[str]]:
    """Say what stands beside scores: it stands beside what is said of them together."""
    marks = sorted({mark for row in rows for mark in row["marked"]})
    return {"marked": marks} if marks else {}


def difference_of(first: Interval, second: Interval, *, confidence: float) -> tuple[Interval, float]:
    """Give the difference of two independent estimates with its limits, and the p value of there being none.

    The half width on the side of zero is taken to grow with the confidence as that of a normal distribution does.
    """
    from scipy.special import ndtr, ndtri

    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    side = below if value > 0 else above
    quantile = float(ndtri((1 + confidence) / 2))
    p = (0.0 if value else 1.0) if side == 0 else 2 * float(ndtr(-quantile * abs(value) / side))
    return Interval(value, value - below, value + above, first.n + second.n, "these"), p


def rank_rows(
    rows: Sequence[dict[str, Any]], pairs: Sequence[Found], surely: dict[int, float], options: RankOptions
) -> Iterator[Row]:
    """Rank the models of one score: first is the most diverse."""
    above: dict[str, int] = dict.fromkeys((row["model"] for row in rows), 0)
    below = dict(above)
    alpha = 1 - float(rows[0]["of"]["confidence"])
    for pair in pairs:
        if surely[id(pair)] < alpha:
            names = str(pair.params["a"]), str(pair.params["b"])
            better, worse = names if pair.answer.difference > 0 else names[::-1]
            above[worse] += 1
            below[better] += 1
    for row in rows:
        rank = 1 + sum(other["value"] > row["value"] for other in rows)
        low, high = 1 + above[row["model"]], len(rows) - below[row["model"]]
        params = {"metric": row["metric"], "of": row["of"], "models": len(rows), "correction": options.correction}
        params |= marks_of(*rows)
        answer = Interval(float(rank), float(low), float(high), row["n"], "these")
        place = {name: row[name] for name in PLACE}
        yield statistic_row("model_rank", answer=answer, params=params, model=row["model"], **place)
