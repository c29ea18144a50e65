"""Finished runs whose scores are dealt out anew: no sentence of a page is denied by the tables of its run."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest

from culturekit.core.schemas import SCORES
from culturekit.core.tables import write_table
from culturekit.recipes.run_recipe import page_of_kind
from culturekit.report.charts import in_order, model_lines
from culturekit.report.headline import apart_in, encoder_trial, verdict_in
from culturekit.report.report_stage import recorded
from culturekit.report.run_folders import RunFolders, with_params
from tests.recipes.shipped_recipes import shared_small
from tests.report.test_headline import check_order, check_sentences

pytestmark = pytest.mark.endtoend

RUNS = 102
"""Of each recipe: 510 in all."""
FEW = 8
"""Of a metric with more scores some may be missing."""


@dataclass(frozen=True)
class Said:
    """One order that a page speaks of: by whom, in which folders and where there; strategies may stand for models."""

    verb: str
    over: str
    by: Mapping[str, tuple[str, dict[str, str | None]]]
    where: dict[str, str | None]
    lowest: bool = False
    names: Mapping[str, str] = field(default_factory=dict)


WHOLE: dict[str, str | None] = {"country": None, "group": None}
STRATEGIES = {"C³": "c3", "LaBSE (A_ST)": "labse", "CLIP (A_IT)": "clip", "only A_OT": "objects",
              "without A_OT": "nobjects", "no-objects": "nobjects"}  # fmt: skip
TRUE: dict[str, str | None] = {"labels": "truth"}
HERE: dict[str, str | None] = {"labels": "corrected"}
ORDERS = {
    "cultivate": [Said("comes first in ALIGN", "ahead of", {
        "the corrected scores": ("judged-align", HERE), "the judge alone": ("ahead", {}),
        "the truth": ("ahead-truth", {}),
    }, {"metric": "align", **WHOLE})],
    "c3": [
        Said("comes first in VQAScore", "ahead of", {
            "the corrected scores": ("judged-vqascore", HERE), "the judge alone": ("faithfulness", {}),
            "the truth": ("truth", TRUE),
        }, {"metric": "vqascore", "concept": None, **WHOLE}),
        Said("keeps the pairs that fit best", "better than", {
            "people's ratings": ("worth", {"labels": "people"}), "the truth": ("worth", TRUE),
        }, {"metric": "rating_mean", "criterion": "relevance", **WHOLE}, names=STRATEGIES),
    ],
    "inclusion": [Said("looks most often as its region does", "more often than", {
        "people who live there": ("judged-regions", {**HERE, "pool": "in-region"}),
        "people from elsewhere": ("judged-regions", {**HERE, "pool": "out-of-region"}),
        "the encoder alone": ("regions-*", {}), "the truth": ("truth", TRUE),
    }, {"metric": "region_recognised", "country": None, "concept": None, "group": None})],
    "linguistic": [
        Said("has the smallest gap between dialects", "smaller than", {
            "people": ("dialects", {"of": "correct", "pool": "anywhere"}),
            "clipscore": ("dialects", {"of": "clipscore", "pool": None}),
            "the truth": ("true-dialects", {"of": "correct", **TRUE}),
        }, {"metric": "dialect_gap"}, lowest=True),
    ],
}  # fmt: skip


def dealt_anew(finished: Path, root: Path, rng: np.random.Generator) -> RunFolders:
    """Copy a run with links; each metric's scores change places with their limits, some lose limits, some are gone."""
    for stage in finished.iterdir():
        if not (stage / "scores.parquet").is_file():
            (root / stage.name).symlink_to(stage)
            continue
        shutil.copytree(stage, root / stage.name, copy_function=lambda source, to: Path(to).symlink_to(source))
        (root / stage.name / "scores.parquet").unlink()
        table = pl.read_parquet(stage / "scores.parquet")
        if stage.name != "ranks":
            write_table(root / stage.name, SCORES, shuffled(table, rng))
    if (finished / "ranks").is_dir():
        write_table(root / "ranks", SCORES, compared_again(finished, root, rng))
    record = recorded(finished)
    stages = tuple(name for name in record.stages if name != "report")
    return RunFolders(root, tuple(model.name for model in record.models), stages)


def shuffled(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Deal values out among the scores of their metric."""
    parts = []
    for part in table.partition_by("metric", maintain_order=True):
        dealt = part.select("value", "ci_low", "ci_high")[rng.permutation(part.height).tolist()]
        bare = pl.Series(rng.random(part.height) < 0.1)
        limits = [pl.when(bare).then(None).otherwise(pl.col(name)).alias(name) for name in ("ci_low", "ci_high")]
        there = pl.Series(rng.random(part.height) < (0.97 if part.height > FEW else 1))
        parts.append(part.with_columns(dealt).with_columns(limits).filter(there))
    return pl.concat(parts)


def compared_again(finished: Path, root: Path, rng: np.random.Generator) -> pl.DataFrame:
    """Give the differences of corrected diversity that follow from scores dealt out anew, some of them sure."""
    scores = with_params(pl.read_parquet(root / "scores/scores.parquet"), "kernel", "labels")
    place = {"metric": "vs", "kernel": "country", "labels": "corrected"}
    whole = scores.filter(pl.col("concept").is_null(), **place)
    values = dict(whole.select("model", "value").iter_rows())
    rows = []
    for row in (
        pl.read_parquet(finished / "ranks/scores.parquet").filter(pl.col("concept").is_null()).iter_rows(named=True)
    ):
        about = orjson.loads(row["params"])
        if row["metric"] == "model_difference" and (about["metric"], about["of"]["kernel"]) == ("vs", "country"):
            if not {about["a"], about["b"]} <= set(values):
                continue
            value = values[about["a"]] - values[about["b"]]
            about["p_corrected"] = 0.001 if abs(value) > 0.02 and rng.random() < 0.6 else 0.5
            row |= {"value": value, "ci_low": None, "ci_high": None, "params": orjson.dumps(about).decode()}
        rows.append(row)
    return pl.DataFrame(rows, schema=SCORES.schema)


@pytest.mark.parametrize("recipe", ORDERS)
def test_no_sentence_of_a_finished_run_is_denied_by_its_tables(
    recipe: str, shared_folder: Path, tmp_path: Path
) -> None:
    finished, rng, heard = shared_small(recipe, shared_folder), np.random.default_rng(41), set[str]()
    for number in range(RUNS):
        (root := tmp_path / str(number)).mkdir()
        run = dealt_anew(finished, root, rng)
        said = list(page_of_kind(recipe).page_of(run).verdict)
        for order in ORDERS[recipe]:
            check_said(run, said, order)
        heard.update(one.partition("(")[2][5:] for one in said)
    assert len(heard) > RUNS // 2, "the runs are not all alike"


def check_said(run: RunFolders, said: list[str], order: Said) -> None:
    """Hold the sentences of one order to the scores on disk."""
    start = next((at for at, one in enumerate(said) if f" {order.verb} (" in one), len(said))
    end = next((at for at in range(start + 1, len(said)) if not follows(said[at])), len(said))
    text = " ".join(said[start:end])
    for name, plain in order.names.items():
        text = text.replace(name, plain)
    tables = {by: rows_of(run, folder, {**order.where, **where}) for by, (folder, where) in order.by.items()}
    models = list(run.models)
    if order.names:
        tables = {by: rows.with_columns(pl.col("model").replace(order.names)) for by, rows in tables.items()}
        models = sorted({name for rows in tables.values() for name in rows["model"]})
    check_order(text, tables, models, lowest=order.lowest, verb=order.verb, over=order.over)


def follows(sentence: str) -> bool:
    """Tell whether a sentence belongs to the order before it."""
    return " first too." in sentence or " comes first instead (" in sentence


def rows_of(run: RunFolders, folder: str, where: Mapping[str, Any]) -> pl.DataFrame:
    """Read the scores on disk that a sentence is about, of models alone."""
    found = pl.concat(pl.read_parquet(path) for path in sorted(run.root.glob(f"{folder}/scores.parquet")))
    table = with_params(found, *(name for name in where if name not in SCORES.schema))
    for name, value in where.items():
        table = table.filter(pl.col(name).eq_missing(pl.lit(value, pl.String)))
    return table if folder == "worth" else table.filter(pl.col("model").is_in(list(run.models)))


def test_no_sentence_about_diversity_is_denied_by_its_tables(shared_folder: Path, tmp_path: Path) -> None:
    finished, rng, heard = shared_small("cube", shared_folder), np.random.default_rng(41), set[str]()
    for number in range(RUNS):
        (root := tmp_path / str(number)).mkdir()
        run = dealt_anew(finished, root, rng)
        models = in_order(model_lines(run, run.headline_scores()))
        found = verdict_in(run, models, run.headline_scores())
        text = " ".join((found.headline, *found.sentences))
        known = {one.model: one for one in models}
        apart = frozenset(pair for pair in apart_in(run) if {*pair} <= {*known})
        check_sentences(text, known, encoder_trial(run), apart)
        heard.add(text)
    assert len(heard) > RUNS // 2, "the runs are not all alike"
