"""What `culturekit verify` says of a run, of folders scored by hand, and of answers of people."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import orjson
import polars as pl
import pytest

from culturekit.core.errors import IntegrityError
from culturekit.core.inputs import Files, recorded
from culturekit.core.schemas import ANNOTATIONS
from culturekit.core.stage import Stage
from culturekit.core.tables import write_table
from culturekit.people.tasks import Quotas
from culturekit.scores.agreement import AgreementOptions, agreement
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.distribution import distribution
from culturekit.scores.family import Correction
from culturekit.scores.inputs import ValueTables
from culturekit.scores.stability import stability
from culturekit.verify.verify_run import Verification, verify_run
from tests.command_line import culturekit
from tests.conftest import stage_here
from tests.people.projects import answer_all, export
from tests.people.test_audit_scheme import audited, truthful
from tests.scores.value_tables import annotations
from tests.verify.forging import change_table, drop_row, edit_cell, renew_inputs, reseal


def test_a_run_that_holds(small_run: Path, tmp_path: Path) -> None:
    told = culturekit("verify", small_run, "--out", tmp_path / "verified", ends=0)
    last = told.stdout.splitlines()[-1]
    assert last.startswith("verified; ")
    data = json.loads(culturekit("verify", small_run, "--json").stdout)
    assert data["exit_code"] == 0
    assert data["verdicts"] == {"verified": len(data["scores"])}
    written = json.loads((tmp_path / "verified/verification.json").read_text())
    assert written["fingerprint"] == data["fingerprint"]
    for name in ("scores", "findings"):
        rows = (tmp_path / f"verified/{name}.jsonl").read_text().splitlines()
        assert [json.loads(row) for row in rows] == data[name]


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
    ("file", "the output holds something else"), ("taken", "the output holds something else"),
    ("run/verified", "the output lies in the run itself"),
    ("file/below", "/file: a file stands where a folder is expected"),
])  # fmt: skip
def test_a_result_that_cannot_be_written_is_refused_before_the_work(out: str, said: str, tmp_path: Path) -> None:
    for name in ("file", "taken/mine.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    with mock.patch("culturekit.verify.verify_run.verify_run", side_effect=AssertionError):
        refused = culturekit("verify", tmp_path / "run", "--out", tmp_path / out)
    assert refused.returncode in {2, 3}
    assert said in refused.stderr


def test_a_report_elsewhere_is_held_against_the_scores_as_they_are_now(run_copy: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    culturekit("report", run_copy, "--out", page, ends=0)
    told = culturekit("verify", page, "--json", ends=0)
    assert json.loads(told.stdout)["checked"]["stages made again"] == 1
    edit_cell(run_copy / "scores/scores.parquet")
    after = culturekit("verify", page, ends=4)
    assert "page <- scores: page was not made from what lies there now" in after.stdout


def made(stage: Stage, folder: Path) -> Path:
    return stage_here(stage, folder).folder


def verdicts(answer: Verification) -> set[str]:
    return {verdict.verdict for verdict in answer.verdicts}


def compared(run: Path, folder: Path, *, paired: bool, correction: Correction) -> Path:
    options = ComparisonOptions(paired=paired, target="these", correction=correction)
    return made(compare.stage(ValueTables([run / "scores/values.parquet"]), options=options), folder / "compared")


def ordered_by_two(run: Path, folder: Path) -> Path:
    table, other = run / "scores/scores.parquet", folder / "other/scores.parquet"
    other.parent.mkdir()
    shaken = np.random.default_rng(2).random(pl.read_parquet(table).height)
    pl.read_parquet(table).with_columns(value=pl.Series(shaken)).write_parquet(other)
    return made(stability.stage(Files({"one": table, "two": other})), folder / "stability")


def agreed(_: Path, folder: Path) -> Path:
    path = write_table(folder, ANNOTATIONS, annotations({f"image-{number}": number / 8 for number in range(40)}))
    return made(agreement.stage(path, options=AgreementOptions(resamples=99)), folder / "agreement")


def shared_out(run: Path, folder: Path) -> Path:
    return made(distribution.stage(Files([run / "matches-broad/matches.parquet"])), folder / "shares")


P_VALUE = pl.col("params").str.replace('"p_corrected":[0-9.e-]+', '"p_corrected":0.5')
# Who scores by hand, what is changed afterwards, and what is said of it
BY_HAND: list[tuple[Callable[[Path, Path], Path], pl.Expr, str]] = [
    *((partial(compared, paired=paired, correction=correction), P_VALUE, "params is another when it is made again")
      for paired in (True, False) for correction in ("holm", "benjamini-hochberg")),
    (ordered_by_two, -pl.col("value") - 0.1, "value is another"),
    (agreed, pl.col("value") * 0.99, "value is another"),
    (shared_out, pl.col("share") * 0.99, "share is another"),
]  # fmt: skip


@pytest.mark.parametrize(("scored", "change", "said"), BY_HAND)
def test_a_folder_scored_by_hand_is_made_again_from_its_manifest(
    scored: Callable[[Path, Path], Path], change: pl.Expr, said: str, small_run: Path, tmp_path: Path
) -> None:
    folder = scored(small_run, tmp_path)
    answer = verify_run(folder)
    assert (answer.exit_code, answer.checked["stages made again"]) == (0, 1)
    assert verdicts(answer) <= {"verified"}
    (path,) = (
        folder / f"{name}.parquet" for name in ("scores", "distributions") if (folder / f"{name}.parquet").is_file()
    )
    change_table(path, lambda table: table.with_columns(change))
    reseal(folder)
    after = verify_run(folder)
    assert after.exit_code == 4
    assert said in str(after.findings[0])


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, what two people answered, and the tables it became."""
    root = tmp_path_factory.mktemp("imported")
    export(root / "project", audited(root), "audit", quotas=Quotas(2))
    assert answer_all(root, (1, 2), truthful(root / "project")).manifest.counts["quarantine"] == 0
    return root


def found(root: Path) -> list[str]:
    return [str(finding) for finding in verify_run(root / "rated").findings if finding.severity == "broken"]


def copied(root: Path, to: Path) -> Path:
    return Path(shutil.copytree(root, to / "copy"))


def test_untouched_answers_are_those_of_the_exports(imported: Path) -> None:
    answer = verify_run(imported / "rated")
    assert (answer.findings, answer.checked["stages made again"]) == ((), 1)


def test_fifty_edited_answers_are_found(imported: Path, tmp_path: Path) -> None:
    root = copied(imported, tmp_path)
    tasks: list[dict[str, Any]] = orjson.loads((root / "answers.json").read_bytes())
    edited = 0
    for task in reversed(tasks):
        for annotation in task["annotations"]:
            result = [each for each in annotation["result"] if each["from_name"] == "country"]
            for each in result if edited < 50 else ():
                each["value"]["choices"] = ["NG" if each["value"]["choices"] != ["NG"] else "IN"]
                edited += 1
    assert edited == 50
    (root / "answers.json").write_bytes(orjson.dumps(tasks))
    renew_inputs(root / "rated")
    assert {line.partition(":")[0] for line in found(root)} >= {"rated/audits.parquet", "rated/annotations.parquet"}


@pytest.mark.parametrize("table", ["audits", "annotations", "annotation_checks", "rated_items"])
@pytest.mark.parametrize("change", [edit_cell, drop_row])
def test_edited_tables_of_answers_are_found(
    imported: Path, tmp_path: Path, table: str, change: Callable[[Path], None]
) -> None:
    root = copied(imported, tmp_path)
    change(root / f"rated/{table}.parquet")
    reseal(root / "rated")
    assert any(line.startswith(f"rated/{table}.parquet: ") for line in found(root))
