"""What every family writes with: scores and values where their metrics can lie."""

import math

import pytest

from culturekit.errors import UsageError
from culturekit.metrics.scoring.score_rows import Row, scored, statistic_row
from culturekit.metrics.statistics.intervals import Interval


def row(metric: str, value: float) -> Row:
    return statistic_row(
        metric, model="ann", benchmark="any", answer=Interval(value, math.nan, math.nan, 3, "these"), params={}
    )


def behind(metric: str, value: float) -> Row:
    return {"metric": metric, "model": "ann", "benchmark": "any", "params": "{}", "item": "x", "value": value}


def test_a_number_that_a_metric_cannot_be_is_refused_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"the score of ann: exag cannot be 40; expected from 0 to 1.*another scale"):
        scored([row("align", 0.5), row("exag", 40.0)])
    with pytest.raises(UsageError, match="item 'x' of ann: vqascore cannot be -1"):  # its mean can
        scored([row("vqascore", 0.5)], [behind("vqascore", -1.0)])


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("clip_score", 100.00000001),  # rounding
        ("vs", math.nan),  # not known
        ("quality", 21.5),  # the scale is that of the scorer
        ("rating_mean", 500.0),  # the scale is that of the form
    ],
)
def test_other_numbers_stand(metric: str, value: float) -> None:
    assert scored([row(metric, value)], [behind(metric, value)]).scores.height == 1


def test_a_metric_of_another_package_is_not_held_here() -> None:
    made = row("vs", 0.5) | {"metric": "sparkle", "value": 1e9}
    assert scored([made]).scores["value"].to_list() == [1e9]
