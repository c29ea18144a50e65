"""What a training is told, and what it will take: steps, numbers that are learned, memory; no torch is needed."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from culturekit.errors import UsageError
from culturekit.generation.diffusion.diffusers_folder import PipelineFolder, find_pipeline
from culturekit.generation.diffusion.diffusers_options import DIFFUSERS, Options
from culturekit.registry import Spec, parse_spec
from culturekit.stages.stage_command import Seed
from culturekit.storage.model_files import read_header

__all__ = ["TAKEN", "TUNED", "TuningOptions", "TuningPlan", "pipeline_of", "plan_tuning"]

TUNED = ("to_q", "to_k", "to_v", "to_out.0")
"""The layers of the denoiser that get an adapter: all that attention multiplies with."""

PIPELINES = ("StableDiffusionPipeline", "StableDiffusionXLPipeline")
TAKEN = {"dtype", "device", "variant", "revision"}
PER_LEARNED = 16
"""Bytes of a number that is learned: itself, its gradient, and two running means, in float32."""


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """What is trained, and how long."""

    model: Annotated[
        str,
        Field(
            description="Stable Diffusion or SDXL, as a SPEC: diffusers:FOLDER, with dtype, device, variant, revision."
        ),
    ]
    steps: Annotated[int, Field(ge=1, le=10_000_000, description="Steps of the optimiser.")] = 1000
    rank: Annotated[int, Field(ge=1, le=1024, description="Of the adapter.")] = 8
    rate: Annotated[float, Field(gt=0, le=1, description="Learning rate of AdamW.")] = 1e-4
    batch: Annotated[int, Field(ge=1, le=4096, description="Pairs computed at once.")] = 4
    accumulate: Annotated[int, Field(ge=1, le=4096, description="Batches of a step.")] = 1
    size: Annotated[int, Field(ge=8, le=4096, description="Side of the pictures, in pixels; whole eights.")] = 512
    every: Annotated[int, Field(ge=1, description="Steps between checkpoints, where the loss is probed, too.")] = 100
    recompute: Annotated[
        bool, Field(description="Compute activations again in place of keeping them: less memory, more time.")
    ] = False
    seed: Seed = 0

    @property
    def spec(self) -> Spec:
        """What is trained."""
        spec = parse_spec(self.model)
        if spec.name != DIFFUSERS or not set(spec.options) <= TAKEN or self.size % 8:
            raise UsageError(
                "this cannot be trained", where=self.model, found=f"a side of {self.size} pixels",
                expected=f"diffusers:FOLDER with no option but {', '.join(sorted(TAKEN))}, and sides of whole eights",
            )  # fmt: skip
        return spec


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """What a training will take; seconds and memory beside weights are known where a pilot measured them."""

    steps: int
    pairs: int
    passes: float
    learned: int
    weights_bytes: int
    state_bytes: int
    seconds: float | None
    peak_bytes: int | None

    def lines(self) -> Iterator[str]:
        """Say the plan."""
        yield f"{self.steps:,} steps: {self.passes:.3g} passes over {self.pairs:,} pairs"
        yield f"{self.learned:,} numbers are learned"
        held = self.weights_bytes + self.state_bytes
        yield f"memory: {held / 2**30:.2f} GiB of weights and optimiser, and activations beside them" + (
            "" if self.peak_bytes is None else f"; {self.peak_bytes / 2**30:.2f} GiB in all, measured"
        )
        yield "time: --pilot measures it" if self.seconds is None else f"time: about {self.seconds / 60:,.1f} minutes"


def pipeline_of(options: TuningOptions) -> PipelineFolder:
    """Find the pipeline, and make sure that it is one that can be trained."""
    told, target = options.spec.read(Options), options.spec.target
    folder = find_pipeline(target, revision=told.revision, variant=told.variant, asked_by=DIFFUSERS)
    if folder.kind not in PIPELINES:
        raise UsageError("adapters of this pipeline cannot be trained here", where=target,
                         expected=" or ".join(PIPELINES), found=folder.kind)  # fmt: skip
    return folder


def plan_tuning(options: TuningOptions, pairs: int, step: float | None = None, peak: int | None = None) -> TuningPlan:
    """Say what a training takes, from the headers of the weights, and the seconds and memory of a step in a pilot."""
    layer = re.compile(rf"\.({'|'.join(map(re.escape, TUNED))})\.weight$")
    learned = weights = 0
    for part in pipeline_of(options).components():
        wide = part.name == "vae" or options.spec.read(Options).dtype in {"auto", "float32"}
        for path in part.weights():
            for name, tensor in read_header(path).tensors.items():
                weights += math.prod(tensor.shape) * (4 if wide else 2)
                if part.name == "unet" and layer.search(name):
                    learned += options.rank * sum(tensor.shape[:2])
    shown = options.steps * options.batch * options.accumulate
    seconds = None if step is None else step * options.steps
    held = (weights, learned * PER_LEARNED)
    return TuningPlan(options.steps, pairs, shown / pairs, learned, *held, seconds, peak)
