"""`culturekit verify`: what it prints, writes and answers."""

import json
import shutil
from pathlib import Path
from unittest import mock

import pytest

from culturekit.core.errors import IntegrityError
from culturekit.core.inputs import recorded
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.verify.forging import change_table
from tests.verify.tamperings import edit_cell


def test_a_run_that_holds(small_run: Path, tmp_path: Path) -> None:
    told = culturekit("verify", small_run, "--out", tmp_path / "verified", ends=0)
    last = told.stdout.splitlines()[-1]
    assert last.startswith("verified; ")
    data = json.loads(culturekit("verify", small_run, "--json").stdout)
    assert data["exit_code"] == 0
    assert data["verdicts"] == {"verified": len(data["scores"])}
    written = json.loads((tmp_path / "verified/verification.json").read_text())
    assert written["fingerprint"] == data["fingerprint"]
    rows = (tmp_path / "verified/scores.jsonl").read_text().splitlines()
    assert [json.loads(row) for row in rows] == data["scores"]


def test_a_run_that_does_not_hold_ends_with_4(run_copy: Path) -> None:
    before = verify_run(run_copy).fingerprint
    edit_cell(run_copy / "scores/scores.parquet")
    told = culturekit("verify", run_copy, ends=4)
    assert told.stdout.startswith("BROKEN")
    assert told.stdout.splitlines()[-1].startswith("NOT VERIFIED: ")
    assert verify_run(run_copy).fingerprint == before


def test_an_unfinished_folder_in_a_run_is_a_finding(run_copy: Path) -> None:
    (run_copy / "drafts").mkdir()
    (run_copy / "todo.txt").write_text("ask again")
    told = culturekit("verify", run_copy, ends=1)
    assert "drafts: not a finished stage" in told.stdout
    assert "todo.txt: lies beside the stages" in told.stdout


def test_what_an_earlier_recipe_left_is_no_part_of_the_run(run_copy: Path) -> None:
    before = verify_run(run_copy).fingerprint
    shutil.copytree(run_copy / "quality-broad", run_copy / "quality-gone")
    change_table(run_copy / "quality-gone/quality.parquet", lambda table: table.with_columns(value=0.5))
    told = culturekit("verify", run_copy, ends=0)
    assert "quality-gone: is of an earlier recipe" in told.stdout
    assert verify_run(run_copy).fingerprint == before
    record = json.loads((run_copy / "recipe.json").read_text())
    record["stages"].remove("scores")  # the report reads it
    (run_copy / "recipe.json").write_text(json.dumps(record))
    edit_cell(run_copy / "scores/scores.parquet")
    culturekit("verify", run_copy, ends=4)


def test_a_run_record_that_names_a_place_no_file_can_have_is_a_finding(run_copy: Path) -> None:
    path = run_copy / "scores/run.json"
    record = json.loads(path.read_text())
    role = sorted(record["inputs"])[0]
    record["inputs"][role] = "../a\0b"
    path.write_text(json.dumps(record))
    told = culturekit("verify", run_copy, ends=1)
    assert f"the place of {role!r} is one that no file can have" in told.stdout
    with pytest.raises(IntegrityError, match="does not say where"):
        recorded(run_copy / "scores", role)


@pytest.mark.parametrize(("name", "said"), [("nowhere", "is no such folder"), ("empty", "not the folder of a run")])
def test_what_is_no_run_is_refused(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert said in culturekit("verify", tmp_path / name, ends=2).stderr


@pytest.mark.parametrize(("out", "said"), [
    ("file", "the output holds something else"),
    ("file/below", "/file: a file stands where a folder is expected"),
])  # fmt: skip
def test_a_result_that_cannot_be_written_is_refused_before_the_work(out: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with mock.patch("culturekit.verify.verify_run.verify_run", side_effect=AssertionError):
        refused = culturekit("verify", tmp_path / "run", "--out", tmp_path / out)
    assert refused.returncode in {2, 3}
    assert said in refused.stderr


def test_the_result_is_not_written_into_the_run(run_copy: Path, tmp_path: Path) -> None:
    culturekit("verify", run_copy, "--out", run_copy / "verified", ends=2)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/mine.txt").write_text("mine")
    assert "holds something else" in culturekit("verify", run_copy, "--out", tmp_path / "taken").stderr


def test_a_report_elsewhere_is_held_against_the_scores_as_they_are_now(run_copy: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    culturekit("report", run_copy, "--out", page, ends=0)
    told = culturekit("verify", page, "--json", ends=0)
    assert json.loads(told.stdout)["checked"]["stages made again"] == 1
    edit_cell(run_copy / "scores/scores.parquet")
    after = culturekit("verify", page, ends=4)
    assert "page <- scores: page was not made from what lies there now" in after.stdout
