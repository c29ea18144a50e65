"""Human ratings: means over items within a pool."""

import statistics

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import likert_table, relevance_rates

Answer = tuple[str, str, str, float | None]


def ratings(*answers: Answer, criterion: str = "cleanliness", **labels: list[str]) -> pl.DataFrame:
    items, annotators, pools, values = zip(*answers, strict=True)
    return pl.DataFrame(
        {
            "item_id": items, "annotator": annotators, "annotator_region": pools, "scheme": "linguistic",
            "criterion": criterion, "value": pl.Series(values, dtype=pl.Float64), **labels,
        }
    )  # fmt: skip


def test_the_papers_kind_of_table_is_the_sample_deviation_over_items() -> None:
    values = [5, 5, 4, 5, 2, 1, 3, 3]
    groups = ["Europe"] * 4 + ["Africa"] * 4
    table = likert_table(ratings(*((f"i{n}", "ann", "US", v) for n, v in enumerate(values)), group=groups))
    assert table["group"].to_list() == ["Africa", "Europe"]
    for row, own in zip(table.iter_rows(named=True), (values[4:], values[:4]), strict=True):
        assert row["mean"] == pytest.approx(statistics.mean(own))
        assert row["sd"] == pytest.approx(statistics.stdev(own))
        assert (row["items"], row["annotators"], row["answers"], row["within"]) == (4, 1, 4, None)


PRINTED = {
    "Europe cleanliness": ([5] * 15 + [4], 4.938, 0.25),
    "Africa completeness": ([5] * 15 + [3], 4.875, 0.5),
    "America cleanliness": ([5] * 8 + [4] * 7 + [3], 4.438, 0.6292),
}
"""Cells of the paper's fourth table, 16 pictures each, and whole ratings that give them."""


@pytest.mark.parametrize("cell", PRINTED)
def test_cells_of_the_papers_table_come_from_whole_ratings(cell: str) -> None:
    values, mean, deviation = PRINTED[cell]
    row = likert_table(ratings(*((f"{n:02}", "a", "US", v) for n, v in enumerate(values)))).row(0, named=True)
    assert (round(row["mean"], 3), round(row["sd"], 4)) == (mean, deviation)


def test_an_items_score_is_the_mean_of_its_annotators_and_their_scatter_stands_apart() -> None:
    table = likert_table(ratings(("x", "a", "US", 1), ("x", "b", "US", 3), ("y", "a", "US", 4), ("z", "c", "US", None)))
    row = table.row(0, named=True)
    assert (row["mean"], row["sd"]) == (pytest.approx(3), pytest.approx(statistics.stdev([2, 4])))
    assert row["within"] == pytest.approx(statistics.stdev([1, 3]))
    assert (row["items"], row["annotators"], row["answers"]) == (2, 2, 3)


def test_pools_are_never_merged() -> None:
    table = likert_table(ratings(("x", "a", "US", 1), ("x", "b", "IN", 5)))
    assert table.select("pool", "mean").rows() == [("IN", 5.0), ("US", 1.0)]
    assert table["sd"].null_count() == 2


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    answers = [(f"i{n}", f"a{k}", "US", float(v)) for n in range(20) for k, v in enumerate(rng.normal(3, 1, 3))]
    whole = ratings(*answers)
    for seed in range(5):
        assert likert_table(whole.sample(fraction=1, shuffle=True, seed=seed)).equals(likert_table(whole))


def test_shifting_and_doubling() -> None:
    base = likert_table(ratings(("x", "a", "US", 1), ("y", "a", "US", 2))).row(0, named=True)
    twice = likert_table(
        ratings(("x", "a", "US", 1), ("y", "a", "US", 2), ("x", "b", "US", 1), ("y", "b", "US", 2))
    ).row(0, named=True)
    assert (twice["mean"], twice["sd"]) == (base["mean"], base["sd"])
    assert twice["within"] == 0
    higher = likert_table(ratings(("x", "a", "US", 4), ("y", "a", "US", 5))).row(0, named=True)
    assert (higher["mean"], higher["sd"]) == (pytest.approx(base["mean"] + 3), pytest.approx(base["sd"]))


def test_ratings_given_twice_and_missing_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="one rating per annotator, item and criterion"):
        likert_table(ratings(("x", "a", "US", 1), ("x", "a", "US", 2)))
    with pytest.raises(UsageError, match="annotations must be a frame with the columns"):
        likert_table(pl.DataFrame({"item_id": ["x"]}))


def choices(*answers: tuple[str, str, str | None]) -> pl.DataFrame:
    items, annotators, chosen = zip(*answers, strict=True)
    return pl.DataFrame(
        {
            "item_id": items, "annotator": annotators, "annotator_region": "US", "scheme": "cultivate",
            "criterion": "relevance", "choice": pl.Series(chosen, dtype=pl.String),
        }
    )  # fmt: skip


def test_relevance_rates_are_means_over_items() -> None:
    answers = [("x", "a", "yes"), ("x", "b", "yes"), ("x", "c", "no"), ("y", "a", "no"), ("y", "b", None)]
    table = relevance_rates(choices(*answers))
    assert dict(table.select("choice", "rate").iter_rows()) == {
        "no": pytest.approx((1 / 3 + 1) / 2), "yes": pytest.approx(1 / 3),
    }  # fmt: skip
    assert table["items"].to_list() == [2, 2]
    assert table["answers"].to_list() == [2, 2]
    assert table["rate"].sum() == pytest.approx(1)
    assert relevance_rates(choices(*answers[::-1])).equals(table)
    with pytest.raises(UsageError, match="choice"):
        relevance_rates(pl.DataFrame({"item_id": ["x"]}))
