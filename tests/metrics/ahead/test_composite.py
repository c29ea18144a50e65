"""EXAG, FAITH, DDIV and SDIV, and the numbers of CULTIVate's tables that follow from its other numbers."""

import math
from typing import Any

import numpy as np
import pytest

from culturekit.metrics import descriptor_diversity, exaggeration, faithfulness, semantic_diversity
from tests.metrics.ahead.descriptor_oracle import ddiv_by_pairs, random_image, sdiv_by_pairs

# CULTIVate, Table 1: ALIGN, HAL, EXAG, FAITH
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


def test_faith_of_table_1_follows_from_its_other_columns_in_all_twelve_rows() -> None:
    for row in TABLE_1.values():
        align, hal, exag = map(float, row.split()[:3])
        assert f"{faithfulness(align, hal, exag):.2f}" == row.split()[3]
    assert len(TABLE_1) == 12


def test_faith_of_arrays_is_that_of_their_elements() -> None:
    rng = np.random.default_rng(0)
    align, hal, exag = rng.random((3, 4, 5))
    found = np.asarray(faithfulness(align, hal, exag))
    assert found.shape == (4, 5)
    assert math.isnan(faithfulness(math.nan, 0.0, 0.0))
    for place in np.ndindex(4, 5):
        assert found[place] == faithfulness(float(align[place]), float(hal[place]), float(exag[place]))


def test_exaggeration_pair_by_pair() -> None:
    rng = np.random.default_rng(3)
    scores, real = rng.random((7, 4)), rng.random(4)
    by_pairs = [[max(0.0, f - usual) for f, usual in zip(row, real, strict=True)] for row in scores]
    np.testing.assert_allclose(exaggeration(scores, real), [sum(row) / 4 for row in by_pairs], atol=1e-15)
    np.testing.assert_allclose(exaggeration(scores, real, reduce="max"), [max(row) for row in by_pairs], atol=1e-15)


def test_without_candidates_exaggeration_is_missing() -> None:
    for reduce in ("mean", "max"):
        assert np.isnan(exaggeration(np.empty((3, 0)), [], reduce=reduce)).tolist() == [True] * 3
    assert exaggeration(np.empty((0, 2)), [0.1, 0.2]).shape == (0,)


N_REF = {"attire": 3, "background": 4, "interaction": 2, "objects": 5, "spatial": 1}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tau", [0.39, 0.52, 0.95])
def test_they_are_what_a_loop_over_pairs_gives(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, N_REF) for _ in range(int(rng.integers(2, 6)))]
    assert descriptor_diversity(images, N_REF, tau=tau) == pytest.approx(ddiv_by_pairs(images, N_REF, tau), abs=1e-12)
    assert semantic_diversity(images, N_REF, tau=tau) == pytest.approx(sdiv_by_pairs(images, N_REF, tau), abs=1e-12)


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
