"""Shares with their intervals."""

from typing import Literal, TypeAlias

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.statistics.clustering import check_confidence
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["ProportionMethod", "proportion_interval"]

ProportionMethod: TypeAlias = Literal["wilson", "clopper-pearson"]


def proportion_interval(
    successes: int, trials: int, *, confidence: float = CONFIDENCE, method: ProportionMethod = "wilson"
) -> Interval:
    """Give a share of independent trials and its interval.

    Wilson's interval covers its level on average; that of Clopper and Pearson never covers less, and is wider. Both
    take trials as independent: several answers about one image are not, so average them first and use `bootstrap`.

    Args:
        successes: how many trials succeeded.
        trials: how many there were, at least one.
        confidence: how often such intervals are to hold the true share.
        method: `wilson` or `clopper-pearson`.

    Raises:
        UsageError: an argument breaks its rule.
    """
    from scipy.stats import binomtest

    check_confidence(confidence)
    check_choice("method", method, ("wilson", "clopper-pearson"))
    if trials != int(trials) or trials < 1:
        raise argument_error("trials", "a whole number of at least 1", trials)
    if successes != int(successes) or not 0 <= successes <= trials:
        raise argument_error("successes", f"a whole number from 0 to {trials}", successes)
    result = binomtest(int(successes), int(trials))
    found = result.proportion_ci(confidence, method="wilson" if method == "wilson" else "exact")
    return Interval(successes / trials, float(found.low), float(found.high), int(trials), "population")
