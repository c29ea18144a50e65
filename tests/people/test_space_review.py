"""Candidates that people decide about, and samples of a cultural space that they check, as forms and as tables."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest

from culturekit.builders.prompting.prompts import PromptOptions, prompts_stage
from culturekit.builders.space.checked import OTHERWISE, UNCHECKED
from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.digests import Manifest
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import DECISIONS, KEPT, QUOTAS, REMOVED, SPACE_CHECK, SPACE_SAMPLE, VERDICTS
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.countries import countries
from culturekit.people.answers import journal_in
from culturekit.people.candidate_review import Handing, ReviewFiles, review_export_stage, review_stage
from culturekit.people.space_check import CELL, UNIT, chances, check_rows, draw_sample, sample, score
from culturekit.release.card_build import card_stage, check_card
from culturekit.trail.space_causes import space_diff_stage
from tests.builders.spaces import rows_of
from tests.conftest import stage_here
from tests.people.projects import desk_of, entry, form_tasks, key_of

COUNTRIES = ("BR", "JP", "NG")
CUISINE = Concept(concept="cuisine", hops=2, roots=(Root(qid="Q1000", label="dish"),), countries=COUNTRIES)
WRONG = {"keep": 0.06, "remove": 0.1, "review": 0.5}


def world(seed: int) -> pl.DataFrame:
    """Cells of very different sizes, in which verdicts err more or less often."""
    rng, rows = np.random.default_rng(seed), list[tuple[object, ...]]()
    for concept in ("art", "cuisine"):
        for country in COUNTRIES:
            for verdict, size in (("keep", 700), ("remove", 400), ("review", 150)):
                many = int(size * rng.lognormal(0, 0.8)) + 2
                errs = rng.random(many) < min(WRONG[verdict] * rng.lognormal(0, 0.5), 0.9)
                rows += [
                    (concept, f"Q{len(rows) + number}", country, verdict, f"R{number % 3}", 0.5 + number % 50 / 100,
                     float(err != (verdict == "keep")))
                    for number, err in enumerate(errs)
                ]  # fmt: skip
    columns = ["concept", "qid", "country", "verdict", "root", "confidence", "truth"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_draws_are_shared_out_by_the_roots_of_sizes_and_none_is_drawn_beyond_what_there_is() -> None:
    sizes = np.array([1, 4, 100, 10_000])
    chance = chances(sizes, 300)
    assert (sizes * chance).sum() == pytest.approx(300)
    assert chance.max() == 1.0
    assert (sizes * chance)[3] / (sizes * chance)[2] == pytest.approx(10)
    assert (chances(sizes, 10**6) == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_the_wanted_size_spreads_over_cells_and_roots_and_says_its_chances(seed: int) -> None:
    units = world(seed).drop("truth")
    sample = draw_sample(units, {"keep": 120, "remove": 60, "review": 0}, rng=np.random.default_rng(seed))
    counts = Counter(sample["verdict"])
    assert abs(counts["keep"] - 120) <= 1
    assert abs(counts["remove"] - 60) <= 1
    assert counts["review"] == 0
    drawn = sample.filter(verdict="keep").group_by(CELL).agg(pl.len(), pl.col("chance").first())
    sizes = units.filter(verdict="keep").group_by(CELL).len("units").join(drawn, on=CELL)
    assert ((sizes["len"] - sizes["chance"] * sizes["units"]).abs() <= 1).all()
    by_root = sample.filter(verdict="keep").group_by(*CELL, "root").len()
    assert by_root.height == 3 * drawn.height


@pytest.mark.parametrize("draws", [pytest.param(40), pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_in_93_of_100_draws(draws: int) -> None:
    held: dict[tuple[str, int], list[bool]] = {}
    for draw in range(draws):
        units = world(draw)
        cells = units.group_by(*CELL, "verdict").agg(units=pl.len().cast(pl.UInt32))
        wanted = {"keep": 150, "remove": 100, "review": 50}
        drawn = draw_sample(units.drop("truth"), wanted, rng=np.random.default_rng(draw))
        shown = drawn.join(units.select(*UNIT, people="truth"), on=UNIT, how="left", maintain_order="left")
        for row in check_rows(shown, cells):
            known = truth(units, row["measure"], row["concept"], row["country"])
            level = (row["concept"] is not None) + (row["country"] is not None)
            inside = row["ci_low"] - 1e-9 <= known <= row["ci_high"] + 1e-9
            held.setdefault((row["measure"], level), []).append(inside)
    assert len(held) == 4 * 3
    shares = {key: float(np.mean(inside)) for key, inside in held.items()}
    assert min(shares.values()) >= (0.93 if draws == 200 else 0.9), shares


def truth(units: pl.DataFrame, measure: str, concept: str | None, country: str | None) -> float:
    where = {name: value for name, value in (("concept", concept), ("country", country)) if value is not None}
    if measure == "artifacts":
        return float(units.filter(**where)["truth"].sum())
    word = {"wrong keeps": "keep", "wrong removes": "remove", "undecided that belong": "review"}[measure]
    share = float(units.filter(**where, verdict=word)["truth"].mean())  # type: ignore[arg-type]
    return 1 - share if word == "keep" else share


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """90 dishes of which every tenth keep is wrong, one kept for two countries, and 30 that the judge removed."""
    qids = {iso: countries()[iso].qids[0] for iso in COUNTRIES}
    same = {"concept": "cuisine", "roots": ["Q1000"], "path": ["Q1000"], "reason": "judge m"}
    rows = [
        {**same, "qid": f"Q{n}", "label": f"dish {n}", "country_qids": [qids[COUNTRIES[n % 3]]],
         "verdict": "keep" if n <= 60 else "review" if n <= 90 else "remove"}
        for n in range(1, 121)
    ]  # fmt: skip
    rows[0]["country_qids"] = [qids["BR"], qids["JP"]]
    write_table(tmp_path, KEPT, rows_of(KEPT, *rows[:90]).sort(KEPT.key))
    write_table(tmp_path, REMOVED, rows_of(REMOVED, *rows[90:]).sort(REMOVED.key))
    return tmp_path / "kept.parquet"


def answered(project: Path, people: int) -> None:
    """Let people find every tenth keep, and every tenth removed, wrong; of numbers that end in 5 nobody can tell."""
    rows = read_table(project / f"{SPACE_SAMPLE.name}.parquet", SPACE_SAMPLE).to_dicts()
    answers = {}
    for row in rows:
        number = int(row["qid"][1:])
        yes = (number % 10 != 0) if row["verdict"] == "keep" else number % 10 == 0
        word = "open" if number % 10 == 5 else "accept" if yes else "reject"
        answers[" ".join(row[name] for name in UNIT)] = word
    fill_in(project, answers, [f"person {number}" for number in range(people)])


def fill_in(project: Path, decisions: Mapping[str, str], people: Sequence[str]) -> None:
    """Let people take sheets from the desk, in turn, until nothing is left for them."""
    key = key_of(project)
    with desk_of(project, journal_in(project)) as desk:
        waiting = list(people)
        while waiting:
            person = waiting.pop(0)
            sheet = desk.begin({"annotator": person})["sheet"]
            for task in () if sheet is None else desk.sheets[sheet]:
                given = entry(project, sheet, task, person, {"decision": decisions[key[task]["item_id"]]})
                for one in given["annotations"][0]["result"]:
                    one["to_name"] = "subject"
                desk.take(given)
            waiting += [person] if sheet else []


def test_a_sample_is_judged_scored_and_carried_by_release_card_croissant_and_diff(judged: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="annotate serve"):
        score.stage(tmp_path / "to-check")
    manifest = stage_here(sample.stage(judged, keeps=40, removes=20, undecided=12), tmp_path / "to-check").manifest
    assert manifest.counts["units"] == 121
    form = (tmp_path / "to-check/hand-out/form.html").read_text(encoding="utf-8")
    assert "judge m" not in form
    answered(tmp_path / "to-check", 2)
    scored = stage_here(score.stage(tmp_path / "to-check"), tmp_path / "checked").manifest
    table = read_table(tmp_path / "checked/space_check.parquet", SPACE_CHECK)
    of_all = table.filter(pl.col("concept").is_null(), pl.col("country").is_null())
    whole = {row["measure"]: row for row in of_all.to_dicts()}
    keeps = whole["wrong keeps"]
    assert keeps["ci_low"] < 6 / 54 < keeps["ci_high"]
    assert keeps["answered"] < keeps["drawn"] <= 41
    assert whole["artifacts"]["judged"] == 61
    assert scored.notes["agreement of people"]["pairs that agree"] == 1
    assert any(line.startswith("wrong keeps: ") for line in scored.notes["summary"])

    options, check = ReleaseOptions((CUISINE,)), tmp_path / "checked/space_check.parquet"
    stage_here(release_stage([judged], options, check), tmp_path / "with/cspace")
    stage_here(release_stage([judged], options), tmp_path / "without/cspace")
    hand = Path(__file__).parents[2] / "culturekit/release/hand_written/cspace"
    for name in ("with", "without"):
        stage_here(card_stage(tmp_path / name / "cspace", hand), tmp_path / name / "card")
    pages = {name: (tmp_path / name / "card/README.md").read_text(encoding="utf-8") for name in ("with", "without")}
    assert UNCHECKED in pages["without"]
    assert re.search(r"\| wrong keeps \| all \| .* % \\\(.* to .*\\\) \| \d+ of 61 \|", pages["with"])
    croissant = orjson.loads((tmp_path / "with/card/croissant.json").read_bytes())
    assert any(text.startswith("wrong keeps, BR: ") for text in croissant["rai:dataAnnotationAnalysis"])
    assert "space_check" in {each["@id"] for each in croissant["recordSet"]}
    assert {each.code for each in check_card(tmp_path / "with/card")} <= {"hand-empty"}
    notes = stage_here(space_diff_stage(*(tmp_path / name / "cspace" for name in ("without", "with"))),
                       tmp_path / "diff").manifest.notes  # fmt: skip
    assert any(re.fullmatch(r"wrong keeps, all: not checked -> .*", line) for line in notes["checks"])

    kept = read_table(judged, KEPT).with_columns(label=pl.col("label") + "!")
    other = write_table(tmp_path / "with", KEPT, kept)
    done = stage_here(replace(release_stage([other], options, check), name="others"), tmp_path / "others").manifest
    assert done.notes["checked"] == OTHERWISE


def test_how_sure_the_judge_was_spreads_a_sample_where_it_is_known(judged: Path, tmp_path: Path) -> None:
    rows = read_table(judged, KEPT).filter(verdict="keep")
    lines = [
        ("cuisine", row["qid"], iso, "keep", "ok", 0.5 + int(row["qid"][1:]) / 200, "a dish")
        for row in rows.to_dicts() for iso in COUNTRIES if countries()[iso].qids[0] in row["country_qids"]
    ]  # fmt: skip
    write_table(tmp_path, VERDICTS, pl.DataFrame(lines, schema=VERDICTS.schema, orient="row").sort(VERDICTS.key))
    stage_here(sample.stage(judged, keeps=30, removes=0, undecided=0), tmp_path / "to-check")
    drawn = read_table(tmp_path / "to-check/space_sample.parquet", SPACE_SAMPLE)
    for part in drawn.partition_by("country"):
        assert (part["confidence"] < 0.65).sum() == pytest.approx(part.height / 2, abs=1)


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
    lines = [("cuisine", row["qid"], "BR", "review", "ok", 0.6, "a brand" if int(row["qid"][1:]) < 31 else "no idea")
            for row in rows]  # fmt: skip
    votes = write_table(
        tmp_path, VERDICTS, pl.DataFrame(lines, schema=VERDICTS.schema, orient="row").sort(VERDICTS.key)
    )
    groups = Handing(groups=True)
    counts = done(review_export_stage(kept, groups, told=votes), tmp_path).counts
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
    by_fame = replace(review_export_stage(kept, Handing(groups=True, first="popularity"), told=votes), name="fame")
    done(by_fame, tmp_path)
    shown = form_tasks(tmp_path / "fame")["tasks"][0]
    assert shown["kind"].startswith("10 things (concept: cuisine)\nFound under: Q1000\nClass: ")
    single = replace(review_export_stage(kept, Handing(first="popularity"), told=votes), name="single")
    done(single, tmp_path)
    first = form_tasks(tmp_path / "single")["tasks"][0]
    assert (first["name"].split()[0], first["why"]) == ("stew", "judge m: no idea (60% sure)")
