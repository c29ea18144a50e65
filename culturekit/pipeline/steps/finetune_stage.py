"""The stage that trains an adapter for a diffusion pipeline."""

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from culturekit.families.family import check_options, kept
from culturekit.families.handles.behind_specs import check_ready
from culturekit.generation.backends import BACKENDS
from culturekit.generation.diffusion.diffusers_backend import files_behind
from culturekit.generation.finetuning.training_pairs import pairs_in
from culturekit.generation.finetuning.tuning_plan import TuningOptions, TuningPlan, pipeline_of, plan_tuning
from culturekit.records.work import Engine, Outcome, Progress, Work
from culturekit.stages.run_stage import run_part
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_tree
from culturekit.storage.manifest import InputRecord, read_manifest
from culturekit.torch_places import needed_package

__all__ = ["FinetuneReads", "finetune_stage", "pilot_of"]


@dataclass(frozen=True, slots=True)
class FinetuneReads:
    """What an adapter is trained on."""

    pairs: Annotated[
        Path, Field(description="Folder that `select export` wrote, or one of images with metadata.jsonl.")
    ]


def finetune_stage(given: FinetuneReads, options: TuningOptions) -> Stage:
    """Train a LoRA adapter of the denoiser of Stable Diffusion or SDXL on pairs of captions and images."""
    check_options(options)

    def run(work: Work) -> Outcome:
        trained: Outcome = training().train(work, pipeline_of(options), pairs_in(given.pairs), options)
        return trained

    foreign = given.pairs.exists() and read_manifest(given.pairs) is None  # or what a stage in front will write
    return Stage(
        "finetuned",
        "finetune",
        1,
        run,
        {"pairs": given.pairs},
        {**kept(options, but=("seed",)), "weights": files_behind(options.spec)},
        {"training": options.seed},
        packages=("diffusers", "numpy", "peft", "pillow", "polars", "torch", "transformers"),
        trees={"pairs": lambda final: InputRecord(digest_tree(given.pairs)[0], "a folder of pairs")} if foreign else {},
        before=partial(check_training, options.model),
    )


def check_training(model: str) -> None:
    """Make sure that what trains a model, and the model, are there."""
    check_ready(BACKENDS, model)
    training()


def training() -> Any:  # noqa: ANN401 - a module
    """Import what trains, or say which command installs what it needs."""
    for package in ("torch", "diffusers", "transformers", "peft"):
        needed_package(package, kind="fine-tuning", extra="embed,generate")
    return import_module("culturekit.generation.finetuning.lora_training")


def pilot_of(
    given: FinetuneReads, options: TuningOptions, out: Path, *, engine: Engine, progress: Progress, wait: bool
) -> TuningPlan:
    """Take two steps, keep nothing of them, and say what all of them would take."""

    def part(work: Work) -> tuple[float, int | None]:
        measured: tuple[float, int | None] = training().measure(pipeline_of(options), pairs, options)
        return measured

    pairs = pairs_in(given.pairs)
    found = run_part(finetune_stage(given, options), out, part, engine=engine, progress=progress, wait=wait)
    return plan_tuning(options, len(pairs), *(found or ()))
