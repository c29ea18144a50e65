"""The audit of a run in its own folder: drawn once, answered by people, taken in by the next run."""

import re
import shutil
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.core.errors import FolderInUse, UsageError
from culturekit.core.run import Run
from culturekit.core.schemas import ANNOTATION_KEY, AUDIT_SAMPLE, AUDITS, IMAGES, MATCHES, PROMPTS
from culturekit.core.tables import read_table
from culturekit.people.answer_desk import AnswerDesk
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.cube.served_audit import AuditSize, Narrowing, audit_desk, journal_of
from culturekit.report.report_stage import folders_of
from culturekit.report.thumbnails import corrected_prompts
from culturekit.verify.verify_run import verify_run
from tests.conftest import SMALL, HeardProgress, HereEngine, recipe_here, stages_of
from tests.people.projects import Answers, answer_sheet
from tests.people.test_audit_scheme import listed_pictures
from tests.verify.forging import reseal_all

SIZE = AuditSize(30, 1)


def desk_of(root: Path, size: AuditSize = SIZE) -> AbstractContextManager[AnswerDesk]:
    return audit_desk(root, size, engine=HereEngine(), progress=HeardProgress())


def truth_of(root: Path) -> dict[str, Answers]:
    """Give what truthful people answer about each image of a run."""
    tables = [read_table(path, MATCHES) for path in sorted(root.glob("truth-*/matches.parquet"))]
    countries = dict(pl.concat(tables).select("image_id", "country").iter_rows())
    shown = {image: {"shows": "country", "country": code} for image, code in countries.items() if code is not None}
    return {image: shown.get(image, {"shows": "none"}) for image in countries}


def answered(root: Path) -> None:
    truth = truth_of(root)
    with desk_of(root) as desk:
        while answer_sheet(desk, root / "to-audit", "ana", truth):
            pass
        assert desk.answered == desk.wanted


def run_again(recipe: Recipe, root: Path, until: str | None = None) -> dict[str, Any]:
    done = recipe_here(recipe, root, until=until)
    return {stage.name: stage.manifest for stage in done}


def test_an_audit_is_drawn_once_of_all_models_and_goes_on(run_copy: Path) -> None:
    with desk_of(run_copy) as desk:
        assert desk.together == f"0 of {desk.wanted} answers by 0 people"
        with pytest.raises(FolderInUse), desk_of(run_copy):
            pass
    drawn = read_table(run_copy / "audited-sample/audit_sample.parquet", AUDIT_SAMPLE)
    assert dict(drawn.group_by("model").len().iter_rows()) == {"broad": 24, "empty": 24, "narrow": 24}
    before = (run_copy / "to-audit/manifest.json").read_bytes()
    with desk_of(run_copy, AuditSize()) as desk:
        desk.begin({"annotator": "ana"})
    assert (run_copy / "to-audit/manifest.json").read_bytes() == before
    with pytest.raises(UsageError, match=r"drawn already; expected --people 1, or nothing, found --people 2"):
        desk_of(run_copy, AuditSize(30, 2)).__enter__()
    with pytest.raises(UsageError, match=r"--images 30, or nothing, found --images 40"):
        desk_of(run_copy, AuditSize(40)).__enter__()


def test_an_audit_takes_the_known_pictures_of_a_list(run_copy: Path, tmp_path: Path) -> None:
    mine = listed_pictures(tmp_path / "mine", [",JP", ","] * 6)
    with desk_of(run_copy, replace(SIZE, gold=mine)) as desk:
        desk.begin({"annotator": "ana"})
    key = read_table(run_copy / "to-audit/annotation_key.parquet", ANNOTATION_KEY).filter(kind="gold")
    assert key.height >= 10
    assert set(key["item_id"]) <= {f"files/photo-{number}.png" for number in range(12)}
    with desk_of(run_copy):
        pass
    with pytest.raises(UsageError, match=r"expected --gold the pictures it was drawn with, or nothing"):
        desk_of(run_copy, replace(SIZE, gold=listed_pictures(tmp_path / "other", [",FR"] * 12))).__enter__()


def test_references_of_a_folder_are_known_by_the_prompts_that_name_them(run_copy: Path) -> None:
    images = run_copy / "references/images.parquet"
    read_table(images, IMAGES).drop("truth_artifact_id", "truth_country").write_parquet(images)
    reseal_all(run_copy)
    shutil.copytree(run_copy / "prompts", run_copy / "reference-prompts")
    record = orjson.loads((run_copy / "recipe.json").read_bytes())
    record["stages"].append("reference-prompts")
    (run_copy / "recipe.json").write_bytes(orjson.dumps(record))
    with desk_of(run_copy) as desk:
        assert desk.tests_people  # of users' own pictures none was gold, without a word
    key = read_table(run_copy / "to-audit/annotation_key.parquet", ANNOTATION_KEY).filter(kind="gold")
    asked = read_table(images, IMAGES).join(read_table(run_copy / "prompts/prompts.parquet", PROMPTS), on="prompt_id")
    shows = dict(asked.select("image_id", "artifact_id").iter_rows())
    assert all(orjson.loads(row["expected"])["artifact_id"] == shows[row["item_id"]] for row in key.to_dicts())


def test_an_audit_that_is_drawn_asks_about_the_images_of_the_run_or_says_about_whom_not(
    run_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with desk_of(run_copy):
        assert not caplog.messages
    manifest = run_copy / "to-audit/manifest.json"
    record = orjson.loads(manifest.read_bytes())
    there = record["inputs"].pop("images-1")
    manifest.write_bytes(orjson.dumps(record))
    with desk_of(run_copy):
        assert any("Nobody is asked about narrow" in told for told in caplog.messages)
    record["inputs"]["images-1"] = {**there, "sha256": "0" * 64}
    manifest.write_bytes(orjson.dumps(record))
    with (
        pytest.raises(UsageError, match=r"drawn from images that it no longer has.*other images of narrow"),
        desk_of(run_copy),
    ):
        pass


def test_answers_stand_in_for_simulated_raters_but_not_for_a_file(run_copy: Path, tmp_path: Path) -> None:
    simulated = load_recipe(SMALL, ["audit={}"])
    assert "audit-broad" in {stage.name for stage in stages_of(simulated, run_copy)}
    journal = journal_of(Run(run_copy))
    journal.parent.mkdir(parents=True)
    journal.touch()
    assert "audit-broad" in {stage.name for stage in stages_of(simulated, run_copy)}
    journal.write_bytes(b"{}\n")
    stages = {stage.name: stage for stage in stages_of(simulated, run_copy)}
    assert "audit-broad" not in stages
    assert stages["audited-answers"].inputs["export-0"] == journal
    assert stages["scores"].inputs["audits"] == run_copy / "audited-answers/audits.parquet"
    assert stages["scores"].inputs["sample"] == run_copy / "audited-sample/audit_sample.parquet"
    (tmp_path / "own.parquet").touch()
    of_file = load_recipe(SMALL, [f"audit={{file: {tmp_path}/own.parquet}}"])
    stages = {stage.name: stage for stage in stages_of(of_file, run_copy)}
    assert stages["scores"].inputs["audits"] == tmp_path / "own.parquet"
    assert "audited-answers" not in stages
    record = run_copy / "recipe.json"
    record.write_text(record.read_text(encoding="utf-8").replace('"audit":null', '"audit":{"file":"a.parquet"}'))
    with pytest.raises(UsageError, match=r"takes the answers of a file; found audit.file: a.parquet"):
        desk_of(run_copy).__enter__()


def test_the_next_run_takes_the_answers_in(run_copy: Path, small_recipe: Recipe) -> None:
    answered(run_copy)
    taken = run_again(small_recipe, run_copy, until="audited-answers")["audited-answers"]
    assert (taken.counts["quarantine"], taken.options["pool"]) == (0, "people")
    audits = read_table(run_copy / "audited-answers/audits.parquet", AUDITS)
    truth, shown = truth_of(run_copy), audits.filter(~pl.col("gold"))
    assert shown.height == 72
    assert all(row["country"] == truth[row["image_id"]].get("country") for row in shown.iter_rows(named=True))
    gold = audits.filter("gold")
    assert gold.height >= 10
    assert (gold["country"] == gold["known_country"]).all()


def test_intervals_are_told_after_every_thirty_answers_and_name_no_model_to_those_who_answer(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culturekit.metrics.corrected.audit_gates.FEWEST_AUDITED", 20)
    monkeypatch.setattr("culturekit.metrics.corrected.audit_gates.FEWEST_COMPARED", 1000)
    truth, told = truth_of(run_copy), list[str]()
    with desk_of(run_copy) as desk:
        narrowing = Narrowing(folders_of(run_copy), desk, HereEngine(), told.append)
        narrowing.heard()
        assert told == []
        while answer_sheet(desk, run_copy / "to-audit", "ana", truth):
            pass
        narrowing.heard()
        narrowing.look_lock.acquire()
        assert told[0] == f"after {desk.wanted} answers, corrected diversity (country kernel):"
        assert [line.split(",")[0].strip() for line in told[1:4]] == ["broad", "empty", "narrow"]
        assert all(re.search(r"0\.\d{3}\]  anchoring not known$", line) for line in told[1:4])
        assert re.search(r"answers by 1 person; the widest of 3 intervals is 0\.\d{3}$", desk.together)


def test_intervals_that_answers_cannot_carry_are_told_with_the_reason(run_copy: Path) -> None:
    told = list[str]()
    with desk_of(run_copy) as desk:
        Narrowing(folders_of(run_copy), desk, HereEngine(), told.append).look_now()
        assert (desk.aside, "kernels not corrected: no audited image" in told[1]) == ("", True)


@pytest.mark.endtoend
def test_from_a_finished_run_to_a_corrected_report(tmp_path: Path) -> None:
    recipe, root = load_recipe(SMALL, ["images.repeats=5"]), tmp_path / "run"
    run_again(recipe, root)
    answered(root)
    done = run_again(recipe, root)
    assert {"audited", "ranks"} <= set(done)
    rows = pl.read_parquet(root / "scores/scores.parquet").filter(
        pl.col("params").str.json_path_match("$.labels") == "corrected"
    )
    assert set(rows["model"]) == {"broad", "empty", "narrow"}
    told = folders_of(root).headline_scores().filter(metric="vs", kernel="country", concept="art")
    values = {(row["labels"], row["model"]): row["value"] for row in told.iter_rows(named=True)}
    assert values["mapped", "empty"] > values["mapped", "narrow"]
    assert values["corrected", "empty"] == pytest.approx(1 / 8, abs=0.02)
    assert "corrected" in (root / "report/report.html").read_text(encoding="utf-8")
    (alone,) = corrected_prompts(folders_of(root), "empty", "country").values()  # the only prompt of art
    assert alone.value == values["corrected", "empty"]
    assert verify_run(root).findings == ()


def test_looks_settle_models_and_ask_about_them_no_more(
    run_copy: Path, small_recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three models of 24 images, looked at after 10 and 18: the one that draws nothing is soon told apart."""
    for name, value in {"audit_gates.FEWEST_AUDITED": 8, "audit_gates.FEWEST_COMPARED": 1000}.items():
        monkeypatch.setattr(f"culturekit.metrics.corrected.{name}", value)
    for module in ("looks.FEWEST_AT_LOOK", "audit_sampling.FEWEST_AUDITED"):
        monkeypatch.setattr(f"culturekit.metrics.corrected.{module}", 2)
    truth, told = truth_of(run_copy), list[str]()
    size = AuditSize(24, 1, looks=(10, 18), goal="order")
    with desk_of(run_copy, size) as desk:
        narrowing = Narrowing(folders_of(run_copy), desk, HereEngine(), told.append)
        everything = desk.wanted
        narrowing.look_now()
        assert told == ["no look yet: its images are not all answered"]
        while desk.whole_look < 1 and answer_sheet(desk, run_copy / "to-audit", "ana", truth):
            pass
        assert {desk.looks[task] for _, task in desk.journal.answers if task in desk.looks} == {1}
        narrowing.look_now()
        assert re.match(r"look 1 of 3, \d+ images of each model: \d of 3 pairs settled", told[-1])
        while answer_sheet(desk, run_copy / "to-audit", "ana", truth):
            narrowing.look_now()
        assert "nothing more to ask" in told[-1]
        assert desk.answered == desk.wanted <= everything
        assert not any("[" in line for line in told)
    with pytest.raises(UsageError, match="look"):
        desk_of(run_copy, AuditSize(24, 1, looks=(12, 18))).__enter__()
    before = told[-1]
    with desk_of(run_copy, size) as again:
        Narrowing(folders_of(run_copy), again, HereEngine(), told.append).look_now()
        assert again.begin({"annotator": "bo"})["sheet"] is None
    assert told[-1] == before  # also where models that are done were left out of the last looks
    run_again(small_recipe, run_copy)
    assert "vs_difference" in pl.read_parquet(run_copy / "scores/scores.parquet")["metric"]
    assert folders_of(run_copy).corrected_orders()["[0.0,1.0,0.0]"] == 1.0
    assert (run_copy / "report/report.html").is_file()
