from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.generation.backend import ImageRequest
from culturekit.generation.simulated.simulated_backend import CHOICE_NUMBERS, BiasedChoice, Options, Pool, Row
from tests.generation.simulated.simulated_models import asked, space

EVEN = Options(temperature=0)

DISHES = space(
    ("Q1", "cuisine", "FR", 8.0), ("Q2", "cuisine", "FR", 4.0), ("Q3", "cuisine", "JP", 2.0),
    ("Q4", "cuisine", "JP", None), ("Q5", "cuisine", "TR", 1.0), ("Q1", "cuisine", "TR", 8.0),
    ("Q8", "landmarks", "FR", None), ("Q9", "landmarks", "US", None),
)  # fmt: skip
DRAWS = 6000


def drawn(bias: Options, request: ImageRequest, cspace: pl.DataFrame = DISHES) -> Counter[tuple[str, str]]:
    choice = BiasedChoice(cspace, bias)
    numbers = np.random.default_rng(3).random((DRAWS, CHOICE_NUMBERS))
    rows = [choice.choose(request, row) for row in numbers]
    return Counter((row.artifact_id, row.country) for row in rows if row)


def departure(found: Mapping[tuple[str, str], int], weights: Mapping[tuple[str, str], float]) -> float:
    """Chi-square less its mean, in its standard deviations; infinite where something impossible was drawn."""
    if set(found) - set(weights):
        return float("inf")
    total, freedom = sum(weights.values()), len(weights) - 1
    expected = {row: DRAWS * weight / total for row, weight in weights.items()}
    square = sum((found.get(row, 0) - count) ** 2 / count for row, count in expected.items())
    return float((square - freedom) / np.sqrt(2 * freedom))


POPULARITY = {
    ("Q1", "FR"): 8.0, ("Q2", "FR"): 4.0, ("Q3", "JP"): 2.0, ("Q4", "JP"): 1.0, ("Q5", "TR"): 1.0, ("Q1", "TR"): 8.0,
}  # fmt: skip


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_the_distribution_is_popularity_to_the_temperature(temperature: float) -> None:
    found = drawn(replace(EVEN, temperature=temperature), asked(0))
    assert departure(found, {row: weight**temperature for row, weight in POPULARITY.items()}) < 4
    assert departure(found, {row: weight ** (temperature + 0.2) for row, weight in POPULARITY.items()}) > 8


NAMED = asked(0, artifact_id="Q1")
FAVOURED = {row: 0.4 / 6 + 0.6 / 2 * (row[1] == "JP") for row in POPULARITY}
MISTAKEN = {("Q1", "FR"): 0.7} | {row: 0.3 / 4 for row in POPULARITY if row[0] != "Q1"}


@pytest.mark.parametrize(("bias", "request_", "weights"), [
    ({"temperature": 3}, asked(0, concept="landmarks"), {("Q8", "FR"): 1, ("Q9", "US"): 1}),
    ({"temperature": 1}, asked(0, country="TR"), {("Q5", "TR"): 1, ("Q1", "TR"): 8}),
    ({"favour": "JP", "favour_strength": 0.6}, asked(0), FAVOURED),
    ({"favour": "JP", "favour_strength": 1}, asked(0, country="TR"), {("Q5", "TR"): 1, ("Q1", "TR"): 1}),
    ({"error": 0.3}, NAMED, MISTAKEN),
], ids=["no popularity", "a country", "a favourite", "a country that is asked for goes first", "an error"])  # fmt: skip
def test_rows_are_drawn_by_request_and_bias(
    bias: Mapping[str, Any], request_: ImageRequest, weights: Mapping[tuple[str, str], float]
) -> None:
    assert departure(drawn(replace(EVEN, **bias), request_), weights) < 4


def test_collapse_returns_to_the_same_few_rows() -> None:
    bias = replace(EVEN, collapse=0.7, modes=2)
    certain = drawn(replace(bias, collapse=1), asked(0))
    assert len(certain) == 2
    share = sum(drawn(bias, asked(0))[row] for row in certain) / DRAWS
    assert share == pytest.approx(0.7 + 0.3 * 2 / 6, abs=0.02)


def test_collapse_and_favour_strike_independently() -> None:
    bias = replace(EVEN, collapse=0.5, favour="JP", favour_strength=0.5)
    modes = set(drawn(replace(EVEN, collapse=1), asked(0)))
    shares = {row: 0.5 * (row in modes) / 2 + 0.25 / 6 + 0.25 * (row[1] == "JP") / 2 for row in POPULARITY}
    assert departure(drawn(bias, asked(0)), shares) < 4


def test_modes_depend_on_no_order_and_no_popularity_and_more_add_to_the_fewer() -> None:
    bias = replace(EVEN, collapse=1)
    changed = DISHES.reverse().with_columns(popularity=pl.lit(5.0))
    assert set(drawn(bias, asked(0))) == set(drawn(bias, asked(0), changed))
    one, three = (set(drawn(replace(EVEN, collapse=1, modes=modes), asked(0))) for modes in (1, 3))
    assert len(one) == 1
    assert len(three) == 3
    assert one < three


def test_a_named_artifact_is_drawn_in_the_country_of_the_request_and_alone_is_not_mistaken() -> None:
    assert set(drawn(EVEN, asked(0, artifact_id="Q1", country="TR"))) == {("Q1", "TR")}
    assert set(drawn(EVEN, asked(0, artifact_id="Q1", country="US"))) == {("Q1", "FR")}
    assert set(drawn(EVEN, asked(0, artifact_id="Q1", concept=None))) == {("Q1", "FR")}
    found = drawn(replace(EVEN, error=1), asked(0, artifact_id="Q1"), space(("Q1", "cuisine", "FR", 1.0)))
    assert set(found) == {("Q1", "FR")}


@example(popularity=[0.0, 1.0], temperature=1.0, number=0.0)
@example(popularity=[1.0, 0.0], temperature=1.0, number=1 - 2**-53)
@given(
    popularity=st.lists(st.one_of(st.none(), st.floats(0, 1e300)), min_size=1, max_size=8),
    temperature=st.floats(0, 100),
    number=st.floats(0, 1, exclude_max=True),
)
def test_any_popularity_can_be_drawn_from(popularity: list[float | None], temperature: float, number: float) -> None:
    rows = [Row(f"Q{place}", "cuisine", "FR", known, place) for place, known in enumerate(popularity)]
    row = Pool(rows, temperature).draw(number)
    if row.popularity == 0 and temperature > 0:
        assert all(other.popularity in (0, None) for other in rows)


@pytest.mark.parametrize("popularity", [-1.0, float("nan"), float("inf")])
def test_a_popularity_that_cannot_weigh_is_said(popularity: float) -> None:
    with pytest.raises(UsageError, match="popularity of Q2"):
        BiasedChoice(space(("Q1", "cuisine", "FR", 1.0), ("Q2", "cuisine", "FR", popularity)), EVEN)
