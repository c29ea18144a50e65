"""What a text-to-image backend is: requests in, pictures or reasons out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Failure", "HeldBackend", "ImageBackend", "ImageReply", "ImageRequest", "Lane", "Picture", "Pixels"]

Pixels: TypeAlias = NDArray[np.uint8]
"""uint8 (height, width, 3), RGB."""


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
    """An image that was not made, and why: `refused`, `filtered` or `failed`."""

    status: str
    reason: str


ImageReply: TypeAlias = Picture | Failure


class ImageBackend(Protocol):
    """A text-to-image model, or something that stands for one."""

    @property
    def version(self) -> str | None:
        """What exactly answers, as far as it is known."""
        ...

    @property
    def knows_truth(self) -> bool:
        """Whether its pictures come with what they show."""
        ...

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request, in order; an image that cannot be made is a Failure, not an exception.

        All requests of a call want the same size, and those of one prompt follow one another.
        """
        ...


class Lane(Protocol):
    """What makes one batch after another, such as a GPU with its own copy of the weights."""

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer a batch, as `ImageBackend.generate` does; it has `batch_size` requests or fewer."""
        ...


@runtime_checkable
class HeldBackend(ImageBackend, Protocol):
    """A model whose weights are held by one process: its images are made there, one batch at a time in each lane.

    A batch takes seconds, so that each image is kept as soon as it is made.
    """

    @property
    def batch_size(self) -> int:
        """How many images a lane makes at once."""
        ...

    def lanes(self, workers: int) -> AbstractContextManager[Sequence[Lane]]:
        """Lay the weights ready; on a CPU there is a lane for each worker, elsewhere one for each device."""
        ...

    def release(self) -> None:
        """Let go of the weights: the next model of a recipe needs the memory."""
        ...
