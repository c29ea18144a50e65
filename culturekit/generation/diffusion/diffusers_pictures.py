"""What a pipeline gave back, looked at: numbers that are none, pictures blacked out, pictures of one colour."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.generation.backend import Pixels

__all__ = ["Drawn", "Watch", "drawn", "one_colour"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One picture of a batch: what was decoded was finite numbers, and what a safety checker said, if there is one."""

    pixels: Pixels
    finite: bool
    unsafe: bool | None


class Watch:
    """Looks at what a decoder gives, before it is cut to colours: what is infinite would come out white or black."""

    def __init__(self, pipeline: Any) -> None:  # noqa: ANN401 - a pipeline
        """Listen to the decoder of a pipeline, if it has one; each thread hears of its own pictures."""
        self.heard = threading.local()
        decoder = getattr(getattr(pipeline, "vae", None), "decoder", None)
        if decoder is not None:
            decoder.register_forward_hook(self.hear)

    def hear(self, module: object, given: object, decoded: Any) -> None:  # noqa: ANN401 - a tensor
        """Remember which pictures are finite."""
        sample = decoded if hasattr(decoded, "isfinite") else getattr(decoded, "sample", decoded[0])
        self.heard.finite = [*getattr(self.heard, "finite", []), *sample.isfinite().flatten(1).all(1).tolist()]

    def take(self, count: int) -> list[bool]:
        """Say of each picture whether it was finite; what was not heard of is taken to be."""
        heard = getattr(self.heard, "finite", [])
        self.heard.finite = []
        return heard if len(heard) == count else [all(heard)] * count


def drawn(numbers: NDArray[np.floating[Any]], heard: Sequence[bool], unsafe: Sequence[bool | None]) -> list[Drawn]:
    """Turn numbers of 0 to 1, (n, height, width, 3), into pictures as diffusers itself does."""
    finite = np.isfinite(numbers).all(axis=(1, 2, 3))
    scaled = (numbers if finite.all() else np.nan_to_num(numbers)) * 255
    pixels = np.rint(scaled, out=scaled).astype(np.uint8)
    return [Drawn(pixels[place], bool(finite[place]) and heard[place], unsafe[place]) for place in range(len(numbers))]


def one_colour(pixels: Pixels) -> str | None:
    """Name the colour of a picture that has only one; None of any other."""
    first = pixels[0, 0]
    alike = bool((pixels[0] == first).all() and (pixels == first).all())
    return "#" + "".join(f"{part:02x}" for part in first.tolist()) if alike else None
