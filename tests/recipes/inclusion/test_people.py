"""People in `inclusion`: both tasks, the survey, photographs, and forms that are served."""

import csv
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from PIL import Image

from culturekit.config.load import load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import IMAGES, PROMPTS, SURVEY_CODES, TASK1, TASK2
from culturekit.core.tables import read_table, write_table
from culturekit.metrics.inclusion.task2_files import read_task2_file
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.answer_desk import AnswerDesk
from culturekit.people.scheme import load_scheme
from culturekit.people.stages import AggregateFiles, AggregateReads, ExportFiles, aggregate_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.cube.served_audit import form_desk
from culturekit.recipes.inclusion.people import coded, coding_sheet, public_task2
from culturekit.recipes.inclusion.prompts import photographed_stage
from culturekit.recipes.inclusion.scores import TaskOptions, score_survey, score_task1, score_task2
from culturekit.recipes.inclusion.world import BackendOptions, ObjectsBackend, draw_object, known_regions
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import stage_here
from tests.people.projects import Answers, answer_all, entry, export, image_row, key_of, run, write_images
from tests.recipes.inclusion.small_world import small_recipe

REGIONS = ("Africa", "Europe", "Southeast Asia")


def project(tmp_path: Path, scheme: str, rows: list[dict[str, Any]]) -> Path:
    images = write_images(tmp_path / "images", [image_row(f"i{n}", "ldm", "p") for n in range(12)])
    pl.DataFrame(rows).write_csv(tmp_path / "items.csv")
    files = ExportFiles([images], items=tmp_path / "items.csv")
    export(tmp_path / "project", files, scheme, quotas=Quotas(1, 1, REGIONS), repeats=1)
    return tmp_path / "project"


def put_together(tmp_path: Path, said: Any) -> Path:
    """Answer each task by one person of the region that the task is for."""
    key = key_of(tmp_path / "project")

    def answer(data: dict[str, Any], person: int | str) -> Answers | None:
        row = key[data["task"]]
        if row["annotator_region"] != person:
            return None
        if row["kind"] == "check":
            answers: Answers = orjson.loads(row["expected"])
            return answers
        return dict(said(row, person))

    answer_all(tmp_path, REGIONS, answer)
    assert pl.read_parquet(tmp_path / "rated/quarantine.parquet").height == 0
    files = AggregateFiles.beside(
        AggregateReads(tmp_path / "rated/annotations.parquet", made_from=tmp_path / "items.csv")
    )
    run(aggregate_stage(files, AggregateOptions(resamples=99)), tmp_path / "people")
    return tmp_path / "people"


def task2_rows() -> list[dict[str, Any]]:
    return [
        {"item_id": f"i{n}", "image_id": f"i{n}", "object": "stove", "region": REGIONS[n % 3],
         "source": "real" if n < 6 else "ldm", "img_path": f"folder/i{n}.png"}
        for n in range(12)
    ]  # fmt: skip


def test_task_two_is_what_people_ticked_and_its_public_file_reads_back(tmp_path: Path) -> None:
    """Who is at home ticks Africa and Europe for the object; who is not does not see the object at all.

    So every image has one row that shows the object and one that does not.
    """
    project(tmp_path, "inclusion_task2", task2_rows())

    def said(row: dict[str, Any], _: str) -> Answers:
        if not row["in_region"]:
            return {"obj": "nm"}
        return {"obj": "ym", "object_regions": ["af", "eu"], "background_regions": ["na"]}

    people = put_together(tmp_path, said)
    table = read_table(people / "task2.parquet", TASK2)
    assert table.height == 24
    home = table.filter(pl.col("annotator_loc") == pl.col("region")).to_dicts()
    away = table.filter(pl.col("annotator_loc") != pl.col("region")).to_dicts()
    assert {(row["shown"], *row["object_regions"], "|", *row["background_regions"]) for row in home} == {
        (True, "af", "eu", "|", "na")
    }
    assert {(row["shown"], *row["object_regions"], *row["background_regions"]) for row in away} == {(False,)}
    assert table.filter(source="real")["img_path"].unique().sort().to_list() == [f"folder/i{n}.png" for n in range(6)]
    again = read_task2_file(people / "task2.csv")
    assert again.drops.height == 0
    assert again.annotations.sort(TASK2.key).equals(table)
    scored = score_task2(table, options=TaskOptions(least=0.0))
    assert scored.scores.filter(metric="in_region_rate").height > 0
    pl.DataFrame([{"item_id": "i0", "region": "Africa"}]).write_csv(tmp_path / "other.csv")
    files = AggregateFiles(tmp_path / "rated/annotations.parquet", made_from=tmp_path / "other.csv")
    with pytest.raises(UsageError, match="does not say what was judged"):
        run(aggregate_stage(files, AggregateOptions(resamples=99)), tmp_path / "b")


def triplet_rows() -> list[dict[str, Any]]:
    return [
        {"triplet_id": f"t{n}", "combo": "A", "object": "stove", "region": REGIONS[n % 3], "reference_source": "real",
         "source": "ldm", "pick": "near", "reference_id": f"i{n}", "first_id": f"i{(n + 1) % 12}",
         "second_id": f"i{(n + 2) % 12}", "first_distance": 0.1, "second_distance": 0.4}
        for n in range(9)
    ]  # fmt: skip


def test_task_one_names_images_wherever_they_stood(tmp_path: Path) -> None:
    """Everybody finds the first image of the triplet more similar and the second more appealing; only two show it."""
    project(tmp_path, "inclusion_task1", triplet_rows())

    def said(row: dict[str, Any], _: str) -> Answers:
        place = {name: str(number) for number, name in enumerate(row["places"], start=1)}
        shown = [place["reference"], place["second"]]
        return {
            "shown": shown, "similar": place["first"], "confidence": "high", "appealing": place["second"],
        }  # fmt: skip

    people = put_together(tmp_path, said)
    table = read_table(people / "task1.parquet", TASK1)
    assert table.height == 18
    assert table["similar_id"].to_list() == table["first_id"].to_list()
    assert table["appealing_id"].to_list() == table["second_id"].to_list()
    assert set(table["confidence"]) == {"high"}
    for row in table.iter_rows(named=True):
        assert row["shown"] == [row["reference_id"], row["second_id"]]
    assert not (people / "task2.parquet").exists()
    assert score_task1(table, {}, None).scores.height > 0


def test_the_public_file_holds_no_formula_and_gives_every_cell_back(tmp_path: Path) -> None:
    names = ["=1+1.png", "\t=x.png", "＠x.png", " +x.png", "'=x.png", "plain.png"]
    rows = [
        {"img_path": name, "object": "=stove", "region": "AF", "annotator_id": f"-{n}", "annotator_loc": "AF",
         "shown": False, "object_regions": [], "background_regions": [], "source": "@ldm"}
        for n, name in enumerate(names)
    ]  # fmt: skip
    path = tmp_path / "task2.csv"
    path.write_bytes(public_task2(pl.DataFrame(rows, schema=TASK2.schema)))
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@", "＠")) for cell in cells)
    again = read_task2_file(path).annotations
    assert again["img_path"].to_list() == [name.strip() for name in names]
    assert again["source"].unique().to_list() == ["@ldm"]


# Of hats in Europe there are none; of the photographs of bags in Africa two are copies of one
COUNTS = {("bag", "Africa"): 5, ("bag", "Europe"): 3, ("dog", "Africa"): 4, ("dog", "Europe"): 2, ("hat", "Africa"): 9}


def prompt(name: str, region: str | None) -> dict[str, object]:
    text = f"{name} in {region}" if region else name
    return {"prompt_id": text, "text": text, "benchmark": "inclusion", "kind": "regions", "concept": name,
            "group": region, "language": "en", "template_id": "t"}  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    regional = [prompt(name, region) for name in ("bag", "dog", "hat") for region in ("Africa", "Europe")]
    for folder, rows in (("regional", regional), ("plain", [prompt(name, None) for name in ("bag", "dog", "hat")])):
        (tmp_path / folder).mkdir()
        write_table(tmp_path / folder, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))
    images = [
        {"image_id": f"{name}-{region}-{number}", "path": "p", "prompt_id": f"{name} in {region}", "model": "real",
         "repeat": 0, "slot": number, "rewriter": "off", "provider_params": "{}", "status": "ok",
         "sha256": f"{name} {region} {max(number, 1) if (name, region) == ('bag', 'Africa') else number}",
         "width": 1, "height": 1}
        for (name, region), count in COUNTS.items() for number in range(count)
    ]  # fmt: skip
    (tmp_path / "real").mkdir()
    write_table(tmp_path / "real", IMAGES, pl.DataFrame(images, schema=IMAGES.schema))
    return {"regional": tmp_path / "regional/prompts.parquet", "plain": tmp_path / "plain/prompts.parquet",
            "real": tmp_path / "real/images.parquet"}  # fmt: skip


def kept(tables: dict[str, Path], out: Path, listed: str, *, least: int) -> list[str]:
    stage = photographed_stage(tables[listed], tables["regional"], tables["real"], least=least)
    stage_here(stage, out)
    return pl.read_parquet(out / "prompts.parquet")["text"].to_list()


def test_every_region_has_to_have_so_many_and_copies_do_not_count(tables: dict[str, Path], tmp_path: Path) -> None:
    assert kept(tables, tmp_path / "two", "plain", least=2) == ["bag", "dog"]
    assert kept(tables, tmp_path / "three", "regional", least=3) == ["bag in Africa", "bag in Europe"]
    fell = pl.read_parquet(tmp_path / "three/drops.parquet").sort("key")
    assert fell.select("key", "reason").rows() == [
        ("dog in Europe", "2 photographs in Europe, fewer than 3"),
        ("hat in Europe", "0 photographs in Europe, fewer than 3"),
    ]
    with pytest.raises(UsageError, match="at least 4 in every region, found 3 of bag in Africa"):
        kept(tables, tmp_path / "four", "plain", least=4)


HOMES = {"Africa": "NG", "Americas": "MX", "China": "CN", "Italy": "IT", "Turkey": "TR"}
OWN = "objects: [bag, dog]\nregions: {" + ", ".join(f"{name}: [{code}]" for name, code in HOMES.items()) + "}\n"
ONE = "models=[{name: local, backend: 'simulated-objects?regional=0.5'}]"
NOBODY = ("people.simulated=null", "people.per_region=1", "people.images=2", "images.slots=8", "photographs.each=8")


def geode(folder: Path) -> Path:
    """Lay photographs of each region and object as GeoDE does; those of one object and region are too few."""
    camera = ObjectsBackend(BackendOptions(regional="0.6"))
    for region, name in product(HOMES, ("bag", "dog", "hat")):
        place = folder / region / name
        place.mkdir(parents=True)
        for number in range(2 if (region, name) == ("Italy", "hat") else 8):
            scene = camera.scene(name, known_regions()[region], seed=number)
            Image.fromarray(draw_object(scene, size=128, seed=number)).save(place / f"{number}.png")
    return folder


def answer(task: str, row: dict[str, Any]) -> Answers:
    """Say that all pictures show their object, and could be from China; that the second is more like the first."""
    if row["expected"]:
        expected: Answers = orjson.loads(row["expected"])
        return expected
    if task == "task2":
        return {"obj": "ym", "object_regions": ["china"], "background_regions": ["na"]}
    return {"shown": ["1", "2", "3"], "similar": "2", "confidence": "high", "appealing": "3"}


def fill_in(desk: AnswerDesk, project: Path, task: str) -> None:
    """Let one person after the other take a sheet, until none is left."""
    key = key_of(project)
    for number in range(100):
        person = f"{number} of {next(iter(desk.sheets))}"
        sheet = desk.begin({"annotator": person})["sheet"]
        if desk.answered == desk.wanted:
            return
        for one in desk.sheets[sheet]:
            desk.take(entry(project, sheet, one, person, answer(task, key[one])))
    raise AssertionError("sheets without end")


@pytest.mark.slow
def test_what_people_of_each_region_answer_is_taken_by_the_next_run(tmp_path: Path) -> None:
    photographs = f"photographs.backend='folder:{geode(tmp_path / 'geode')}?pattern={{group}}/{{concept}}/{{id}}'"
    stated = (*NOBODY, ONE, photographs, "photographs.least=5")
    places = OWN.replace("dog]", "dog, hat]")
    recipe, root = load_any_recipe(small_recipe(tmp_path / "said", places), stated), tmp_path / "run"
    with LocalEngine(1) as engine:
        run_recipe(recipe, root, engine=engine)
        assert not (root / "marks").exists()
        for task in ("task1", "task2"):
            project = root / f"to-rate-{task}"
            with (
                pytest.raises(UsageError, match="--region with one of Africa, Americas, China, Italy, Turkey"),
                form_desk(project),
            ):
                pass
            for region in HOMES:
                with form_desk(project, region) as desk:
                    fill_in(desk, project, task)
        built = run_recipe(recipe, root, engine=engine)
    assert {run.state for run in built if run.name.startswith(("images-", "vectors-", "to-rate-"))} == {"reused"}
    seen = pl.read_parquet(root / "tables-task2/task2.parquet")
    assert set(seen["annotator_loc"]) == set(HOMES)
    assert set(seen["object"]) == {"bag", "dog"}, "of hats Italy has too few photographs"
    assert seen.height == 5 * pl.read_parquet(root / "to-look-at/object_items.parquet").height
    rates = pl.read_parquet(root / "scores-task2/scores.parquet").filter(
        pl.col("concept").is_null(), pl.col("params").str.contains('"target":"object"'), metric="in_region_rate"
    )
    assert dict(rates.drop_nulls("group").group_by("group").agg(pl.col("value").mean()).iter_rows()) == {
        name: float(name == "China") for name in HOMES
    }  # fmt: skip
    similar = pl.read_parquet(root / "tables-task1/task1.parquet")
    assert set(similar["confidence"]) == {"high"}
    assert (similar["similar_id"] != similar["appealing_id"]).all()
    assert verify_run(root).exit_code == 0


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


@pytest.mark.parametrize(("copies", "cells", "said"), [
    ("a", {"coder": " "}, "a.csv:2: a response is not coded; .*found nobody in the column coder"),
    ("a", {"People": "maybe"}, "a.csv:2: a response is not coded; .*found 'maybe' under People"),
    ("ab", {}, "one coder has read a response twice"),
])  # fmt: skip
def test_a_row_that_is_not_coded_or_coded_twice_is_said(
    sheet: Path, tmp_path: Path, copies: str, cells: dict[str, str], said: str
) -> None:
    sheets = Files([filled(sheet, tmp_path / f"{name}.csv", "ana", **cells) for name in copies])
    with pytest.raises(UsageError, match=said):
        run(coded.stage(sheets), tmp_path / "coded")
