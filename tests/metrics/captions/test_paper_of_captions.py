"""On the Cultural Gap: the numbers of its tables that follow from its other numbers, and what it says of them."""

from statistics import fmean

import pytest

CORRELATIONS = {
    "LaBSE": ((0.107, -0.033, 0.194, 0.167, 0.215, 0.125), 0.129),
    "CLIP": ((-0.081, -0.114, -0.092, -0.085, -0.057, -0.086), -0.086),
    "Ours": ((0.220, 0.149, 0.295, 0.220, 0.215, 0.163), 0.211),
    "-A_OT": ((0.098, -0.050, 0.185, 0.158, 0.211, 0.115), 0.119),
    "A_OT": ((0.210, 0.161, 0.274, 0.200, 0.186, 0.148), 0.197),
}
"""Table 3: Pearson by criterion, and `All`."""

RATINGS = {
    "Vanilla": (3.66, 3.50, 3.61, 3.06, 3.39, 3.17),
    "Random": (4.27, 4.19, 4.22, 3.65, 4.08, 3.96),
    "LaBSE": (4.68, 4.47, 4.61, 3.72, 4.39, 4.16),
    "CLIP": (4.66, 4.54, 4.56, 3.87, 4.38, 4.12),
    "Ours": (4.74, 4.65, 4.71, 3.92, 4.53, 4.33),
}
"""Table 4: ratings by people, by criterion."""


@pytest.mark.parametrize("metric", list(CORRELATIONS))
def test_all_is_the_mean_of_the_six_criteria(metric: str) -> None:
    """To half a digit of each of the six, and of the mean: the report's last column is made so."""
    six, printed = CORRELATIONS[metric]
    assert fmean(six) == pytest.approx(printed, abs=0.0011)


def test_the_whole_follows_people_best_but_for_what_objects_alone_do_better() -> None:
    """The paper says so of LaBSE and CLIP across all criteria; A_OT alone is ahead in fluency."""
    ours = CORRELATIONS["Ours"][0]
    for other in ("LaBSE", "CLIP", "-A_OT"):
        assert all(a >= b for a, b in zip(ours, CORRELATIONS[other][0], strict=True))
    assert [a < b for a, b in zip(ours, CORRELATIONS["A_OT"][0], strict=True)] == [False, True, *[False] * 4]


def test_fine_tuned_models_are_rated_in_the_order_that_is_claimed() -> None:
    """Every fine-tuned model above the vanilla one, every filter above random, theirs above all, in each criterion."""
    for name in ("LaBSE", "CLIP", "Ours"):
        assert all(a > b > c for a, b, c in zip(RATINGS[name], RATINGS["Random"], RATINGS["Vanilla"], strict=True))
    for name in ("LaBSE", "CLIP"):
        assert all(a > b for a, b in zip(RATINGS["Ours"], RATINGS[name], strict=True))


def test_shares_of_ratings_of_the_two_benchmarks() -> None:
    """26.2 % of 500 images rated 1 are 131; 78 % and 57 % at 3 or more leave 110 and 215 below."""
    assert pytest.approx(131) == 0.262 * 500
    assert pytest.approx((110, 215)) == (500 * (1 - 0.78), 500 * (1 - 0.57))
