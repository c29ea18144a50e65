"""A model without images of a concept beside one that has them: over all prompts, and compared on common ones."""

import json
from pathlib import Path

import polars as pl

from culturekit.core.inputs import Files
from culturekit.core.run import run_stage
from culturekit.core.schemas import MATCHES
from culturekit.core.tables import write_table
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.inputs import ValueTables
from culturekit.scores.qvs import qvs
from culturekit.verify.verify_run import verify_run
from tests.conftest import HeardProgress, HereEngine
from tests.scores.test_routes import NEAREST

OPTIONS = QvsOptions(kernels=((0.0, 1.0, 0.0),))


def test_it_has_a_score_over_all_prompts_and_is_compared_on_those_it_has(tmp_path: Path) -> None:
    paths = {}
    for model, images in (("a", NEAREST.filter(model="a")), ("b", NEAREST.filter(model="b", concept="art"))):
        folder = tmp_path / f"matches-{model}"
        folder.mkdir()
        paths[f"matches-{model}"] = write_table(folder, MATCHES, images.sort(MATCHES.key))
    engine, progress = HereEngine(), HeardProgress()
    run_stage(qvs.stage(Files(paths), options=OPTIONS), tmp_path / "scores", engine=engine, progress=progress)
    scores = pl.read_parquet(tmp_path / "scores/scores.parquet").filter(metric="vs")
    whole = scores.filter(pl.col("concept").is_null())
    assert sorted(whole["model"]) == ["a", "b"]
    assert dict(whole.select("model", "n").iter_rows()) == {"a": 64, "b": 32}
    values = ValueTables([tmp_path / "scores/values.parquet"])
    compared = compare.stage(values, options=ComparisonOptions(target="these"))
    run_stage(compared, tmp_path / "comparison", engine=engine, progress=progress)
    over_all = pl.read_parquet(tmp_path / "comparison/scores.parquet").filter(pl.col("concept").is_null())
    params = json.loads(over_all["params"][0])
    assert (params["common"], params["left_out"]) == (1, 1)
    answer = verify_run(tmp_path / "scores")
    assert [str(finding) for finding in answer.findings] == []
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}
