"""DDIV and SDIV: against a loop over pairs, against scipy's entropy, and by what must hold of them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from culturekit.core.errors import UsageError
from culturekit.metrics import align, descriptor_diversity, semantic_diversity
from tests.metrics.ahead.descriptor_oracle import ddiv_by_pairs, random_image, sdiv_by_pairs

N_REF = {"attire": 3, "background": 4, "interaction": 2, "objects": 5, "spatial": 1}

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tau", [0.39, 0.52, 0.95])
def test_they_are_what_a_loop_over_pairs_gives(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, N_REF) for _ in range(int(rng.integers(2, 6)))]
    assert descriptor_diversity(images, N_REF, tau=tau) == pytest.approx(ddiv_by_pairs(images, N_REF, tau), abs=1e-12)
    assert semantic_diversity(images, N_REF, tau=tau) == pytest.approx(sdiv_by_pairs(images, N_REF, tau), abs=1e-12)


@pytest.mark.parametrize("counts", [[3, 1, 0, 2], [1, 0, 0, 0], [2, 2, 2, 2]])
def test_descriptor_diversity_is_scipys_entropy_over_its_largest(counts: list[int]) -> None:
    images = [{"objects": np.array([[1.0 if image < c else 0.0 for c in counts]])} for image in range(3)]
    found = descriptor_diversity(images, {"objects": 4}, tau=0.5)
    assert found == pytest.approx(float(entropy(counts)) / math.log(4), abs=1e-12)


def test_even_coverage_has_all_diversity_and_one_reference_has_none() -> None:
    even = [{"objects": np.eye(4)} for _ in range(3)]
    assert descriptor_diversity(even, {"objects": 4}, tau=0.5) == pytest.approx(1.0, abs=1e-15)
    assert semantic_diversity(even, {"objects": 4}, tau=0.5) == 0.0
    assert descriptor_diversity([{"objects": [[1.0]]}] * 2, {"objects": 1}, tau=0.5) == 0.0
    assert descriptor_diversity([{"objects": [[0.1, 0.1]]}] * 2, {"objects": 2}, tau=0.5) == 0.0
    assert descriptor_diversity([{}, {}], {"objects": 2}, tau=0.5) == 0.0


def test_images_that_cover_different_references_gain_by_being_together() -> None:
    images = [{"objects": row[None, :]} for row in np.eye(4)]
    assert semantic_diversity(images, {"objects": 4}, tau=0.5) == pytest.approx(1 - 1 / 4)
    alike = [{"objects": np.eye(4)[:1]}] * 4
    assert semantic_diversity(alike, {"objects": 4}, tau=0.5) == 0.0


@pytest.mark.parametrize("score", [descriptor_diversity, semantic_diversity])
def test_where_there_is_nothing_to_compare_the_score_is_missing(score: Any) -> None:
    assert math.isnan(score([], N_REF, tau=0.5))
    assert math.isnan(score([{"objects": np.eye(5)}], N_REF, tau=0.5))
    assert math.isnan(score([{}, {}], {}, tau=0.5))
    assert math.isnan(score([{}, {}], {"people": 2}, tau=0.5))


@pytest.mark.parametrize("score", [descriptor_diversity, semantic_diversity])
def test_a_dimension_that_the_extractor_lacks_is_left_out(score: Any) -> None:
    images = [{"objects": np.eye(2)[:1]}, {"objects": np.eye(2)}]
    alone = score(images, {"objects": 2}, tau=0.5)
    assert score(images, {"objects": 2, "people": 3}, tau=0.5) == alone
    assert score([{**image, "attire": None} for image in images], {"objects": 2, "attire": 3}, tau=0.5) == alone
    assert score(images, {"objects": 2, "attire": 3}, tau=0.5, extractor_dimensions=("objects",)) == alone
    assert score(images, {"objects": 2, "attire": 3}, tau=0.5) == pytest.approx(alone / 2)
    one_saw = [images[0], {**images[1], "people": np.eye(2)}]
    two = score([{**images[0], "people": []}, one_saw[1]], {"objects": 2, "people": 2}, tau=0.5)
    assert score(one_saw, {"objects": 2, "people": 2}, tau=0.5) == two


@given(seed=seeds, tau=st.floats(-1, 1))
def test_the_order_of_images_and_dimensions_changes_nothing(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, N_REF) for _ in range(4)]
    n_ref = {str(name): N_REF[name] for name in rng.permutation(sorted(N_REF))}
    mixed = [images[i] for i in rng.permutation(4)]
    for score in (descriptor_diversity, semantic_diversity):
        assert score(mixed, n_ref, tau=tau) == score(images, N_REF, tau=tau)
        assert 0 <= score(images, N_REF, tau=tau) <= 1


@given(seed=seeds)
def test_together_images_never_cover_less_than_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, N_REF) for _ in range(3)]
    alone = np.mean([align(image, N_REF, tau=0.52) for image in images])
    assert -1e-12 <= semantic_diversity(images, N_REF, tau=0.52) <= 1 - alone + 1e-12


@given(seed=seeds)
def test_the_same_images_twice_are_as_diverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, N_REF) for _ in range(3)]
    for score in (descriptor_diversity, semantic_diversity):
        assert score(images * 2, N_REF, tau=0.52) == pytest.approx(score(images, N_REF, tau=0.52), abs=1e-12)


@pytest.mark.parametrize("score", [descriptor_diversity, semantic_diversity])
def test_what_breaks_a_rule_is_named(score: Any) -> None:
    with pytest.raises(UsageError, match="images must be a sequence of mappings"):
        score({"objects": np.eye(2)}, {"objects": 2}, tau=0.5)
    with pytest.raises(UsageError, match="images must be a sequence of mappings"):
        score([np.eye(2), np.eye(2)], {"objects": 2}, tau=0.5)
    with pytest.raises(UsageError, match="tau must be a number"):
        score([{}, {}], {"objects": 2}, tau=2)
    with pytest.raises(UsageError, match=r"similarities\['objects'\] must be of shape"):
        score([{"objects": np.eye(3)}, {}], {"objects": 2}, tau=0.5)
