"""The text-to-image backends that culturekit knows by name."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np

from culturekit.contract import Contract, hold, maker_of, shown
from culturekit.generation.backend import (
    Failure,
    HeldBackend,
    ImageBackend,
    ImageReply,
    ImageRequest,
    Lane,
    Picture,
)
from culturekit.registry import Entry, Registry, parse_spec

__all__ = ["BACKENDS", "SERVICES", "is_paid"]

SERVICES: list[Entry[Any]] = [
    Entry(
        "openai",
        "culturekit.generation.services.openai_image_client:make",
        "image models of OpenAI, or with base_url of any server that speaks its protocol",
        options="culturekit.generation.image_options:OpenAIImageOptions",
        extra="llm",
    ),
    Entry(
        "google",
        "culturekit.generation.services.google_image_client:make",
        "Gemini models that make images",
        options="culturekit.generation.image_options:GoogleImageOptions",
        extra="llm",
    ),
    Entry(
        "service",
        "culturekit.generation.services.service_client:make",
        "any service that makes images over HTTP (submit, poll, fetch), described by a file of YAML",
        options="culturekit.generation.image_options:ServiceImageOptions",
    ),
]
"""Services that cost money. They have a runner of their own, and are made by `services.image_client`."""

STATUSES = ("refused", "filtered", "failed")


def replies(_: object, answer: object, requests: Sequence[ImageRequest]) -> list[ImageReply]:
    """Take one picture, or the reason why there is none, for each request."""
    hold(isinstance(answer, list), f"a list of {len(requests)} replies", shown(answer))
    found: list[ImageReply] = answer  # type: ignore[assignment]
    hold(len(found) == len(requests), f"a list of {len(requests)} replies", f"{len(found)}")
    for request, reply in zip(requests, found, strict=True):
        hold(isinstance(reply, Picture | Failure), "a Picture or a Failure", shown(reply))
        if isinstance(reply, Failure):
            hold(reply.status in STATUSES, f"a status {' or '.join(STATUSES)}", repr(reply.status))
        else:
            hold_picture(reply, request)
    return found


def hold_picture(reply: Picture, request: ImageRequest) -> None:
    """Make sure that a picture has pixels of the size that was asked for, and parameters that can be written down."""
    pixels: object = reply.pixels
    kind = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
    wanted = f"uint8 ({request.height or 'height'}, {request.width or 'width'}, 3)"
    hold(isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.ndim == 3, wanted, kind)
    height, width, colours = reply.pixels.shape
    fits = (height, width) == (request.height or height, request.width or width)
    hold(colours == 3 and height > 0 and width > 0 and fits, wanted, kind)
    try:
        json.dumps(dict(reply.provider_params))
    except (TypeError, ValueError) as error:
        hold(False, "provider_params that JSON can write", str(error))


LANE = Contract((Lane,), answers={"generate": replies})


@contextmanager
def lanes(backend: object, answer: AbstractContextManager[Sequence[Lane]], workers: int) -> Iterator[Sequence[Lane]]:
    """Hold each lane to the contract; what fails within the block is not the plugin's."""
    del workers
    plugin = maker_of(backend)
    with ExitStack() as stack:
        with plugin.blamed("failed at lanes"):
            entered = list(stack.enter_context(answer))
        yield [LANE.held(lane, plugin) for lane in entered]


BACKEND = Contract(
    (ImageBackend, HeldBackend),
    answers={"generate": replies, "lanes": lanes},
    says=lambda backend: {"says": backend.version},
)

BACKENDS: Registry[ImageBackend] = Registry(
    "backend",
    [
        Entry(
            "diffusers",
            "culturekit.generation.diffusion.diffusers_backend:make",
            "a text-to-image pipeline of diffusers from a folder or the hub, such as FLUX.2, Z-Image or SDXL",
            options="culturekit.generation.diffusion.diffusers_options:Options",
            extra="embed,generate",
            packages=("torch", "diffusers"),
        ),
        Entry(
            "folder",
            "culturekit.generation.folder.folder_backend:make",
            "images that exist already, found by a naming pattern or a list",
            options="culturekit.generation.folder.folder_options:Options",
        ),
        Entry(
            "simulated",
            "culturekit.generation.simulated.simulated_backend:make",
            "a model with known bias, which draws artifacts of a CSpace as emblems",
            options="culturekit.generation.simulated.simulated_backend:Options",
            needs=("cspace",),
        ),
        Entry(
            "simulated-scenes",
            "culturekit.generation.simulated.scenes.scenes_backend:make",
            "a model of known knowledge by country, which draws scenes of activities",
            options="culturekit.generation.simulated.scenes.scenes_backend:Options",
        ),
        Entry(
            "simulated-objects",
            "culturekit.generation.simulated.objects.objects_backend:make",
            "a model of known regional look and faults, which draws objects in regions",
            options="culturekit.generation.simulated.objects.objects_backend:Options",
        ),
        Entry(
            "simulated-portraits",
            "culturekit.generation.simulated.portraits.portraits_backend:make",
            "a model of known tones, dialects and modernity, which draws people and places",
            options="culturekit.generation.simulated.portraits.portraits_backend:Options",
        ),
        *SERVICES,
    ],
    point="backend",
    contract=BACKEND,
)


def is_paid(spec: str) -> bool:
    """Tell whether a backend is a service that costs money."""
    return parse_spec(spec).name in {service.name for service in SERVICES}
