"""`culturekit verify`: what it prints, writes and answers."""

import json
import shutil
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.atomic import outside_failure
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.lineage import recorded
from culturekit.verify.verify_run import verify_run
from tests.verify.forging import change_table
from tests.verify.tamperings import edit_cell

runner = CliRunner()


def test_a_run_that_holds(small_run: Path, tmp_path: Path) -> None:
    told = runner.invoke(app, ["verify", str(small_run), "--out", str(tmp_path / "verified")])
    assert told.exit_code == 0, told.output
    last = told.stdout.splitlines()[-1]
    assert last.startswith("verified; ")
    data = json.loads(runner.invoke(app, ["verify", str(small_run), "--json"]).stdout)
    assert data["exit_code"] == 0
    assert data["verdicts"] == {"verified": len(data["scores"])}
    written = json.loads((tmp_path / "verified/verification.json").read_text())
    assert written["fingerprint"] == data["fingerprint"]
    rows = (tmp_path / "verified/scores.jsonl").read_text().splitlines()
    assert [json.loads(row) for row in rows] == data["scores"]


def test_a_run_that_does_not_hold_ends_with_4(run_copy: Path) -> None:
    before = verify_run(run_copy).fingerprint
    edit_cell(run_copy / "scores/scores.parquet")
    told = runner.invoke(app, ["verify", str(run_copy)])
    assert told.exit_code == 4
    assert told.stdout.startswith("BROKEN")
    assert told.stdout.splitlines()[-1].startswith("NOT VERIFIED: ")
    assert verify_run(run_copy).fingerprint == before


def test_an_unfinished_folder_in_a_run_is_a_finding(run_copy: Path) -> None:
    (run_copy / "drafts").mkdir()
    (run_copy / "todo.txt").write_text("ask again")
    told = runner.invoke(app, ["verify", str(run_copy)])
    assert told.exit_code == 1
    assert "drafts: not a finished stage" in told.stdout
    assert "todo.txt: lies beside the stages" in told.stdout


def test_what_an_earlier_recipe_left_is_no_part_of_the_run(run_copy: Path) -> None:
    before = verify_run(run_copy).fingerprint
    shutil.copytree(run_copy / "quality-broad", run_copy / "quality-gone")
    change_table(run_copy / "quality-gone/quality.parquet", lambda table: table.with_columns(value=0.5))
    told = runner.invoke(app, ["verify", str(run_copy)])
    assert told.exit_code == 0, told.output
    assert "quality-gone: is of an earlier recipe" in told.stdout
    assert verify_run(run_copy).fingerprint == before
    record = json.loads((run_copy / "recipe.json").read_text())
    record["stages"].remove("scores")  # the report reads it
    (run_copy / "recipe.json").write_text(json.dumps(record))
    edit_cell(run_copy / "scores/scores.parquet")
    assert runner.invoke(app, ["verify", str(run_copy)]).exit_code == 4


def test_a_run_record_that_names_a_place_no_file_can_have_is_a_finding(run_copy: Path) -> None:
    path = run_copy / "scores/run.json"
    record = json.loads(path.read_text())
    role = sorted(record["inputs"])[0]
    record["inputs"][role] = "../a\0b"
    path.write_text(json.dumps(record))
    told = runner.invoke(app, ["verify", str(run_copy)])
    assert told.exit_code == 1, told.output
    assert f"the place of {role!r} is one that no file can have" in told.stdout
    with pytest.raises(IntegrityError, match="does not say where"):
        recorded(run_copy / "scores", role)


@pytest.mark.parametrize(("words", "said"), [
    (["nowhere"], "there is no such folder"),
    (["empty"], "not the folder of a run"),
])  # fmt: skip
def test_what_is_no_run_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused = runner.invoke(app, ["verify", str(tmp_path / words[0])])
    assert isinstance(refused.exception, UsageError)
    assert said in str(refused.exception)


@pytest.mark.parametrize(("out", "said"), [
    ("file", "the output holds something else"),
    ("file/below", "/file: a file stands where a folder is expected"),
])  # fmt: skip
def test_a_result_that_cannot_be_written_is_refused_before_the_work(out: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with mock.patch("culturekit.verify.verify_run.verify_run", side_effect=AssertionError):
        refused = runner.invoke(app, ["verify", str(tmp_path / "run"), "--out", str(tmp_path / out)])
    assert refused.exception is not None
    assert said in str(outside_failure(refused.exception) or refused.exception)


def test_the_result_is_not_written_into_the_run(run_copy: Path, tmp_path: Path) -> None:
    refused = runner.invoke(app, ["verify", str(run_copy), "--out", str(run_copy / "verified")])
    assert isinstance(refused.exception, UsageError)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/mine.txt").write_text("mine")
    refused = runner.invoke(app, ["verify", str(run_copy), "--out", str(tmp_path / "taken")])
    assert "holds something else" in str(refused.exception)


def test_a_report_elsewhere_is_held_against_the_scores_as_they_are_now(run_copy: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    assert runner.invoke(app, ["report", str(run_copy), "--out", str(page)]).exit_code == 0
    told = runner.invoke(app, ["verify", str(page), "--json"])
    assert told.exit_code == 0, told.stdout
    assert json.loads(told.stdout)["checked"]["stages made again"] == 1
    edit_cell(run_copy / "scores/scores.parquet")
    after = runner.invoke(app, ["verify", str(page)])
    assert after.exit_code == 4
    assert "page <- scores: page was not made from what lies there now" in after.stdout
