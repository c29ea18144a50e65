"""What tokens cost: a dated list of prices by model, a price that a SPEC states, and the arithmetic of both."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from culturekit.errors import UsageError
from culturekit.llm.client import Identity, Rate, Usage
from culturekit.llm.journal_file import Mode
from culturekit.llm.usage import dollars
from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, load_model

PICODOLLARS = 10**6
"""Millionths of a millionth of a dollar for one token, at one dollar per million tokens."""

SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{3})$")
DATE = r"^\d{4}-\d{2}-\d{2}$"
STATED = re.compile(r"(\d+(?:\.\d*)?|\.\d+)/(\d+(?:\.\d*)?|\.\d+)")

DEAREST = 100_000
Dollars = Annotated[float, Field(ge=0, lt=DEAREST)]
Tokens = Annotated[int, Field(ge=1, lt=1_000_000)]


class ModelPrice(StrictModel):
    """A line of the list: US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None
    date: Annotated[str, Field(pattern=DATE)] | None = None


class ProviderPrices(StrictModel):
    """The prices of one provider, and where they were read.

    `images` says how many output tokens an image takes: by model, by quality, by size.
    """

    source: str
    date: Annotated[str, Field(pattern=DATE)]
    batch: Annotated[float, Field(gt=0, le=1)]
    models: Mapping[str, ModelPrice]
    images: Mapping[str, Mapping[str, Mapping[str, Tokens]]]


class PriceList(StrictModel):
    """The file as a whole."""

    openai: ProviderPrices
    google: ProviderPrices


class Price(StrictModel):
    """What is known of the price of one model."""

    provider: str
    model: str
    input: float
    output: float
    cached: float | None
    batch: float
    date: str
    source: str


@cache
def price_list() -> PriceList:
    """Read the file."""
    return load_model(shipped("llm/prices.yaml"), PriceList)


def image_sizes(model: str, *, provider: Literal["openai", "google"]) -> Mapping[str, Mapping[str, int]]:
    """Give the output tokens of an image by quality and size; nothing for a model of which they are not known."""
    listed = (price_list().openai if provider == "openai" else price_list().google).images
    return listed.get(model) or listed.get(SNAPSHOT.sub("", model)) or {}


@cache
def known_prices() -> tuple[Price, ...]:
    """List all prices, in the order of the file."""
    prices = price_list()
    return tuple(
        Price(
            provider=provider,
            model=model,
            input=line.input,
            output=line.output,
            cached=line.cached,
            batch=listed.batch,
            date=line.date or listed.date,
            source=listed.source,
        )
        for provider, listed in (("openai", prices.openai), ("google", prices.google))
        for model, line in listed.models.items()
    )


def price_of(model: str, *, provider: str = "") -> Price | None:
    """Find the price of a model by its id, as sent; a snapshot without a line of its own costs what its model costs."""
    name = model.removeprefix("models/")
    by_name = {price.model: price for price in known_prices() if provider in {"", price.provider}}
    return by_name.get(name) or by_name.get(SNAPSHOT.sub("", name))


def rate_of(identity: Identity) -> Rate | None:
    """Give what the tokens of a model cost; None where nobody knows, which is a reason not to begin."""
    price = price_of(identity.model, provider=identity.provider)
    if price is None:
        return None
    source = f"{price.source}, {price.date}"
    return Rate(price.input, price.output, batch=price.batch, source=source, cached=price.cached)


def parse_price(text: str) -> Rate:
    """Read what a SPEC states: US dollars per million tokens in and out, as in `0.15/0.60`."""
    match = STATED.fullmatch(text.strip())
    if match is None or max(float(match[1]), float(match[2])) >= DEAREST:
        raise UsageError(
            "a price cannot be read",
            expected=f"US dollars per million tokens in and out, each below {DEAREST:,}, such as price=0.15/0.60",
            found=repr(text),
        )
    return Rate(float(match[1]), float(match[2]), source="stated in the SPEC")


def picodollars_of(usage: Usage, rate: Rate, *, mode: Mode = "online") -> int:
    """Reckon what a reply cost, in whole millionths of a millionth of a dollar: sums of these are exact.

    A batch costs its share of the full price, of cached tokens too: the two discounts are not multiplied. No more
    tokens can have been cached than were sent.
    """
    sent, came = max(usage.input_tokens, 0), max(usage.output_tokens, 0)
    known = min(max(usage.cached_tokens, 0), sent)
    full, out = per_token(rate.input), per_token(rate.output)
    if mode == "batch":
        return round((sent * full + came * out) * rate.batch)
    cached = full if rate.cached is None else per_token(rate.cached)
    return (sent - known) * full + known * cached + came * out


def cost_of(usage: Usage, rate: Rate, *, mode: Mode = "online") -> float:
    """Reckon what a reply cost, in US dollars."""
    return dollars(picodollars_of(usage, rate, mode=mode))


def worst_cost(rate: Rate, *, input_tokens: int, output_tokens: int, mode: Mode = "online") -> float:
    """Reckon what a request can cost at most, in US dollars."""
    return cost_of(Usage(input_tokens, output_tokens), rate, mode=mode)


def per_token(price: float) -> int:
    """Turn a price per million tokens into whole picodollars per token."""
    return round(price * PICODOLLARS)
