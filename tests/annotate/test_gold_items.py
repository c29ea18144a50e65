"""Gold items: pictures that are known, among those of an audit, and what the answers to them become."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.errors import UsageError
from culturekit.families.collection_scores import QvsOptions
from culturekit.families.corrected import score_corrected
from culturekit.pipeline.steps.annotate_stages import ExportFiles
from culturekit.records.schemas import AUDITS, MATCHES
from culturekit.records.schemas import IMAGES as TABLE
from culturekit.storage.tables import read_table, write_table
from tests.annotate.projects import (
    Answers,
    export,
    form_tasks,
    image_row,
    import_files,
    key_of,
    labelled,
    studio_tasks,
    write_images,
)
from tests.annotate.test_audit_scheme import IMAGES, TRUE, matches, space

GOLD = {f"r-{n:02}": "Q0JP" if n % 2 else None for n in range(14)}
"""Half show a dish of Japan, half no culture."""


def known_pictures(folder: Path, shows: dict[str, str | None]) -> Path:
    made = write_images(folder, [image_row(image, "photograph", "p") for image in shows])
    table = pl.read_parquet(made).with_columns(truth_artifact_id=pl.Series(list(shows.values()), dtype=pl.String))
    made.unlink()
    return write_table(folder, TABLE, table)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ExportFiles:
    folder = tmp_path_factory.mktemp("gold")
    images = write_images(folder / "images", [image_row(image, "m", "p") for image in IMAGES])
    table = pl.read_parquet(images).with_columns(concept=pl.lit("cuisine"))
    images.unlink()
    return ExportFiles(
        [write_table(folder / "images", TABLE, table)],
        cspace=space(folder / "space", 20),
        matches=[matches(folder / "matches")],
        gold=known_pictures(folder / "gold", GOLD),
    )


def answering(project: Path, wrong: int) -> Any:
    """Say what pictures show; a person names India of the first gold items of the key."""
    key = key_of(project)
    mistaken = {image for image in sorted(GOLD)[:wrong] if GOLD[image] is not None}

    def answer(data: dict[str, Any], person: int | str) -> Answers:
        row = key[data["task"]]
        if row["kind"] == "check":
            return dict(orjson.loads(row["expected"]))
        if row["kind"] != "gold":
            return {"shows": "country", "country": TRUE[row["item_id"]]}
        if GOLD[row["item_id"]] is None:
            return {"shows": "none"}
        return {"shows": "country", "country": "IN" if row["item_id"] in mistaken else "JP"}

    return answer


def imported(tmp_path: Path, files: ExportFiles, wrong: int) -> pl.DataFrame:
    export(tmp_path / "project", files, "audit")
    tasks = studio_tasks(tmp_path / "project")
    (tmp_path / "a.json").write_bytes(orjson.dumps(labelled(tasks, (1,), answering(tmp_path / "project", wrong))))
    done = import_files(tmp_path / "rated", tmp_path / "project", tmp_path / "a.json")
    assert done.manifest.counts["quarantine"] == 0
    return read_table(tmp_path / "rated/audits.parquet", AUDITS)


def test_each_sheet_has_ten_that_look_like_the_others(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "project", files, "audit", per_sheet=20)
    key = key_of(tmp_path / "project")
    content = form_tasks(tmp_path / "project")
    names = [task["task"] for task in content["tasks"]]
    for sheet in content["sheets"]:
        assert sum(key[names[place]]["kind"] == "gold" for place in sheet["tasks"]) == 10
    asked = {row["item_id"] for row in key.values() if row["kind"] == "gold"}
    assert asked == set(GOLD)  # the sheets go round all of them
    shown = {task["data"]["task"]: task["data"] for task in studio_tasks(tmp_path / "project")}
    plain, gold = ([shown[name] for name in key if key[name]["kind"] == kind] for kind in ("item", "gold"))
    assert {tuple(data) for data in gold} == {tuple(data) for data in plain}
    assert {len(data["artifacts"]) for data in gold} == {len(data["artifacts"]) for data in plain}
    assert not any(name in str(data) for data in gold for name in (*GOLD, "gold", "photograph"))


def test_answers_to_them_stand_beside_what_they_show_and_hold_the_rater(tmp_path: Path, files: ExportFiles) -> None:
    audits = imported(tmp_path, files, wrong=4)
    gold = audits.filter("gold")
    assert audits.height == len(IMAGES) + gold.height
    assert set(gold["image_id"]) <= set(GOLD)
    for row in gold.iter_rows(named=True):
        assert row["known_artifact_id"] == GOLD[row["image_id"]]
        assert row["known_country"] == ("JP" if GOLD[row["image_id"]] else None)
        assert row["known_continent"] == ("Asia" if GOLD[row["image_id"]] else None)
    assert audits.filter(~pl.col("gold"))["known_country"].null_count() == len(IMAGES)
    assert gold["offered_first"].null_count() == gold.height  # nothing was mapped to what stands first
    ratings = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert set(ratings["item_id"]) == set(IMAGES)
    options = QvsOptions(kernels=((0.0, 1.0, 0.0),))
    table = read_table(files.matches[0], MATCHES)
    held = score_corrected(table, audits, None, options=options).scores
    alone = score_corrected(table, audits.filter(~pl.col("gold")), None, options=options).scores
    assert "one rater" in alone["params"][0]
    assert "one rater" not in held["params"][0]
    assert held["value"][0] < alone["value"][0]


def test_known_pictures_that_cannot_hold_anybody_are_refused(tmp_path: Path, files: ExportFiles) -> None:
    few = ExportFiles(files.images, cspace=files.cspace, matches=files.matches, gold=known_pictures(
        tmp_path / "few", dict(list(GOLD.items())[:9])
    ))  # fmt: skip
    with pytest.raises(UsageError, match=r"too few pictures are known.*at least 10.*found 9"):
        export(tmp_path / "a", few, "audit")
    same = ExportFiles(files.images, cspace=files.cspace, matches=files.matches, gold=known_pictures(
        tmp_path / "same", {"m-03": "Q0JP", **GOLD}
    ))  # fmt: skip
    with pytest.raises(UsageError, match=r"a gold picture is one of the images to judge.*'m-03'"):
        export(tmp_path / "b", same, "audit")
    unknown = ExportFiles(files.images, cspace=files.cspace, matches=files.matches, gold=files.images[0])
    with pytest.raises(UsageError, match=r"a gold picture is one of|truth_artifact_id"):
        export(tmp_path / "c", unknown, "audit")
