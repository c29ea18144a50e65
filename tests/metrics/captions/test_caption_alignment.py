"""C³'s alignments against scikit-learn's cosines, keeping the best, and the numbers of the paper's tables."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import C3Alignment, alignment_c3, keep_best

seeds = st.integers(0, 2**32 - 1)
Vectors = NDArray[np.float64]


def drawn(seed: int) -> dict[str, Vectors]:
    rng = np.random.default_rng(seed)
    sizes = {"source": (int(rng.integers(1, 6)), 8), "target": (int(rng.integers(1, 7)), 8)}
    sizes |= {"objects": (int(rng.integers(1, 4)), 8), "image": (1, 5), "image_target": (int(rng.integers(1, 4)), 5)}
    return {role: rng.normal(size=size) * rng.uniform(0.1, 10) for role, size in sizes.items()}


@pytest.mark.parametrize("seed", range(20))
def test_the_terms_are_means_of_maxima_of_scikit_learns_cosines(seed: int) -> None:

    vectors = drawn(seed)
    found = alignment_c3(**vectors)
    text = np.mean([max(row) for row in cosine_similarity(vectors["source"], vectors["target"])])
    seen = np.mean([max(row) for row in cosine_similarity(vectors["objects"], vectors["target"])])
    image = cosine_similarity(vectors["image"], vectors["image_target"]).max()
    expected = (text, image, seen, text + image + seen)
    assert (found.text, found.image, found.object, found.total) == pytest.approx(expected, abs=1e-12)
    assert found.missing == ()


def test_sentence_vectors_make_the_baselines() -> None:
    vectors = {role: rows[:1] for role, rows in drawn(3).items()}
    flat = alignment_c3(**{role: rows[0] for role, rows in vectors.items()})
    assert flat == alignment_c3(**vectors)
    cosine = float(vectors["source"][0] @ vectors["target"][0])
    cosine /= float(np.linalg.norm(vectors["source"]) * np.linalg.norm(vectors["target"]))
    assert flat.text == pytest.approx(cosine, abs=1e-12)
    assert flat.without("object") == pytest.approx(flat.text + flat.image)


MISSING = [
    (("objects",), ("object",)),
    (("source",), ("text",)),
    (("target",), ("text", "object")),
    (("image",), ("image",)),
    (("image_target",), ("image",)),
    (("source", "objects"), ("text", "object")),
]


@pytest.mark.parametrize(("lacking", "missing"), MISSING)
@pytest.mark.parametrize("nothing", [None, [], np.empty((0, 8))])
def test_what_cannot_be_computed_is_missing_and_left_out_of_the_sum(
    lacking: tuple[str, ...], missing: tuple[str, ...], nothing: Any
) -> None:
    whole = alignment_c3(**drawn(1))
    found = alignment_c3(**{**drawn(1), **dict.fromkeys(lacking, nothing)})
    assert found.missing == missing
    assert all(math.isnan(getattr(found, term)) for term in missing)
    present = [term for term in ("text", "image", "object") if term not in missing]
    assert found.total == pytest.approx(sum(getattr(whole, term) for term in present), abs=1e-12)


def test_without_any_term_there_is_no_total() -> None:
    found = alignment_c3(source=None, target=None, objects=None, image=None, image_target=None)
    assert isinstance(found, C3Alignment)
    assert found.missing == ("text", "image", "object")
    assert math.isnan(found.total)
    assert math.isnan(found.without("object"))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"source": np.ones((2, 7))}, "target, source and objects must share one space.*source 7"),
    ({"objects": np.ones((2, 5))}, "target, source and objects must share one space.*objects 5"),
    ({"image": np.ones(8)}, "image and image_target must share one space.*image 8, image_target 5"),
    ({"target": np.zeros((1, 8))}, r"target\[0\] must be finite and not all zero"),
    ({"target": np.full((1, 8), np.nan)}, r"target\[0\] must be finite and not all zero"),
    ({"objects": np.ones((1, 2, 8))}, r"objects must be of shape \(n, dim\) or \(dim,\)"),
    ({"source": [["a"]]}, "source must be an array of numbers"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_what_breaks_a_rule_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        alignment_c3(**{**drawn(0), **changes})

    assert re.search(message, str(caught.value)), str(caught.value)


def test_what_has_no_score_is_not_kept() -> None:
    assert keep_best(["a", "b"], [math.nan, -1.0], n=2) == ["b"]


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 25), seeds)
def test_whatever_the_order_the_same_are_kept_as_by_a_stable_sort(scores: list[int], n: int, seed: int) -> None:
    """NumPy's stable sort of sorted ids, highest score first, is another way to the same list."""
    ids = [f"item {number:02}" for number in range(len(scores))]
    kept = keep_best(ids, scores, n=n)
    assert kept == [ids[i] for i in np.argsort(-np.array(scores, np.int64), kind="stable")[:n]]
    order = np.random.default_rng(seed).permutation(len(ids))
    assert keep_best([ids[i] for i in order], [scores[i] for i in order], n=n) == kept
    assert keep_best(ids, scores, n=n + 1)[:n] == kept
