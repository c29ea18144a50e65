"""The stages from scores of activities to gaps between groups of countries: as judged, corrected and true."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.families.handles.country_groups import country_groups
from culturekit.families.handles.value_files import roles
from culturekit.metrics.scoring.score_rows import Row, scored
from culturekit.records.schemas import SCORES, VALUES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.digests import canonical_json
from culturekit.storage.tables import read_table, write_table

__all__ = ["gaps_of_scores_stage", "grouped_values_stage"]

TRUTH = "truth"


def grouped_values_stage(values: Path, scheme: str, metrics: Sequence[str], *, name: str = "by-group") -> Stage:
    """Put values that stand under countries under groups of these as well, so that people can put groups right."""

    def run(work: Work) -> Outcome:
        own = read_table(values, VALUES).filter(pl.col("metric").is_in(list(metrics)))
        side = pl.col("country").replace_strict(dict(country_groups(scheme)), default=None, return_dtype=pl.String)
        grouped = own.with_columns(group=side, country=pl.lit(None, pl.String)).drop_nulls("group")
        write_table(work.out, VALUES, pl.concat([own, grouped]).select(list(VALUES.schema)))
        return Outcome({"values": own.height + grouped.height})

    return Stage(name, "grouped-values", 1, run, {"values": values}, {"scheme": scheme, "metrics": list(metrics)})


def gaps_of_scores_stage(
    judged: Mapping[str, Path], truth: Path | None, scheme: str, *, name: str = "corrected-gaps"
) -> Stage:
    """Subtract scores of groups of countries: as a judge has them, put right by people, and, where known, true."""

    def run(work: Work) -> Outcome:
        tables = [(read_table(path, SCORES), "") for path in judged.values()]
        known = {metric for table, _ in tables for metric in table["metric"]}
        tables += [] if truth is None else [(read_table(truth, SCORES).filter(pl.col("metric").is_in(known)), TRUTH)]
        rows = [row for table, labels in tables for row in gaps_in(table, labels, scheme)]
        write_table(work.out, SCORES, scored(rows, left_out={}).scores)
        return Outcome({"scores": len(rows)})

    inputs = {**roles("judged", list(judged.values())), **({} if truth is None else {"truth": truth})}
    return Stage(name, "gaps-of-scores", 1, run, inputs, {"scheme": scheme})


def gaps_in(table: pl.DataFrame, labels: str, scheme: str) -> Iterator[Row]:
    """Subtract the second group of a scheme from the first, for each score that both have."""
    a, b = sorted(set(country_groups(scheme).values()))[:2]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.filter(pl.col("group").is_in([a, b])).iter_rows(named=True):
        about = orjson.loads(row["params"])
        kind = labels or str(about.get("labels", "judged"))
        key = (row["metric"], row["model"], row["benchmark"], row["concept"], kind, about.get("pool"))
        found.setdefault(key, {})[row["group"]] = (row, about)
    for (metric, model, benchmark, concept, kind, pool), sides in found.items():
        if sides.keys() != {a, b}:
            continue
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
