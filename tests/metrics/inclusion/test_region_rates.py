"""Rates, agreement and unreliable annotators of the tasks, counted by hand."""

import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    consistency_and_representation,
    drop_unreliable,
    in_region_rates,
    read_task2,
    task2_agreement,
    triplet_agreement,
)
from tests.metrics.inclusion.task_worlds import drawn_task1, drawn_task2, judgement, line, task1, task2, write_csv

TABLE = task2(
    ("1", "Africa", "a", "Africa", True, "af", "na"),
    ("1", "Africa", "b", "Europe", True, "af eu sea", "af"),
    ("1", "Africa", "c", "SouthEastAsia", False, "", "af"),
    ("2", "Africa", "a", "Africa", True, "eu", "eu"),
    ("3", "Europe", "b", "Europe", True, "eu", "eu af"),
    ("4", None, "a", "Africa", True, "af", "af"),
)


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
    assert in_region_rates(TABLE.reverse()).equals(rates)
    drawn = drawn_task2()
    twice = in_region_rates(pl.concat([drawn, drawn.sample(fraction=1, shuffle=True, seed=1)]))
    assert twice.equals(in_region_rates(drawn).with_columns(n=2 * pl.col("n")).cast(twice.schema))  # type: ignore[arg-type]


def test_regions_are_known_however_they_are_written(tmp_path: Path) -> None:
    answer = "{'match': 'ym', 'obj': ['sea'], 'geo': ['na']}"
    for region, place in (("Southeast Asia", "sea"), ("southeast_asia", "SouthEastAsia")):
        table = read_task2(write_csv(tmp_path / "t.csv", [line("a.jpg", region, 0, place, answer)]))
        assert in_region_rates(table, by=()).rows() == [("in", "background", 0.0, 1), ("in", "object", 1.0, 1)]
    with pytest.raises(UsageError, match="must be the name of a region"):
        in_region_rates(TABLE.with_columns(region=pl.lit(" - ")))


def test_regions_and_countries_of_any_study_are_counted(tmp_path: Path) -> None:
    ticks = "{'match': 'ym', 'obj': ['americas', 'cotedivoire'], 'geo': ['na']}"
    rows = [line(f"{n}.jpg", region, n, place, ticks) for n, (region, place) in enumerate(
        [("Americas", "the Americas"), ("Americas", "AMERICAS"), ("Côte d’Ivoire", "Europe")]
    )]  # fmt: skip
    table = read_task2(write_csv(tmp_path / "t.csv", rows))
    rates = in_region_rates(table, by=("region",)).filter(target="object")
    assert {(row["region"], row["side"]): row["rate"] for row in rates.to_dicts()} == {
        ("Americas", "in"): 1.0, ("Americas", "out"): 1.0, ("Côte d’Ivoire", "out"): 1.0,
    }  # fmt: skip


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
    # Of combo A the reference is a photograph, which checks nobody; of combo E the two images compared are
    seen = [judgement(f"t{n}", "ann", "Africa", "1", "1") for n in range(9)]
    assert drop_unreliable(task1(*seen)).unchecked == 9
    compared = task1(seen[0] | {"combo": "E", "reference_source": "ldm", "source": "real"})
    assert drop_unreliable(compared).cells.select("accuracy", "photographs").row(0) == (0.5, 2)
    assert drop_unreliable(compared).annotations.height == 0
    silent = task1(seen[0] | {"shown": None})
    assert drop_unreliable(silent).unchecked == 1


def agreement_by_hand(rows: list[tuple[str, str]]) -> tuple[float, float, int]:
    """Count agreeing pairs of (item, choice)."""
    items = defaultdict(list)
    for item, choice in rows:
        items[item].append(choice)
    shares = [np.mean([a == b for a, b in itertools.combinations(said, 2)]) for said in items.values()]
    return float(np.mean(shares)), float(np.mean([share == 1 for share in shares])), len(shares)


@pytest.mark.parametrize("seed", range(3))
def test_agreement_is_that_of_all_pairs(seed: int) -> None:
    table = drawn_task1(seed=seed)
    found = triplet_agreement(table, by=("source", "region"))
    assert found.columns == ["source", "region", "criterion", "pairs", "pairwise", "unanimous", "n"]
    assert found.height == 12
    for row in found.iter_rows(named=True):
        cell = table.filter(source=row["source"], region=row["region"])
        column = {"similarity": "similar_id", "appeal": "appealing_id"}[row["criterion"]]
        expected = agreement_by_hand(cell.select("triplet_id", column).rows())
        assert (row["pairwise"], row["unanimous"], row["n"]) == pytest.approx(expected)
        assert row["pairs"] == "all"
    assert triplet_agreement(table.sample(fraction=1, shuffle=True, seed=1), by=("source", "region")).equals(found)


def test_within_and_across_are_told_apart() -> None:
    table = task1(
        judgement("t", "a", "Africa", "1", "1"), judgement("t", "b", "Africa", "1", "2"),
        judgement("t", "c", "Europe", "2", "2"),
    )  # fmt: skip
    found = triplet_agreement(table, by=("annotator_loc",)).select("annotator_loc", "criterion", "pairs", "pairwise")
    assert found.rows() == [
        ("Africa", "appeal", "across", 0.5), ("Africa", "appeal", "within", 0.0),
        ("Africa", "similarity", "across", 0.0), ("Africa", "similarity", "within", 1.0),
        ("Europe", "appeal", "across", 0.5), ("Europe", "similarity", "across", 0.0),
    ]  # fmt: skip


def test_everybody_agreeing_is_one_and_silence_is_no_answer() -> None:
    table = task1(
        judgement("t", "a", "Africa", "1", None), judgement("t", "b", "Europe", "1", "2"),
        judgement("u", "a", "Africa", "2", "2"),
    )  # fmt: skip
    assert triplet_agreement(table, by=()).rows() == [("similarity", "all", 1.0, 1.0, 1)]
    with pytest.raises(UsageError, match="task1 must be a frame with the columns"):
        triplet_agreement(table, by=("colour",))


def test_task2_agreement_is_that_of_all_pairs_and_kappa_statsmodels() -> None:
    table = drawn_task2(images=90, seed=2)
    found = task2_agreement(table, by=("region",))
    assert found.columns == ["region", "question", "pairs", "pairwise", "unanimous", "kappa", "n"]
    for row in found.filter(pl.col("question") == "object").iter_rows(named=True):
        cell = table.filter(region=row["region"])
        code = {"Africa": "af", "Europe": "eu", "SouthEastAsia": "sea"}[row["region"]]
        named = cell.select("img_path", pl.col("object_regions").list.contains(code).cast(pl.String))
        expected = agreement_by_hand(named.rows())
        assert (row["pairwise"], row["unanimous"], row["n"]) == pytest.approx(expected)
        yes = cell.group_by("img_path").agg(pl.col("object_regions").list.contains(code).sum())["object_regions"]
        counts = np.stack([yes.to_numpy(), 3 - yes.to_numpy()], axis=1)
        assert row["kappa"] == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)
    assert set(found["question"]) == {"shown", "object", "background"}
    assert task2_agreement(table.reverse(), by=("region",)).equals(found)


def test_images_without_a_region_count_for_what_they_show_only() -> None:
    table = task2(("1", None, "a", "Africa", True, "af", "af"), ("1", None, "b", "Europe", True, "eu", "eu"))
    assert task2_agreement(table, by=()).rows() == [("shown", "all", 1.0, 1.0, None, 1)]


def test_pools_of_task2_have_no_kappa_across() -> None:
    table = drawn_task2(images=30)
    found = task2_agreement(
        pl.concat([table, table.with_columns(annotator_id=pl.lit("second"))]), by=("annotator_loc",)
    )
    assert found.filter(pairs="across")["kappa"].null_count() == found.filter(pairs="across").height
    # The second annotator of each location copies the first.
    inside = found.filter(pairs="within")
    assert inside["pairwise"].to_list() == [1.0] * 9
    assert inside["kappa"].drop_nulls().to_list() == pytest.approx([1.0] * inside["kappa"].drop_nulls().len())
