"""Agreement on triplets and on single images, against pairs counted one by one and statsmodels."""

import itertools
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.metrics import task2_agreement, triplet_agreement
from tests.metrics.inclusion.task_worlds import drawn_task1, drawn_task2, judgement, task1, task2


def agreement_by_hand(rows: list[tuple[str, str, str]], pool: str | None) -> tuple[float, float, int]:
    """Count agreeing pairs of (item, location, choice): of everybody, or across the border of a pool."""
    items = defaultdict(list)
    for item, place, choice in rows:
        items[item].append((place, choice))
    shares = []
    for answers in items.values():
        pairs = itertools.combinations(answers, 2)
        asked = [a[1] == b[1] for a, b in pairs if pool is None or (a[0] == pool) != (b[0] == pool)]
        if asked:
            shares.append(sum(asked) / len(asked))
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
        expected = agreement_by_hand(cell.select("triplet_id", "annotator_loc", column).rows(), None)
        assert (row["pairwise"], row["unanimous"], row["n"]) == pytest.approx(expected)
        assert row["pairs"] == "all"
    assert triplet_agreement(table.sample(fraction=1, shuffle=True, seed=1), by=("source", "region")).equals(found)


def test_locations_are_pools_of_their_own() -> None:
    table = drawn_task1(seed=4)
    found = triplet_agreement(table, by=("annotator_loc",))
    # One annotator per location: nobody is compared within a pool.
    assert found["pairs"].unique().to_list() == ["across"]
    for row in found.filter(criterion="appeal").iter_rows(named=True):
        rows = table.select("triplet_id", "annotator_loc", "appealing_id").rows()
        expected = agreement_by_hand(rows, row["annotator_loc"])
        assert (row["pairwise"], row["unanimous"], row["n"]) == pytest.approx(expected)


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
        named = cell.select("img_path", "annotator_loc", pl.col("object_regions").list.contains(code).cast(pl.String))
        expected = agreement_by_hand(named.rows(), None)
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
