"""Fine-tuning as a stage: what a training is told, and what it will take in steps, numbers learned and memory."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from culturekit.core.declared import Seed, check_options, kept
from culturekit.core.digests import InputRecord, digest_tree, read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.model_files import read_header
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.registry import Spec, check_ready, parse_spec
from culturekit.core.run import run_part
from culturekit.core.stage import Engine, Outcome, Progress, Stage, Work
from culturekit.core.torch_places import needed_package
from culturekit.generation.backend import BACKENDS, DIFFUSERS
from culturekit.generation.diffusion.diffusers_backend import files_behind
from culturekit.generation.diffusion.diffusers_folder import Options, PipelineFolder, find_pipeline

# Pairs of a folder of images with `metadata.jsonl`, ours or anybody's, and their pictures as a model takes them.

_METADATA = "metadata.jsonl"


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A caption, and the file of its picture."""

    root: Path
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class _Shown:
    """A square of a picture, float32 (3, side, side) of -1 to 1; its size before, and where the square was cut."""

    numbers: NDArray[np.float32]
    size: tuple[int, int]
    corner: tuple[int, int]


def pairs_in(folder: Path) -> list[TrainingPair]:
    """List the pairs of a folder that `select export` wrote, or of any folder of images with a list."""
    root = next((base for base in (folder / "imagefolder", folder) if (base / _METADATA).is_file()), None)
    if root is None:
        raise UsageError(
            "there are no pairs to train on", where=str(folder), expected=f"a folder of images with {_METADATA}",
            hint="`culturekit select export --format imagefolder` writes one.",
        )  # fmt: skip
    with (root / _METADATA).open(encoding="utf-8") as lines:
        return list(_read_pairs(root, lines))


def _read_pairs(root: Path, lines: Iterator[str]) -> Iterator[TrainingPair]:
    """Read the list, line by line."""
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            pair = TrainingPair(root, row["file_name"], row["text"])
        except (ValueError, KeyError, TypeError):
            pair = None
        if pair is None or not all(isinstance(each, str) and each.strip() for each in (pair.file, pair.text)):
            raise UsageError(
                "a line is no pair", where=f"{root / _METADATA}, line {number}",
                expected="JSON with file_name and text, neither empty", found=line.strip()[:80],
            )  # fmt: skip
        yield pair


def shown_square(pair: TrainingPair, side: int) -> _Shown:
    """Read a picture, bring its shorter side to a length, and cut the middle; no mirror, which would turn writing."""
    read = read_inside(pair.root, pair.file)
    if isinstance(read, NoPicture):
        raise UsageError(
            "a picture cannot be read", where=str(pair.root / pair.file), found=f"{read.reason} {read.detail}"
        )
    height, width = read.pixels.shape[:2]
    scale = side / min(height, width)
    size = (width, height)
    picture = Image.fromarray(read.pixels).resize(
        (max(side, round(size[0] * scale)), max(side, round(size[1] * scale))), Image.Resampling.LANCZOS
    )
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = np.asarray(picture.crop((left, top, left + side, top + side)), np.float32)
    return _Shown((square / 127.5 - 1).transpose(2, 0, 1), (height, width), (top, left))


# the layers of the denoiser that get an adapter: all that attention multiplies with
TUNED = ("to_q", "to_k", "to_v", "to_out.0")
ADAPTER, DENOISER = "pytorch_lora_weights.safetensors", "unet"  # as diffusers looks for them in a folder
_PIPELINES = ("StableDiffusionPipeline", "StableDiffusionXLPipeline")
TAKEN = {"dtype", "device", "variant", "revision"}
_PER_LEARNED = 16  # bytes of a number that is learned: itself, its gradient, and two running means, in float32


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """What is trained, and how long: rank is of an adapter."""

    model: Annotated[
        str,
        Field(
            description="Stable Diffusion or SDXL, as a SPEC: diffusers:FOLDER, with dtype, device, variant, revision."
        ),
    ]
    steps: Annotated[int, Field(ge=1, le=10_000_000, description="Steps of the optimiser.")] = 1000
    epochs: Annotated[
        float | None, Field(gt=0, le=10_000, description="Passes over all pairs, in place of a number of steps.")
    ] = None
    learns: Annotated[
        Literal["lora", "full"], Field(description="An adapter, or every weight of the denoiser, as in C³.")
    ] = "lora"
    processes: Annotated[
        int,
        Field(ge=1, le=64, description="Processes that share a step through accelerate, one a GPU, each with a batch."),
    ] = 1
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

    def steps_over(self, pairs: int) -> int:
        """Count the steps of a training on so many pairs."""
        if self.epochs is None:
            return self.steps
        return max(1, math.ceil(self.epochs * pairs / (self.batch * self.accumulate * self.processes)))

    def decided(self) -> dict[str, object]:
        """Give what decides the weights, as a manifest keeps it; newer options only where they are used."""
        newer = {"epochs", "learns", "processes"}
        return {name: value for name, value in kept(self, but=("seed",)).items()
                if name not in newer or value != _USUAL[name]}  # fmt: skip

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


_USUAL = {each.name: each.default for each in fields(TuningOptions)}


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
    stated, target = options.spec.read(Options), options.spec.target
    folder = find_pipeline(target, revision=stated.revision, variant=stated.variant, asked_by=DIFFUSERS)
    if folder.kind not in _PIPELINES:
        raise UsageError("adapters of this pipeline cannot be trained here", where=target,
                         expected=" or ".join(_PIPELINES), found=folder.kind)  # fmt: skip
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
                if part.name == "unet" and options.learns == "full":
                    learned += math.prod(tensor.shape)
                elif part.name == "unet" and layer.search(name):
                    learned += options.rank * sum(tensor.shape[:2])
    steps = options.steps_over(pairs)
    shown = steps * options.batch * options.accumulate * options.processes
    seconds = None if step is None else step * steps
    held = (weights, learned * _PER_LEARNED)
    return TuningPlan(steps, pairs, shown / pairs, learned, *held, seconds, peak)


def finetune_stage(pairs: Path, options: TuningOptions) -> Stage:
    """Train the denoiser of Stable Diffusion or SDXL, or a LoRA adapter of it, on pairs of captions and images."""
    check_options(options)

    def run(work: Work) -> Outcome:
        trained: Outcome = training().train(work, pipeline_of(options), pairs_in(pairs), options)
        return trained

    foreign = pairs.exists() and read_manifest(pairs) is None  # or what a stage in front will write
    return Stage(
        "finetuned", "finetune", 1, run, {"pairs": pairs},
        {**options.decided(), "weights": files_behind(options.spec)}, {"training": options.seed},
        packages=("diffusers", "numpy", "peft", "pillow", "polars", "torch", "transformers"),
        trees={"pairs": lambda final: InputRecord(digest_tree(pairs)[0], "a folder of pairs")} if foreign else {},
        before=partial(check_training, options),
    )  # fmt: skip


def check_training(options: TuningOptions) -> None:
    """Make sure that what trains a model, and the model, are there."""
    check_ready(BACKENDS, options.model)
    training()
    if options.processes > 1:
        needed_package("accelerate", kind="fine-tuning in several processes", extra="embed,generate")


def training() -> Any:  # noqa: ANN401 - a module
    """Import what trains, or say which command installs what it needs."""
    for package in ("torch", "diffusers", "transformers", "peft"):
        needed_package(package, kind="fine-tuning", extra="embed,generate")
    return import_module("culturekit.generation.diffusion.lora_training")


def pilot_of(
    folder: Path, options: TuningOptions, out: Path, *, engine: Engine, progress: Progress, wait: bool
) -> TuningPlan:
    """Take two steps, keep nothing of them, and say what all of them would take."""

    def part(work: Work) -> tuple[float, int | None]:
        measured: tuple[float, int | None] = training().measure(pipeline_of(options), pairs, options)
        return measured

    pairs = pairs_in(folder)
    found = run_part(finetune_stage(folder, options), out, part, engine=engine, progress=progress, wait=wait)
    return plan_tuning(options, len(pairs), *(found or ()))
