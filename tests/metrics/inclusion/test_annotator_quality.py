"""Annotators who misread the task are left out cell by cell."""

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import drop_unreliable
from tests.metrics.inclusion.task_worlds import judgement, task1, task2


def sightings(annotator: str, seen: list[bool], *, region: str = "Africa", source: str = "real") -> pl.DataFrame:
    return task2(
        *((f"{source}-{region}-{n}", region, annotator, "Africa", each, "af", "af") for n, each in enumerate(seen)),
        source=source,
    )


def test_whoever_sees_fewer_than_nine_in_ten_photographs_is_left_out_of_that_cell_only() -> None:
    careless, careful = [True] * 8 + [False] * 2, [True] * 9 + [False]
    table = pl.concat([
        sightings("bad", careless), sightings("good", careful), sightings("bad", careful, region="Europe"),
        sightings("bad", [True, True], source="ldm"), sightings("good", [False, False], source="ldm"),
    ])  # fmt: skip
    kept = drop_unreliable(table)
    assert kept.annotations.filter(annotator_id="bad")["region"].unique().to_list() == ["Europe"]
    assert kept.annotations.filter(annotator_id="good").height == 12
    assert kept.cells.select("annotator_id", "region", "accuracy", "photographs", "kept").rows() == [
        ("bad", "Africa", 0.8, 10, False), ("bad", "Europe", 0.9, 10, True), ("good", "Africa", 0.9, 10, True),
    ]  # fmt: skip
    assert kept.unchecked == 0
    assert drop_unreliable(kept.annotations).annotations.equals(kept.annotations)
    assert drop_unreliable(table, least=0).annotations.equals(table)


def test_who_saw_no_photograph_is_kept_and_counted() -> None:
    kept = drop_unreliable(sightings("new", [False, True], source="ldm"))
    assert (kept.annotations.height, kept.unchecked) == (2, 2)


def test_triplets_tell_photographs_by_the_source_of_each_place() -> None:
    # Of combo A the reference is a photograph, of combo B the two images compared are.
    seen = [judgement(f"t{n}", "ann", "Africa", "1", "1") for n in range(9)]
    rows = [*seen, seen[0] | {"triplet_id": "u", "shown": ["t0-1"]}]
    assert drop_unreliable(task1(*rows)).cells.select("accuracy", "photographs").row(0) == (0.9, 10)
    compared = task1(seen[0] | {"combo": "B", "reference_source": "ldm", "source": "real"})
    assert drop_unreliable(compared).cells.select("accuracy", "photographs").row(0) == (0.5, 2)
    assert drop_unreliable(compared).annotations.height == 0
    silent = task1(seen[0] | {"shown": None})
    assert drop_unreliable(silent).unchecked == 1


def test_the_bar_is_a_share() -> None:
    with pytest.raises(UsageError, match="least must be from 0 to 1"):
        drop_unreliable(sightings("a", [True]), least=90)
