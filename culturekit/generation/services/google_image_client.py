"""Gemini models that make images, through generateContent of the Gemini API."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from culturekit.errors import UsageError
from culturekit.generation.image_options import GoogleImageOptions
from culturekit.generation.services.gemini_image_wire import GeminiImages, compose, read
from culturekit.generation.services.gemini_sizes import DEFAULT_SIZE, shape_of_size, size_of
from culturekit.generation.services.image_client import ImageClient, price_of_images
from culturekit.generation.services.openai_image_client import body_as_it_is
from culturekit.llm.batches.batch_client import BatchClient, BatchLimits, BatchResult, Job
from culturekit.llm.batches.google_batches import GoogleBatches
from culturekit.llm.client import Identity, Outgoing, Request
from culturekit.llm.clients.api_keys import api_key
from culturekit.llm.clients.endpoints import is_official, normal_base_url
from culturekit.llm.clients.gemini_settings import OFFICIAL
from culturekit.llm.clients.google_client import VARIABLES, GoogleClient, GoogleConnection, base_url_of_environment
from culturekit.llm.clients.remote_client import WireFormat, model_of
from culturekit.registry import Spec

__all__ = ["GoogleImageClient", "make"]

ROWS_OF_A_JOB = 100
THINKS = "gemini-3"
ROOM_TO_THINK = 2048


class GoogleImageClient(ImageClient, GoogleClient):
    """Asks one model for images."""

    def batches(self) -> BatchClient:
        """Give the batches of this client."""
        return GoogleImageBatches(self)


class GoogleImageBatches(GoogleBatches):
    """Batches whose results hold pictures, which are kept as they are read."""

    limits = BatchLimits(rows=ROWS_OF_A_JOB, size=GoogleBatches.limits.size)

    def __init__(self, client: GoogleImageClient) -> None:
        """Take the client that keeps the pictures."""
        super().__init__(client)
        self.keeper = client

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it leaves in a batch: just as it would alone."""
        return self.keeper.compose(request)

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the results, their pictures set apart."""
        async for result in super().results(job):
            yield result if result is None else replace(result, raw=self.keeper.kept(result.raw))


def make(spec: Spec, size: str | None = None) -> GoogleImageClient:
    """Make the client; nothing is imported or sent yet. `size` is that of the plan, as width x height."""
    options = spec.read(GoogleImageOptions)
    base_url = normal_base_url(options.base_url or base_url_of_environment() or OFFICIAL)
    model = model_of(spec, "google:gemini-3.1-flash-image-preview").removeprefix("models/")
    if model.startswith("imagen"):
        raise UsageError(
            "Google has shut all Imagen models, and its SDK asks them no more",
            found=model,
            expected="a Gemini model that makes images, such as gemini-3.1-flash-image-preview",
        )
    settings = settings_of(model, options, size)
    client = GoogleImageClient(
        Identity("google-images", base_url, f"/{options.api_version}/models/{model}:generateContent", model),
        options,
        key=partial(api_key, options, base_url=base_url, official=OFFICIAL, variables=VARIABLES),
        connect=lambda secret: GoogleConnection(
            base_url, model, secret, api_version=options.api_version, seconds=options.timeout
        ),
        written=WireFormat(partial(compose, settings=settings), body_as_it_is, partial(read, settings=settings)),
    )
    client.image_price = settings.price
    client.rewriter = options.rewriter or "unknown"
    client.seeds = None if options.send_seed else False
    client.sent_options = settings.said()
    client.filters = is_official(base_url, OFFICIAL)
    return client


def settings_of(model: str, options: GoogleImageOptions, size: str | None) -> GeminiImages:
    """Choose what the SPEC leaves open; a size in pixels stands for a shape and a size of Google's."""
    ratio: str = options.aspect_ratio or ""
    large: str = options.image_size or ""
    if size is not None:
        if ratio or large:
            raise UsageError(
                "two sizes are given", expected="--size, or aspect_ratio and image_size in the SPEC", found=size
            )
        ratio, large = shape_of_size(size)
    price = price_of_images(
        options,
        model,
        provider="google",
        quality="standard",
        size=size_of(large),
        room=ROOM_TO_THINK if model.startswith(THINKS) else 0,
    )
    # a model of one size refuses to be told one
    told = large if large and large != DEFAULT_SIZE else ""
    return GeminiImages(ratio, told, options.safety or "", price, send_seed=options.send_seed)
