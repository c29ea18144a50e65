"""Several runs on one page: what is comparable is compared, what is not is said."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.stage import Work
from culturekit.recipes.several_runs import several_runs_stage, write_page
from culturekit.report.report_stage import folders_of
from culturekit.report.several import apart, collect_several, ground_of, render_several, same_ground


@pytest.fixture
def other_run(small_run: Path, tmp_path: Path) -> Path:
    """A run with the same images under another encoder's name."""
    root = Path(shutil.copytree(small_run, tmp_path / "other"))
    for path in root.glob("matches-*/manifest.json"):
        manifest = json.loads(path.read_bytes())
        manifest["notes"]["identity"]["name"] = "another"
        path.write_text(json.dumps(manifest), encoding="utf-8")
    return root


def test_runs_on_the_same_ground_are_compared_on_common_prompts(small_run: Path, run_copy: Path, work: Work) -> None:
    runs = [("a", folders_of(small_run)), ("b", folders_of(run_copy))]
    assert same_ground([ground_of(run, name) for name, run in runs]) == [(0, 1)]
    assert apart([ground_of(run, name) for name, run in runs]) == []
    outcome = write_page(work, runs)
    assert outcome.counts["differences"] == 2 * 9
    scores = pl.read_parquet(work.out / "scores.parquet")
    same = scores.filter(pl.col("model") == "broad (a) - broad (b)")
    assert same.height == 2
    assert same["value"].to_list() == pytest.approx([0, 0], abs=1e-12)
    assert not scores["model"].str.contains(r"\(a\) - .*\(a\)").any()
    page = (work.out / "report.html").read_text(encoding="utf-8")
    assert "All of it: these runs have the same" in page
    assert "script-src &#39;none&#39;" in page
    assert "<script" not in page


def test_another_encoder_is_said_loudly_and_nothing_is_subtracted(small_run: Path, other_run: Path, work: Work) -> None:
    outcome = write_page(work, [("a", folders_of(small_run)), ("b", folders_of(other_run))])
    assert outcome.counts["differences"] == 0
    assert not (work.out / "scores.parquet").exists()
    page = (work.out / "report.html").read_text(encoding="utf-8")
    assert "Not on one scale." in page
    assert "Not comparable: encoder." in page
    assert "name another" in page
    assert "no two of these runs stand on the same ground" in page


def test_headline_scores_of_all_runs_stand_in_one_table(small_run: Path, run_copy: Path) -> None:
    data = collect_several([("a", folders_of(small_run)), ("b", folders_of(run_copy))], None, ())
    page = render_several(data)
    scores = folders_of(small_run).headline_scores()
    assert [len(run.models) for run in data.runs] == [3, 3]
    for run in data.runs:
        for line in run.models:
            row = scores.row(line.mapped.row, named=True)
            assert (row["model"], row["metric"], row["labels"]) == (line.model, "vs", "mapped")
            assert f"row {line.mapped.row} of scores.parquet, n = {line.mapped.n}" in page


def test_models_of_all_runs_stand_by_value_where_they_share_a_scale(small_run: Path, other_run: Path) -> None:
    def order(other: Path) -> list[tuple[str, str]]:
        data = collect_several([("a", folders_of(small_run)), ("b", folders_of(other))], None, [])
        return [(run.name, line.model) for run, line in data.lines]

    assert order(small_run) == [(run, model) for model in ("broad", "empty", "narrow") for run in "ab"]
    assert [run for run, _ in order(other_run)] == list("aaabbb")


def test_names_of_runs_cannot_do_anything(small_run: Path, run_copy: Path) -> None:
    text = "<script>window.pwned=1</script>"
    data = collect_several([(text, folders_of(small_run)), ("b", folders_of(run_copy))], None, ())
    assert "<script" not in render_several(data)


def test_the_same_run_twice_is_refused(small_run: Path, run_copy: Path) -> None:
    with pytest.raises(UsageError, match="named twice"):
        several_runs_stage([small_run, small_run])
    stage = several_runs_stage([small_run, run_copy])
    assert {role.split("/")[0] for role in stage.inputs} == {"small", "small-2"}
