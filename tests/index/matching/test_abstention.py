import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from culturekit.index.matching.calibration import Abstention, abstention_from, design_effect, error_bounds, tail

TRIALS = 300


def drawn(
    numbers: np.random.Generator, artifacts: int, each: int, *, together: bool, hardness: float
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int64]]:
    """References whose chance of being matched wrongly falls with their margin."""
    margins = numbers.random(artifacts * each).astype(np.float32)
    owners = np.repeat(np.arange(artifacts), each)
    lots = numbers.random(artifacts)[owners] if together else numbers.random(len(margins))
    return margins, lots < chance(margins, hardness), owners


def chance(margins: NDArray[np.float32], hardness: float) -> NDArray[np.float64]:
    return hardness * (1 - margins.astype(np.float64)) ** 2


def true_error(threshold: float, hardness: float) -> float:
    """The error of what is accepted, of all that could ever be drawn."""
    accepted = np.linspace(min(threshold, 1), 1, 10_001, dtype=np.float32)
    return float(chance(accepted, hardness).mean())


def broken(*, artifacts: int, each: int, together: bool, hardness: float) -> tuple[float, float]:
    """How often the promise of at most 5 % is broken, and how often any image is kept at all."""
    numbers = np.random.default_rng(0)
    failures = kept = 0
    for _ in range(TRIALS):
        margins, wrong, owners = drawn(numbers, artifacts, each, together=together, hardness=hardness)
        found = abstention_from(margins, wrong, owners, max_error=0.05)
        if found.chosen is not None:
            kept += 1
            failures += true_error(found.threshold, hardness) > 0.05
    return failures / TRIALS, kept / TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("hardness", [0.16, 0.2, 0.4])
def test_the_promise_holds_as_often_as_is_said(hardness: float) -> None:
    failures, kept = broken(artifacts=1500, each=1, together=False, hardness=hardness)
    assert failures <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / TRIALS)
    assert kept > 0.9


def test_the_promise_holds_where_the_references_of_an_artifact_err_together() -> None:
    failures, _ = broken(artifacts=600, each=4, together=True, hardness=0.2)
    assert failures <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / TRIALS)


def certain(wrong: list[int], count: int, *, max_error: float = 0.05) -> Abstention:
    margins = np.linspace(1, 0.01, count, dtype=np.float32)
    mask = np.isin(np.arange(count), wrong)
    return abstention_from(margins, mask, np.arange(count), max_error=max_error)


def test_nothing_abstains_where_nothing_errs_and_errors_at_small_margins_are_abstained_from() -> None:
    found = certain([], 400)
    assert found.threshold == 0
    assert found.chosen is not None
    assert (found.chosen.accepted, found.chosen.wrong) == (400, 0)
    found = certain(list(range(900, 1000)), 1000)
    assert found.chosen is not None
    assert 850 <= found.chosen.accepted <= 950
    assert found.chosen.wrong / found.chosen.accepted <= 0.05
    assert found.chosen.upper <= 0.06


def test_too_few_references_prove_nothing() -> None:
    assert certain([], 50).chosen is None
    assert certain([], 50).threshold == np.inf
    assert abstention_from(
        np.empty(0, np.float32), np.empty(0, np.bool_), np.empty(0, np.int64), max_error=0.5
    ).chosen is None  # fmt: skip


def test_equal_margins_are_accepted_together() -> None:
    margins = np.array([0.5] * 300 + [0.0] * 300, np.float32)
    wrong = np.arange(600) >= 450
    found = abstention_from(margins, wrong, np.arange(600), max_error=0.05)
    assert [point.accepted for point in found.curve] == [300, 600]
    assert found.threshold == 0.5


@pytest.mark.parametrize(("errors", "accepted", "rate"), [(0, 59, 0.05), (3, 200, 0.05), (10, 40, 0.3), (7, 7, 0.5)])
def test_the_tail_is_the_binomial_one(errors: int, accepted: int, rate: float) -> None:
    assert tail(errors, accepted, rate) == pytest.approx(
        1.0 if errors == accepted else binom.cdf(errors, accepted, rate)
    )


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    lower, upper = error_bounds(3, 200)
    assert binom.sf(2, 200, lower) == pytest.approx(0.025)
    assert binom.cdf(3, 200, upper) == pytest.approx(0.025)
    assert error_bounds(0, 10)[0] == 0
    assert error_bounds(10, 10)[1] == 1


def test_references_that_err_together_count_once() -> None:
    owners = np.repeat(np.arange(200), 4)
    assert design_effect(np.repeat(np.arange(200) % 10 == 0, 4), owners) == pytest.approx(4, rel=0.02)
    apart = np.random.default_rng(1).random(800) < 0.1
    assert design_effect(apart, owners) < 1.4
    assert design_effect(np.zeros(800, np.bool_), owners) == 1
