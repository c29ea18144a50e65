"""The survey of those who annotated: eight questions, a sheet for coders, and the table that is scored."""

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import SURVEY_CODES
from culturekit.core.tables import read_table
from culturekit.people.scheme import load_scheme
from culturekit.people.stages import ExportFiles
from culturekit.people.tasks import Quotas
from culturekit.recipes.inclusion.people import coded, coding_sheet
from culturekit.recipes.inclusion.scores import score_survey
from tests.people.projects import answer_all, export, key_of, run

REGIONS = ("Africa", "Europe", "Southeast Asia")


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the sheet of a survey to which one person of each region answered all eight questions."""
    root = tmp_path_factory.mktemp("survey")
    form = load_scheme("inclusion_survey").of_regions(REGIONS)
    assert [one.name for one in form.criteria] == [
        *(f"{what}_{code}" for what in ("object", "background") for code in ("af", "eu", "sea", "none"))
    ]
    assert form.criterion("object_sea").question.endswith("look like this in Southeast Asia?")
    export(root / "project", ExportFiles(), "inclusion_survey", quotas=Quotas(3, 0, REGIONS, everywhere=True))
    home = {row["task"]: row["annotator_region"] for row in key_of(root / "project").values()}

    def answer(data: dict[str, Any], person: int | str) -> Any:
        if home[data["task"]] != person:
            return None
        return {one.name: (f"{one.name} by {person}",) for one in form.criteria}

    from tests.people import projects

    plain = projects.result_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projects, "result_of", lambda answers: plain(answers, "subject"))
        taken = answer_all(root, REGIONS, answer)
    assert taken.manifest.counts["quarantine"] == 0
    done = run(coding_sheet.stage(root / "rated/annotations.parquet"), root / "coding")
    assert done.manifest.counts == {"responses": 24, "codes": 16}
    return root / "coding/coding_sheet.csv"


def filled(sheet: Path, to: Path, name: str, **cells: str) -> Path:
    """Let somebody code a copy: People where Africa is written about, and `cells` in the first row."""
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {"coder": name, "People": "1" if "_af" in row["question"] else ""}
    rows[0] |= cells
    with to.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return to


def test_what_three_coders_fill_in_is_scored(sheet: Path, tmp_path: Path) -> None:
    sheets = [filled(sheet, tmp_path / f"{name}.csv", name) for name in ("ana", "bo", "cy")]
    assert run(coded.stage(Files(sheets)), tmp_path / "coded").manifest.counts["survey_codes"] == 24 * 16 * 3
    table = read_table(tmp_path / "coded/survey_codes.parquet", SURVEY_CODES)
    assert (set(table["topic"]), set(table["location"])) == ({"object", "background"}, set(REGIONS))
    scores = score_survey(table).scores
    assert scores.filter(metric="theme_kappa")["value"].drop_nulls().to_list() == [1.0]
    shares = scores.filter(pl.col("params").str.contains("People"), metric="theme_share")["value"]
    assert set(shares) == {0.25}


@pytest.mark.parametrize(("cells", "found"), [({"coder": " "}, "nobody in the column coder"),
                                              ({"People": "maybe"}, "'maybe' under People")])  # fmt: skip
def test_a_row_that_is_not_coded_is_said(sheet: Path, tmp_path: Path, cells: dict[str, str], found: str) -> None:
    with pytest.raises(UsageError, match=f"ana.csv:2: a response is not coded; .*found {found}"):
        run(coded.stage(Files([filled(sheet, tmp_path / "ana.csv", "ana", **cells)])), tmp_path / "coded")


def test_one_coder_twice_is_refused(sheet: Path, tmp_path: Path) -> None:
    copies = [filled(sheet, tmp_path / f"{name}.csv", "ana") for name in "ab"]
    with pytest.raises(UsageError, match="one coder has read a response twice"):
        run(coded.stage(Files(copies)), tmp_path / "coded")
