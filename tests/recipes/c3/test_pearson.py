"""Pearson's r of what strategies rank by with ratings: scipy's, and one row over all criteria."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.schemas import SCORES
from culturekit.recipes.c3.page import PAIR_CRITERIA
from culturekit.recipes.c3.pairs import EVERY, followed_by

ITEMS = 80


@pytest.fixture(scope="module")
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Values of a strategy that ratings follow, and of chance."""
    rng = np.random.default_rng(0)
    good = rng.normal(size=ITEMS)
    items = [f"pair {number:02}" for number in range(ITEMS)]
    values = {"c3": good, "random": rng.normal(size=ITEMS)}
    ratings = {criterion: good * 0.5 + rng.normal(size=ITEMS) for criterion in PAIR_CRITERIA}
    return (
        pl.concat([pl.DataFrame({"item": items, "strategy": name, "value": each}) for name, each in values.items()]),
        pl.concat([pl.DataFrame({"item_id": items, "criterion": criterion, "score": each})
                   for criterion, each in ratings.items()]),
    )  # fmt: skip


def test_each_criterion_is_scipys_and_all_is_their_mean(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    answer = followed_by(*tables, resamples=999, seed=1)
    assert SCORES.problems(answer.scores) == []
    assert answer.scores.height == 2 * (len(PAIR_CRITERIA) + 1)
    values, means = tables
    for strategy in ("c3", "random"):
        rows: dict[str, dict[str, Any]] = {
            params["with"]["criterion"]: row | params
            for row in answer.scores.rows(named=True)
            if (params := json.loads(row["params"]))["strategy"] == strategy
        }
        own = values.filter(strategy=strategy)["value"].to_numpy()
        found = [stats.pearsonr(own, means.filter(criterion=name)["score"].to_numpy()) for name in PAIR_CRITERIA]
        for name, one in zip(PAIR_CRITERIA, found, strict=True):
            assert rows[name]["value"] == pytest.approx(one.statistic)
            assert rows[name]["p"] == pytest.approx(one.pvalue, abs=0.05), "of permutations, beside that of t"
            assert rows[name]["ci_low"] < rows[name]["value"] < rows[name]["ci_high"]
        assert rows[EVERY]["value"] == pytest.approx(np.mean([one.statistic for one in found]))
        widest = max(rows[name]["ci_high"] - rows[name]["ci_low"] for name in PAIR_CRITERIA)
        assert rows[EVERY]["ci_high"] - rows[EVERY]["ci_low"] < widest
        assert rows[EVERY]["p"] == pytest.approx(0.001) if strategy == "c3" else rows[EVERY]["p"] > 0.05


def test_few_pairs_have_no_interval_and_none_that_vary_no_p(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    values, means = (
        table.filter(pl.col(name) < "pair 05") for table, name in zip(tables, ("item", "item_id"), strict=True)
    )
    answer = followed_by(values.with_columns(value=pl.lit(1.0)), means, resamples=99, seed=1).scores
    assert set(answer["ci_low"]) == {None}
    assert {json.loads(text)["p"] for text in answer["params"]} == {None}
