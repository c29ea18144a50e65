"""From answers about geographic inclusion to the tables that are scored, worked out by hand."""

import csv
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import TASK1, TASK2
from culturekit.core.tables import read_table
from culturekit.metrics.inclusion.task2_files import read_task2_file
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.stages import AggregateFiles, AggregateReads, ExportFiles, aggregate_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.inclusion.people import public_task2
from culturekit.recipes.inclusion.scores import TaskOptions, score_task1, score_task2
from tests.people.projects import Answers, answer_all, export, image_row, key_of, run, write_images

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


def test_what_the_table_of_items_lacks_is_said(tmp_path: Path) -> None:
    project(tmp_path, "inclusion_task2", task2_rows())
    put_together(tmp_path, lambda *_: {"obj": "nm"})
    pl.DataFrame([{"item_id": "i0", "region": "Africa"}]).write_csv(tmp_path / "other.csv")
    files = AggregateFiles(tmp_path / "rated/annotations.parquet", made_from=tmp_path / "other.csv")
    with pytest.raises(UsageError, match="does not say what was judged"):
        run(aggregate_stage(files, AggregateOptions(resamples=99)), tmp_path / "b")


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
