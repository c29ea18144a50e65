"""How a pipeline is called for a batch, its refiner after it, and what is noted of each request."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.errors import UsageError
from culturekit.generation.backend import ImageRequest
from culturekit.generation.diffusion.diffusers_loading import Loaded, defaults_of
from culturekit.generation.diffusion.diffusers_options import Options
from culturekit.generation.diffusion.diffusers_prompts import (
    Guidance,
    TextReaders,
    guidance_of,
    told_about_cuts,
    wanted_negative,
)

__all__ = ["Call", "call_of"]

OPTIONS = {
    "steps": "num_inference_steps",
    "guidance": "guidance_scale",
    "true_guidance": "true_cfg_scale",
    "tokens": "max_sequence_length",
}
"""What an option is called by diffusers."""


@dataclass(frozen=True, slots=True)
class Call:
    """A pipeline, perhaps with a refiner, and what it is told each time."""

    loaded: Loaded
    options: Options
    guidance: Guidance
    readers: TextReaders
    arguments: Mapping[str, Any]

    @property
    def honours_seeds(self) -> bool:
        """Whether the pipeline draws its noise from the generators that it is given."""
        return "generator" in defaults_of(type(self.loaded.base))

    def numbers(self, requests: Sequence[ImageRequest]) -> tuple[Any, Sequence[bool | None]]:
        """Draw a batch: numbers of 0 to 1, and what a safety checker says of each picture."""
        generators = [seeded(request.seed) for request in requests]
        given = {**self.arguments, **self.asked(self.loaded.base, requests, generators)}
        size = {"width": requests[0].width, "height": requests[0].height}
        given |= {name: pixels for name, pixels in size.items() if pixels is not None}
        if self.loaded.refiner is None:
            return pictures(self.loaded.base(**given, output_type="np"), len(requests))
        share = self.options.share_before_refiner
        latents = self.loaded.base(**given, output_type="latent", denoising_end=share).images
        given = {**self.arguments, **self.asked(self.loaded.refiner, requests, generators)}
        refined = self.loaded.refiner(**given, image=latents, denoising_start=share, output_type="np")
        return pictures(refined, len(requests))

    def asked(self, pipeline: Any, requests: Sequence[ImageRequest], generators: Sequence[Any]) -> dict[str, Any]:  # noqa: ANN401
        """Write the prompts of a batch as a pipeline takes them."""
        given: dict[str, Any] = {"prompt": [request.text for request in requests]}
        negatives = [self.guidance.negative(request, self.options) for request in requests]
        if any(text is not None for text in negatives):
            given["negative_prompt"] = [text or "" for text in negatives]
        if "generator" in defaults_of(type(pipeline)):
            given["generator"] = generators
        return given

    def notes(self, request: ImageRequest) -> tuple[dict[str, object], list[str]]:
        """Say what was sent besides the prompt, and what of it had no effect."""
        negative, wanted = self.guidance.negative(request, self.options), wanted_negative(request, self.options)
        notes: dict[str, object] = {} if negative is None else {"negative_prompt": negative}
        odd = []
        if wanted and self.guidance.no_negative:
            notes["negative_prompt_left_out"] = wanted
            odd.append(f"the negative prompt has no effect: {self.guidance.no_negative}")
        cuts = self.readers.cut(request.text)
        if cuts:
            notes["prompt_cut"] = cuts
            odd += told_about_cuts(cuts)
        return notes, odd


def pictures(output: Any, count: int) -> tuple[Any, Sequence[bool | None]]:  # noqa: ANN401 - what pipelines give
    """Take the pictures out of what a pipeline gives, and what its safety checker says."""
    flags = getattr(output, "nsfw_content_detected", None)
    images = getattr(output, "images", None)
    if images is None or getattr(images, "ndim", 0) != 4 or len(images) != count or images.shape[-1] != 3:
        raise UsageError("this pipeline gives no pictures of three colours", found=type(output).__name__)
    return images, [None] * count if flags is None else [bool(flag) for flag in flags]


def seeded(seed: int) -> Any:  # noqa: ANN401 - a generator of torch
    """Make the generator of one image; on the CPU, so that a seed means the same noise on every device."""
    return importlib.import_module("torch").Generator("cpu").manual_seed(seed)


def call_of(loaded: Loaded, options: Options) -> Call:
    """Find out how a pipeline is called with some options; one that it cannot be told is refused."""
    defaults, name = defaults_of(type(loaded.base)), type(loaded.base).__name__
    for option, argument in OPTIONS.items():
        if getattr(options, option) and argument not in defaults:
            raise UsageError(f"{name} has no {argument}", found=f"{option}={getattr(options, option)}")
    embedded = getattr(getattr(loaded.base, "transformer", None), "config", {}).get("guidance_embeds")
    if options.guidance is not None and embedded is False:
        other = "true_guidance" if "true_cfg_scale" in defaults else ""
        raise UsageError(
            "this pipeline was not trained to be told guidance_scale, and leaves it out",
            found=f"guidance={options.guidance}", hint=f"Use {other}." if other else "Leave the option away.",
        )  # fmt: skip
    if loaded.refiner is not None:
        check_refiner(loaded, name)
    guidance = guidance_of(loaded.base, options)
    arguments: dict[str, Any] = dict(guidance.arguments)
    if embedded is False:
        arguments.pop("guidance_scale", None)
    if "num_inference_steps" in defaults:
        arguments["num_inference_steps"] = options.steps or defaults["num_inference_steps"]
    if options.tokens:
        arguments["max_sequence_length"] = options.tokens
    return Call(loaded, options, guidance, TextReaders(loaded.base, options.tokens), arguments)


def check_refiner(loaded: Loaded, name: str) -> None:
    """Make sure that one pipeline can leave off where the other goes on."""
    ends = "denoising_end" in defaults_of(type(loaded.base))
    begins = {"denoising_start", "image"} <= set(defaults_of(type(loaded.refiner)))
    if not (ends and begins):
        raise UsageError(
            "these two pipelines cannot share the steps", expected="a base and a refiner, as SDXL has them",
            found=f"{name} and {type(loaded.refiner).__name__}",
        )  # fmt: skip
