"""A paid image service as the engine asks it: pictures are taken out of a reply and kept before it is journalled."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec

from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.registry import Registry
from culturekit.generation.backend import SERVICE_ENTRIES, ImageRequest
from culturekit.generation.image_options import ImageOptions
from culturekit.generation.picture_store import PictureStore, set_apart
from culturekit.llm.batches import BatchClient, BatchResult, Job
from culturekit.llm.client import Identity, Outgoing, Rate, Reply, Request, Stop, Usage
from culturekit.llm.clients.client_options import ServiceOptions
from culturekit.llm.clients.remote_client import RemoteClient
from culturekit.llm.prices import image_sizes, most_tokens, parse_price, rate_of
from culturekit.llm.rows import Answered

_PICTURES = "pictures"


@dataclass(frozen=True, slots=True)
class ImagePrice:
    """What images cost: by the tokens that the provider counts, or each the same, where an image counts as one token.

    `tokens` is what one image takes; `room` is what a call may take beside its images, such as thoughts.
    """

    rate: Rate
    tokens: int
    by_image: bool = False
    room: int = 0

    @property
    def usd(self) -> float:
        """US dollars of one image, its prompt left out."""
        return self.rate.output * self.tokens / 1e6

    def most(self, images: int) -> int:
        """Give the most output tokens that a call can take."""
        return images * self.tokens + self.room

    def counted(self, usage: Usage | None, images: int) -> Usage:
        """Count what a reply took: as the provider told, or by its images where it did not."""
        if self.by_image:
            return Usage(0, images)
        if usage is not None and usage.counted == "provider":
            return usage
        return Usage(output_tokens=images * self.tokens, counted="here")


def price_of_images(
    options: ImageOptions, model: str, *, provider: Literal["openai", "google"], quality: str, size: str, room: int = 0
) -> ImagePrice | None:
    """Find what an image costs; None where neither the SPEC nor the list of prices says.

    Where the SPEC states the price of tokens, and nobody knows how many an image takes, it is reckoned as the dearest
    that is known; what the provider counts is paid all the same.
    """
    if options.image_price is not None:
        return ImagePrice(Rate(0.0, options.image_price * 1e6, source="stated in the SPEC"), 1, by_image=True)
    rate = parse_price(options.price) if options.price else rate_of(Identity(provider, "", "", model))
    tokens = options.image_tokens or image_sizes(model, provider=provider).get(quality, {}).get(size)
    if tokens is None and rate is not None and rate.input == rate.output == 0.0:
        tokens = 1
    if tokens is None and options.price:
        tokens = most_tokens(provider)
    return None if rate is None or tokens is None else ImagePrice(rate, tokens, room=room)


def check_image_price(client: "ImageClient") -> ImagePrice:
    """Refuse a model whose images have no known price."""
    if client.image_price is None:
        listed = rate_of(Identity(client.identity.provider.removesuffix("-images"), "", "", client.model))
        price = "IN/OUT" if listed is None else f"{listed.input:g}/{listed.output:g}, as listed,"
        raise UsageError(
            f"what an image of {client.model} costs in this size and quality is not known",
            where=client.identity.base_url,
            hint="State it in the SPEC: image_price=0.04 in US dollars per image, image_price=0 where nothing is "
            f"charged, {client.price_hint.format(price=price)}.",
        )
    return client.image_price


class ImageClient(RemoteClient, ABC):
    """A far service whose pictures are kept as they come; what is its own is filled in by those that make it."""

    settings: ServiceOptions
    image_price: ImagePrice | None = None
    per_call: int = 1
    rewriter: str = "unknown"  # whether prompts are rewritten where a reply does not tell, or `on` or `off`
    seeds: bool | None = False  # whether seeds are honoured: None where one is sent and nobody knows
    filters: bool = False  # whether the service is known to look at what it gives out
    sent_options: Mapping[str, object] = {}  # what goes with every prompt
    negatives: bool = False
    # how else the price of an image can be stated
    price_hint = "or price={price} per million tokens: an image counts as the dearest known, or as image_tokens=N"
    decides: Mapping[str, object] = {}  # what decides the images besides the SPEC
    store: PictureStore | None = None

    @property
    def rate(self) -> Rate | None:
        """What tokens cost, an image being one of them where each costs the same."""
        return None if self.image_price is None else self.image_price.rate

    def keep_in(self, journal: Path) -> PictureStore:
        """Keep pictures beside a journal from now on."""
        self.store = PictureStore(journal / _PICTURES)
        return self.store

    def under_way(self, journal: Path) -> set[bytes]:
        """List the keys of calls beside a journal that are bought and not answered; here there are none."""
        return set()

    def settled(self, request: Request, answered: Answered) -> None:
        """Hear how a call ended, which the journal knows by now."""

    async def send(self, outgoing: Outgoing) -> bytes:
        """Send once; the pictures of the reply are on disk when this returns."""
        return await asyncio.to_thread(self.kept, await super().send(outgoing))

    @abstractmethod
    def batches(self) -> BatchClient:
        """Give the batches of this client."""

    def kept(self, raw: bytes) -> bytes:
        """Keep the pictures of a reply."""
        return raw if self.store is None else set_apart(raw, self.store)


class KeptResults:
    """Batches whose results hold pictures, which are kept as they are read: whole pictures, so few to a job."""

    keeper: ImageClient

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the results, their pictures set apart."""
        async for result in super().results(job):  # type: ignore[misc]
            yield result if result is None else replace(result, raw=self.keeper.kept(result.raw))


ROWS_OF_A_JOB = 100  # results hold whole pictures, and those of a job are read together


# the services that culturekit knows by name, as clients that images are bought through
IMAGE_SERVICES: Registry[ImageClient] = Registry("backend", SERVICE_ENTRIES)


# What is asked of a paid image model in one call, and what came of it, in the terms of the engine that asks.

_TASK = "images"
Call = tuple[ImageRequest, ...]  # images that one call asks for: slots of one prompt and repeat, side by side


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image of a reply: `picture` is `sha256:` and the name of kept bytes, or `url:` and an address, or nothing.

    `reason` says why there is no picture; `revised` is the prompt as the provider says it drew it.
    """

    picture: str
    revised: str
    safety: str
    reason: str


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reply brought; `facts` is JSON of what the reply says of itself, such as its size."""

    candidates: list[Candidate]
    version: str
    facts: str


def calls_of(requests: Sequence[ImageRequest], per_call: int) -> Iterator[Call]:
    """Part requests into calls; a call never mixes prompts or repeats."""
    for _, group in groupby(requests, key=lambda request: (request.prompt_id, request.repeat)):
        slots = tuple(group)
        for start in range(0, len(slots), per_call):
            yield slots[start : start + per_call]


def question_of(call: Call) -> Request:
    """Write a call for the engine.

    The seed of its first image tells it apart from every other call with the same prompt, whether it is sent or not, so
    that a retry is the same question, and another slot never is.
    """
    first = call[0]
    data = {"prompt": first.text, "negative": first.negative_text or "", "n": len(call), "seed": first.seed}
    return Request(_TASK, "", data, Made, sample=first.seed)


URL = "url:"


def reply_with(candidates: Sequence[Candidate], version: str, facts: Mapping[str, object], usage: Usage) -> Reply:
    """Write a reply that has at least one picture."""
    reply = Made(list(candidates), version, canonical_json(facts).decode())
    return Reply(msgspec.json.encode(reply).decode(), usage, model_version=version)


def reply_without(stop: Stop, why: str, usage: Usage | None = None) -> Reply:
    """Write a reply that has none, and why."""
    return Reply("", usage or Usage(), stop, why)
