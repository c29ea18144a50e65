"""Differences and gaps computed from a family's values are those of the scores that it wrote itself."""

import polars as pl
import pytest

from culturekit.scores.ahead import AheadOptions, score_ahead
from culturekit.scores.compare import ComparisonOptions, score_comparisons
from culturekit.scores.gaps import GapOptions, score_gaps
from culturekit.scores.score_rows import Scored
from tests.scores.ahead_world import world
from tests.scores.value_tables import params_of

GROUPS = {"FR": "GN", "IN": "GS", "NG": "GS"}


@pytest.fixture(scope="module")
def ahead() -> Scored:
    options = AheadOptions(real="real", groups=GROUPS, scheme="cultivate")
    return score_ahead(world().tables(stereotypes=True), options=options).scored


def score_of(ahead: Scored, *, metric: str, model: str, group: str | None = None) -> float:
    rows = ahead.scores.filter(
        pl.col("metric") == metric,
        pl.col("model") == model,
        pl.col("country").is_null(),
        pl.col("group").eq_missing(pl.lit(group, pl.String)),
    )
    assert rows.height == 1
    return float(rows["value"][0])


def test_a_difference_is_that_of_the_scores(ahead: Scored) -> None:
    rows = score_comparisons(ahead.values, options=ComparisonOptions(resamples=99)).scores
    overall = [row for row in rows.iter_rows(named=True) if row["country"] is None]
    assert {params_of(row)["metric"] for row in overall} >= {"align", "hal", "exag", "faith", "ddiv", "sdiv"}
    for row in overall:
        params = params_of(row)
        a, b = (score_of(ahead, metric=params["metric"], model=params[side]) for side in ("a", "b"))
        assert row["value"] == pytest.approx(a - b), params


def test_a_gap_is_that_of_the_scores(ahead: Scored) -> None:
    rows = score_gaps(ahead.values, options=GapOptions("cultivate", GROUPS)).scores
    assert rows.height >= 12
    for row in rows.iter_rows(named=True):
        metric = params_of(row)["metric"]
        north, south = (score_of(ahead, metric=metric, model=row["model"], group=group) for group in ("GN", "GS"))
        assert row["value"] == pytest.approx(north - south), metric
