"""EXAG and FAITH, and the paper's Table 1, whose FAITH is recomputed from its other columns."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import hinge_loss

from culturekit.core.errors import UsageError
from culturekit.metrics import exaggeration, faithfulness

TABLE_1 = {
    ("Std-3.5-medium", "GN"): "0.30 0.57 0.05 0.56",
    ("Std-3.5-medium", "GS"): "0.25 0.63 0.08 0.51",
    ("FLUX.1-dev", "GN"): "0.31 0.59 0.03 0.56",
    ("FLUX.1-dev", "GS"): "0.23 0.66 0.06 0.50",
    ("Qwen-Image", "GN"): "0.36 0.53 0.06 0.59",
    ("Qwen-Image", "GS"): "0.30 0.59 0.10 0.54",
    ("DALL-E 3", "GN"): "0.37 0.49 0.09 0.60",
    ("DALL-E 3", "GS"): "0.32 0.54 0.13 0.55",
    ("GPT-Image-1", "GN"): "0.36 0.47 0.06 0.61",
    ("GPT-Image-1", "GS"): "0.31 0.54 0.06 0.57",
    ("Nano Banana", "GN"): "0.40 0.44 0.09 0.62",
    ("Nano Banana", "GS"): "0.36 0.49 0.12 0.58",
}
"""CULTIVate, Table 1: ALIGN, HAL, EXAG, FAITH."""

shares = st.floats(0, 1)


def test_faith_of_table_1_follows_from_its_other_columns_in_all_twelve_rows() -> None:
    for row in TABLE_1.values():
        align, hal, exag = map(float, row.split()[:3])
        assert f"{faithfulness(align, hal, exag):.2f}" == row.split()[3]
    assert len(TABLE_1) == 12


def test_the_global_north_is_more_faithful_in_each_model() -> None:
    scores = {key: float(faithfulness(*map(float, row.split()[:3]))) for key, row in TABLE_1.items()}
    assert all(scores[model, "GN"] > scores[model, "GS"] for model, _ in scores)


def test_faith_is_the_mean_of_three() -> None:
    assert faithfulness(1.0, 0.0, 0.0) == 1.0
    assert faithfulness(0.0, 1.0, 1.0) == 0.0
    assert faithfulness(0.3, 0.57, 0.05) == pytest.approx(np.mean([0.3, 0.43, 0.95]), abs=1e-15)
    assert math.isnan(faithfulness(math.nan, 0.0, 0.0))


def test_faith_of_arrays_is_that_of_their_elements() -> None:
    rng = np.random.default_rng(0)
    align, hal, exag = rng.random((3, 4, 5))
    found = np.asarray(faithfulness(align, hal, exag))
    assert found.shape == (4, 5)
    for place in np.ndindex(4, 5):
        assert found[place] == faithfulness(float(align[place]), float(hal[place]), float(exag[place]))


@given(shares, shares, shares, shares)
def test_faith_rises_with_alignment_and_falls_with_the_others(align: float, hal: float, exag: float, up: float) -> None:
    value = faithfulness(align, hal, exag)
    assert 0 <= value <= 1
    assert faithfulness(max(align, up), hal, exag) >= value
    assert faithfulness(align, max(hal, up), exag) <= value
    assert faithfulness(align, hal, max(exag, up)) <= value


@pytest.mark.parametrize("seed", range(5))
def test_exaggeration_is_a_mean_of_hinges(seed: int) -> None:
    """Scikit-learn's hinge loss of a decision is max(0, 1 - y f): with y = -1 and f = excess - 1 it is the excess."""

    rng = np.random.default_rng(seed)
    scores, real = rng.random((6, 15)), rng.random(15)
    for row, found in zip(scores, exaggeration(scores, real), strict=True):
        assert found == pytest.approx(hinge_loss(-np.ones(15), row - real - 1, labels=[-1, 1]), abs=1e-12)


def test_exaggeration_pair_by_pair() -> None:
    rng = np.random.default_rng(3)
    scores, real = rng.random((7, 4)), rng.random(4)
    by_pairs = [[max(0.0, f - usual) for f, usual in zip(row, real, strict=True)] for row in scores]
    np.testing.assert_allclose(exaggeration(scores, real), [sum(row) / 4 for row in by_pairs], atol=1e-15)
    np.testing.assert_allclose(exaggeration(scores, real, reduce="max"), [max(row) for row in by_pairs], atol=1e-15)


def test_real_images_on_average_do_not_exaggerate_and_less_makes_up_for_nothing() -> None:
    real = np.array([0.5, 0.2])
    assert exaggeration([real], real).tolist() == [0.0]
    assert exaggeration([[0.0, 0.6]], real).tolist() == [pytest.approx(0.2)]
    assert exaggeration([[0.0, 0.6]], real, reduce="max").tolist() == [pytest.approx(0.4)]


def test_without_candidates_exaggeration_is_missing() -> None:
    for reduce in ("mean", "max"):
        assert np.isnan(exaggeration(np.empty((3, 0)), [], reduce=reduce)).tolist() == [True] * 3
    assert exaggeration(np.empty((0, 2)), [0.1, 0.2]).shape == (0,)


@given(st.integers(0, 2**32 - 1))
def test_exaggeration_does_not_depend_on_the_order_of_candidates_or_images(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, real = rng.random((5, 6)), rng.random(6)
    columns, rows = rng.permutation(6), rng.permutation(5)
    mixed = exaggeration(scores[rows][:, columns], real[columns])
    np.testing.assert_allclose(mixed, exaggeration(scores, real)[rows], atol=1e-15)
    assert (exaggeration(scores, real, reduce="max") >= exaggeration(scores, real)).all()


BAD: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([0.1, 0.2], [0.1, 0.2], {}, r"scores must be of shape \(n_images, n_candidates\)"),
    ([[0.1, 0.2]], [[0.1, 0.2]], {}, r"real_mean must be of shape \(n_candidates,\)"),
    ([[0.1, 0.2]], [0.1], {}, "real_mean must be of length 2"),
    ([[0.1, math.nan]], [0.1, 0.2], {}, "scores must be finite"),
    ([[0.1, 0.2]], [0.1, math.inf], {}, "real_mean must be finite"),
    ([["a"]], [0.1], {}, "scores must be an array of numbers"),
    ([[0.1]], [0.1], {"reduce": "sum"}, "reduce must be 'mean' or 'max'"),
]


@pytest.mark.parametrize(("scores", "real_mean", "options", "message"), BAD)
def test_what_breaks_a_rule_is_named(scores: Any, real_mean: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        exaggeration(scores, real_mean, **options)


def test_faith_of_things_that_do_not_belong_together_is_refused() -> None:
    with pytest.raises(UsageError, match=r"hal must be of shape \(2,\), like align"):
        faithfulness([0.1, 0.2], [0.1], [0.1, 0.2])
    with pytest.raises(UsageError, match="exag must be a number"):
        faithfulness(0.1, 0.2, "much")
