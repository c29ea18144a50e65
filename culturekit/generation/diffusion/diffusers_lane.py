"""One pipeline on one device: batches of one length, a generator for each image, every outcome said."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from culturekit.errors import CultureKitError, UsageError
from culturekit.generation.backend import Failure, ImageReply, ImageRequest, Picture
from culturekit.generation.diffusion.diffusers_calls import Call
from culturekit.generation.diffusion.diffusers_pictures import Drawn, Watch, drawn, one_colour
from culturekit.generation.image_findings import FINDINGS
from culturekit.torch_places import same_bits

__all__ = ["DiffusersLane", "Upcast"]

Upcast = Callable[[], "DiffusersLane | None"]
"""Gives a lane that decodes in float32; None where that makes no difference."""

NOT_FINITE = "the numbers of the picture are not finite"


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
