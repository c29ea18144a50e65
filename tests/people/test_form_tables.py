"""Answers to forms that have tables of their own: those of culturekit, and of other packages."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.plugins import digest_of_code
from culturekit.core.schemas import ANNOTATIONS, RATED_ITEMS
from culturekit.core.stage import Stage
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.stages import AggregateFiles, aggregate_stage, write_form_tables
from tests.conftest import stage_here
from tests.outside_packages import forget, write_package

WRITES = """
from culturekit.core.stage import Outcome


def write(work, answers, items, rows):
    (work.out / "seen.txt").write_text(" ".join([*answers["item_id"], *rows["name"]]))
    return Outcome({"seen": answers.height}, {"left out": 1})
"""


@pytest.fixture
def own_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    write_package(tmp_path / "site", "kitchens", {"form.kitchen": "kitchens:write"}, WRITES, monkeypatch)
    yield
    forget("kitchens")


def written(scheme: str, out: Path) -> dict[str, int]:
    answer = {"item_id": "i1", "annotator": "a", "annotator_region": "PE", "scheme": scheme, "criterion": "stove",
              "choice": "yes", "flags": []}  # fmt: skip
    answers = pl.DataFrame([answer], schema=ANNOTATIONS.schema)
    items, rows = pl.DataFrame(schema=RATED_ITEMS.schema), pl.DataFrame({"name": ["kitchen 1"]})
    stage = Stage("tables", "tables", 1, lambda work: write_form_tables(work, answers, items, rows), {}, {})
    return dict(stage_here(stage, out).manifest.counts)


@pytest.mark.usefixtures("own_form")
def test_the_answers_to_a_form_of_another_package_become_its_tables(tmp_path: Path) -> None:
    assert written("kitchen", tmp_path / "out") == {"seen": 1}
    assert (tmp_path / "out/seen.txt").read_text() == "i1 kitchen 1"


@pytest.mark.usefixtures("own_form")
def test_what_writes_tables_is_part_of_the_stage_where_they_are_asked_for(tmp_path: Path) -> None:
    def options(made_from: Path | None) -> object:
        files = AggregateFiles(tmp_path / "annotations.parquet", made_from=made_from)
        return aggregate_stage(files, AggregateOptions()).options.get("form_plugins")

    assert options(None) is None
    assert options(tmp_path / "items.csv") == {"kitchen": {"code": digest_of_code("kitchens")}}


def test_answers_to_forms_without_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no answers are to a form with tables of its own.*inclusion_task2.*kitchen"):
        written("kitchen", tmp_path / "out")
