"""Prices, budgets, and sums that are exact."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.llm.client import Identity, Rate, Usage
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.prices import (
    PriceList,
    cost_of,
    known_prices,
    parse_price,
    picodollars_of,
    price_of,
    rate_of,
    worst_cost,
)
from culturekit.llm.purse import check_asking
from culturekit.llm.usage import Budget, dollars
from tests.llm.fake_client import FakeClient


def identity(provider: str, model: str) -> Identity:
    return Identity(provider, "https://example.org", "chat", model)


def test_a_snapshot_costs_what_its_model_costs_unless_it_has_a_line() -> None:
    small, large = price_of("gpt-4o-mini-2024-07-18"), price_of("gpt-4o-2024-05-13")
    assert small is not None and (small.input, small.output, small.cached) == (0.15, 0.60, 0.075)
    assert large is not None and large.input == 5.0
    assert rate_of(identity("google", "models/gemini-2.0-flash-001")) == rate_of(identity("google", "gemini-2.0-flash"))


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-mini-tuned", "ft:gpt-4o-mini-2024-07-18:us::1", "gpt-4o-mini-2024", "", "my-model", "gemini-2.0-flash"],
)
def test_a_price_nobody_knows_is_not_guessed(model: str) -> None:
    assert rate_of(identity("openai", model)) is None


def test_every_line_is_dated_and_has_its_source() -> None:
    assert len({(price.provider, price.model) for price in known_prices()}) == len(known_prices()) > 20
    for price in known_prices():
        assert price.source.startswith("https://")
        assert price.cached is None or price.cached < price.input <= price.output


def listed(*, tokens: int = 100, batch: float = 0.5, dollars: float = 1.0) -> PriceList:
    """Read a list of prices as the shipped one is read."""
    own = {"input": dollars, "output": dollars, "cached": None}
    images = {"m": {"low": {"1K": tokens}}}
    prices = {"source": "-", "date": "2026-01-01", "batch": batch, "models": {"m": own}, "images": images}
    return PriceList.model_validate({"openai": prices, "google": prices})


def test_a_list_of_prices_is_held_to_what_can_be_true() -> None:
    assert listed(tokens=1, batch=1.0, dollars=0.0).providers["openai"].batch == 1.0
    assert listed(tokens=999_999, dollars=99_999.99).providers["google"].images["m"]["low"]["1K"] == 999_999


@pytest.mark.parametrize("tokens", [0, 1_000_000])
def test_a_list_of_prices_with_other_numbers_of_tokens_is_refused(tokens: int) -> None:
    with pytest.raises(ValidationError):
        listed(tokens=tokens)


@pytest.mark.parametrize(("batch", "dollars"), [(0.0, 1.0), (1.01, 1.0), (0.5, -0.01), (0.5, 100_000.0)])
def test_a_list_of_other_prices_is_refused(batch: float, dollars: float) -> None:
    with pytest.raises(ValidationError):
        listed(batch=batch, dollars=dollars)


@pytest.mark.parametrize("text", ["0.15/0.60", " 1/2 ", "0/0", ".5/10."])
def test_a_stated_price_is_read(text: str) -> None:
    left, right = text.split("/")
    rate = parse_price(text)
    assert (rate.input, rate.output) == (float(left), float(right))


@pytest.mark.parametrize(
    "text", ["", "0.15", "a/b", "1/2/3", "-1/2", "nan/1", "1e3/2", "inf/inf", "100000/1", f"1/{'9' * 400}"]
)
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a price cannot be read"):
        parse_price(text)


def test_a_client_that_could_not_be_asked_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MissingDependency, match="OPENAI_API_KEY"):
        check_asking(CLIENTS.make("openai:gpt-4o-mini"))
    with pytest.raises(UsageError, match="the price of fake-1 is not known"):
        check_asking(FakeClient(rate=None))
    check_asking(FakeClient())
    check_asking(CLIENTS.make("rules"))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(0, 10**6)), max_size=30))
def test_costs_are_exact_and_add_up(counts: list[tuple[int, int, int]]) -> None:
    rate = Rate(0.15, 0.6, cached=0.075)
    usages = [Usage(fresh + cached, out, cached_tokens=cached) for fresh, out, cached in counts]
    exact = sum(
        (
            Fraction(15, 100) * fresh + Fraction(6, 10) * out + Fraction(75, 1000) * cached
            for fresh, out, cached in counts
        ),
        Fraction(0),
    )
    assert sum(picodollars_of(usage, rate) for usage in usages) == exact * 10**6


@pytest.mark.parametrize("cached", [101, 10**9, 10**30, -1, -(10**9)])
def test_no_more_is_cached_than_was_sent_and_no_cost_is_negative(cached: int) -> None:
    rate = Rate(0.15, 0.6, cached=0.075)
    least, most = picodollars_of(Usage(100, 10, cached_tokens=100), rate), picodollars_of(Usage(100, 10), rate)
    assert least <= picodollars_of(Usage(100, 10, cached_tokens=cached), rate) <= most
    assert picodollars_of(Usage(-100, -10, cached_tokens=cached), rate) == 0
    assert cost_of(Usage(-100, -10), rate, mode="batch") == 0.0


def test_a_batch_costs_its_share_and_discounts_are_not_multiplied() -> None:
    rate, usage = Rate(2.0, 8.0, batch=0.5, cached=0.5), Usage(1_000_000, 500_000, cached_tokens=400_000)
    assert cost_of(usage, rate) == 0.6 * 2 + 0.4 * 0.5 + 4
    assert cost_of(usage, rate, mode="batch") == 3.0
    assert worst_cost(rate, input_tokens=10**6, output_tokens=10**6) == 10.0


@given(
    st.floats(0, 10, allow_nan=False),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=60),
    st.integers(1, 20),
)
def test_a_budget_is_never_overshot(limit: float, requests: list[tuple[float, float]], at_once: int) -> None:
    budget, under_way = Budget(limit), list[tuple[float, float]]()
    for worst, share in requests:
        if budget.reserve(worst):
            under_way.append((worst, worst * share))
        if len(under_way) >= at_once:
            budget.settle(*under_way.pop(0))
        assert dollars(budget.used + budget.aside) <= limit + 1e-12
    for reserved, actual in under_way:
        budget.settle(reserved, actual)
    assert budget.aside == 0
    assert budget.spent <= limit + 1e-12


def test_a_budget_counts_what_was_spent_before_and_to_the_last_fraction() -> None:
    budget = Budget(1.0)
    budget.settle(0.0, 0.7)
    assert budget.reserve(0.1) and budget.reserve(0.1) and budget.reserve(0.1)
    assert not budget.reserve(1e-12)
    budget.settle(0.1, 0.04)
    assert budget.limit is not None and dollars(budget.limit - budget.used - budget.aside) == 0.06
    assert Budget(None).reserve(1e9)
    assert not Budget(0.0).reserve(1e-9)
    for none in (float("nan"), float("inf"), -0.01):
        with pytest.raises(UsageError, match="amount of US dollars"):
            Budget(none)
