"""The stage from prompts to images."""

from dataclasses import asdict
from functools import partial
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.families.handles.behind_specs import behind, check_ready
from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.generation.backends import BACKENDS
from culturekit.generation.diffusion.diffusers_backend import files_behind
from culturekit.generation.diffusion.diffusers_options import DIFFUSERS
from culturekit.generation.diffusion.held_runner import Pace
from culturekit.generation.folder.folder_options import FOLDER
from culturekit.generation.runner import ImagePlan, Maker, generate, pilot
from culturekit.generation.services.image_services import is_paid
from culturekit.llm.answers import LlmOptions
from culturekit.pipeline.part_run import run_part
from culturekit.pipeline.steps.folder_stage import image_folder, stage_of
from culturekit.pipeline.steps.paid_images_stage import paid_images_stage
from culturekit.records.work import Engine, Progress, Work
from culturekit.registry import Spec, parse_spec
from culturekit.stages.stage import Stage
from culturekit.storage.manifest import read_manifest
from culturekit.trail.upstream import upstream

__all__ = ["cspace_behind", "generate_stage", "run_pilot"]

DEFAULTS = LlmOptions()


def cspace_behind(prompts: Path) -> Path | None:
    """Find the cultural space that prompts were built from, where their folder still knows it."""
    manifest = read_manifest(prompts.parent)
    return upstream(prompts.parent, "cspace") if manifest is not None and "cspace" in manifest.inputs else None


def generate_stage(
    prompts: Path,
    plan: ImagePlan,
    *,
    backend: str,
    model: str,
    seed: int,
    name: str = "images",
    cspace: Path | None = None,
    llm: LlmOptions = DEFAULTS,
    adapter: Path | None = None,
) -> Stage:
    """Make the images of a model; a backend that draws from a cultural space has it as an input.

    `llm` says how images of a paid service are bought, which decides none of them. `adapter` is the folder of a stage
    that trains one for the model, perhaps later than this is said.
    """
    adapted(backend, adapter)
    if is_paid(backend):
        return paid_images_stage(prompts, plan, backend=backend, model=model, seed=seed, name=name, llm=llm)
    spec, space = parse_spec(backend), None
    if spec.name == FOLDER:
        folder = image_folder(
            backend, prompts, model=model, repeats=plan.repeats, slots=plan.slots, kinds=plan.kinds, cspace=cspace
        )
        return stage_of(folder, name=name, form=plan.format)
    inputs = {"prompts": prompts}
    if "cspace" in BACKENDS.find(spec).needs:
        stated = spec.options.get("cspace")
        spec = Spec(spec.name, spec.target, {key: text for key, text in spec.options.items() if key != "cspace"})
        space = Path(stated) if stated else cspace
        if space is not None:
            inputs["cspace"] = space
    if adapter is not None:
        inputs["adapter"] = adapter
    BACKENDS.check(str(spec))
    weights = {"weights": files_behind(spec)} if spec.name == DIFFUSERS else {}
    brought = behind(BACKENDS, str(spec)) if BACKENDS.find(spec).plugin else {}
    return Stage(
        name,
        "generate",
        1,
        lambda work: generate(
            work,
            prompts_table(prompts, work.scratch),
            plan,
            maker_of(model, adapted(str(spec), adapter), space, work.scratch),
            seed=seed,
        ),
        inputs,
        {**asdict(plan), "backend": str(spec), "model": model, **weights, **brought},
        {"images": seed},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, BACKENDS, str(spec)),
    )


def adapted(backend: str, adapter: Path | None) -> str:
    """Have a pipeline of diffusers draw with an adapter that a stage trained."""
    if adapter is None:
        return backend
    spec = parse_spec(backend)
    if spec.name != DIFFUSERS or "lora" in spec.options:
        raise UsageError("this backend takes no adapter", expected="diffusers:FOLDER without lora", found=backend)
    return str(Spec(spec.name, spec.target, {**spec.options, "lora": str(adapter)}))


def maker_of(model: str, backend: str, space: Path | None, scratch: Path) -> Maker:
    """Describe who makes images; a backend that draws from a cultural space gets it as a table."""
    return Maker(model, backend, None if space is None else space_table(space, scratch))


def run_pilot(
    prompts: Path, plan: ImagePlan, stage: Stage, out: Path, *, seed: int, engine: Engine, progress: Progress,
    wait: bool = False,
) -> Pace | None:  # fmt: skip
    """Make two images of a stage where its run will go on, and time them; None where all images are there."""

    def part(work: Work) -> Pace | None:
        backend = adapted(str(stage.options["backend"]), stage.inputs.get("adapter"))
        maker = maker_of(str(stage.options["model"]), backend, None, work.scratch)
        return pilot(work, prompts_table(prompts, work.scratch), plan, maker, seed=seed)

    return run_part(stage, out, part, engine=engine, progress=progress, wait=wait)
