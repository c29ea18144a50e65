"""Activities, prompts and descriptors that were changed after they were made, and what finds it."""

from pathlib import Path
from shutil import copytree

import polars as pl
import pytest

from culturekit.pipeline.cultivate.ground import Ground
from culturekit.verify.tables.check_ground import check_activities, check_activity_prompts, check_descriptors
from tests.pipeline.cultivate.test_ground import SIMULATED, made
from tests.verify.tampering import Change, broken_by

CHECKS = {
    "merge-activities": check_activities,
    "activity-prompts": check_activity_prompts,
    "refine-descriptors": check_descriptors,
}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("ground") / "run"
    made(run, Ground.model_validate({**SIMULATED, "countries": ["IR"], "per_category": 2}))
    return run


def test_a_ground_as_it_was_made_has_no_finding(untouched: Path) -> None:
    assert broken_by(untouched, CHECKS) == []


def put(column: str, value: object) -> Change:
    """Write something else into the first row that has a source."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        wanted = pl.col("quote").is_not_null() if "quote" in frame.columns else pl.lit(True)
        rows = frame.with_row_index("row_number")
        chosen = rows.filter(wanted)["row_number"][0]
        return rows.with_columns(
            pl.when(pl.col("row_number") == chosen)
            .then(pl.lit(value, frame.schema[column]))
            .otherwise(pl.col(column))
            .alias(column)
        ).drop("row_number")

    return change


TAMPERINGS: list[tuple[str, Change, str]] = [
    ("activities/activities", put("quote", "Everybody knows it."), "does not stand on its page"),
    ("activities/activities", put("activity", "moon dance"), "no page names"),
    ("activities/activities", put("title", "Another page"), "is another"),
    ("activities/activities", put("revision", "1"), "is another"),
    ("prompts/prompts", put("text", "A photorealistic photo of cats in Iran."), "asks for something else"),
    ("prompts/prompts", put("concept", "wedding"), "asks for something else"),
    ("prompts/prompts", lambda frame: frame.head(-1), "not one prompt for each activity"),
    ("descriptors/descriptors", put("token", "golden throne"), "is not what was kept"),
    ("descriptors/descriptors", put("proposers", ["nobody"]), "has other proposers"),
    ("descriptors/descriptors", lambda frame: frame.head(-1), "is not what was kept"),
    ("descriptors/descriptor_trail", put("proposers", ["nobody"]), "is not said"),
    ("descriptors/descriptor_trail", put("token", "golden throne"), "is not said"),
    ("descriptors/descriptor_trail", lambda frame: frame.filter(pl.col("outcome") != "wrong"), "is not said"),
]


@pytest.mark.parametrize(("table", "change", "message"), TAMPERINGS)
def test_a_changed_ground_is_found(untouched: Path, tmp_path: Path, table: str, change: Change, message: str) -> None:
    run = tmp_path / "run"
    copytree(untouched, run)
    path = run / f"{table}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    assert any(message in problem for problem in broken_by(run, CHECKS)), broken_by(run, CHECKS)
