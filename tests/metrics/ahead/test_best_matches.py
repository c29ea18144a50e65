"""Matching all images at once: against a loop over pairs, against scikit-learn's cosines, and what must hold of it."""

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import BestMatches, PhraseLists, align, best_matches, normalise_phrase, phrase_lists
from culturekit.metrics.ahead.matching import NOTHING_SAID

seeds = st.integers(0, 2**32 - 1)


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


def test_a_phrase_matches_itself_and_not_what_is_orthogonal() -> None:
    found = best_matches(
        np.eye(4) * 3,
        references=phrase_lists([[0, 1]]),
        predictions=phrase_lists([[0], [2, 3], []]),
        groups=np.zeros(3, np.int64),
    )
    assert found.of_reference.tolist() == [1, 0, 0, 0, NOTHING_SAID, NOTHING_SAID]
    assert found.of_prediction.tolist() == [1, 0, 0]
    assert found.covered(0.5).tolist() == [1, 0, 0]


@given(seed=seeds)
def test_neither_the_order_of_cells_nor_the_scale_of_vectors_matters(seed: int) -> None:
    draw = Draw(seed)
    found, order = draw.matches(), np.random.default_rng(seed).permutation(40)
    mixed = best_matches(
        draw.vectors.astype(np.float64) * 7,
        references=draw.references,
        predictions=phrase_lists([listed(draw.predictions, cell).tolist() for cell in order]),
        groups=draw.groups[order],
    )
    expected = [found.of_reference[found.reference_starts[c] : found.reference_starts[c + 1]] for c in order]
    np.testing.assert_allclose(mixed.of_reference, np.concatenate(expected), atol=1e-9)


@given(seed=seeds)
def test_an_image_has_the_same_matches_whoever_is_compared_with_it(seed: int) -> None:
    draw = Draw(seed)
    found = draw.matches()
    for cell in (0, 17, 39):
        alone = best_matches(
            draw.vectors,
            references=draw.references,
            predictions=phrase_lists([listed(draw.predictions, cell).tolist()]),
            groups=draw.groups[cell : cell + 1],
        )
        together = found.of_reference[found.reference_starts[cell] : found.reference_starts[cell + 1]]
        np.testing.assert_allclose(alone.of_reference, together, atol=2e-12)


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


ONE = phrase_lists([[0]])
BAD: list[tuple[Any, Any, Any, Any, str]] = [
    (np.zeros(3), ONE, ONE, [0], r"vectors must be of shape \(n, dim\)"),
    ([["a"]], ONE, ONE, [0], "vectors must be an array of numbers"),
    (np.zeros((1, 3)), ONE, ONE, [0], r"vectors\[0\] must be finite and not all zero"),
    (np.full((1, 3), np.nan), ONE, ONE, [0], r"vectors\[0\] must be finite and not all zero"),
    (np.eye(2), ONE, ONE, [0, 0], "groups must be one per cell, of length 1"),
    (np.eye(2), ONE, ONE, [1], "groups must be between 0 and 0"),
    (np.eye(2), ONE, phrase_lists([[2]]), [0], r"predictions.phrases must be between 0 and 1"),
    (np.eye(2), phrase_lists([[-1]]), ONE, [0], r"references.phrases must be between 0 and 1"),
    (np.eye(2), phrase_lists([[]]), ONE, [0], "references must be lists of at least one phrase"),
]


@pytest.mark.parametrize(("vectors", "references", "predictions", "groups", "message"), BAD)
def test_what_breaks_a_rule_is_named(
    vectors: Any, references: Any, predictions: Any, groups: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        best_matches(vectors, references=references, predictions=predictions, groups=np.array(groups))


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
