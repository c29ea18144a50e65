"""One pipeline on one device: batches of one length, a generator for each image, every outcome said."""

import gc
import importlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import CultureKitError, UsageError
from culturekit.generation.backend import Failure, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.diffusion.diffusers_calls import Call
from culturekit.generation.diffusion.diffusers_options import Options
from culturekit.generation.image_rows import FINDINGS
from culturekit.torch_places import chosen_device, chosen_dtype, same_bits

__all__ = ["DiffusersLane", "Place", "Upcast", "Watch", "free_memory", "kept_threads", "places_of"]

Upcast = Callable[[], "DiffusersLane | None"]
"""Gives a lane that decodes in float32; None where that makes no difference."""

NOT_FINITE = "the numbers of the picture are not finite"

BATCH_ON_GPU = 4


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


@dataclass(slots=True)
class DiffusersLane:
    """Draws batches. `batch` is how many at once: a shorter one is filled up, for how numbers are summed depends on it.

    It halves when the memory of the device is full.
    """

    call: Call
    watch: Watch
    batch: int
    threads: int
    told: Mapping[str, object]
    upcast: Upcast = lambda: None
    made: int = 0

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer requests of one size, all with or all without a negative prompt."""
        if self.threads:
            importlib.import_module("torch").set_num_threads(self.threads)
        replies: list[ImageReply] = []
        while len(replies) < len(requests):
            some = requests[len(replies) : len(replies) + self.batch]
            replies += self.unless_full(some) or []
        return replies

    def unless_full(self, requests: Sequence[ImageRequest]) -> list[ImageReply] | None:
        """Answer a batch; None when it did not fit, and batches are half as large from now on."""
        torch = importlib.import_module("torch")
        try:
            return self.answered(requests)
        except torch.OutOfMemoryError as error:
            if self.batch == 1:
                raise UsageError(
                    "one picture at a time is too much for the memory of the device",
                    found=str(error).partition("\n")[0],
                    hint="Choose offload=model, a smaller --size, or dtype=bfloat16.",
                ) from None
        self.batch = max(1, self.batch // 2)
        torch.cuda.empty_cache()
        return None

    def answered(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer a batch; where the pipeline refuses one of its requests, each is tried alone."""
        try:
            found = self.draw(requests)
        except ValueError as error:
            if not self.made and len(requests) == 1:
                raise UsageError("the pipeline refuses what it is asked for", found=str(error)) from error
            if len(requests) == 1:
                return [Failure("failed", f"the pipeline refuses it: {error}")]
            return [reply for request in requests for reply in self.answered([request])]
        self.made += len(requests)
        return [self.reply(*pair, "auto") for pair in zip(requests, self.mended(requests, found), strict=True)]

    def draw(self, requests: Sequence[ImageRequest]) -> list[Drawn]:
        """Call the pipeline with a full batch, and look at what it gives for the requests."""
        filled = [*requests, *([requests[-1]] * (self.batch - len(requests)))]
        self.watch.take(0)
        try:
            with same_bits():
                numbers, flags = self.call.numbers(filled)
        except (RuntimeError, IndexError, TypeError, AttributeError) as error:
            if isinstance(error, importlib.import_module("torch").OutOfMemoryError):
                raise
            raise CultureKitError(
                "the pipeline stopped",
                where=str(self.told.get("pipeline")),
                found=f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}",
                hint="What was made is kept, and the same command goes on from there.",
            ) from error
        return drawn(np.asarray(numbers), self.watch.take(len(filled)), flags)[: len(requests)]

    def mended(self, requests: Sequence[ImageRequest], found: Sequence[Drawn]) -> list[tuple[Drawn, bool]]:
        """Draw a batch again with a decoder in float32 where some of it is no picture; tell which are from there."""
        other = None if all(one.finite for one in found) else self.upcast()
        if other is None:
            return [(one, False) for one in found]
        again = other.draw(requests)
        return [(one, False) if one.finite else (new, True) for one, new in zip(found, again, strict=True)]

    def reply(self, request: ImageRequest, outcome: tuple[Drawn, bool], vae: str) -> ImageReply:
        """Say what came of one request."""
        one, mended = outcome
        colour = one_colour(one.pixels)
        if not one.finite:
            tried = ", also with a decoder in float32" if mended else ""
            return Failure("failed", f"{NOT_FINITE} in {self.told['dtype']}{tried}")
        if one.unsafe or (one.unsafe is not None and colour == "#000000"):
            return Failure("refused", "the safety checker of the pipeline gave a black picture in place of this one")
        more, odd = self.call.notes(request)
        odd += [f"the whole picture is {colour}"] if colour else []
        odd += [f"not finite in {self.told['dtype']}, decoded again in float32"] if mended else []
        params = {**self.told, "batch": self.batch, **more, **({"vae": "float32"} if mended else {})}
        return Picture(
            one.pixels,
            seed_honoured=self.call.honours_seeds,
            safety=None if one.unsafe is None else "passed",
            provider_params={**params, FINDINGS: odd} if odd else params,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A device, what it is called in tables, and in which numbers it computes.

    On a CPU `threads` is 1: with another number torch adds up in another order, and the same seed gives other bits.
    """

    device: Any
    dtype: Any
    name: str
    threads: int

    @property
    def usual_batch(self) -> int:
        """How many images are made at once unless told."""
        return 1 if self.threads else BATCH_ON_GPU


def places_of(options: Options) -> list[Place]:
    """List the devices that a SPEC asks for."""
    torch = importlib.import_module("torch")
    names = options.device.split(",")
    if len(names) > 1 and not {"auto", "cuda"}.isdisjoint(names):
        raise UsageError("a list of devices names each", expected="such as cuda:0,cuda:1", found=options.device)
    devices = [chosen_device(name) for name in names]
    if options.device in {"auto", "cuda"} and devices[0].type == "cuda":
        devices = [torch.device("cuda", n) for n in range(torch.cuda.device_count())]
    return [
        Place(
            device,
            chosen_dtype(options.dtype, device),
            torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            1 if device.type == "cpu" else 0,
        )
        for device in devices
    ]


def free_memory() -> None:
    """Give back what nobody holds any more; pipelines hold themselves in circles."""
    torch = importlib.import_module("torch")
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def kept_threads() -> Iterator[None]:
    """Give torch back as many threads as it had."""
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
