"""Which models a provider lists today, held against the list of prices: alive, to be shut, or gone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from culturekit.errors import MissingDependency, UpstreamUnavailable
from culturekit.llm.endpoints import SERVICES
from culturekit.llm.price_update import get
from culturekit.llm.prices import SNAPSHOT, Price, end_of, known_prices, today
from culturekit.llm.untrusted.redaction import Secret

PAGES = 50  # pages of a list that are read at most


@dataclass(frozen=True, slots=True)
class Standing:
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


def standings(provider: Literal["openai", "google"], models: Iterable[str] = ()) -> list[Standing]:
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
    listed = dict(_openai(base_url, secret) if provider == "openai" else _google(base_url, secret))
    known = {price.model: price for price in known_prices() if price.provider == provider}
    named = sorted({*known, *(model.removeprefix("models/") for model in models)})
    day = today()
    return [
        _standing(provider, model, listed, known.get(model) or known.get(SNAPSHOT.sub("", model)), day)
        for model in named
    ]


def _standing(provider: str, model: str, listed: Mapping[str, str], price: Price | None, day: date) -> Standing:
    """Say how one model stands; the provider's word counts, a snapshot of the model for the model."""
    ours = "" if price is None else price.shuts or ""
    instead = "" if price is None else price.instead or ""
    if model not in listed and not any(SNAPSHOT.sub("", one) == model for one in listed):
        gone = price is not None and end_of(price, day) == "shut"
        return Standing(provider, model, "shut" if gone else "not listed", ours, instead)
    theirs = listed.get(model, "")
    shuts = theirs or ours
    if not shuts or (not theirs and price is not None and price.earliest):
        return Standing(provider, model, "alive")
    return Standing(
        provider,
        model,
        "shuts" if date.fromisoformat(shuts) > day else "shut",
        shuts,
        instead,
        news=theirs not in ("", ours),
    )


def _openai(base_url: str, secret: Secret) -> Iterator[tuple[str, str]]:
    """Read the models of OpenAI, each with the day that it is shut on where one is told."""
    url = f"{base_url}/models"
    for entry in _entries(get(url, {"Authorization": f"Bearer {secret.reveal()}"}), "data", url):
        yield str(entry.get("id", "")), _day(entry.get("shutdown_date"))


def _google(base_url: str, secret: Secret) -> Iterator[tuple[str, str]]:
    """Read the models of Google, page after page."""
    token = ""
    for _ in range(PAGES):
        url = f"{base_url}/v1beta/models?pageSize=1000{f'&pageToken={quote(token)}' if token else ''}"
        content = get(url, {"x-goog-api-key": secret.reveal()})
        for entry in _entries(content, "models", url):
            yield str(entry.get("name", "")).removeprefix("models/"), _day(entry.get("shutdownDate"))
        token = str(msgspec.json.decode(content).get("nextPageToken") or "")
        if not token:
            return


def _entries(content: bytes, key: str, url: str) -> list[dict[str, Any]]:
    """Read the entries of a list."""
    try:
        body = msgspec.json.decode(content)
    except msgspec.DecodeError:
        body = None
    entries = body.get(key) if isinstance(body, dict) else None
    if not isinstance(entries, list) or not entries:
        raise UpstreamUnavailable("this is no list of models", where=url, expected=f"JSON with `{key}`")
    return [entry for entry in entries if isinstance(entry, dict)]


def _day(told: object) -> str:
    """Read a day; nothing where none is told, or what is told is none."""
    try:
        return date.fromisoformat(str(told)[:10]).isoformat()
    except ValueError:
        return ""
