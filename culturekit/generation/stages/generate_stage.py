"""The stage from prompts to images: drawn by a backend of one's own, taken from a folder, or bought."""

from functools import partial
from pathlib import Path

from culturekit.core.digests import read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.inputs import upstream
from culturekit.core.registry import Spec, check_ready, parse_spec, spec_state
from culturekit.core.run import run_part
from culturekit.core.stage import Engine, Outcome, Progress, Stage, Work
from culturekit.core.tables import prompts_table, space_table
from culturekit.generation.backend import BACKENDS, DIFFUSERS, FOLDER, is_paid
from culturekit.generation.picture_store import Maker
from culturekit.generation.runner import ImagePlan, Pace, generate, pilot
from culturekit.llm.answers import DEFAULTS, LlmOptions


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
        from culturekit.generation.services.paid_runner import paid_images_stage

        return paid_images_stage(prompts, plan, backend=backend, model=model, seed=seed, llm=llm)
    spec, space = parse_spec(backend), None
    if spec.name == FOLDER:
        from culturekit.generation.folder.folder_run import image_folder, stage_of

        folder = image_folder(
            backend, prompts, model=model, repeats=plan.repeats, slots=plan.slots, kinds=plan.kinds, cspace=cspace
        )
        return stage_of(folder, form=plan.format)
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
    weights = {}
    if spec.name == DIFFUSERS:
        from culturekit.generation.diffusion.diffusers_backend import files_behind

        weights = {"weights": files_behind(spec)}
    brought = spec_state(BACKENDS, str(spec)) if BACKENDS.find(spec).plugin else BACKENDS.brought_by(spec)

    def run(work: Work) -> Outcome:
        table = None if space is None else space_table(space, work.scratch)
        maker = Maker(model, adapted(str(spec), adapter), table)
        return generate(work, prompts_table(prompts, work.scratch), plan, maker, seed=seed)

    return Stage(
        "images", "generate", 2, run, inputs,
        {**plan.options, "backend": str(spec), "model": model, **weights, **brought}, {"images": seed},
        packages=("numpy", "pillow", "polars"), before=partial(check_ready, BACKENDS, str(spec)),
    )  # fmt: skip


def adapted(backend: str, adapter: Path | None) -> str:
    """Have a pipeline of diffusers draw with the adapter, or the whole denoiser, that a stage trained."""
    if adapter is None:
        return backend
    spec = parse_spec(backend)
    if spec.name != DIFFUSERS or {"lora", "unet"} & set(spec.options):
        raise UsageError("this backend takes no adapter", expected="diffusers:FOLDER without lora", found=backend)
    from culturekit.generation.diffusion.training import DENOISER

    whole = adapter / DENOISER  # which a full fine-tune writes
    learnt = {"unet": str(whole)} if whole.is_dir() else {"lora": str(adapter)}
    return str(Spec(spec.name, spec.target, {**spec.options, **learnt}))


def run_pilot(
    prompts: Path, plan: ImagePlan, stage: Stage, out: Path, *, seed: int, engine: Engine, progress: Progress,
    wait: bool = False,
) -> Pace | None:  # fmt: skip
    """Make two images of a stage where its run will go on, and time them; None where all images are there."""

    def part(work: Work) -> Pace | None:
        backend = adapted(str(stage.options["backend"]), stage.inputs.get("adapter"))
        maker = Maker(str(stage.options["model"]), backend)
        return pilot(work, prompts_table(prompts, work.scratch), plan, maker, seed=seed)

    return run_part(stage, out, part, engine=engine, progress=progress, wait=wait)
