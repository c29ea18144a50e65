"""Folders scored by hand: what they are is read from their manifests, and they are made again."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.inputs import Files
from culturekit.core.schemas import ANNOTATIONS
from culturekit.core.stage import Stage
from culturekit.core.tables import write_table
from culturekit.scores.agreement import AgreementOptions, agreement
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.distribution import distribution
from culturekit.scores.family import Correction
from culturekit.scores.inputs import ValueTables
from culturekit.scores.stability import stability
from culturekit.verify.verify_run import Verification, verify_run
from tests.conftest import stage_here
from tests.scores.value_tables import annotations
from tests.verify.forging import change_table, read_json, reseal


def made(stage: Stage, folder: Path) -> Path:
    return stage_here(stage, folder).folder


def verdicts(answer: Verification) -> set[str]:
    return {verdict.verdict for verdict in answer.verdicts}


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg"])
def test_differences_of_models(small_run: Path, tmp_path: Path, paired: bool, correction: Correction) -> None:
    options = ComparisonOptions(paired=paired, target="these", correction=correction)
    folder = made(
        compare.stage(ValueTables([small_run / "scores/values.parquet"]), options=options), tmp_path / "compared"
    )
    answer = verify_run(folder)
    assert answer.exit_code == 0
    assert verdicts(answer) == {"verified"}
    path = folder / "scores.parquet"
    change_table(
        path, lambda t: t.with_columns(pl.col("params").str.replace('"p_corrected":[0-9.e-]+', '"p_corrected":0.5'))
    )
    reseal(folder)
    assert "params is another when it is made again" in str(verify_run(folder).findings[0])


def test_the_order_of_models_by_two_instruments(small_run: Path, tmp_path: Path) -> None:
    table = small_run / "scores/scores.parquet"
    (tmp_path / "other").mkdir()
    other = tmp_path / "other/scores.parquet"
    shaken = np.random.default_rng(2).random(pl.read_parquet(table).height)
    pl.read_parquet(table).with_columns(value=pl.Series(shaken)).write_parquet(other)
    folder = made(stability.stage(Files({"one": table, "two": other})), tmp_path / "stability")
    answer = verify_run(folder)
    assert answer.exit_code == 0
    assert verdicts(answer) == {"verified"}
    change_table(folder / "scores.parquet", lambda t: t.with_columns(value=-pl.col("value") - 0.1))
    reseal(folder)
    assert verify_run(folder).exit_code == 4


def test_agreement_of_annotators(tmp_path: Path) -> None:
    people = annotations({f"image-{number}": number / 8 for number in range(40)})
    path = write_table(tmp_path, ANNOTATIONS, people)
    folder = made(agreement.stage(path, options=AgreementOptions(resamples=99)), tmp_path / "agreement")
    answer = verify_run(folder)
    assert (answer.exit_code, verdicts(answer)) == (0, {"verified"})
    change_table(folder / "scores.parquet", lambda t: t.with_columns(value=pl.col("value") * 0.99))
    reseal(folder)
    assert verify_run(folder).exit_code == 4


def test_distributions_of_labels(small_run: Path, tmp_path: Path) -> None:
    folder = made(distribution.stage(Files([small_run / "matches-broad/matches.parquet"])), tmp_path / "shares")
    assert read_json(folder / "manifest.json")["stage"] == "distribution"
    answer = verify_run(folder)
    assert answer.exit_code == 0
    assert answer.checked["stages made again"] == 1
    change_table(folder / "distributions.parquet", lambda t: t.with_columns(share=pl.col("share") * 0.99))
    reseal(folder)
    assert verify_run(folder).exit_code == 4
