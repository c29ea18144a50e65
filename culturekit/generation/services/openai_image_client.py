"""Image models of OpenAI, and of every server that speaks its protocol: the images API, or the tool of responses."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from culturekit.errors import UsageError
from culturekit.generation.image_options import OpenAIImageOptions
from culturekit.generation.services.image_client import ImageClient, ImagePrice, price_of_images
from culturekit.generation.services.openai_image_wire import FORMATS, ImageSettings
from culturekit.llm.batches.batch_client import BatchClient, BatchLimits, BatchResult, Job
from culturekit.llm.batches.openai_batches import OpenAIBatches
from culturekit.llm.client import Identity, Outgoing
from culturekit.llm.clients.api_keys import api_key
from culturekit.llm.clients.endpoints import is_official, normal_base_url
from culturekit.llm.clients.openai_client import VARIABLES, OpenAIClient, OpenAIConnection, base_url_of_environment
from culturekit.llm.clients.openai_settings import OFFICIAL
from culturekit.llm.clients.remote_client import WireFormat, model_of
from culturekit.registry import Spec

__all__ = ["OpenAIImageClient", "make"]

ENDPOINTS = {"images": "/images/generations", "responses": "/responses"}
DEFAULT_SIZE = "1024x1024"
GPT = ("gpt-image", "chatgpt-image")
ROWS_OF_A_JOB = 100
"""Results hold whole pictures, and those of a job are read together."""


class OpenAIImageClient(ImageClient, OpenAIClient):
    """Asks one model for images."""

    def batches(self) -> BatchClient:
        """Give the batches of this client."""
        return OpenAIImageBatches(self)


class OpenAIImageBatches(OpenAIBatches):
    """Batches whose results hold pictures, which are kept as they are read."""

    limits = BatchLimits(rows=ROWS_OF_A_JOB, size=OpenAIBatches.limits.size)

    def __init__(self, client: OpenAIImageClient) -> None:
        """Take the client that keeps the pictures."""
        super().__init__(client)
        self.keeper = client

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the results, their pictures set apart."""
        async for result in super().results(job):
            yield result if result is None else replace(result, raw=self.keeper.kept(result.raw))


def make(spec: Spec, size: str | None = None) -> OpenAIImageClient:
    """Make the client; nothing is imported or sent yet. `size` is that of the plan, as width x height."""
    options = spec.read(OpenAIImageOptions)
    base_url = normal_base_url(options.base_url or base_url_of_environment() or OFFICIAL)
    model = model_of(spec, "openai:gpt-image-2")
    settings = settings_of(model, options, size)
    compose, read = FORMATS[options.api]
    endpoint = ENDPOINTS[options.api]
    client = OpenAIImageClient(
        Identity("openai-images", base_url, endpoint, model),
        options,
        key=partial(api_key, options, base_url=base_url, official=OFFICIAL, variables=VARIABLES),
        connect=lambda secret: OpenAIConnection(base_url, endpoint, secret, options.timeout),
        written=WireFormat(partial(compose, settings=settings), body_as_it_is, partial(read, settings=settings)),
    )
    client.image_price = settings.price
    client.per_call = options.n
    client.rewriter = options.rewriter or rewriter_of(model, options)
    client.seeds = None if options.send_seed else False
    client.sent_options = {**settings.sent, "api": options.api}
    client.filters = is_official(base_url, OFFICIAL)
    return client


def body_as_it_is(outgoing: Outgoing) -> bytes:
    """Write the bytes that leave."""
    return outgoing.body


def rewriter_of(model: str, options: OpenAIImageOptions) -> str:
    """Say what is known of rewriting before any reply: DALL-E 3 and the responses tool always do it, DALL-E 2 never."""
    if options.api == "responses" or model.startswith("dall-e-3"):
        return "on"
    return "off" if model.startswith("dall-e-2") else "unknown"


def settings_of(model: str, options: OpenAIImageOptions, size: str | None) -> ImageSettings:
    """Choose what the SPEC leaves open, so that what is sent says all that decides a price."""
    if size is not None and options.size is not None and size != options.size:
        raise UsageError("two sizes are given", expected="--size or size= in the SPEC", found=f"{size} {options.size}")
    chosen = size or options.size or DEFAULT_SIZE
    quality = options.quality or ("medium" if model.startswith(GPT) else None)
    sent = {
        "size": chosen,
        "quality": quality,
        "background": options.background,
        "output_format": options.output_format,
        "moderation": options.moderation,
        "style": options.style,
        "response_format": options.response_format,
    }
    return ImageSettings(
        model,
        {name: value for name, value in sent.items() if value is not None},
        price_for(model, options, quality or "", chosen),
        send_seed=options.send_seed,
    )


def price_for(model: str, options: OpenAIImageOptions, quality: str, size: str) -> ImagePrice | None:
    """Find what an image costs; the responses API bills two models, so that its price per image must be stated."""
    if options.api == "responses" and options.image_price is None:
        return None
    return price_of_images(options, model, provider="openai", quality=quality, size=size)
