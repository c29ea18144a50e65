"""Questions with several answers, answers of an item's own, and pictures as answers."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.people.stages import ExportFiles
from culturekit.people.tasks import Quotas
from tests.people.projects import Answers, answer_all, export, image_row, key_of, write_images


def taken(tmp_path: Path, rows: list[dict[str, Any]], scheme: str, said: Any) -> pl.DataFrame:
    images = write_images(tmp_path / "images", [image_row(f"i{n}", "m", "p") for n in range(3)])
    (tmp_path / "items.csv").write_bytes(pl.DataFrame(rows).write_csv().encode())
    export(tmp_path / "project", ExportFiles([images], items=tmp_path / "items.csv"), scheme, checks=0,
           quotas=Quotas(1, 0, ("Africa", "Europe", "JP")))  # fmt: skip
    answer_all(tmp_path, (1,), said)
    assert pl.read_parquet(tmp_path / "rated/quarantine.parquet").select("reason", "field").rows() == []
    return pl.read_parquet(tmp_path / "rated/annotations.parquet")


def test_several_options_give_a_row_each(tmp_path: Path) -> None:
    rows = [{"item_id": "x", "image_id": "i0", "object": "stove", "region": "Africa"}]
    said = taken(tmp_path, rows, "inclusion_task2", lambda *_: {
        "obj": "ym", "object_regions": ["af", "eu"], "background_regions": ["na"]
    })  # fmt: skip
    found = {row["criterion"]: (row["value"], row["choice"]) for row in said.iter_rows(named=True)}
    assert found == {
        "obj": (None, "ym"),
        "object_regions/af": (1.0, "af"), "object_regions/eu": (1.0, "eu"), "object_regions/jp": (0.0, None),
        "object_regions/na": (0.0, None), "background_regions/af": (0.0, None), "background_regions/eu": (0.0, None),
        "background_regions/jp": (0.0, None), "background_regions/na": (1.0, "na"),
    }  # fmt: skip


def test_options_of_an_item_stand_under_their_own_names(tmp_path: Path) -> None:
    rows = [{"item_id": "x", "image_id": "i0", "activity": "tea", "country_name": "Japan", "country": "JP",
             "descriptors": "tatami | <b>fan</b>"}]  # fmt: skip
    base: Answers = {"faith": 4, "hal": 1, "exag": 2, "realism": 3}
    said = taken(tmp_path, rows, "cultivate", lambda *_: {**base, "relevant": ["o2"]})
    found = dict(said.select("criterion", "value").iter_rows())
    assert found["relevant/tatami"] == 0.0
    assert found["relevant/<b>fan</b>"] == 1.0


def test_chosen_pictures_are_named_wherever_they_stood(tmp_path: Path) -> None:
    rows = [
        {"item_id": "x", "reference_id": "i0", "first_id": "i1", "second_id": "i2", "object": "stove",
            "region": "Africa"},
    ]  # fmt: skip

    def answer(data: dict[str, Any], _: int | str) -> Answers:
        (row,) = [row for row in key_of(tmp_path / "project").values() if row["task"] == data["task"]]
        place = str(row["places"].index("second") + 1)
        return {"shown": ["1", place], "similar": place, "confidence": "low", "appealing": "2"}

    said = taken(tmp_path, rows, "inclusion_task1", answer)
    found = {row["criterion"]: (row["value"], row["choice"]) for row in said.iter_rows(named=True)}
    assert found["similar"] == (None, "i2")
    assert found["shown/reference"] == (1.0, "i0")
    assert found["shown/second"] == (1.0, "i2")
    assert found["shown/first"] == (0.0, None)


def test_a_list_that_items_lack_is_asked_for(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images", [image_row("i0", "m", "p")])
    (tmp_path / "items.csv").write_text("item_id,image_id,activity,country_name\nx,i0,tea,Japan\n", encoding="utf-8")
    with pytest.raises(UsageError, match="descriptors"):
        export(tmp_path / "out", ExportFiles([images], items=tmp_path / "items.csv"), "cultivate")


def test_tones_are_numbers_and_none_is_not(tmp_path: Path) -> None:
    rows = [{"item_id": f"x{n}", "image_id": f"i{n}", "prompt": "a person"} for n in range(2)]
    key: dict[str, str] = {}

    def answer(data: dict[str, Any], _: int | str) -> Answers:
        key.update({task: row["item_id"] for task, row in key_of(tmp_path / "project").items()})
        return {"correct": "yes", "monk_tone": "7" if key[data["task"]] == "x0" else "none"}

    said = taken(tmp_path, rows, "linguistic_dialect", answer).filter(criterion="monk_tone")
    assert said.select("item_id", "value", "choice").rows() == [("x0", 7.0, "7"), ("x1", None, "none")]
