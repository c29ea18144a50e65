"""The scores of a run as others collect them: Every Eval Ever's records, and the Hub's `.eval_results`."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import polars as pl
import yaml

from culturekit.families.listing import all_metrics
from culturekit.generation.backends import is_paid
from culturekit.metrics.catalog.metric import Metric, scale_of
from culturekit.registry import parse_spec
from culturekit.report.figures import Figure
from culturekit.report.model_lines import ModelLine
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.storage.manifest import RUN_RECORD
from culturekit.version import VERSION

__all__ = [
    "SCHEMA",
    "every_eval_ever",
    "exported",
    "filed_under",
    "hub_results",
    "model_id",
    "samples_of",
    "scored_when",
]

SCHEMA = "0.3.0"
"""Of Every Eval Ever: the version whose fields these are."""

EXPORTED = ("mapped", "corrected")
UNKNOWN = "unknown"
SERVED = "externally_managed"
DEPLOYED = {"diffusers": "self_deployed", "simulated": "self_deployed"}
NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9._-]+")
SAME_SCORE = ("metric", "model", "benchmark", "concept", "country", "group", "params")
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
    identity, moment = model_id(backend, model), str(int(when.timestamp()))
    apart = "" if identity.endswith(f"/{model}") else f":{model}"  # several models of a run may be one with options
    evaluation = f"culturekit-{name}{apart}/{identity}/{moment}"
    for row in scores.to_dicts():
        metric = metrics[row["metric"]]
        ends = range_of(metric, row)
        if ends is None or not math.isfinite(row["value"]):
            problem = "score with no bounds" if ends is None else "score with no number"
            drops[problem] = drops.get(problem, 0) + 1
            continue
        results.append(result(run, row, metric, ends))
    record = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "evaluation_timestamp": when.isoformat(),
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": f"culturekit run {name}",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "culturekit", "version": VERSION},
        "model_info": {"name": model, "id": identity, "additional_details": deployment(backend)},
        "evaluation_results": results,
    }
    return record, drops


def deployment(backend: str) -> dict[str, str]:
    """Say who ran a model and whether its weights are open, as far as its backend tells."""
    kind, target = parse_spec(backend).name, parse_spec(backend).target
    open_weights = kind == "diffusers" and re.fullmatch(r"[\w.-]+/[\w.-]+", target) is not None
    return {
        "backend": backend,
        "deployment_type": SERVED if is_paid(backend) else DEPLOYED.get(kind, UNKNOWN),
        "model_availability": "open_weights" if open_weights and not Path(target).exists() else UNKNOWN,
    }


def filed_under(record: Mapping[str, Any], collection: str) -> str:
    """Name the file of a record as the datastore of Every Eval Ever files it; the same record has the same name."""
    parts = [NOT_IN_PATHS.sub("-", part).strip("-.") or "model" for part in record["model_info"]["id"].split("/")]
    number = UUID(bytes=sha256(record["evaluation_id"].encode()).digest()[:16], version=4)
    return "/".join(["data", NOT_IN_PATHS.sub("-", collection), *parts, f"{number}.json"])


def samples_of(run: RunFolders, model: str, record: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """Give what each exported score is the mean of, prompt by prompt, and make the record name that file.

    No sample is right or wrong: `is_correct` says whether it has the best value that there can be.
    """
    results = {int(one["score_details"]["details"]["row"]): one for one in record["evaluation_results"]}
    scores = run.scores().filter(pl.col("row").is_in(list(results))).select(*SAME_SCORE, "row")
    values = run.values().filter(pl.col("value").is_finite(), model=model)
    rows = values.join(scores, on=SAME_SCORE, nulls_equal=True).sort("row", "item")
    texts = run.prompts()
    images: dict[tuple[str, int], list[str]] = {}
    for prompt, repeat, image in (
        run.images(model).filter(status="ok").sort("slot").select("prompt_id", "repeat", "image_id").iter_rows()
    ):
        images.setdefault((prompt, repeat), []).append(image)
    samples = [
        sample(row, results[row["row"]], texts[row["prompt_id"]], images.get((row["prompt_id"], row["repeat"]), []))
        for row in rows.iter_rows(named=True)
        if row["prompt_id"] in texts
    ]
    whose = {"evaluation_id": record["evaluation_id"], "model_id": record["model_info"]["id"]}
    samples = [{"schema_version": SCHEMA, **whose, **one} for one in samples]
    if samples:
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": path.removesuffix(".json") + "_samples.jsonl",
            "hash_algorithm": "sha256",
            "total_rows": len(samples),
        }
    return samples


def sample(row: Mapping[str, Any], result: Mapping[str, Any], text: str, images: Sequence[str]) -> dict[str, Any]:
    """Give one value that a score is the mean of."""
    metric = result["metric_config"]
    best = metric["min_score"] if metric["lower_is_better"] else metric["max_score"]
    return {
        "evaluation_name": result["evaluation_name"],
        "evaluation_result_id": result["evaluation_result_id"],
        "sample_id": row["item"],
        "sample_hash": sha256(text.encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": text, "reference": []},
        "output": {"raw": list(images)},
        "answer_attribution": [],
        "evaluation": {"score": row["value"], "is_correct": row["value"] == best},
        "metadata": {"output": "ids of images", "is_correct": "whether the score is the best that there can be"},
    }


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
        "evaluation_result_id": "/".join((row.get("folder") or roles.SCORES.form, str(row["row"]))),
        "evaluation_name": ", ".join(filter(None, label)),
        "source_data": {
            "dataset_name": row["benchmark"],
            "source_type": "other",
            "additional_details": {} if prompts is None else {"prompts": prompts.sha256},
        },
        "metric_config": {
            "evaluation_description": metric.title,
            "metric_id": f"culturekit.{metric.name}",
            "metric_name": metric.title,
            "metric_unit": row["unit"],
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
