"""Intervals of shares, against statsmodels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats import proportion

from culturekit.core.errors import UsageError
from culturekit.metrics import proportion_interval


@given(st.integers(1, 400), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_agree_with_statsmodels(trials: int, share: float, confidence: float) -> None:
    successes = round(share * trials)
    for method, name in (("wilson", "wilson"), ("clopper-pearson", "beta")):
        answer = proportion_interval(successes, trials, confidence=confidence, method=method)  # type: ignore[arg-type]
        expected = proportion.proportion_confint(successes, trials, alpha=1 - confidence, method=name)
        assert (answer.low, answer.high) == pytest.approx(expected, abs=1e-9)
        assert answer.value == successes / trials
        assert answer.n == trials


@given(st.integers(1, 100), st.integers(0, 100))
def test_counting_failures_mirrors_the_interval(trials: int, number: int) -> None:
    successes = min(number, trials)
    one, other = proportion_interval(successes, trials), proportion_interval(trials - successes, trials)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))
    exact = proportion_interval(successes, trials, method="clopper-pearson")
    assert exact.high - exact.low >= one.high - one.low - 0.02


@pytest.mark.parametrize(
    ("successes", "trials", "message"),
    [
        (1, 0, "trials must be a whole number of at least 1; found 0"),
        (3, 2, "successes must be a whole number from 0 to 2; found 3"),
        (-1, 2, "successes must be a whole number from 0 to 2; found -1"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(successes: int, trials: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        proportion_interval(successes, trials)
    assert message in str(caught.value)


def test_unknown_options_are_named() -> None:
    with pytest.raises(UsageError, match="method must be 'wilson' or 'clopper-pearson'; found 'wald'"):
        proportion_interval(1, 2, method="wald")  # type: ignore[arg-type]
