"""The scores of a run as others collect them: Every Eval Ever's records, and the Hub's `.eval_results`."""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
import polars as pl
import yaml

from culturekit.families.listing import all_metrics
from culturekit.metrics.catalog.metric import Metric, scale_of
from culturekit.registry import parse_spec
from culturekit.report.figures import Figure
from culturekit.report.model_lines import ModelLine
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.storage.manifest import RUN_RECORD
from culturekit.version import VERSION

__all__ = ["SCHEMA", "every_eval_ever", "exported", "hub_results", "model_id", "scored_when"]

SCHEMA = "0.2.1"
"""Of Every Eval Ever: the version whose fields these are."""

EXPORTED = ("mapped", "corrected")
UNKNOWN = "unknown"
DETAILS = ("benchmark", "concept", "country", "group", "params", "folder", "row")


class Finished(msgspec.Struct):
    """What a stage notes of its run: when it ended."""

    finished: datetime


def model_id(backend: str, model: str) -> str:
    """Name a model by the service or the library that ran it, and what it is called there; of a folder, its name."""
    spec = parse_spec(backend)
    return f"{spec.name}/{spec.target.rstrip('/').rpartition('/')[2] or model}"


def scored_when(run: RunFolders, folder: str = roles.SCORES.form) -> datetime:
    """Tell when scores of a run were finished."""
    return msgspec.json.decode((run.root / folder / RUN_RECORD).read_bytes(), type=Finished).finished


def exported(run: RunFolders, model: str) -> pl.DataFrame:
    """Take the scores of a model that others may collect: not what is known of a simulated world alone."""
    own = run.scores().filter(pl.col("labels").is_in(EXPORTED), model=model)
    return own.with_columns(confidence=pl.col("params").str.json_path_match("$.confidence").cast(pl.Float64))


def every_eval_ever(
    run: RunFolders, name: str, model: str, backend: str, scores: pl.DataFrame, when: datetime
) -> tuple[dict[str, Any], dict[str, int]]:
    """Give the record of a model, and how many of its scores the schema has no place for, by reason.

    Args:
        run: where the prompts are.
        name: of the run.
        model: as the run calls it.
        backend: that drew its images.
        scores: of the model, with `labels`, `confidence` and `row`, and `kernel` and `folder` where there are some.
        when: they were finished.
    """
    metrics, results, drops = all_metrics(), [], dict[str, int]()
    for row in scores.to_dicts():
        metric = metrics[row["metric"]]
        ends = range_of(metric, row)
        if ends is None or not math.isfinite(row["value"]):
            problem = "score with no bounds" if ends is None else "score with no number"
            drops[problem] = drops.get(problem, 0) + 1
            continue
        results.append(result(run, row, metric, ends))
    identity, moment = model_id(backend, model), str(int(when.timestamp()))
    record = {
        "schema_version": SCHEMA,
        "evaluation_id": f"culturekit-{name}/{identity.replace('/', '_')}/{moment}",
        "evaluation_timestamp": when.isoformat(),
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": f"culturekit run {name}",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "culturekit", "version": VERSION},
        "model_info": {"name": model, "id": identity, "additional_details": {"backend": backend}},
        "evaluation_results": results,
    }
    return record, drops


def range_of(metric: Metric, row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Give the smallest and the largest value that there can be, by its scorer where that decides; None without."""
    if math.isfinite(metric.low) and math.isfinite(metric.high):
        return metric.low, metric.high
    scorer = str(msgspec.json.decode(row["params"]).get("scorer", ""))
    return scale_of(scorer)


def result(run: RunFolders, row: Mapping[str, Any], metric: Metric, ends: tuple[float, float]) -> dict[str, Any]:
    """Give one score with its interval, and what tells it from the others."""
    about = {key: str(row[key]) for key in DETAILS if row.get(key) is not None}
    kernel = f"{row['kernel']} kernel" if row.get("kernel") else None
    label = [metric.name, kernel, row["labels"], *(row[key] for key in ("concept", "country", "group"))]
    details: dict[str, Any] = {"score": row["value"], "details": about}
    if row["ci_low"] is not None and row["ci_high"] is not None and row["confidence"] is not None:
        limits = {"lower": row["ci_low"], "upper": row["ci_high"], "confidence_level": row["confidence"]}
        details["uncertainty"] = {"confidence_interval": limits, "num_samples": row["n"]}
    prompts = run.found(roles.PROMPTS)
    return {
        "evaluation_name": ", ".join(filter(None, label)),
        "source_data": {
            "dataset_name": row["benchmark"],
            "source_type": "other",
            "additional_details": {} if prompts is None else {"prompts": prompts.sha256},
        },
        "metric_config": {
            "evaluation_description": metric.title,
            "lower_is_better": metric.direction == "lower",
            "score_type": "continuous",
            "min_score": ends[0],
            "max_score": ends[1],
            "additional_details": {"formula": metric.formula, "unit": row["unit"], "direction": metric.direction},
        },
        "score_details": details,
    }


def hub_results(run: RunFolders, line: ModelLine, dataset: str) -> bytes | None:
    """Give the headline of a model as `.eval_results` of its repository; corrected where people looked at images."""
    entries = list(entries_of(run, line, dataset))
    return yaml.safe_dump(entries, allow_unicode=True, sort_keys=False).encode("utf-8") if entries else None


def entries_of(run: RunFolders, line: ModelLine, dataset: str) -> Iterator[dict[str, Any]]:
    """Give an entry for each headline score that is a number."""
    headline: tuple[tuple[str, Figure | None], ...] = (("corrected", line.corrected), ("mapped", line.mapped))
    for labels, figure in headline:
        if figure is None or math.isnan(figure.value):
            continue
        notes = f"{labels} labels, {run.kernel} kernel, n = {figure.n}"
        if figure.low is not None and figure.high is not None:
            notes += f"; {run.confidence()} interval {figure.low:.4f} to {figure.high:.4f}"
        yield {
            "dataset": {"id": dataset, "task_id": f"vs_{run.size}_{run.kernel}_{labels}"},
            "value": figure.value,
            "date": scored_when(run).isoformat(),
            "notes": notes,
        }
