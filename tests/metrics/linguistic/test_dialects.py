"""The gap between two dialects, and the paper's first table."""

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_rel

from culturekit.core.errors import UsageError
from culturekit.metrics import dialect_gap

TABLE_1 = {
    "minDALL-E": (0.2749, 0.2457, 0.0292, 82.25, 39.76, 42.49),
    "Stable Diffusion": (0.2689, 0.2575, 0.0114, 81.34, 54.92, 26.42),
    "Midjourney": (0.2870, 0.2493, 0.0377, 88.13, 36.87, 51.26),
}
"""CLIPScore of SAE, of AAE and their difference; the share of correct images in per cent, the same three."""

RNG = np.random.default_rng


@pytest.mark.parametrize("model", TABLE_1)
def test_the_differences_of_the_papers_table(model: str) -> None:
    clip, human = TABLE_1[model][:3], TABLE_1[model][3:]
    for (standard, other, printed), digits in ((clip, 4), (human, 2)):
        found = dialect_gap(
            {"SAE": [standard, standard], "AAE": [other, other]}, {"SAE": ["a", "b"], "AAE": ["a", "b"]}, rng=RNG(0)
        )
        assert round(found.difference, digits) == printed


def test_the_order_of_the_papers_models() -> None:
    clip = {model: row[2] for model, row in TABLE_1.items()}
    human = {model: row[5] for model, row in TABLE_1.items()}
    assert sorted(clip, key=clip.__getitem__) == sorted(human, key=human.__getitem__)


def test_it_is_the_paired_t_interval_and_sign_flip_test() -> None:
    rng = RNG(3)
    sae, aae = rng.normal(0.27, 0.03, 12), rng.normal(0.25, 0.03, 12)
    names = [f"pair {number:02}" for number in range(12)]
    found = dialect_gap({"SAE": sae, "AAE": aae}, {"SAE": names, "AAE": names}, rng=RNG(0))
    reference = ttest_rel(sae, aae).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((reference.low, reference.high))
    exact = permutation_test((sae - aae,), np.mean, permutation_type="samples", n_resamples=9999)
    assert found.p == pytest.approx(exact.pvalue)


def test_images_of_a_prompt_are_averaged_and_lonely_prompts_left_out() -> None:
    found = dialect_gap(
        {"SAE": [1, 0, 1, 1], "AAE": [0, 1, 0, 0]},
        {"SAE": ["a", "a", "b", "c"], "AAE": ["a", "b", "b", "d"]},
        rng=RNG(0),
    )
    assert found.difference == pytest.approx(((0.5 - 0) + (1 - 0.5)) / 2)
    assert (found.n, found.left_out) == (2, 2)


def test_turning_the_dialects_round_turns_the_sign() -> None:
    sides = {"SAE": [0.3, 0.2, 0.4], "AAE": [0.1, 0.2, 0.2]}
    pairs = {side: ["a", "b", "c"] for side in sides}
    there = dialect_gap(sides, pairs, rng=RNG(0))
    back = dialect_gap(sides, pairs, standard="AAE", other="SAE", rng=RNG(0))
    assert back.difference == -there.difference
    assert back.p == there.p
    same = dialect_gap({"SAE": sides["SAE"], "AAE": sides["SAE"]}, pairs, rng=RNG(0))
    assert same.difference == 0


def test_other_dialects_and_missing_ones() -> None:
    found = dialect_gap(
        {"SE": [0.3, 0.2], "Singlish": [0.2, 0.2]}, {"SE": ["a", "b"], "Singlish": ["a", "b"]},
        standard="SE", other="Singlish", rng=RNG(0),
    )  # fmt: skip
    assert found.difference == pytest.approx(0.05)
    with pytest.raises(UsageError, match="scores must be given for 'SAE' and 'AAE'"):
        dialect_gap({"SAE": [1]}, {"SAE": ["a"]}, rng=RNG(0))
