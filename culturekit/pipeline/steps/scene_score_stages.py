"""The stages beside AHEaD: gaps between groups of countries, judged, corrected and true; parts of scores; raters."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.defaults import CONFIDENCE
from culturekit.families.handles.country_groups import country_groups
from culturekit.families.handles.public_files import roles
from culturekit.families.meta import ALL
from culturekit.metrics.scoring.score_rows import Row, equal_means, scored, statistic_row
from culturekit.metrics.statistics.intervals import simple_mean
from culturekit.records.choices import ANSWERED
from culturekit.records.schemas import ANNOTATIONS, DESCRIPTOR_MATCHES, IMAGES, JUDGMENTS, PROMPTS, SCORES, VALUES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.digests import canonical_json
from culturekit.storage.tables import read_table, table_outcome

__all__ = ["breakdown_stage", "gaps_of_scores_stage", "grouped_values_stage", "others_stage", "raters_stage"]

ANYBODY = "one person"
"""Whose ratings stand beside the metrics: those of one person an image; the other people of the image are apart."""

TRUTH = "truth"


def grouped_values_stage(values: Path, scheme: str, metrics: Sequence[str]) -> Stage:
    """Put values that stand under countries under groups of these as well, so that people can put groups right."""

    def run(work: Work) -> Outcome:
        own = read_table(values, VALUES).filter(pl.col("metric").is_in(list(metrics)))
        side = pl.col("country").replace_strict(dict(country_groups(scheme)), default=None, return_dtype=pl.String)
        grouped = own.with_columns(group=side, country=pl.lit(None, pl.String)).drop_nulls("group")
        return table_outcome(work, VALUES, pl.concat([own, grouped]).select(list(VALUES.schema)))

    return Stage("by-group", "grouped-values", 1, run, {"values": values}, {"scheme": scheme, "metrics": list(metrics)})


def gaps_of_scores_stage(judged: Mapping[str, Path], truth: Path | None, scheme: str) -> Stage:
    """Subtract scores of groups of countries: as a judge has them, put right by people, and, where known, true."""

    def run(work: Work) -> Outcome:
        tables = [(read_table(path, SCORES), "") for path in judged.values()]
        known = {metric for table, _ in tables for metric in table["metric"]}
        tables += [] if truth is None else [(read_table(truth, SCORES).filter(pl.col("metric").is_in(known)), TRUTH)]
        rows = [row for table, labels in tables for row in gaps_in(table, labels, scheme)]
        return table_outcome(work, SCORES, scored(rows, left_out={}).scores)

    inputs = {**roles("judged", list(judged.values())), **({} if truth is None else {"truth": truth})}
    return Stage("corrected-gaps", "gaps-of-scores", 2, run, inputs, {"scheme": scheme})


def gaps_in(table: pl.DataFrame, labels: str, scheme: str) -> Iterator[Row]:
    """Subtract each group of a scheme from those before it, for each score that both have."""
    known = sorted(set(country_groups(scheme).values()))
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.filter(pl.col("group").is_in(known)).iter_rows(named=True):
        about = orjson.loads(row["params"])
        kind = labels or str(about.get("labels", "judged"))
        key = (row["metric"], row["model"], row["benchmark"], row["concept"], kind, about.get("pool"))
        found.setdefault(key, {})[row["group"]] = (row, about)
    pairs = [(key, sides, *pair) for key, sides in found.items() for pair in itertools.combinations(sorted(sides), 2)]
    for (metric, model, benchmark, concept, kind, pool), sides, a, b in pairs:
        (first, about), (second, _) = sides[a], sides[b]
        value = first["value"] - second["value"]
        low, high = limits(first, second)
        params = {"metric": metric, "labels": kind, "pool": pool, "scheme": scheme, "a": a, "b": b,
                  "target": about.get("target"), "confidence": about.get("confidence")}  # fmt: skip
        yield {
            "metric": "group_gap", "model": model, "benchmark": benchmark, "concept": concept, "country": None,
            "group": f"{a} - {b}", "params": canonical_json(params).decode(), "value": value, "ci_low": low,
            "ci_high": high, "n": first["n"] + second["n"], "unit": first["unit"],
        }  # fmt: skip


def limits(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Give the limits of a difference of scores of other images: their distances from the values add in squares."""
    ends = [row[end] for row in (first, second) for end in ("ci_low", "ci_high")]
    if any(end is None or not math.isfinite(end) for end in ends):
        return None, None
    value = first["value"] - second["value"]
    below = math.hypot(first["value"] - first["ci_low"], second["ci_high"] - second["value"])
    above = math.hypot(first["ci_high"] - first["value"], second["value"] - second["ci_low"])
    return value - below, value + above


def breakdown_stage(values: Path, matches: Path, prompts: Path, models: Sequence[str]) -> Stage:
    """Average ALIGN by country and dimension, and FAITH by category: of each model and of all, each prompt alike."""

    def run(work: Work) -> Outcome:
        about = read_table(prompts, PROMPTS).select("prompt_id", "concept", "country")
        met = read_table(matches, DESCRIPTOR_MATCHES).filter(pl.col("side") == "reference")
        shown = met.group_by("model", "prompt_id", "dimension").agg(value=pl.col("covered").sort().mean())
        shown = shown.with_columns(pl.concat_list("value"))
        rows = [*averaged(shown.join(about, on="prompt_id"), models, ("country", "dimension"), "align")]
        faith = read_table(values, VALUES).filter(metric="faith").drop("concept", "country")
        own = faith.group_by("model", "prompt_id").agg(pl.col("value").sort()).join(about, on="prompt_id")
        rows += [row for by in (("concept",), ("country", "concept")) for row in averaged(own, models, by, "faith")]
        return table_outcome(work, SCORES, scored(rows, left_out={}).scores)

    inputs = {"values": values, "matches": matches, "prompts": prompts}
    return Stage("breakdown", "scene-breakdown", 2, run, inputs, {"models": list(models)})


def averaged(images: pl.DataFrame, models: Sequence[str], by: tuple[str, ...], metric: str) -> Iterator[Row]:
    """Average the values of each prompt, then prompts over each model, and over all."""
    own = images.filter(pl.col("model").is_in(list(models)))
    both = pl.concat([own, own.with_columns(model=pl.lit(ALL))]).sort("prompt_id", "model", *by, "value")
    for (model, *key), part in both.group_by("model", *by, maintain_order=True):
        means = [simple_mean(values.to_numpy()) for values in part["value"]]
        place = {"concept": None, "country": None, "group": None, **dict(zip(by, key, strict=True))}
        params = {"dimension": place.pop("dimension")} if "dimension" in by else {"confidence": CONFIDENCE}
        answer = equal_means(means, n=len(means), confidence=CONFIDENCE)
        yield statistic_row(metric, model=str(model), benchmark="cultivate", answer=answer, params=params, **place)


def raters_stage(likert: Mapping[str, Path], images: Sequence[Path], prompts: Path, marks: Path) -> Stage:
    """Write what vision models rate, and what one person of each image rates, as values of these images."""

    def run(work: Work) -> Outcome:
        about = placed(images, prompts)
        nothing = pl.DataFrame(schema=JUDGMENTS.schema)
        each = (read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in likert.values())
        said = pl.concat([nothing, *each])
        rated = said.filter(pl.col("outcome").is_in(ANSWERED)).select("image_id", "value", by="judge", what="item")
        first = ratings_of(marks).filter(pl.col("turn") == 0)
        person = first.select("image_id", "value", by=pl.lit(ANYBODY), what="criterion")
        return table_outcome(work, VALUES, as_values(pl.concat([rated, person]), about))

    inputs = {"prompts": prompts, "marks": marks, **dict(likert), **roles("images", list(images))}
    return Stage("raters", "rater-values", 1, run, inputs)


def others_stage(images: Sequence[Path], prompts: Path, marks: Path) -> Stage:
    """Write what the other people of each image rate on average, to hold one person against."""

    def run(work: Work) -> Outcome:
        rest = ratings_of(marks).filter(pl.col("turn") > 0)
        means = rest.group_by("image_id", what="criterion").agg(pl.col("value").sort().mean())
        others = means.with_columns(by=pl.lit("other people"))
        return table_outcome(work, VALUES, as_values(others, placed(images, prompts)))

    return Stage(
        "others", "other-values", 1, run, {"prompts": prompts, "marks": marks, **roles("images", list(images))}
    )


def placed(images: Sequence[Path], prompts: Path) -> pl.DataFrame:
    """Say of each image which model made it, for which prompt and country."""
    made = pl.concat([read_table(path, IMAGES).select("image_id", "model", "prompt_id", "repeat") for path in images])
    return made.join(read_table(prompts, PROMPTS).select("prompt_id", "country"), on="prompt_id")


def ratings_of(marks: Path) -> pl.DataFrame:
    """Number the people who rate an image, by name."""
    table = read_table(marks, ANNOTATIONS).filter(pl.col("criterion").is_in(["faith", "hal", "exag"]))
    turn = pl.int_range(pl.len()).over("item_id", "criterion")
    ordered = table.sort("item_id", "criterion", "annotator").with_columns(turn=turn)
    return ordered.select("criterion", "value", "turn", image_id="item_id")


def as_values(rated: pl.DataFrame, about: pl.DataFrame) -> pl.DataFrame:
    """Write ratings as values of the metric `rating`."""
    params = pl.struct("by", of="what").struct.json_encode()
    rows = rated.join(about, on="image_id").with_columns(
        metric=pl.lit("rating"), benchmark=pl.lit("cultivate"), concept=pl.lit(None, pl.String),
        group=pl.lit(None, pl.String), params=params, item="image_id",
    )  # fmt: skip
    return rows.select(list(VALUES.schema))
