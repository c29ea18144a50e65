"""ALIGN and HAL, the matches they rest on and their threshold: against loops over pairs and scikit-learn."""

import math
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.metrics import (
    DEFAULT_TAU,
    PUBLISHED_TAUS,
    BestMatches,
    DimensionScore,
    PhraseLists,
    align,
    align_detail,
    best_matches,
    calibrate_tau,
    hallucination,
    hallucination_detail,
    normalise_phrase,
    phrase_lists,
)
from culturekit.metrics.ahead.matching import NOTHING_SAID
from tests.metrics.ahead.descriptor_oracle import align_by_pairs, hal_by_pairs, random_image

N_REF = {"attire": 3, "background": 4, "interaction": 2, "objects": 5, "spatial": 1}
IMAGE = {"objects": np.array([[0.9, 0.1], [0.2, 0.3]]), "attire": np.array([[0.6]])}
COUNTS = {"objects": 2, "attire": 1}


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


@pytest.mark.parametrize("nothing", [{}, {"objects": []}, {"objects": np.empty((0, 2))}, {"objects": np.empty((0, 0))}])
def test_saying_nothing_is_flagged_and_counts_as_zero(nothing: dict[str, Any]) -> None:
    for detail in (align_detail, hallucination_detail):
        for aggregate in ("dimension", "pooled"):
            found = detail(nothing, COUNTS, tau=0.5, aggregate=aggregate)
            assert found == DimensionScore(0.0, {"attire": 0.0, "objects": 0.0}, ("attire", "objects"), ())


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


class Draw:
    """Random phrases, references of some groups, and predictions of some cells; some cells say nothing."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.vectors = rng.normal(size=(60, 8)).astype(np.float32) * rng.uniform(0.1, 9, (60, 1)).astype(np.float32)
        self.references = phrase_lists([rng.integers(0, 60, rng.integers(1, 6)).tolist() for _ in range(7)])
        self.predictions = phrase_lists([rng.integers(0, 60, rng.integers(0, 9)).tolist() for _ in range(40)])
        self.groups = rng.integers(0, 7, 40)

    def matches(self) -> BestMatches:
        return best_matches(self.vectors, references=self.references, predictions=self.predictions, groups=self.groups)

    def cosines(self, cell: int) -> NDArray[np.float64]:
        """The similarities of one cell by scikit-learn, (n_pred, n_ref)."""

        said, asked = listed(self.predictions, cell), listed(self.references, self.groups[cell])
        if len(said) == 0:
            return np.empty((0, len(asked)))
        vectors = self.vectors.astype(np.float64)
        return np.asarray(cosine_similarity(vectors[said], vectors[asked]))


def listed(lists: PhraseLists, number: int) -> NDArray[np.int64]:
    return lists.phrases[lists.starts[number] : lists.starts[number + 1]]


@pytest.mark.parametrize("seed", range(10))
def test_the_best_similarities_are_those_of_scikit_learn_pair_by_pair(seed: int) -> None:
    draw = Draw(seed)
    found = draw.matches()
    for cell in range(40):
        cosines = draw.cosines(cell)
        of_reference = found.of_reference[found.reference_starts[cell] : found.reference_starts[cell + 1]]
        of_prediction = found.of_prediction[draw.predictions.starts[cell] : draw.predictions.starts[cell + 1]]
        np.testing.assert_allclose(of_reference, cosines.max(axis=0, initial=NOTHING_SAID), atol=1e-9)
        np.testing.assert_allclose(of_prediction, cosines.max(axis=1), atol=1e-9)
        alignment = align({"objects": cosines}, {"objects": cosines.shape[1]}, tau=0.4)
        assert found.covered(0.4)[cell] / cosines.shape[1] == pytest.approx(alignment)


def test_without_cells_there_are_no_matches() -> None:
    found = best_matches(
        np.eye(2), references=phrase_lists([[0]]), predictions=phrase_lists([]), groups=np.empty(0, np.int64)
    )
    assert (len(found.of_reference), len(found.of_prediction), len(found.covered(0.5))) == (0, 0, 0)


def test_a_list_counts_a_phrase_once() -> None:
    lists = phrase_lists([[3, 1, 3], [], [2]])
    assert (lists.phrases.tolist(), lists.starts.tolist(), lists.lengths.tolist()) == (
        [1, 3, 2],
        [0, 2, 2, 3],
        [2, 0, 1],
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  Red\u00a0 SARI\n", "red sari"),
        ("Cafe\u0301", "café"),
        ("Straße", "strasse"),
        ("\u1e9e", "ss"),
        ("ǰ", "ǰ"),
        ("", ""),
        (" \t ", ""),
    ],
)
def test_equal_phrases_have_one_form(text: str, form: str) -> None:
    assert normalise_phrase(text) == unicodedata.normalize("NFC", form)


@given(st.text(max_size=30))
def test_a_normal_form_is_normal(text: str) -> None:
    form = normalise_phrase(text)
    assert normalise_phrase(form) == form
    assert normalise_phrase(f"  {unicodedata.normalize('NFD', text)}\n") == form
    assert unicodedata.is_normalized("NFC", form)


RNG = np.random.default_rng(5)
IMAGES = [{"objects": RNG.random((6, 4)), "attire": RNG.random((3, 2))} for _ in range(8)]


def test_it_is_a_quantile_of_best_matches() -> None:
    best = [max(column) for image in IMAGES for array in image.values() for column in array.T]
    for quantile in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert calibrate_tau(IMAGES, quantile=quantile) == pytest.approx(float(np.quantile(best, quantile)), abs=1e-15)
    assert calibrate_tau(IMAGES) == calibrate_tau(IMAGES, quantile=0.75) == calibrate_tau(best)
    assert calibrate_tau(np.array(best)) == calibrate_tau(IMAGES)


def test_the_published_operating_points() -> None:
    assert list(PUBLISHED_TAUS.items()) == [(0.25, 0.29), (0.5, 0.39), (0.75, 0.52)]
    assert DEFAULT_TAU == 0.52
