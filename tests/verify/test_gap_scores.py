"""Gaps between groups: what the metric scores, the check recomputes, and what was changed it finds."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.families.gaps import GapOptions, GapReads, gaps
from culturekit.families.handles.inputs import ValueTables
from culturekit.records.schemas import VALUES
from culturekit.storage.tables import write_table
from culturekit.verify.verify_run import verify_run
from tests.families.test_gaps import GROUPS, grouped
from tests.metrics.scoring.value_tables import values
from tests.verify.forging import change_table, reseal
from tests.verify.test_families import made, verdicts

OPTIONS = GapOptions("cultivate", GROUPS)
ALONE = values(prompts=1, images=1)
"""Nothing says how much these scatter."""

WORLDS = {
    "other prompts": (values(concepts=("dance", "food")), OPTIONS),
    "these prompts": (values(prompts=3, params={"tau": 0.5, "images_left_out": 3}), OPTIONS),
    "no scatter": (ALONE, GapOptions("cultivate", GROUPS, correction="benjamini-hochberg", confidence=0.8)),
    "three groups": (values(models={"m1": 0.0}), GapOptions("mine", {"DE": "a", "FR": "b", "IN": "c", "NG": "c"})),
    "the same prompts": (grouped(shared=True), GapOptions("group")),
    "the same few prompts": (grouped(shared=True).filter(pl.col("item").str.contains("/[0-5]/")), GapOptions("group")),
    "prompts of their own": (grouped(shared=False), GapOptions("group", target="population")),
}


def gaps_of(table: pl.DataFrame, options: GapOptions, root: Path) -> Path:
    (root / "values").mkdir()
    path = write_table(root / "values", VALUES, table)
    return made(gaps(GapReads(ValueTables([path])), options), root / "gaps")


@pytest.mark.parametrize("world", list(WORLDS))
def test_every_gap_is_recomputed(world: str, tmp_path: Path) -> None:
    answer = verify_run(gaps_of(*WORLDS[world], tmp_path))
    assert [str(finding) for finding in answer.findings] == []
    assert verdicts(answer) == {"verified"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (pl.col("value") + 1e-3, "value is not what the tables give"),
        (pl.col("ci_low") - 1e-3, "ci_low is not what the tables give"),
        (pl.col("n") + 1, "n is not what the tables give"),
        (pl.col("params").str.replace(r'"p":[0-9.e-]+', '"p":0.9'), "p is not what the values give"),
        (pl.col("params").str.replace(r'"p_corrected":[0-9.e-]+', '"p_corrected":0.9'), "the corrected p is not"),
        (pl.col("params").str.replace('"target":"population"', '"target":"these"'), "params.target is not"),
        (pl.col("params").str.replace('"DE","FR"', '"DE"'), "params.countries is not"),
        (pl.col("concept").fill_null("dance"), "is no gap of the values"),
    ],
)
def test_a_changed_gap_is_found(change: pl.Expr, problem: str, tmp_path: Path) -> None:
    folder = gaps_of(*WORLDS["other prompts"], tmp_path)
    change_table(folder / "scores.parquet", lambda table: table.with_columns(change))
    reseal(folder)
    answer = verify_run(folder)
    assert answer.exit_code == 4
    assert problem in " ".join(str(finding) for finding in answer.findings)


def test_a_gap_that_was_left_out_is_missed(tmp_path: Path) -> None:
    folder = gaps_of(*WORLDS["other prompts"], tmp_path)
    change_table(folder / "scores.parquet", lambda table: table.filter(pl.col("concept") != "food"))
    reseal(folder)
    assert "a gap is missing" in " ".join(str(finding) for finding in verify_run(folder).findings)


def test_without_the_values_nothing_is_recomputed(tmp_path: Path) -> None:
    folder = gaps_of(*WORLDS["these prompts"], tmp_path)
    (tmp_path / "values/values.parquet").unlink()
    assert verdicts(verify_run(folder)) == {"not verifiable"}
