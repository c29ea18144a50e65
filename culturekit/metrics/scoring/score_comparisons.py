"""From the values behind scores to differences of models: paired by prompt, corrected for their number."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.arguments import check_choice
from culturekit.metrics.scoring.scored import Row, Scored
from culturekit.metrics.scoring.value_sets import (
    COUNTS,
    PLACE,
    in_tables,
    known_values,
    own_generator,
    parsed,
    statistic_row,
    with_reason,
)
from culturekit.metrics.statistics.clustering import check_count
from culturekit.metrics.statistics.comparisons import Comparison, compare
from culturekit.metrics.statistics.corrections import CORRECTIONS, corrected
from culturekit.metrics.statistics.country_comparisons import compare_over_countries
from culturekit.metrics.statistics.intervals import Target
from culturekit.records.schemas import VALUES
from culturekit.storage.digests import canonical_json

__all__ = ["ComparisonOptions", "Found", "correct_families", "score_comparisons"]

NO_SCATTER = "too few prompts, or values of a prompt, to say how much they scatter"


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How models are compared.

    Attributes:
        paired: whether prompts of the same name are compared with each other.
        target: whether a difference speaks about other prompts (`population`), or about `these` only.
        correction: of the p values: `holm` or `benjamini-hochberg`.
        confidence: of the intervals.
        resamples: of each permutation test.
        seed: of the permutations.
        ignore: parameters in which the scores compared may differ.
    """

    paired: bool = True
    target: Target = "population"
    correction: str = "holm"
    confidence: float = 0.95
    resamples: int = 9999
    seed: int = 0
    ignore: tuple[str, ...] = COUNTS


@dataclass(frozen=True, slots=True)
class Found:
    """A comparison made, before its p value is corrected.

    Attributes:
        family: the comparisons that are corrected together.
        place: model, benchmark, concept, country and group of its row.
        params: what was compared.
        answer: the comparison.
    """

    family: tuple[Any, ...]
    place: dict[str, Any]
    params: dict[str, object]
    answer: Comparison


def score_comparisons(values: pl.DataFrame, *, options: ComparisonOptions) -> Scored:
    """Compare every two models on every score that both have.

    A score stands for itself where its values name a country; the values of all countries together make one more
    comparison, in which each country counts the same. P values are corrected over all comparisons of one metric
    with the same benchmark and parameters: all pairs of models, concepts, countries and groups.

    Args:
        values: conforms to VALUES; of several models.
        options: how to compare.

    Returns:
        Rows of the metric `model_difference`, and as values the difference on each prompt, where paired.

    Raises:
        UsageError: the table does not conform, an option breaks its rule, or no two models share a score.
    """
    check_options(options)
    known, unknown = known_values(values, ignore=options.ignore)
    found, differences, apart = [], [], 0
    for score in with_all_countries(known):
        for first, second in pairs_of_models(score):
            shared = first.join(second, on="unit_id", how="semi").height
            if options.paired and not shared:
                apart += 1
                continue
            found.append(one_comparison(first, second, options))
            if options.paired:
                differences.append(prompt_differences(found[-1], first, second))
    if not found:
        raise UsageError(
            "nothing can be compared",
            expected="two models with values of one score on the same prompts",
            found=f"models {', '.join(sorted(known['model'].unique()))}" if known.height else "no values",
        )
    rows = correct_families("model_difference", found, options.correction, NO_SCATTER)
    table = pl.concat(differences) if differences else pl.DataFrame(schema=VALUES.schema)
    return in_tables(rows, table, {"unknown_value": unknown, "no_common_prompt": apart})


def check_options(options: ComparisonOptions) -> None:
    """Refuse options that break their rules, before any work is done."""
    check_choice("target", options.target, ("population", "these"))
    check_choice("correction", options.correction, CORRECTIONS)
    check_count("resamples", options.resamples)


def with_all_countries(known: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Part values by score, and once more without countries where there are several and none of them is "all"."""
    for score in known.partition_by("metric", *PLACE, "params", maintain_order=True):
        yield score.with_columns(stratum=pl.lit(""))
    for scores in known.partition_by("metric", "benchmark", "concept", "group", "params", maintain_order=True):
        if scores["country"].null_count() == 0 and scores["country"].n_unique() > 1:
            yield scores.with_columns(
                unit_id=pl.concat_str("country", "unit_id", separator="\n"),
                stratum=pl.col("country"),
                country=pl.lit(None, pl.String),
            )


def pairs_of_models(score: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Take the models of a score two by two, in alphabetical order."""
    yield from itertools.combinations(score.sort("model").partition_by("model", maintain_order=True), 2)


def one_comparison(first: pl.DataFrame, second: pl.DataFrame, options: ComparisonOptions) -> Found:
    """Compare two models on one score."""
    row = first.row(0, named=True)
    a, b = row["model"], second["model"][0]
    key = [row[name] for name in ("metric", *PLACE, "params")]
    sides = [(side["value"].to_numpy(), side["unit_id"].to_numpy().astype(str)) for side in (first, second)]
    settings: dict[str, Any] = {
        "paired": options.paired,
        "target": options.target,
        "confidence": options.confidence,
        "resamples": options.resamples,
        "rng": own_generator(options.seed, *key, a, b),
    }
    if row["stratum"]:
        countries = (first["stratum"].to_numpy().astype(str), second["stratum"].to_numpy().astype(str))
        answer = compare_over_countries(
            sides[0][0], sides[1][0], clusters=(sides[0][1], sides[1][1]), countries=countries, **settings
        )
    else:
        answer = compare(sides[0][0], sides[1][0], clusters=(sides[0][1], sides[1][1]), **settings)
    params = {
        "metric": row["metric"],
        "of": parsed(row["params"]),
        "a": a,
        "b": b,
        "paired": options.paired,
        "target": options.target,
        "common": answer.common,
        "left_out": answer.left_out,
        "prompts": answer.n,
    }
    place = {"model": f"{a} - {b}", **{name: row[name] for name in PLACE}}
    return Found((row["metric"], row["benchmark"], row["params"]), place, params, answer)


def prompt_differences(found: Found, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Give the difference on each common prompt, as values."""
    means = [side.group_by("unit_id").agg(pl.col("value").sort().mean()).sort("unit_id") for side in (first, second)]
    joined = means[0].join(means[1], on="unit_id", suffix="_b").sort("unit_id")
    what = {key: found.params[key] for key in ("metric", "of", "a", "b", "target")}
    texts = {"metric": "model_difference", **found.place, "params": canonical_json(what).decode()}
    rows = joined.select(
        *(pl.lit(text, pl.String).alias(name) for name, text in texts.items()),
        item="unit_id",
        prompt_id=pl.col("unit_id").str.split("\n").list.last(),
        value=pl.col("value") - pl.col("value_b"),
    )
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in VALUES.schema.items() if name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in VALUES.schema.items())


def correct_families(metric: str, found: Sequence[Found], correction: str, reason: str) -> list[Row]:
    """Correct p values within each family, and write the rows."""
    families: dict[tuple[Any, ...], list[Found]] = {}
    for one in found:
        families.setdefault(one.family, []).append(one)
    rows = []
    for members in families.values():
        p = corrected([one.answer.p for one in members], correction=correction)
        for one, own in zip(members, p.tolist(), strict=True):
            params: dict[str, object] = {
                **one.params,
                "p": None if math.isnan(one.answer.p) else one.answer.p,
                "p_corrected": None if math.isnan(own) else own,
                "correction": correction,
                "family": len(members),
            }
            params = with_reason(params, one.answer.interval, reason)
            rows.append(statistic_row(metric, answer=one.answer.interval, params=params, **one.place))
    return rows
