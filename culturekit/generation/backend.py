"""What a text-to-image backend is: requests in, pictures or reasons out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from culturekit.core.plugins import Contract, hold, maker_of, shown
from culturekit.core.registry import Entry, Registry, parse_spec

Pixels: TypeAlias = NDArray[np.uint8]  # uint8 (height, width, 3), RGB
Slot: TypeAlias = tuple[str, int, int]  # prompt_id, repeat, slot


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """One image to make. The text is what a model sees; the rest says what the text was made from.

    Without a width and a height an image has the size that the backend makes by itself.
    """

    prompt_id: str
    text: str
    negative_text: str | None
    seed: int
    repeat: int
    slot: int
    concept: str | None
    country: str | None
    artifact_id: str | None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that was made, and what the backend says of it.

    `truth_artifact_id`, `truth_country` and `truth_scene` are known to simulated backends only; a culture-free
    picture has none.
    """

    pixels: Pixels
    seed_honoured: bool
    prompt_revised: str | None = None
    rewriter: str = "off"
    safety: str | None = None
    provider_params: Mapping[str, object] = field(default_factory=dict)
    truth_artifact_id: str | None = None
    truth_country: str | None = None
    truth_scene: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An image that was not made, and why: `refused`, `filtered` or `failed`.

    `passing` says that another try may bring it, as after a timeout: the next run asks for it again.
    """

    status: str
    reason: str
    passing: bool = False


ImageReply: TypeAlias = Picture | Failure


class ImageBackend(Protocol):
    """A text-to-image model, or something that stands for one."""

    @property
    def version(self) -> str | None:
        """What exactly answers, as far as it is known."""

    @property
    def knows_truth(self) -> bool:
        """Whether its pictures come with what they show."""

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request, in order; an image that cannot be made is a Failure.

        Raise where no image can be made, as while a server is down: `OSError`, or `UpstreamUnavailable`. The run ends
        with exit code 3, keeps what it has, and the same command goes on.

        All requests of a call want the same size, and those of one prompt follow one another.
        """


class Lane(Protocol):
    """What makes one batch after another, such as a GPU with its own copy of the weights."""

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer a batch, as `ImageBackend.generate` does; it has `batch_size` requests or fewer."""


@runtime_checkable
class HeldBackend(ImageBackend, Protocol):
    """A model whose weights are held by one process: its images are made there, one batch at a time in each lane.

    A batch takes seconds, so that each image is kept as soon as it is made.
    """

    @property
    def batch_size(self) -> int:
        """How many images a lane makes at once."""

    def lanes(self, workers: int) -> AbstractContextManager[Sequence[Lane]]:
        """Lay the weights ready; on a CPU there is a lane for each worker, elsewhere one for each device."""

    def release(self) -> None:
        """Let go of the weights: the next model of a recipe needs the memory."""


# The text-to-image backends that culturekit knows by name.

DIFFUSERS, FOLDER = "diffusers", "folder"

# services that cost money. They have a runner of their own, and are made by `services.image_client`.
SERVICE_ENTRIES: list[Entry[Any]] = [
    Entry(
        "openai",
        "culturekit.generation.services.openai_image_client:make",
        "image models of OpenAI, or with base_url of any server that speaks its protocol",
        options="culturekit.generation.image_options:OpenAIImageOptions",
        extra="llm",
    ),
    Entry(
        "google", "culturekit.generation.services.google_image_client:make", "Gemini models that make images",
        options="culturekit.generation.image_options:GoogleImageOptions", extra="llm",
    ),
    Entry(
        "service",
        "culturekit.generation.services.service_client:make",
        "any service that makes images over HTTP (submit, poll, fetch), described by a file of YAML",
        options="culturekit.generation.image_options:ServiceImageOptions",
    ),
]  # fmt: skip

_STATUSES = ("refused", "filtered", "failed")


def replies(_: object, answer: object, requests: Sequence[ImageRequest]) -> list[ImageReply]:
    """Take one picture, or the reason why there is none, for each request."""
    hold(isinstance(answer, list), f"a list of {len(requests)} replies", shown(answer))
    found: list[ImageReply] = answer  # type: ignore[assignment]
    hold(len(found) == len(requests), f"a list of {len(requests)} replies", f"{len(found)}")
    for request, reply in zip(requests, found, strict=True):
        hold(isinstance(reply, Picture | Failure), "a Picture or a Failure", shown(reply))
        if isinstance(reply, Failure):
            hold(reply.status in _STATUSES, f"a status {' or '.join(_STATUSES)}", repr(reply.status))
        else:
            _hold_picture(reply, request)
    return found


def _hold_picture(reply: Picture, request: ImageRequest) -> None:
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


_LANE = Contract((Lane,), answers={"generate": replies})


@contextmanager
def lanes(backend: object, answer: AbstractContextManager[Sequence[Lane]], workers: int) -> Iterator[Sequence[Lane]]:
    """Hold each lane to the contract; what fails within the block is not the plugin's."""
    del workers
    plugin = maker_of(backend)
    with ExitStack() as stack:
        with plugin.blamed("failed at lanes"):
            entered = list(stack.enter_context(answer))
        yield [_LANE.held(lane, plugin) for lane in entered]


_BACKEND = Contract(
    (ImageBackend, HeldBackend),
    answers={"generate": replies, "lanes": lanes},
    says=lambda backend: {"says": backend.version},
)

BACKENDS: Registry[ImageBackend] = Registry(
    "backend",
    [
        Entry(
            DIFFUSERS,
            "culturekit.generation.diffusion.diffusers_backend:make",
            "a text-to-image pipeline of diffusers from a folder or the hub, such as FLUX.2, Z-Image or SDXL",
            options="culturekit.generation.diffusion.diffusers_folder:Options",
            extra="embed,generate",
            packages=("torch", "diffusers"),
        ),
        Entry(
            FOLDER,
            "culturekit.generation.folder.folder_run:make",
            "images that exist already, found by a naming pattern or a list",
            options="culturekit.generation.folder.folder_run:Options",
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
            "culturekit.recipes.inclusion.world:make_backend",
            "a model of known regional look and faults, which draws objects in regions",
            options="culturekit.recipes.inclusion.world:BackendOptions",
        ),
        Entry(
            "simulated-portraits",
            "culturekit.recipes.linguistic.world:make_backend",
            "a model of known tones, dialects and modernity, which draws people and places",
            options="culturekit.recipes.linguistic.world:BackendOptions",
            reads="recipes/linguistic/linguistic_lists.yaml",
        ),
        *SERVICE_ENTRIES,
    ],
    point="backend",
    contract=_BACKEND,
)


def is_paid(spec: str) -> bool:
    """Tell whether a backend is a service that costs money."""
    return parse_spec(spec).name in {service.name for service in SERVICE_ENTRIES}
