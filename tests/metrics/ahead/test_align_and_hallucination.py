"""ALIGN and HAL: against a loop over pairs, against scikit-learn, and by what must hold of them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from culturekit.core.errors import UsageError
from culturekit.metrics import DimensionScore, align, align_detail, hallucination, hallucination_detail
from tests.metrics.ahead.descriptor_oracle import align_by_pairs, hal_by_pairs, random_image

N_REF = {"attire": 3, "background": 4, "interaction": 2, "objects": 5, "spatial": 1}
IMAGE = {"objects": np.array([[0.9, 0.1], [0.2, 0.3]]), "attire": np.array([[0.6]])}
COUNTS = {"objects": 2, "attire": 1}

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("tau", [0.29, 0.52, 0.9])
def test_they_are_what_a_loop_over_pairs_gives(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    image = random_image(rng, N_REF)
    assert align(image, N_REF, tau=tau) == pytest.approx(align_by_pairs(image, N_REF, tau), abs=1e-12)
    assert hallucination(image, N_REF, tau=tau) == pytest.approx(hal_by_pairs(image, N_REF, tau), abs=1e-12)
    pooled = align_by_pairs(image, N_REF, tau, pooled=True), hal_by_pairs(image, N_REF, tau, pooled=True)
    assert align(image, N_REF, tau=tau, aggregate="pooled") == pytest.approx(pooled[0], abs=1e-12)
    assert hallucination(image, N_REF, tau=tau, aggregate="pooled") == pytest.approx(pooled[1], abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_of_exact_phrases_they_are_recall_and_one_minus_precision(seed: int) -> None:
    """With similarity 1 for the same phrase and 0 otherwise the two are scikit-learn's scores of label sets."""

    rng = np.random.default_rng(seed)
    true, said = rng.random(20) < 0.6, rng.random(20) < 0.6
    same = np.equal.outer(np.flatnonzero(said), np.flatnonzero(true)).astype(float)
    n_ref = {"objects": int(true.sum())}
    assert align({"objects": same}, n_ref, tau=0.5) == pytest.approx(sklearn.recall_score(true, said), abs=1e-12)
    wrong = hallucination({"objects": same}, n_ref, tau=0.5)
    assert wrong == pytest.approx(1 - sklearn.precision_score(true, said), abs=1e-12)


def test_a_worked_example() -> None:
    assert align(IMAGE, COUNTS, tau=0.52) == pytest.approx((1 / 2 + 1) / 2)
    assert hallucination(IMAGE, COUNTS, tau=0.52) == pytest.approx((1 / 2 + 0) / 2)
    assert align(IMAGE, COUNTS, tau=0.52, aggregate="pooled") == pytest.approx(2 / 3)
    assert hallucination(IMAGE, COUNTS, tau=0.52, aggregate="pooled") == pytest.approx(1 / 3)


def test_a_similarity_equal_to_the_threshold_is_a_match() -> None:
    image = {"objects": [[0.52]]}
    assert (align(image, {"objects": 1}, tau=0.52), hallucination(image, {"objects": 1}, tau=0.52)) == (1.0, 0.0)


def test_an_image_that_says_what_is_asked_is_perfect() -> None:
    image = {name: np.eye(count) for name, count in N_REF.items()}
    for aggregate in ("dimension", "pooled"):
        assert align(image, N_REF, tau=0.52, aggregate=aggregate) == 1.0
        assert hallucination(image, N_REF, tau=0.52, aggregate=aggregate) == 0.0


@pytest.mark.parametrize("nothing", [{}, {"objects": []}, {"objects": np.empty((0, 2))}, {"objects": np.empty((0, 0))}])
def test_saying_nothing_is_flagged_and_counts_as_zero(nothing: dict[str, Any]) -> None:
    for detail in (align_detail, hallucination_detail):
        for aggregate in ("dimension", "pooled"):
            found = detail(nothing, COUNTS, tau=0.5, aggregate=aggregate)
            assert found == DimensionScore(0.0, {"attire": 0.0, "objects": 0.0}, ("attire", "objects"), ())


def test_one_empty_dimension_counts_among_the_others() -> None:
    found = align_detail({"objects": np.eye(2)}, COUNTS, tau=0.5)
    assert (found.value, found.per_dimension, found.empty) == (0.5, {"attire": 0.0, "objects": 1.0}, ("attire",))
    assert align({"objects": np.eye(2)}, COUNTS, tau=0.5, aggregate="pooled") == pytest.approx(2 / 3)


@pytest.mark.parametrize("n_ref", [{}, {"objects": 0}, {"people": 3}])
@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
def test_where_nothing_can_be_scored_the_score_is_missing(n_ref: dict[str, int], aggregate: Any) -> None:
    found = align_detail({}, n_ref, tau=0.5, aggregate=aggregate)
    assert math.isnan(found.value)
    assert math.isnan(hallucination({}, n_ref, tau=0.5, aggregate=aggregate))
    assert found.ignored == (("people",) if "people" in n_ref else ())


def test_a_dimension_that_the_extractor_lacks_is_left_out_and_listed() -> None:
    n_ref = {**COUNTS, "people": 3}
    for detail in (align_detail, hallucination_detail):
        assert detail(IMAGE, n_ref, tau=0.5).ignored == ("people",)
        assert detail(IMAGE, n_ref, tau=0.5).value == detail(IMAGE, COUNTS, tau=0.5).value
        stated = detail(IMAGE, COUNTS, tau=0.5, extractor_dimensions=["objects"])
        assert (stated.ignored, set(stated.per_dimension)) == (("attire",), {"objects"})
        as_none = detail({**IMAGE, "attire": None}, COUNTS, tau=0.5)
        assert as_none == stated


def test_an_extractor_that_has_people_is_scored_on_them() -> None:
    n_ref = {"objects": 2, "people": 2}
    seen = align_detail({"objects": np.eye(2), "people": np.eye(2)[:1]}, n_ref, tau=0.5)
    assert (seen.value, seen.ignored) == (0.75, ())
    stated = align_detail({"objects": np.eye(2)}, n_ref, tau=0.5, extractor_dimensions=("objects", "people"))
    assert (stated.value, stated.empty) == (0.5, ("people",))


def test_predictions_in_a_dimension_without_references_are_left_out_and_listed() -> None:
    image: dict[str, Any] = {**IMAGE, "spatial": np.empty((2, 0)), "background": [[0.5]], "interaction": []}
    found = hallucination_detail(image, {**COUNTS, "spatial": 0}, tau=0.52)
    assert found.ignored == ("background", "spatial")
    assert found.value == hallucination(IMAGE, COUNTS, tau=0.52)


@given(seed=seeds, tau=st.floats(-1, 1))
def test_order_of_dimensions_and_of_descriptors_changes_nothing(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    image = random_image(rng, N_REF)
    mixed = {
        name: image[name][rng.permutation(len(image[name]))][:, rng.permutation(N_REF[name])]
        for name in rng.permutation(sorted(image))
    }
    n_ref = {str(name): N_REF[name] for name in rng.permutation(sorted(N_REF))}
    for score in (align, hallucination):
        for aggregate in ("dimension", "pooled"):
            assert score(mixed, n_ref, tau=tau, aggregate=aggregate) == score(
                image, N_REF, tau=tau, aggregate=aggregate
            )


@given(seed=seeds, low=st.floats(-1, 1), high=st.floats(-1, 1))
def test_a_higher_threshold_never_aligns_more_nor_hallucinates_less(seed: int, low: float, high: float) -> None:
    image = random_image(np.random.default_rng(seed), N_REF)
    low, high = sorted((low, high))
    assert 0 <= align(image, N_REF, tau=high) <= align(image, N_REF, tau=low) <= 1
    assert 0 <= hallucination(image, N_REF, tau=low) <= hallucination(image, N_REF, tau=high) <= 1


@given(seed=seeds, tau=st.floats(-1, 1))
def test_with_one_dimension_both_aggregates_agree(seed: int, tau: float) -> None:
    n_ref = {"objects": 5}
    image = random_image(np.random.default_rng(seed), n_ref)
    for score in (align, hallucination):
        assert score(image, n_ref, tau=tau, aggregate="pooled") == score(image, n_ref, tau=tau)


@given(seed=seeds)
def test_a_repeated_prediction_changes_no_alignment(seed: int) -> None:
    image = random_image(np.random.default_rng(seed), N_REF)
    twice = {name: np.concatenate([array, array]) for name, array in image.items()}
    assert align(twice, N_REF, tau=0.52) == align(image, N_REF, tau=0.52)
    assert hallucination(twice, N_REF, tau=0.52) == hallucination(image, N_REF, tau=0.52)


BAD: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([[0.5]], COUNTS, {}, r"similarities must be a mapping"),
    ({"objects": [[0.5, 0.1]]}, [2], {}, r"n_ref must be a mapping"),
    ({"objects": [[0.5]]}, {"objects": 2}, {}, r"similarities\['objects'\] must be of shape \(n_pred, 2\)"),
    ({"objects": [0.5, 0.1]}, {"objects": 2}, {}, r"similarities\['objects'\] must be of shape"),
    ({"objects": [[0.5, math.nan]]}, {"objects": 2}, {}, r"similarities\['objects'\] must be finite"),
    ({"objects": [["a", "b"]]}, {"objects": 2}, {}, r"similarities\['objects'\] must be an array of numbers"),
    ({}, {"objects": -1}, {}, r"n_ref\['objects'\] must be a whole number"),
    ({}, {"objects": 1.5}, {}, r"n_ref\['objects'\] must be a whole number"),
    ({}, {"objects": True}, {}, r"n_ref\['objects'\] must be a whole number"),
    ({}, COUNTS, {"tau": math.nan}, r"tau must be a number between -1 and 1"),
    ({}, COUNTS, {"tau": 52}, r"tau must be a number between -1 and 1"),
    ({}, COUNTS, {"tau": "high"}, r"tau must be a number between -1 and 1"),
    ({}, COUNTS, {"aggregate": "mean"}, r"aggregate must be 'dimension' or 'pooled'"),
]


@pytest.mark.parametrize(("similarities", "n_ref", "options", "message"), BAD)
def test_what_breaks_a_rule_is_named(similarities: Any, n_ref: Any, options: dict[str, Any], message: str) -> None:
    for score in (align, align_detail, hallucination, hallucination_detail):
        with pytest.raises(UsageError, match=message):
            score(similarities, n_ref, **{"tau": 0.5, **options})
