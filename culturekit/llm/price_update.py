"""Renew what is known of prices, and check which models a provider still lists."""

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import msgspec
import yaml
from pydantic import ValidationError

from culturekit.core.addresses import NotPublic, is_this_machine, resolve
from culturekit.core.atomic import write_atomically
from culturekit.core.errors import MissingDependency, UpstreamUnavailable, UsageError
from culturekit.core.yaml_source import parse_yaml, validate
from culturekit.llm.client import Identity
from culturekit.llm.endpoints import SERVICES
from culturekit.llm.prices import (
    SNAPSHOT,
    ModelPrice,
    Price,
    PriceList,
    ProviderPrices,
    configured_prices,
    end_of,
    image_sizes,
    known_prices,
    price_list,
    prices_in,
    read_prices,
    today,
)
from culturekit.llm.redaction import Secret
from culturekit.llm.timed_socket import PinnedConnection, TooLarge, read_to_end

logger = logging.getLogger(__name__)

LARGEST = 50_000_000  # bytes of a source; LiteLLM's list is under two million
_SECONDS = 60.0
_MOVED, _MOST_MOVES = frozenset({301, 302, 303, 307, 308}), 5
_PATIENCE = 5.0  # seconds for a list that is only looked at before a run begins

_Provider: TypeAlias = Literal["openai", "google"]

# What LiteLLM calls providers; lists of Vertex fill gaps only, as it shuts models on days of its own.
_PROVIDERS: Mapping[str, _Provider] = {"openai": "openai", "gemini": "google"}
_VERTEX = "vertex_ai-language-models"
_PRICED = ("chat", "responses", "completion", "image_generation")  # modes of LiteLLM that this package asks for


@dataclass(slots=True)
class _Renewal:
    """What an update found: models by name, with what changed in words."""

    path: Path
    left_out: int
    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    alike: int = 0

    def lines(self) -> Iterator[str]:
        yield from (f"new      {name}" for name in self.new)
        yield from (f"changed  {name}" for name in self.changed)
        left_out = f", {self.left_out:,} entries are left out: no price per token, or nobody asks them here"
        yield (
            f"{len(self.new):,} new, {len(self.changed):,} changed, {self.alike:,} as known"
            f"{left_out if self.left_out else ''}"
        )
        yield f"written to {self.path}" if self.new or self.changed else "nothing to write"


def update_prices(source: str) -> _Renewal:
    """Write what a source knows better into the user's file; lines of that file that the source lacks stay.

    Raises:
        UsageError: the source is not there, or is no list of prices.
        UpstreamUnavailable: its address did not answer.
    """
    found, left_out = _read_source(source)
    path = configured_prices()
    renewal = _Renewal(path, left_out)
    ours = read_prices(path).providers if path.is_file() else {}
    merged = dict(ours)
    known = {(price.provider, price.model): price for price in known_prices()}
    for provider, prices in found.providers.items():
        lines = {}
        for model, line in prices.models.items():
            before = known.get((provider, model))
            changes = _differences(before, line)
            if before is not None and not changes:
                renewal.alike += 1
                continue
            lines[model] = _dated(line, prices)
            (renewal.new if before is None else renewal.changed).append(f"{model}: {changes}" if changes else model)
        listed = [one[provider].images for one in (ours, price_list().providers) if provider in one]
        sizes = {model: next((one[model] for one in listed if one.get(model)), None) for model in prices.images}
        images = {model: stated for model, stated in prices.images.items() if stated != sizes[model]}
        renewal.changed += [f"{model}: tokens of its images" for model in images if model not in lines]
        if lines or images:  # over those of the user's file
            mine = ours.get(provider) or ProviderPrices(source=prices.source, date=prices.date, batch=prices.batch)
            models = {model: _dated(line, mine) for model, line in mine.models.items()} | lines
            parts = {"source": prices.source, "date": prices.date, "models": models}
            merged[provider] = mine.model_copy(update={**parts, "images": {**mine.images, **images}})
    if renewal.new or renewal.changed:
        _write(path, merged)
    return renewal


def get(url: str, headers: Mapping[str, str] | None = None, *, seconds: float = _SECONDS) -> bytes:
    """Read an address; with headers, which may hold a key, nobody is followed elsewhere.

    Each connection goes to the address that was checked, not to what the name means a moment later: a public one, or
    this machine's where the URL, or a reply of this machine, names it.
    """
    until, here, asked = time.monotonic() + seconds, True, url
    try:
        for _ in range(_MOST_MOVES):
            parts = urlsplit(asked)
            host, secure = parts.hostname or "", parts.scheme == "https"
            if not secure and parts.scheme != "http":
                raise ValueError(f"no address with http:// or https://: {asked}")
            port = parts.port or (443 if secure else 80)
            address = resolve(host, port, here=here), port
            with closing(PinnedConnection(host, address, secure=secure, until=until, timeout=seconds)) as connection:
                target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
                connection.request("GET", target, headers={"User-Agent": "culturekit", **(headers or {})})
                reply = connection.getresponse()
                location = reply.headers.get("Location")
                if location and reply.status in _MOVED and not headers:
                    here, asked = here and is_this_machine(host), urljoin(asked, location)
                    continue
                if reply.status != 200:
                    raise UpstreamUnavailable("the server says no", where=asked, found=f"HTTP {reply.status}")
                return read_to_end(reply, LARGEST)
    except NotPublic as error:
        raise UsageError("not an address of the public internet", where=asked, found=str(error)) from None
    except TooLarge:
        raise UpstreamUnavailable(
            "more came than can be meant", where=asked, expected=f"at most {LARGEST:,} bytes"
        ) from None
    except (OSError, ValueError, HTTPException) as error:
        raise UpstreamUnavailable("nothing came", where=asked, found=str(error), hint="Try again later.") from None
    raise UpstreamUnavailable("sent on too often", where=url, expected=f"at most {_MOST_MOVES} addresses in a row")


def _read_source(source: str) -> tuple[PriceList, int]:
    """Read a source in whichever form it is; count the entries that are no prices for us."""
    if source.startswith(("http://", "https://")):
        content = get(source)
    elif Path(source).is_file():
        content = Path(source).read_bytes()
    else:
        raise UsageError(
            "there is no such list of prices", expected="a file, or an address with http:// or https://", found=source
        )
    try:
        listed = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        listed = None
    if isinstance(listed, dict) and any(isinstance(one, dict) and "litellm_provider" in one for one in listed.values()):
        return _from_litellm(listed, source)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UsageError("a list of prices is text", where=source, expected="YAML or JSON in UTF-8") from None
    found = validate(parse_yaml(text, name=source), PriceList)
    if not any(prices.models or prices.images for prices in found.providers.values()):
        raise UsageError(
            "there are no prices in it", where=source,
            expected="`openai:` or `google:` with `models:`, as in `culturekit llm prices`, or the list of LiteLLM",
        )  # fmt: skip
    return found, 0


def _from_litellm(listed: Mapping[str, Any], source: str) -> tuple[PriceList, int]:
    """Take what LiteLLM knows of the models of OpenAI and Google.

    Its dollars an image become tokens only where no tokens are known: those are a provider's own numbers.
    """
    models: dict[_Provider, dict[str, ModelPrice]] = {"openai": {}, "google": {}}
    images: dict[_Provider, dict[str, dict[str, dict[str, int]]]] = {"openai": {}, "google": {}}
    known = {(price.provider, price.model): price for price in known_prices()}
    left_out, sized = 0, []
    for name, entry in sorted(listed.items(), key=lambda item: _is_vertex(item[1])):
        if not isinstance(entry, dict) or name == "sample_spec":
            continue
        provider = "google" if _is_vertex(entry) else _PROVIDERS.get(str(entry.get("litellm_provider")))
        *before, model = name.removeprefix("openai/").removeprefix("gemini/").removeprefix("vertex_ai/").split("/")
        if provider is None or (_is_vertex(entry) and (model in models["google"] or not model.startswith("gemini"))):
            continue
        if before:
            sized.append((provider, before, model, entry))
        elif (line := _line_of(entry, known.get((provider, model)))) is None:
            left_out += 1
        else:
            models[provider][model] = line
            if (each := _amount(entry, "output_cost_per_image")) and provider == "google" and line.output:
                images[provider][model] = {"standard": {"1K": _tokens(each, line)}}  # one price is stated for all
    for provider, before, model, entry in sized:
        each = _amount(entry, "output_cost_per_image") or _amount(entry, "input_cost_per_image")
        line, size = models[provider].get(model), before[-1].replace("-x-", "x")
        if len(before) == 2 and each and line is not None and line.output:
            images[provider].setdefault(model, {}).setdefault(before[0], {})[size] = _tokens(each, line)
    for service, pictures in images.items():
        for model, stated in pictures.items():
            kept = image_sizes(model, provider=service)
            stated |= {quality: {**stated.get(quality, {}), **sizes} for quality, sizes in kept.items()}
    if not any(models.values()):
        raise UsageError(
            "there are no prices of OpenAI or Google in it", where=source, expected="the list of LiteLLM, whole"
        )
    day = today().isoformat()
    return PriceList(
        **{
            provider: ProviderPrices(source=source, date=day, models=models[provider], images=images[provider])
            for provider in models
            if models[provider]
        }
    ), left_out


def _is_vertex(entry: object) -> bool:
    return isinstance(entry, dict) and entry.get("litellm_provider") == _VERTEX


def _amount(entry: Mapping[str, Any], name: str) -> float | None:
    value = entry.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _tokens(usd: float, line: ModelPrice) -> int:
    return max(1, math.ceil(round(usd * 1e6 / line.output, 6)))


def _line_of(entry: Mapping[str, Any], known: Price | None) -> ModelPrice | None:
    """Make a line of an entry; the end of a model that is known and not told there is kept."""
    sent, came = _amount(entry, "input_cost_per_token"), _amount(entry, "output_cost_per_token")
    picture = _amount(entry, "output_cost_per_image_token")
    came = max((one for one in (came, picture) if one is not None), default=None)
    if not sent or not came or entry.get("mode") not in _PRICED:  # 0 stands there for what nobody looked up
        return None
    cached, source = _amount(entry, "cache_read_input_token_cost"), entry.get("source")
    stated = entry.get("deprecation_date") if not _is_vertex(entry) else None
    end: dict[str, Any] = {"shuts": stated or None}
    if known is not None and stated in (None, "", known.shuts):
        end = {"shuts": known.shuts, "earliest": known.earliest, "instead": known.instead}
    try:
        return ModelPrice(
            input=round(sent * 1e6, 6),
            output=round(came * 1e6, 6),
            cached=None if cached is None else round(cached * 1e6, 6),
            source=source if isinstance(source, str) and source else None,
            **end,
        )
    except ValidationError:
        return None


def _differences(before: Price | None, line: ModelPrice) -> str:
    """Describe in words what a line says otherwise than before."""
    if before is None:
        return f"{line.input:g} in, {line.output:g} out{f', shuts {line.shuts}' if line.shuts else ''}"
    names = ("input", "output", "cached", "shuts", "earliest", "instead")
    pairs = ((name, getattr(before, name), getattr(line, name)) for name in names)
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in pairs if old != new)


def _dated(line: ModelPrice, prices: ProviderPrices) -> ModelPrice:
    return line.model_copy(update={"date": line.date or prices.date, "source": line.source or prices.source})


def _write(path: Path, providers: Mapping[str, ProviderPrices]) -> None:
    """Write the user's file whole or not at all, once it is known to be read again."""
    data = {name: prices.model_dump(exclude_defaults=True) for name, prices in providers.items()}
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    text = f"# Prices that win over culturekit's, line by line; culturekit llm prices update writes them.\n{text}"
    prices_in(validate(parse_yaml(text, name=str(path)), PriceList))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())


_PAGES = 50  # pages of a list that are read at most


@dataclass(frozen=True, slots=True)
class _Standing:
    """How a model stands: by the provider's list, and by the list of prices where that names its end."""

    provider: str
    model: str
    state: Literal["alive", "not listed", "shuts", "shut"]
    shuts: str = ""
    instead: str = ""
    news: bool = False

    def __str__(self) -> str:
        when = f" on {self.shuts}" if self.shuts and self.state in {"shuts", "shut"} else ""
        instead = f"; {self.instead} takes its place" if self.instead and self.state != "alive" else ""
        news = "; the list of prices does not say so" if self.news else ""
        return f"{self.state}{when}{instead}{news}"


_looked_up: set[tuple[str, str]] = set()  # providers and models whose list was asked for: once in a process


def check_listed(identity: Identity, *, go_on: bool = False) -> None:
    """Ask the provider whether it still lists a model, before money is spent on it.

    That holds for the provider's address: its own, or the one that the variable names. A list that is not there in
    time says nothing: the model will answer, or say why not.
    """
    provider = identity.provider.removesuffix("-images")
    name = identity.model.removeprefix("models/")
    service = SERVICES.get(provider)
    if service is None or service.base_url("") != identity.base_url or (provider, name) in _looked_up:
        return
    _looked_up.add((provider, name))
    try:
        every = standings(cast(_Provider, provider), [name], seconds=_PATIENCE)
    except (MissingDependency, UpstreamUnavailable) as error:
        logger.debug("no list of models: %s", error)
        return
    found = next(one for one in every if one.model == name)
    if found.state == "shut" and not go_on:
        raise UsageError(
            f"{provider} has shut {name}", expected=f"a model that answers, such as {found.instead or 'another'}",
            found=str(found), where=identity.base_url, hint="Name another model; --go-on asks this one all the same.",
        )  # fmt: skip
    if found.state == "not listed" or found.news:
        logger.warning("%s: %s, says %s", name, found, provider)


def standings(
    provider: Literal["openai", "google"], models: Iterable[str] = (), *, seconds: float = _SECONDS
) -> list[_Standing]:
    """Ask a provider for its list, and hold the models of the price list and some others against it.

    Raises:
        MissingDependency: there is no key for it.
        UpstreamUnavailable: it gave no list.
    """
    service = SERVICES[provider]
    base_url = service.base_url("")
    secret = service.key("", base_url)
    if secret is None:
        raise MissingDependency(f"there is no key for {base_url}", hint=f"Set {' or '.join(service.keys)}.")
    listed = dict(_listed(provider, base_url, secret, seconds))
    known = {price.model: price for price in known_prices() if price.provider == provider}
    named = sorted({*known, *(model.removeprefix("models/") for model in models)})
    day = today()
    return [
        _standing(provider, model, listed, known.get(model) or known.get(SNAPSHOT.sub("", model)), day)
        for model in named
    ]


def _standing(provider: str, model: str, listed: Mapping[str, str], price: Price | None, day: date) -> _Standing:
    """Return how one model stands; the provider's word counts, a snapshot of the model for the model."""
    ours, instead = ("", "") if price is None else (price.shuts or "", price.instead or "")
    if model not in listed and not any(SNAPSHOT.sub("", one) == model for one in listed):
        gone = price is not None and end_of(price, day) == "shut"
        return _Standing(provider, model, "shut" if gone else "not listed", ours, instead)
    theirs = listed.get(model, "")
    shuts = theirs or ours
    if not shuts or (not theirs and price is not None and price.earliest):
        return _Standing(provider, model, "alive")
    state: Literal["shuts", "shut"] = "shuts" if date.fromisoformat(shuts) > day else "shut"
    return _Standing(provider, model, state, shuts, instead, news=theirs not in ("", ours))


def _listed(provider: str, base_url: str, secret: Secret, seconds: float) -> Iterator[tuple[str, str]]:
    """Read the models that a provider lists, each with the day on which it is shut, where that is told."""
    google = provider == "google"
    key = secret.reveal()
    headers = {"x-goog-api-key": key} if google else {"Authorization": f"Bearer {key}"}
    entries, name, day = ("models", "name", "shutdownDate") if google else ("data", "id", "shutdown_date")
    first = url = f"{base_url}/v1beta/models?pageSize=1000" if google else f"{base_url}/models"
    for _ in range(_PAGES):
        try:
            body = msgspec.json.decode(get(url, headers, seconds=seconds))
        except msgspec.DecodeError:
            body = None
        listed = body.get(entries) if isinstance(body, dict) else None
        if body is None or not isinstance(listed, list) or not listed:
            raise UpstreamUnavailable("this is no list of models", where=url, expected=f"JSON with `{entries}`")
        for entry in listed:
            if isinstance(entry, dict):
                yield str(entry.get(name, "")).removeprefix("models/"), _day(entry.get(day))
        token = str(body.get("nextPageToken") or "")
        if not google or not token:
            return
        url = f"{first}&pageToken={quote(token)}"


def _day(stated: object) -> str:
    """Read a day; nothing where none is told, or what is told is none."""
    try:
        return date.fromisoformat(str(stated)[:10]).isoformat()
    except ValueError:
        return ""
