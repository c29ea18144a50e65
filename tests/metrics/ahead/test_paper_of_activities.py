"""CULTIVate: the numbers of its tables that follow from its other numbers, and what it says of them.

FAITH of Table 1 is recomputed in `test_composite`.
"""

from statistics import fmean

import pytest

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
"""Tables 6, 8 and 10: correlations with people by model (Flux1, Qwen, SD3.5), and their mean."""

SLIPS = {"EXAG from stereotypes": 0.254}
"""What is printed otherwise than it follows."""

ACCURACY = (89.80, 90.54, 85.21, 91.62, 91.44, 91.61, 91.68)
"""Table 9: descriptors that people find relevant, in seven countries, in per cent."""

GN_AND_GS = {
    "SD-3.5-medium": ((0.30, 0.57, 0.05, 0.68, 0.33), (0.25, 0.63, 0.08, 0.62, 0.32)),
    "FLUX.1-dev": ((0.31, 0.59, 0.03, 0.66, 0.30), (0.23, 0.66, 0.06, 0.60, 0.31)),
    "Qwen-Image": ((0.36, 0.53, 0.06, 0.68, 0.27), (0.30, 0.59, 0.10, 0.63, 0.28)),
}
"""Table 1: ALIGN, HAL, EXAG, DDIV and SDIV of the models with ten images of each prompt."""


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
