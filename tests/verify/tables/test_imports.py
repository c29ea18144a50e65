"""Answers of people are held against the exports that they came from, though all hashes fit."""

import shutil
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.annotate.quotas import Quotas
from culturekit.pipeline.steps.annotate_stages import ExportFiles
from culturekit.verify.verify_run import verify_run
from tests.annotate.projects import export, image_row, import_files, labelled, studio_tasks, write_images
from tests.annotate.test_audit_scheme import IMAGES, matches, space, truthful
from tests.verify.forging import change_table, renew_inputs, reseal


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, what two people answered, and the tables it became."""
    root = tmp_path_factory.mktemp("imported")
    table = write_images(root / "images", [image_row(image, "m", "p") for image in IMAGES])
    pl.read_parquet(table).with_columns(concept=pl.lit("cuisine")).write_parquet(table)
    files = ExportFiles([table], cspace=space(root / "space", 20), matches=[matches(root / "matches")])
    export(root / "project", files, "audit", quotas=Quotas(2))
    answers = labelled(studio_tasks(root / "project"), (1, 2), truthful(root / "project"))
    (root / "answers.json").write_bytes(orjson.dumps(answers))
    assert import_files(root / "rated", root / "project", root / "answers.json").manifest.counts["quarantine"] == 0
    return root


def found(root: Path) -> list[str]:
    return [str(finding) for finding in verify_run(root / "rated").findings if finding.severity == "broken"]


def copied(root: Path, to: Path) -> Path:
    return Path(shutil.copytree(root, to / "copy"))


def test_untouched_answers_are_those_of_the_exports(imported: Path) -> None:
    answer = verify_run(imported / "rated")
    assert answer.exit_code == 0
    assert answer.checked["audited places compared with exports"] == 120
    assert answer.checked["answers compared with exports"] >= 120


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
    lines = found(root)
    assert len([line for line in lines if "nobody answered so" in line]) >= 25
    assert len([line for line in lines if "nobody named this place" in line]) >= 25


@pytest.mark.parametrize(
    ("table", "change", "problem"),
    [
        ("audits", pl.col("country").replace({"IN": "JP", "JP": "IN"}), "nobody named this place"),
        ("annotations", pl.col("choice").replace({"IN": "JP", "JP": "IN"}), "nobody answered so"),
    ],
)
def test_edited_tables_of_answers_are_found(
    imported: Path, tmp_path: Path, table: str, change: pl.Expr, problem: str
) -> None:
    root = copied(imported, tmp_path)
    change_table(root / f"rated/{table}.parquet", lambda frame: frame.with_columns(change))
    reseal(root / "rated")
    assert any(problem in line for line in found(root))
