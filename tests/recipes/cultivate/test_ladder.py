"""The ladder of means: its intervals against scipy's, its identities, and which prompts enter."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.metrics.statistics.intervals import Interval, Target, mean_of_means, simple_mean
from culturekit.recipes.cultivate.scores import rungs


def items(places: dict[str, str | None], *, images: int = 4, seed: int = 0) -> pl.DataFrame:
    """Draw values of images of prompts, each in a country."""
    rng = np.random.default_rng(seed)
    rows = [
        (prompt, country, f"{prompt}/{n}", rng.random()) for prompt, country in places.items() for n in range(images)
    ]
    return pl.DataFrame(rows, schema=["prompt_id", "country", "item", "value"], orient="row").with_columns(
        pl.col("country").cast(pl.String)
    )


def climbed(
    values: pl.DataFrame, groups: dict[str, str] | None = None, *, target: Target = "population",
    prompt_items: bool = False,
) -> dict[tuple[str | None, str | None], Interval]:  # fmt: skip
    found = rungs(values, groups or {}, target=target, confidence=0.95, prompt_items=prompt_items)
    return {(country, group): answer for country, group, answer in found}


def prompt_means(values: pl.DataFrame, country: str) -> list[float]:
    return values.filter(country=country).group_by("prompt_id").agg(pl.col("value").mean())["value"].to_list()


def test_one_country_has_scipys_t_interval_over_prompts() -> None:
    values = items({f"p{n}": "FR" for n in range(25)})
    means = prompt_means(values, "FR")
    low, high = stats.t.interval(0.95, 24, loc=np.mean(means), scale=stats.sem(means))
    for place in ((None, None), ("FR", None)):
        answer = climbed(values)[place]
        assert [answer.low, answer.high] == pytest.approx([low, high])
        assert (answer.n, answer.target) == (100, "population")


def test_two_countries_have_welchs_interval() -> None:
    """The half width of a mean of two means is half of that of their difference, which scipy gives."""
    values = items({f"p{n}": "FR" if n < 8 else "IN" for n in range(30)})
    answer = climbed(values, {"FR": "x", "IN": "x"})[None, "x"]
    welch = stats.ttest_ind(prompt_means(values, "FR"), prompt_means(values, "IN"), equal_var=False)
    limits = welch.confidence_interval(0.95)
    assert answer.high - answer.low == pytest.approx((limits.high - limits.low) / 2)
    assert answer.value == pytest.approx(
        (np.mean(prompt_means(values, "FR")) + np.mean(prompt_means(values, "IN"))) / 2
    )


@pytest.mark.parametrize(
    ("places", "target", "images"),
    [
        ({f"p{n}": "FR" for n in range(19)}, "population", 3),
        ({f"p{n}": "FR" if n else "IN" for n in range(25)}, "population", 3),
        ({f"p{n}": "FR" for n in range(5)}, "these", 1),
    ],
)
def test_where_the_numbers_do_not_say_there_is_no_interval(
    places: dict[str, str | None], target: Target, images: int
) -> None:
    answer = climbed(items(places, images=images), target=target)[None, None]
    assert math.isnan(answer.low)
    assert not math.isnan(answer.value)


def test_equal_values_have_an_interval_of_width_zero() -> None:
    values = items({f"p{n}": "FR" if n % 2 else "IN" for n in range(24)}).with_columns(value=pl.lit(0.1))
    answer = climbed(values)[None, None]
    assert answer.low == answer.value == answer.high == 0.1


def test_combining_the_means_of_strata_is_stratified_sampling() -> None:
    """The variance of a mean of independent means is the sum of theirs over their number squared."""
    rng = np.random.default_rng(3)
    strata = [rng.normal(size=n) for n in (5, 9, 30)]
    found = mean_of_means([simple_mean(stratum) for stratum in strata])
    variances = np.array([np.var(stratum, ddof=1) / len(stratum) for stratum in strata])
    assert found.variance == pytest.approx(variances.sum() / 9)
    satterthwaite = variances.sum() ** 2 / (variances**2 / [4, 8, 29]).sum()
    assert found.freedom == pytest.approx(satterthwaite)
