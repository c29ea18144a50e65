"""In- and out-of-region rates, counted by hand."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import consistency_and_representation, in_region_rates, read_task2
from tests.metrics.inclusion.task_worlds import drawn_task2, line, task2, write_csv

TABLE = task2(
    ("1", "Africa", "a", "Africa", True, "af", "na"),
    ("1", "Africa", "b", "Europe", True, "af eu sea", "af"),
    ("1", "Africa", "c", "SouthEastAsia", False, "", "af"),
    ("2", "Africa", "a", "Africa", True, "eu", "eu"),
    ("3", "Europe", "b", "Europe", True, "eu", "eu af"),
    ("4", None, "a", "Africa", True, "af", "af"),
)


def by_hand(table: pl.DataFrame) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Count once more, row by row."""
    codes = {"Africa": "af", "Europe": "eu", "SouthEastAsia": "sea"}
    cells: dict[tuple[str, str, str], list[bool]] = {}
    for row in table.iter_rows(named=True):
        if row["region"] is None:
            continue
        side = "in" if row["region"] == row["annotator_loc"] else "out"
        for target in ("object", "background"):
            key = (row["region"], side, target)
            cells.setdefault(key, []).append(codes[row["region"]] in row[f"{target}_regions"])
    return {key: (sum(answers) / len(answers), len(answers)) for key, answers in cells.items()}


def as_cells(rates: pl.DataFrame) -> dict[tuple[str, str, str], tuple[float, int]]:
    return {(region, side, target): (rate, n) for region, side, target, rate, n in rates.iter_rows()}


def test_rates_are_shares_of_all_annotations_of_a_side() -> None:
    rates = in_region_rates(TABLE)
    assert rates.columns == ["region", "side", "target", "rate", "n"]
    assert as_cells(rates) == {
        ("Africa", "in", "object"): (0.5, 2), ("Africa", "in", "background"): (0.0, 2),
        ("Africa", "out", "object"): (0.5, 2), ("Africa", "out", "background"): (1.0, 2),
        ("Europe", "in", "object"): (1.0, 1), ("Europe", "in", "background"): (1.0, 1),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_rates_agree_with_a_count_row_by_row_in_any_order(seed: int) -> None:
    table = drawn_task2(seed=seed)
    rates = in_region_rates(table)
    assert as_cells(rates) == by_hand(table)
    assert in_region_rates(table.sample(fraction=1, shuffle=True, seed=seed)).equals(rates)
    twice = in_region_rates(pl.concat([table, table]))
    assert twice["rate"].equals(rates["rate"])
    assert twice["n"].to_list() == [2 * n for n in rates["n"]]


def test_cells_are_those_asked_for() -> None:
    assert in_region_rates(TABLE, by=()).select("side", "target", "n").rows() == [
        ("in", "background", 3), ("in", "object", 3), ("out", "background", 2), ("out", "object", 2),
    ]  # fmt: skip
    assert in_region_rates(TABLE, by=("object", "region"))["object"].unique().to_list() == ["bag"]
    with pytest.raises(UsageError, match="task2 must be a frame with the columns"):
        in_region_rates(TABLE, by=("colour",))


def test_regions_are_known_however_they_are_written(tmp_path: Path) -> None:
    answer = "{'match': 'ym', 'obj': ['sea'], 'geo': ['na']}"
    for region, place in (("Southeast Asia", "sea"), ("southeast_asia", "SouthEastAsia")):
        table = read_task2(write_csv(tmp_path / "t.csv", [line("a.jpg", region, 0, place, answer)]))
        assert in_region_rates(table, by=()).rows() == [("in", "background", 0.0, 1), ("in", "object", 1.0, 1)]
    with pytest.raises(UsageError, match="must be Africa, Europe or Southeast Asia"):
        in_region_rates(TABLE.with_columns(region=pl.lit("Mars")))


def test_no_image_with_a_region_gives_no_rows() -> None:
    empty = in_region_rates(TABLE.filter(pl.col("region").is_null()))
    assert (empty.height, empty.columns) == (0, ["region", "side", "target", "rate", "n"])


def test_consistency_stands_beside_representation() -> None:
    table = consistency_and_representation(TABLE, by=("annotator_loc",))
    assert table.rows() == [
        ("Africa", 1.0, 0.5, 0.0, 2), ("Europe", 1.0, 1.0, 1.0, 2), ("SouthEastAsia", 0.0, 0.0, 1.0, 1),
    ]  # fmt: skip
    whole = consistency_and_representation(TABLE, by=()).row(0, named=True)
    rates = in_region_rates(TABLE, by=())
    weighted = rates.filter(target="object").select((pl.col("rate") * pl.col("n")).sum() / pl.col("n").sum()).item()
    assert whole["object"] == pytest.approx(weighted)
    assert whole["n"] == 5
