"""Answers of people are held against the exports that they came from, though all hashes fit."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from culturekit.people.tasks import Quotas
from culturekit.verify.verify_run import verify_run
from tests.people.projects import answer_all, export
from tests.people.test_audit_scheme import audited, truthful
from tests.verify.forging import renew_inputs, reseal
from tests.verify.tamperings import drop_row, edit_cell


def handed_out(root: Path) -> Path:
    """A project that two people are to answer."""
    export(root / "project", audited(root), "audit", quotas=Quotas(2))
    return root


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, what two people answered, and the tables it became."""
    root = handed_out(tmp_path_factory.mktemp("imported"))
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
