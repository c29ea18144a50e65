"""The stage that trains an adapter for a diffusion pipeline."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from culturekit.core.declared import check_options
from culturekit.core.digests import InputRecord, digest_tree, read_manifest
from culturekit.core.spec_state import check_ready
from culturekit.core.stage import Stage
from culturekit.core.torch_places import needed_package
from culturekit.core.work import Outcome, Work
from culturekit.generation.backend import BACKENDS
from culturekit.generation.diffusion.diffusers_backend import files_behind
from culturekit.generation.diffusion.training import TuningOptions, pairs_in, pipeline_of


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
