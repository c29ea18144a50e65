"""Scores of `cultivate` in other cuts: gaps between groups of countries, and parts of AHEaD."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import staged
from culturekit.core.digests import canonical_json
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import DESCRIPTOR_MATCHES, PROMPTS, SCORES, VALUES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, table_outcome
from culturekit.metrics.statistics.intervals import simple_mean
from culturekit.scores.family import Row, equal_means, scored, statistic_row
from culturekit.scores.image_levels import country_groups
from culturekit.scores.meta import ALL


@staged("grouped-values", "by-group")
def grouped_values_stage(work: Work, values: Path, *, scheme: str, metrics: Sequence[str]) -> Outcome:
    """Repeat the values of countries under their groups, so that people can correct the scores of groups too."""
    table = read_table(values, VALUES).filter(pl.col("metric").is_in(list(metrics)))
    group = pl.col("country").replace_strict(dict(country_groups(scheme)), default=None, return_dtype=pl.String)
    grouped = table.with_columns(group=group, country=pl.lit(None, pl.String)).drop_nulls("group")
    return table_outcome(work, VALUES, pl.concat([table, grouped]).select(list(VALUES.schema)))


@staged("gaps-of-scores", "corrected-gaps", version=2)
def gaps_of_scores_stage(work: Work, judged: Numbered, truth: Path | None, *, scheme: str) -> Outcome:
    """Subtract scores of groups of countries: as judged, as corrected by people, and, where known, as they are."""
    tables = [(read_table(path, SCORES), "") for path in judged.places]
    metrics = {metric for table, _ in tables for metric in table["metric"]}
    if truth is not None:
        tables.append((read_table(truth, SCORES).filter(pl.col("metric").is_in(metrics)), "truth"))
    rows = [row for table, labels in tables for row in gaps_in(table, labels, scheme)]
    return table_outcome(work, SCORES, scored(rows, left_out={}).scores)


def gaps_in(table: pl.DataFrame, labels: str, scheme: str) -> Iterator[Row]:
    """Subtract each group of a scheme from those before it, for each score that both have."""
    groups = sorted(set(country_groups(scheme).values()))
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.filter(pl.col("group").is_in(groups)).iter_rows(named=True):
        about = orjson.loads(row["params"])
        kind = labels or str(about.get("labels", "judged"))
        key = (row["metric"], row["model"], row["benchmark"], row["concept"], kind, about.get("pool"))
        found.setdefault(key, {})[row["group"]] = (row, about)
    pairs = [(key, sides, *pair) for key, sides in found.items() for pair in itertools.combinations(sorted(sides), 2)]
    for (metric, model, benchmark, concept, kind, pool), sides, a, b in pairs:
        (first, about), (second, _) = sides[a], sides[b]
        low, high = _limits(first, second)
        params = {"metric": metric, "labels": kind, "pool": pool, "scheme": scheme, "a": a, "b": b,
                  "target": about.get("target"), "confidence": about.get("confidence")}  # fmt: skip
        yield {
            "metric": "group_gap", "model": model, "benchmark": benchmark, "concept": concept, "country": None,
            "group": f"{a} - {b}", "params": canonical_json(params).decode(), "value": first["value"] - second["value"],
            "ci_low": low, "ci_high": high, "n": first["n"] + second["n"], "unit": first["unit"],
        }  # fmt: skip


def _limits(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Give the limits of a difference of scores of other images: distances from the values add in squares."""
    ends = [row[end] for row in (first, second) for end in ("ci_low", "ci_high")]
    if any(end is None or not math.isfinite(end) for end in ends):
        return None, None
    value = first["value"] - second["value"]
    below = math.hypot(first["value"] - first["ci_low"], second["ci_high"] - second["value"])
    above = math.hypot(first["ci_high"] - first["value"], second["value"] - second["ci_low"])
    return value - below, value + above


@staged("scene-breakdown", "breakdown", version=2)
def breakdown_stage(work: Work, values: Path, matches: Path, prompts: Path, *, models: Sequence[str]) -> Outcome:
    """Average ALIGN by country and dimension, and FAITH by category: of each model and of all, each prompt alike."""
    about = read_table(prompts, PROMPTS).select("prompt_id", "concept", "country")
    met = read_table(matches, DESCRIPTOR_MATCHES).filter(side="reference")
    align = met.group_by("model", "prompt_id", "dimension").agg(value=pl.col("covered").sort().mean())
    align = align.with_columns(pl.concat_list("value")).join(about, on="prompt_id")
    faith = read_table(values, VALUES).filter(metric="faith").drop("concept", "country")
    faith = faith.group_by("model", "prompt_id").agg(pl.col("value").sort()).join(about, on="prompt_id")
    rows = [*_averages("align", align, models, ("country", "dimension"))]
    rows += [row for by in (("concept",), ("country", "concept")) for row in _averages("faith", faith, models, by)]
    return table_outcome(work, SCORES, scored(rows, left_out={}).scores)


def _averages(metric: str, prompts: pl.DataFrame, models: Sequence[str], by: tuple[str, ...]) -> Iterator[Row]:
    """Average the values of each prompt, then prompts over each model, and over all."""
    each = prompts.filter(pl.col("model").is_in(list(models)))
    both = pl.concat([each, each.with_columns(model=pl.lit(ALL))]).sort("prompt_id", "model", *by, "value")
    for (model, *key), part in both.group_by("model", *by, maintain_order=True):
        means = [simple_mean(values.to_numpy()) for values in part["value"]]
        keys = {"concept": None, "country": None, "group": None, **dict(zip(by, key, strict=True))}
        params = {"dimension": keys.pop("dimension")} if "dimension" in by else {"confidence": CONFIDENCE}
        answer = equal_means(means, n=len(means), confidence=CONFIDENCE)
        yield statistic_row(metric, model=str(model), benchmark="cultivate", answer=answer, params=params, **keys)
