import math

import polars as pl
import pytest

from culturekit.metrics.corrected.audit_gates import DESIGN_UNKNOWN, ONE_RATER
from culturekit.metrics.corrected.judged_means import agreeing_pairs, marks_of_answers


def pairs(*values: tuple[float, float]) -> pl.DataFrame:
    """Answers of two people to each of some images."""
    rows = [
        (f"i{place}", who, value) for place, both in enumerate(values) for who, value in zip("ab", both, strict=True)
    ]
    return pl.DataFrame(rows, schema=["image_id", "annotator", "value"], orient="row")


def test_neighbours_on_a_scale_agree_and_yes_and_no_do_not() -> None:
    assert agreeing_pairs(pairs((1, 2), (1, 3), (2, 2))) == (2, 3)
    assert agreeing_pairs(pairs((0, 1), (1, 1))) == (1, 2)
    assert agreeing_pairs(pairs((1, 2), (1, 3)), step=2.0) == (2, 2)


@pytest.mark.parametrize(("span", "agreeing"), [(1.0, 7), (math.inf, 7), (8.0, 8)])
def test_what_has_more_values_than_a_scale_agrees_within_a_quarter_of_its_range(span: float, agreeing: int) -> None:
    assert agreeing_pairs(pairs(*((n / 7, (n + 1.7) / 7) for n in range(7)), (0.0, 1.0)), span=span) == (agreeing, 8)


def test_one_rater_an_item_and_an_unknown_design_are_marked() -> None:
    alone = pairs((1, 2), (1, 3)).filter(pl.col("annotator") == "a")
    assert marks_of_answers(alone, "unknown") == [ONE_RATER, DESIGN_UNKNOWN]
    assert marks_of_answers(alone, "drawn") == [ONE_RATER]
    assert marks_of_answers(pairs(*[(1, 2)] * 40), "drawn") == []
