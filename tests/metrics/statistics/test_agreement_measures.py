"""Agreement: against scikit-learn, statsmodels and krippendorff, and where everybody or nobody agrees."""

import math
from typing import Literal

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
    rating_counts,
    unanimous_agreement,
)
from culturekit.metrics.statistics.chance_corrected import LEVELS, Level

WEIGHTS: tuple[Literal["none", "linear", "quadratic"], ...] = ("none", "linear", "quadratic")
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)
TABLES = st.lists(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, math.nan]), min_size=4, max_size=4), min_size=2, max_size=20
)


@given(PAIRS)
@settings(deadline=None)
def test_cohen_agrees_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    a, b = map(list, zip(*pairs, strict=True))
    assume(len({*a, *b}) > 1)
    for weights in WEIGHTS:
        expected = sklearn_metrics.cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
        assert cohen_kappa(a, b, weights=weights) == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert cohen_kappa(b, a, weights=weights) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=30))
@settings(deadline=None)
def test_fleiss_agrees_with_statsmodels_and_ignores_order_and_names(answers: list[list[int]]) -> None:
    ratings = np.array(answers)
    assume(len(np.unique(ratings)) > 1)
    counts = inter_rater.aggregate_raters(ratings)[0]
    expected = inter_rater.fleiss_kappa(counts)
    assert fleiss_kappa(counts) == pytest.approx(expected, abs=1e-9)
    assert fleiss_kappa(counts[::-1, ::-1]) == pytest.approx(expected, abs=1e-9)
    items = np.repeat(np.arange(len(ratings)), 5)
    assert fleiss_kappa(rating_counts(items.tolist(), ratings.ravel().tolist())) == pytest.approx(expected, abs=1e-9)


@given(TABLES)
@settings(deadline=None)
def test_alpha_agrees_with_krippendorff(columns: list[list[float]]) -> None:
    ratings = np.array(columns).T
    pairable = ratings[:, np.isfinite(ratings).sum(axis=0) > 1]
    assume(len(np.unique(pairable[np.isfinite(pairable)])) > 1)
    for level in LEVELS:
        expected = krippendorff.alpha(ratings, level_of_measurement=level)
        assert krippendorff_alpha(ratings, level=level) == pytest.approx(expected, abs=1e-9)
        assert krippendorff_alpha(ratings[::-1, ::-1], level=level) == pytest.approx(expected, abs=1e-9)


def test_alpha_of_krippendorffs_own_example() -> None:
    """The data of his 2011 paper, with the values it prints."""
    texts = [
        "* * * * * 3 4 1 2 1 1 3 3 * 3",
        "1 * 2 1 3 3 4 3 * * * * * * *",
        "* * 2 1 3 4 4 * 2 1 1 3 3 * 4",
    ]
    ratings = [[None if cell == "*" else int(cell) for cell in text.split()] for text in texts]
    assert krippendorff_alpha(ratings, level="nominal") == pytest.approx(0.691, abs=5e-4)  # type: ignore[arg-type]
    assert krippendorff_alpha(ratings, level="interval") == pytest.approx(0.811, abs=5e-4)  # type: ignore[arg-type]
    words = [[None if cell is None else f"answer {cell}" for cell in row] for row in ratings]
    assert krippendorff_alpha(words) == pytest.approx(0.691, abs=5e-4)  # type: ignore[arg-type]


def test_alpha_keeps_its_digits_far_from_zero_and_on_many_values() -> None:
    ratings = np.random.default_rng(1).normal(size=(3, 2000))
    near = krippendorff_alpha(ratings, level="interval")
    assert krippendorff_alpha(ratings + 1e6, level="interval") == pytest.approx(near, abs=1e-8)
    assert krippendorff_alpha(ratings * 7, level="ordinal") == krippendorff_alpha(ratings, level="ordinal")


def test_all_agree() -> None:
    answers = [1, 2, 3, 1, 2, 5]
    for weights in WEIGHTS:
        assert cohen_kappa(answers, answers, weights=weights) == 1
    for level in LEVELS:
        assert krippendorff_alpha([answers, answers, answers], level=level) == 1
    counts = rating_counts([0, 0, 1, 1, 2], ["a", "a", "b", "b", "c"])
    assert fleiss_kappa(counts) == pairwise_agreement(counts) == unanimous_agreement(counts) == 1


def test_one_answer_only_says_nothing_of_agreement_beyond_chance() -> None:
    assert math.isnan(cohen_kappa([1, 1], [1, 1]))
    assert math.isnan(fleiss_kappa([[3, 0], [3, 0]]))
    assert math.isnan(fleiss_kappa([[1, 0], [0, 1]]))
    for level in LEVELS:
        assert math.isnan(krippendorff_alpha([[2, 2], [2, 2]], level=level))
        assert math.isnan(krippendorff_alpha([[1, math.nan], [math.nan, 2]], level=level))
    assert math.isnan(pairwise_agreement([[1, 0], [0, 1]]))
    assert math.isnan(unanimous_agreement([[1, 0], [0, 1]]))


def test_guessing_agrees_as_chance_does() -> None:
    ratings = np.random.default_rng(2).integers(0, 2, (3, 20_000))
    counts = rating_counts(np.tile(np.arange(20_000), 3).tolist(), ratings.ravel().tolist())
    assert fleiss_kappa(counts) == pytest.approx(0, abs=0.02)
    assert krippendorff_alpha(ratings) == pytest.approx(0, abs=0.02)
    assert pairwise_agreement(counts) == pytest.approx(1 / 2, abs=0.01)
    assert unanimous_agreement(counts) == pytest.approx(1 / 4, abs=0.01)


def test_agreement_by_hand_with_unequal_numbers_of_answers() -> None:
    counts = [[2, 1], [0, 4], [1, 1], [1, 0]]
    assert pairwise_agreement(counts) == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert unanimous_agreement(counts) == pytest.approx(1 / 3)
    shares = np.array([3, 6]) / 9
    expected = ((1 / 3 + 1 + 0) / 3 - (shares**2).sum()) / (1 - (shares**2).sum())
    assert fleiss_kappa(counts) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cohen_kappa([1], [1, 2]), "b must be as long as a, and not empty; a has 1; found 2"),
        (lambda: cohen_kappa([1], [1], weights="cubic"), "weights must be 'none' or 'linear' or 'quadratic'"),  # type: ignore[arg-type]
        (lambda: fleiss_kappa([1, 2]), "counts must be a table, (n_items, n_choices); found 'shape (2,)'"),
        (lambda: fleiss_kappa([[1, -1]]), "counts must be whole numbers of at least 0"),
        (lambda: pairwise_agreement([[0.5, 1]]), "counts must be whole numbers of at least 0"),
        (lambda: krippendorff_alpha([1, 2]), "ratings must be a table, (n_annotators, n_items)"),
        (lambda: krippendorff_alpha([["a"], ["b"]], level="interval"), "ratings must be numbers for level='interval'"),
        (lambda: krippendorff_alpha([[1], [2]], level="ratio"), "level must be 'nominal' or 'ordinal' or 'interval'"),  # type: ignore[arg-type]
        (lambda: rating_counts(["a"], [1, 2]), "choices must be one per item"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()  # type: ignore[operator]
    assert message in str(caught.value)


def test_the_levels_are_those_of_the_type() -> None:
    levels: tuple[Level, ...] = ("nominal", "ordinal", "interval")
    assert levels == LEVELS
