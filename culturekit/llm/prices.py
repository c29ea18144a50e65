"""What tokens cost: a dated list of prices by model, a price that a SPEC states, and the arithmetic of both.

A file that the user chose and one in the configuration folder win over the shipped list, line by line. A line may say
when its model is shut: until then there is a warning, and from that day on nothing is sent.
"""

import logging
import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.yaml_source import StrictModel, load_model
from culturekit.llm.client import Identity, Rate, Usage
from culturekit.llm.endpoints import is_elsewhere
from culturekit.llm.journal import Mode
from culturekit.llm.models import Day, published_models
from culturekit.llm.usage import dollars

logger = logging.getLogger(__name__)

_PICODOLLARS = 10**6  # millionths of a millionth of a dollar for one token, at one dollar per million tokens
SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{3})$")
_STATED = re.compile(r"(\d+(?:\.\d*)?|\.\d+)/(\d+(?:\.\d*)?|\.\d+)")

# Variables: a file of prices, as `--prices` names one; and the day, as YYYY-MM-DD, that models are held against.
_CHOSEN, _TODAY = "CULTUREKIT_PRICES", "CULTUREKIT_TODAY"
_NOTICE = 60  # days before a model is shut from which on there is a warning
_DEAREST = 100_000
_Dollars = Annotated[float, Field(ge=0, lt=_DEAREST)]
_Tokens = Annotated[int, Field(ge=1, lt=1_000_000)]


class ModelPrice(StrictModel):
    """A line of the list: US dollars per million tokens.

    `date` and `source` say when and where it was read, where not as the rest of its provider. `shuts` is the day on
    which the model is shut, or, where `earliest`, before which it is not; `instead` is what takes its place.
    """

    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    date: Day | None = None
    source: str | None = None
    shuts: Day | None = None
    earliest: bool = False
    instead: str | None = None


class ProviderPrices(StrictModel):
    """The prices of one provider, and where they were read.

    `images` says how many output tokens an image takes: by model, by quality, by size.
    """

    source: str
    date: Day
    batch: Annotated[float, Field(gt=0, le=1)] = 0.5
    models: Mapping[str, ModelPrice] = {}
    images: Mapping[str, Mapping[str, Mapping[str, _Tokens]]] = {}


class PriceList(StrictModel):
    """The file as a whole; one of the user's may leave a provider out."""

    openai: ProviderPrices | None = None
    google: ProviderPrices | None = None

    @property
    def providers(self) -> dict[str, ProviderPrices]:
        """Return the providers that have prices, by name."""
        both = {"openai": self.openai, "google": self.google}
        return {name: prices for name, prices in both.items() if prices is not None}


class Price(ModelPrice):
    """What is known of the price of one model, and of its end."""

    provider: str
    model: str
    batch: float
    date: str
    source: str


def configured_prices() -> Path:
    """Say where the user's own prices lie, whether there are any or not."""
    folder = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(folder) if folder else Path.home() / ".config") / "culturekit" / "prices.yaml"


def _price_files() -> tuple[Path, ...]:
    """List the files of prices, the one that wins first."""
    files = [shipped("llm/prices.yaml")]
    if (configured := configured_prices()).is_file():
        files.insert(0, configured)
    if chosen := os.environ.get(_CHOSEN, "").strip():
        if not Path(chosen).is_file():
            raise UsageError(
                "there is no such file of prices", expected=f"a YAML file, named with --prices or {_CHOSEN}",
                found=chosen, hint="culturekit llm prices update SOURCE writes one.",
            )  # fmt: skip
        files.insert(0, Path(chosen))
    return tuple(files)


File: TypeAlias = tuple[Path, int, int]  # a file as it is now: its place, when it changed, its size


def _as_it_is(path: Path) -> File:
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size


@cache
def _read(file: File) -> PriceList:
    return load_model(file[0], PriceList)


@cache
def _known(files: tuple[File, ...]) -> dict[tuple[str, str], Price]:
    found: dict[tuple[str, str], Price] = {}
    for file in files:
        for price in prices_in(_read(file)):
            found.setdefault((price.provider, price.model), price)
    return found


def read_prices(path: Path) -> PriceList:
    """Read a file of prices, once as long as it stays as it is."""
    return _read(_as_it_is(path))


def price_list() -> PriceList:
    """Read the shipped list, without the user's files."""
    return read_prices(shipped("llm/prices.yaml"))


def image_sizes(model: str, *, provider: Literal["openai", "google"]) -> Mapping[str, Mapping[str, int]]:
    """Return the output tokens of an image by quality and size; nothing for a model of which they are not known."""
    for path in _price_files():
        prices = read_prices(path).providers.get(provider)
        listed = {} if prices is None else prices.images
        if sizes := listed.get(model) or listed.get(SNAPSHOT.sub("", model)):
            return sizes
    return {}


def most_tokens(provider: Literal["openai", "google"]) -> int:
    """Return the output tokens of the dearest image that is known of a provider."""
    every = [read_prices(path).providers.get(provider) for path in _price_files()]
    return max(
        tokens
        for prices in every
        if prices is not None
        for qualities in prices.images.values()
        for sizes in qualities.values()
        for tokens in sizes.values()
    )


def known_prices() -> tuple[Price, ...]:
    """List all prices, in the order of the files, a model once."""
    return tuple(_known(tuple(map(_as_it_is, _price_files()))).values())


def prices_in(listed: PriceList) -> tuple[Price, ...]:
    """List the prices of one file, each with what holds for all of its provider."""
    return tuple(
        Price(
            provider=provider,
            model=model,
            batch=prices.batch,
            **{**line.model_dump(), "date": line.date or prices.date, "source": line.source or prices.source},
        )
        for provider, prices in listed.providers.items()
        for model, line in prices.models.items()
    )


def price_of(model: str, *, provider: str = "") -> Price | None:
    """Find the price of a model by its id, as sent; a snapshot without a line of its own costs what its model costs."""
    name, known = model.removeprefix("models/"), _known(tuple(map(_as_it_is, _price_files())))
    providers = (provider,) if provider else ("openai", "google")
    places = ((one, word) for word in (name, SNAPSHOT.sub("", name)) for one in providers)
    return next((known[key] for key in places if key in known), None)


def today() -> date:
    """Return what day it is: that of the variable where it is set, else that of the clock, in UTC."""
    stated = os.environ.get(_TODAY, "").strip()
    if not stated:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(stated)
    except ValueError:
        raise UsageError(f"{_TODAY} is no day", expected="YYYY-MM-DD", found=repr(stated)) from None


def end_of(price: Price, day: date) -> Literal["alive", "shuts soon", "perhaps shut", "shut"]:
    """Return how a model stands on a day."""
    if price.shuts is None or (left := (date.fromisoformat(price.shuts) - day).days) > _NOTICE:
        return "alive"
    return "shuts soon" if left > 0 else "perhaps shut" if price.earliest else "shut"


def shut_among(paper: str) -> str:
    """Say which models of a paper their providers shut, when, and what takes their place, by the shipped list."""
    named = dict.fromkeys(spec.partition("?")[0] for specs in published_models(paper).values() for spec in specs)
    ends = {f"{each.provider}:{each.model}": each for each in prices_in(price_list()) if each.shuts}
    return "; ".join(
        f"{end.model} is shut on {end.shuts}: take {end.provider}:{end.instead}" for end in map(ends.get, named) if end
    )


_warned: set[tuple[str, str]] = set()  # models, with the day they are shut on, of which was warned: once in a process


def check_alive(identity: Identity, *, go_on: bool = False) -> None:
    """Reject a model that its provider has shut, and warn of one that will be soon.

    That holds for the provider's own address: what a server elsewhere calls by the same name is its own affair.
    """
    price = price_of(identity.model, provider=identity.provider.removesuffix("-images"))
    if price is None or price.shuts is None or is_elsewhere(identity):
        return
    state = end_of(price, today())
    instead = f"; {price.instead} takes its place" if price.instead else ""
    if state == "shut" and not go_on:
        raise UsageError(
            f"{identity.model} was shut on {price.shuts}",
            expected=f"a model that answers{f', such as {price.instead}' if price.instead else ''}",
            found=identity.model,
            where=identity.base_url,
            hint="Name another model; --go-on asks this one all the same, and `culturekit llm prices update` renews "
            "what is known.",
        )
    if state != "alive" and (identity.model, price.shuts) not in _warned:
        _warned.add((identity.model, price.shuts))
        when = {
            "shuts soon": f"is shut on {price.shuts}{' at the earliest' if price.earliest else ''}",
            "perhaps shut": f"may be shut: {price.shuts} was the earliest day",
            "shut": f"was shut on {price.shuts}",
        }[state]
        logger.warning("%s %s%s", identity.model, when, instead)


def rate_of(identity: Identity) -> Rate | None:
    """Return what the tokens of a model cost; None where nobody knows, which is a reason not to begin."""
    price = price_of(identity.model, provider=identity.provider)
    if price is None:
        return None
    return Rate(price.input, price.output, price.batch, f"{price.source}, {price.date}", price.cached)


def parse_price(text: str) -> Rate:
    """Read what a SPEC states: US dollars per million tokens in and out, as in `0.15/0.60`."""
    match = _STATED.fullmatch(text.strip())
    if match is None or max(float(match[1]), float(match[2])) >= _DEAREST:
        raise UsageError(
            "a price cannot be read",
            expected=f"US dollars per million tokens in and out, each below {_DEAREST:,}, such as price=0.15/0.60",
            found=repr(text),
        )
    return Rate(float(match[1]), float(match[2]), source="stated in the SPEC")


def picodollars_of(usage: Usage, rate: Rate, *, mode: Mode = "online") -> int:
    """Compute what a reply cost, in whole millionths of a millionth of a dollar: sums of these are exact.

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
    """Compute what a reply cost, in US dollars."""
    return dollars(picodollars_of(usage, rate, mode=mode))


def worst_cost(rate: Rate, *, input_tokens: int, output_tokens: int, mode: Mode = "online") -> float:
    """Compute what a request can cost at most, in US dollars."""
    return cost_of(Usage(input_tokens, output_tokens), rate, mode=mode)


def per_token(price: float) -> int:
    """Turn a price per million tokens into whole picodollars per token."""
    return round(price * _PICODOLLARS)
