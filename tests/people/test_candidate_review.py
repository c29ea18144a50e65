"""Candidates that wait for a person, out as sheet and forms and back as verdicts, as stages."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.builders.prompting.prompts import PromptOptions, prompts_stage
from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.digests import Manifest
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import DECISIONS, KEPT, QUOTAS, VERDICTS
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.countries import countries
from culturekit.people.answers import journal_in
from culturekit.people.candidate_review import Handing, ReviewFiles, review_export_stage, review_stage
from tests.builders.spaces import rows_of
from tests.conftest import stage_here
from tests.people.projects import form_tasks
from tests.people.test_space_check import fill_in

CUISINE = Concept(
    concept="cuisine", hops=2, roots=(Root(qid="Q1000", label="dish"),), countries=("BR", "JP", "NG")
)  # fmt: skip


def done(stage: Stage, folder: Path) -> Manifest:
    return stage_here(stage, folder / stage.name).manifest


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    same = {"concept": "cuisine", "label": "a dish", "country_qids": ["Q155"], "roots": ["Q1000"], "path": ["Q1000"]}
    rows = [
        {**same, "qid": "Q1", "verdict": "keep", "reason": "judge m"},
        {**same, "qid": "Q2", "label": "<b>a stew</b>", "verdict": "review", "reason": "judge m"},
        {**same, "qid": "Q3", "verdict": "review", "reason": "judge m: refused"},
    ]
    return write_table(tmp_path, KEPT, rows_of(KEPT, *rows))


def export(folder: Path, answers: Mapping[str, str], **changes: object) -> Path:
    """Answer the tasks of Label Studio, by the name of what they show."""
    tasks = json.loads((folder / "review-export/hand-out/label-studio/tasks-01.json").read_bytes())
    for number, task in enumerate(tasks):
        word = answers[task["data"]["link"].rpartition("/")[2]]
        entry = {"id": f"r{number}", "from_name": "decision", "to_name": "subject", "type": "choices"}
        task["annotations"] = [
            {"id": number, "completed_by": {"id": 1, "email": "ada@example.org"}, "was_cancelled": False,
                "result": [{**entry, "value": {"choices": [word]}}], "created_at": "2026-11-21T10:00:00Z", **changes},
        ]  # fmt: skip
    path = folder / "export.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_answers_of_a_form_become_verdicts_with_who_and_when(kept: Path, tmp_path: Path) -> None:
    counts = done(review_export_stage(kept, Handing(label_studio=True)), tmp_path).counts
    assert counts["items"] == 2
    files = ReviewFiles((export(tmp_path, {"Q2": "accept", "Q3": "open"}),), tmp_path / "review-export")
    manifest = done(review_stage(kept, files), tmp_path)
    table = read_table(tmp_path / "review/kept.parquet", KEPT)
    assert dict(table.select("qid", "verdict").iter_rows()) == {"Q1": "keep", "Q2": "keep", "Q3": "review"}
    (row,) = read_table(tmp_path / "review/decisions.parquet", DECISIONS).iter_rows(named=True)
    assert (row["qid"], row["decision"], row["decided_on"]) == ("Q2", "accept", "2026-11-21")
    assert row["reviewer"].startswith("annotator-")
    assert manifest.notes["reviewers"] == [row["reviewer"]]


@pytest.mark.parametrize(("changes", "word", "message"), [
    ({}, "maybe", "out of range|not offered|maybe"), ({"strange": 1}, "accept", "unknown field"),
    ({"created_at": None}, "accept", "--on"),
])  # fmt: skip
def test_bad_exports_are_refused(kept: Path, tmp_path: Path, changes: dict[str, Any], word: str, message: str) -> None:
    done(review_export_stage(kept, Handing(label_studio=True)), tmp_path)
    files = ReviewFiles((export(tmp_path, {"Q2": word, "Q3": "accept"}, **changes),), tmp_path / "review-export")
    with pytest.raises(ConfigError, match=message):
        done(review_stage(kept, files), tmp_path)
    assert not (tmp_path / "review").exists()


def test_a_sheet_may_be_filled_in_where_it_was_handed_out(kept: Path, tmp_path: Path) -> None:
    done(review_export_stage(kept, Handing(label_studio=True)), tmp_path)
    sheet = tmp_path / "review-export/review.csv"
    sheet.write_text(sheet.read_text(encoding="utf-8").replace(",,,\n", ",,,\n"), encoding="utf-8")
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    sheet.write_text("\n".join([lines[0], *(line[:-4] + ",reject,Ada,2026-11-22," for line in lines[1:])]))
    done(review_stage(kept, ReviewFiles((sheet,))), tmp_path)
    assert read_table(tmp_path / "review/kept.parquet", KEPT)["qid"].to_list() == ["Q1"]


def test_what_is_missing_for_an_import_is_said(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--project"):
        review_stage(kept, ReviewFiles((tmp_path / "answers.json",)))
    with pytest.raises(UsageError, match="sheets are read without their project"):
        review_stage(kept, ReviewFiles((tmp_path / "sheet.csv",), tmp_path))
    with pytest.raises(UsageError, match="exports say who decided; expected a sheet beside --by"):
        review_stage(kept, ReviewFiles((tmp_path / "answers.json",), tmp_path, by="Ada"))
    with pytest.raises(UsageError, match="YYYY-MM-DD"):
        review_stage(kept, ReviewFiles((tmp_path / "sheet.csv",), on="22.11.2026"))
    with pytest.raises(UsageError, match="there is no such file"):
        done(review_stage(kept, ReviewFiles((tmp_path / "sheet.csv",))), tmp_path)


def test_a_quota_runs_over_every_country_of_the_root_configs(kept: Path, tmp_path: Path) -> None:
    done(release_stage([kept], ReleaseOptions((CUISINE,))), tmp_path)
    space = tmp_path / "cspace/cspace.parquet"
    manifest = done(prompts_stage(space, PromptOptions(quota="1"), seed=0), tmp_path)
    assert manifest.notes["findings"] == [f"quota not met: cuisine in {iso}: 0 of 1" for iso in ("JP", "NG")]
    assert read_table(tmp_path / "prompts/quotas.parquet", QUOTAS).select("country", "available").rows() == [
        ("BR", 1), ("JP", 0), ("NG", 0),
    ]  # fmt: skip
    alone = tmp_path / "alone.parquet"
    alone.write_bytes(space.read_bytes())
    named = prompts_stage(alone, PromptOptions(quota="1"), seed=0, concepts=[CUISINE])
    assert done(replace(named, name="named"), tmp_path).notes == manifest.notes
    everywhere = [CUISINE.model_copy(update={"countries": "all"})]
    of_all = prompts_stage(alone, PromptOptions(quota="1"), seed=0, concepts=everywhere)
    done(replace(of_all, name="all"), tmp_path)
    table = read_table(tmp_path / "all/quotas.parquet", QUOTAS)
    assert table.filter(pl.col("drawn") == 0)["country"].to_list() == sorted({*countries()} - {"BR"})


def test_a_group_is_decided_at_once_the_rest_one_by_one_and_the_judge_is_heard(tmp_path: Path) -> None:
    same = {"concept": "cuisine", "country_qids": ["Q155"], "roots": ["Q1000"], "path": ["Q1000"], "verdict": "review",
            "reason": "judge m"}  # fmt: skip
    rows: list[dict[str, Any]] = []
    rows += [{**same, "qid": f"Q{n}", "label": f"cheese {n}", "p31": ["Q10"], "sitelinks": n} for n in range(1, 41)]
    rows += [{**same, "qid": f"Q{n}", "label": f"stew {n}", "p31": ["Q11"], "sitelinks": 900} for n in range(41, 51)]
    rows += [{**same, "qid": f"Q{n}", "label": f"odd {n}", "p31": [f"Q{n}00"]} for n in range(51, 54)]
    kept = write_table(tmp_path, KEPT, rows_of(KEPT, *rows).sort(KEPT.key))
    said = [("cuisine", row["qid"], "BR", "review", "ok", 0.6, "a brand" if int(row["qid"][1:]) < 31 else "no idea")
            for row in rows]  # fmt: skip
    told = write_table(tmp_path, VERDICTS, pl.DataFrame(said, schema=VERDICTS.schema, orient="row").sort(VERDICTS.key))
    groups = Handing(groups=True)
    counts = done(review_export_stage(kept, groups, told=told), tmp_path).counts
    assert (counts["items"], counts["candidates"]) == (4, 53)
    project = tmp_path / "review-export"
    assert not (project / "hand-out/label-studio").exists()
    texts: dict[str, Any] = {row["kind"]: row for row in form_tasks(project)["tasks"]}
    kinds = list(texts)
    assert [kind.splitlines()[0] for kind in kinds] == [f"{n} things (concept: cuisine)" for n in (30, 10, 10, 3)]
    assert texts[kinds[0]]["why"] == "a brand"
    assert "30 rows more in the release" in texts[kinds[0]]["follows"]
    assert texts[kinds[0]]["sample"].count("\n") == 9
    fill_in(project, {"group-000001": "reject", "group-000002": "accept", "group-000003": "accept",
                      "group-000004": "open"}, ["Ada", "Bo", "Cy"])  # fmt: skip
    fill_in(project, {f"group-00000{n}": "reject" for n in range(1, 5)}, ["Dan"])  # nothing is left for a fourth
    manifest = done(review_stage(kept, ReviewFiles((journal_in(project),), project)), tmp_path)
    table = read_table(tmp_path / "review/kept.parquet", KEPT)
    assert dict(table.group_by("verdict").len().iter_rows()) == {"keep": 20, "review": 3}
    assert manifest.counts["drops"] == 30
    assert "groups" in manifest.inputs, "who is in a group decides what was said about whom"
    decided = read_table(tmp_path / "review/decisions.parquet", DECISIONS)
    assert decided.height == 50
    assert set(decided["comment"]) == {"in a group of 30", "in a group of 10"}
    assert table.filter(verdict="keep")["reason"].str.ends_with(", in a group of 10").all()
    one = replace(review_export_stage(tmp_path / "review/kept.parquet", Handing(first="popularity")), name="rest")
    assert done(one, tmp_path).counts["items"] == 3
    by_fame = replace(review_export_stage(kept, Handing(groups=True, first="popularity"), told=told), name="fame")
    done(by_fame, tmp_path)
    shown = form_tasks(tmp_path / "fame")["tasks"][0]
    assert shown["kind"].startswith("10 things (concept: cuisine)\nFound under: Q1000\nClass: ")
    single = replace(review_export_stage(kept, Handing(first="popularity"), told=told), name="single")
    done(single, tmp_path)
    first = form_tasks(tmp_path / "single")["tasks"][0]
    assert (first["name"].split()[0], first["why"]) == ("stew", "judge m: no idea (60% sure)")
