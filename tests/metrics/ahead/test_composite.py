"""EXAG, FAITH, DDIV and SDIV, and the numbers of CULTIVate's tables that follow from its other numbers."""

import math
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.metrics import hinge_loss

from culturekit.core.errors import UsageError
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


def test_without_candidates_exaggeration_is_missing() -> None:
    for reduce in ("mean", "max"):
        assert np.isnan(exaggeration(np.empty((3, 0)), [], reduce=reduce)).tolist() == [True] * 3
    assert exaggeration(np.empty((0, 2)), [0.1, 0.2]).shape == (0,)


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


@pytest.mark.parametrize("score", [descriptor_diversity, semantic_diversity])
def test_what_breaks_a_rule_is_named_of_variety(score: Any) -> None:
    with pytest.raises(UsageError, match="images must be a sequence of mappings"):
        score({"objects": np.eye(2)}, {"objects": 2}, tau=0.5)
    with pytest.raises(UsageError, match="images must be a sequence of mappings"):
        score([np.eye(2), np.eye(2)], {"objects": 2}, tau=0.5)
    with pytest.raises(UsageError, match="tau must be a number"):
        score([{}, {}], {"objects": 2}, tau=2)
    with pytest.raises(UsageError, match=r"similarities\['objects'\] must be of shape"):
        score([{"objects": np.eye(3)}, {}], {"objects": 2}, tau=0.5)


# Tables 6, 8 and 10: correlations with people by model (Flux1, Qwen, SD3.5), and their mean
BY_MODEL = {
    "InternVL, hallucination": ((0.142, 0.225, 0.107), 0.158),
    "Qwen, hallucination": ((0.283, 0.217, 0.340), 0.280),
    "HAL": ((0.231, 0.442, 0.184), 0.286),
    "people, hallucination": ((0.207, 0.197, 0.404), 0.269),
    "VQAScore": ((0.165, 0.168, 0.140), 0.158),
    "PickScore": ((-0.091, 0.006, 0.113), 0.009),
    "ImageReward": ((0.021, -0.219, -0.041), -0.080),
    "CLIPScore": ((0.020, -0.224, 0.080), -0.041),
    "CuRe": ((0.056, 0.028, 0.039), 0.041),
    "InternVL, alignment": ((0.248, -0.042, 0.117), 0.108),
    "QwenVL, alignment": ((0.062, -0.024, 0.088), 0.042),
    "ALIGN": ((0.397, 0.208, 0.286), 0.297),
    "people, alignment": ((0.510, 0.019, 0.622), 0.384),
    "EXAG from references": ((-0.276, -0.256, -0.220), -0.251),
    "EXAG from stereotypes": ((0.349, 0.184, 0.230), 0.183),
    "EXAG from extracted": ((-0.221, -0.092, 0.063), -0.083),
    "people, exaggeration": ((0.231, 0.097, 0.482), 0.270),
}

SLIPS = {"EXAG from stereotypes": 0.254}  # What is printed otherwise than it follows

# Table 9: descriptors that people find relevant, in seven countries, in per cent
ACCURACY = (89.80, 90.54, 85.21, 91.62, 91.44, 91.61, 91.68)

# Table 1: ALIGN, HAL, EXAG, DDIV and SDIV of the models with ten images of each prompt
GN_AND_GS = {
    "SD-3.5-medium": ((0.30, 0.57, 0.05, 0.68, 0.33), (0.25, 0.63, 0.08, 0.62, 0.32)),
    "FLUX.1-dev": ((0.31, 0.59, 0.03, 0.66, 0.30), (0.23, 0.66, 0.06, 0.60, 0.31)),
    "Qwen-Image": ((0.36, 0.53, 0.06, 0.68, 0.27), (0.30, 0.59, 0.10, 0.63, 0.28)),
}


@pytest.mark.parametrize("metric", list(BY_MODEL))
def test_the_last_column_is_the_mean_of_the_models(metric: str) -> None:
    three, printed = BY_MODEL[metric]
    assert fmean(three) == pytest.approx(SLIPS.get(metric, printed), abs=0.0006)
    assert (metric in SLIPS) == (abs(fmean(three) - printed) > 0.0006)


def test_descriptors_are_relevant_as_often_as_is_said() -> None:
    assert round(fmean(ACCURACY), 2) == 90.27


def test_the_north_is_ahead_in_all_but_what_several_images_add() -> None:
    """The paper says that SDIV is lower in the South as well; of two of three models it is higher."""
    better = {
        model: [a > b if metric in {0, 3, 4} else a < b for metric, (a, b) in enumerate(zip(*sides, strict=True))]
        for model, sides in GN_AND_GS.items()
    }
    assert [row[:4] for row in better.values()] == [[True] * 4] * 3
    assert [row[4] for row in better.values()] == [True, False, False]


def test_the_grid_is_sixteen_countries_by_thirty_six() -> None:
    """Six each of five categories, and what is fixed in four others: `per_category` of the recipe."""
    assert 16 * 36 == 576
