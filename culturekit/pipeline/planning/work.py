"""How much a stage works on, and how long that takes and how many bytes it writes here."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.builders.prompting.prompt_templates import templates
from culturekit.builders.space.imported_space import count_of_kinds
from culturekit.config.recipe_parts import References
from culturekit.generation.folder.folder_listing import list_folder
from culturekit.generation.folder.folder_options import FOLDER, folder_of
from culturekit.generation.runner import ImagePlan, known_pace
from culturekit.generation.services.image_services import is_paid
from culturekit.index.diagnosis.shuffled_pictures import SHUFFLED
from culturekit.kg.concepts import load_concept
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.cube.within import within_plan
from culturekit.pipeline.planning.paid_images import plan_images, price_of_each
from culturekit.pipeline.planning.planned_stage import PlannedStage, ToPlan
from culturekit.registry import parse_spec
from culturekit.report.stage_names import CULTURE_FREE
from culturekit.stages.stage import Stage

__all__ = ["planned_images", "planned_work", "prompt_count"]

SECONDS_PER_UNIT = {"ingest": 8.0e-7, "generate": 2.5e-3, "index": 1.1e-3, "map": 1.3e-3, "quality": 8.0e-4}
"""Per byte of dump, or per image, on one core: `python benchmarks/stage_rates.py`."""

SECONDS_PER_BYTE = 8.0e-8
"""Of a picture file from a folder, to decode it: a PNG of 512 pixels takes about 40 ms, a simulated one 0.3."""

DECODING = {"generate", "index", "map", "quality"}
"""Kinds of stages that decode every picture."""

BYTES_PER_UNIT = {"ingest": 0.5, "generate": 4_900.0, "index": 1_300.0, "map": 1_400.0, "quality": 20.0}
"""Written per byte of dump, or per image: the same script."""


def planned_images(plan: ToPlan) -> PlannedStage:
    """Plan images: dollars of those that are bought, minutes of the others."""
    stage, recipe = plan.stage, plan.run.recipe
    own = stage.name.removeprefix("within-")
    model = next((each for each in recipe.models if f"images-{each.name}" == own), None)
    references = recipe.references if stage.name == "references" else None
    backend = references.backend if references else model.backend if model else ""
    if not backend or not is_paid(backend):
        return planned_work(plan)
    units = units_of(stage, plan.run)[0]
    batch = model is not None and model.buying.batch
    if not stage.inputs["prompts"].is_file():
        each = price_of_each(backend, images_of(stage, plan.run), batch=batch)
        dollars = None if units is None else units * each
        return PlannedStage(stage.name, plan.state, units, "images", None, None, None, None, dollars)
    made = images_of(stage, plan.run)
    images = ImagePlan(slots=references.per_artifact, kinds=("cube",)) if references else made
    out = plan.run.workdir / stage.name
    bought = plan_images(stage.inputs["prompts"], images, backend=backend, seed=recipe.seed, out=out, batch=batch)
    left = bought.calls - bought.bought
    return PlannedStage(stage.name, plan.state, bought.images, "images", None, None, left, bought.tokens, bought.usd)


def planned_work(plan: ToPlan) -> PlannedStage:
    """Plan a stage that costs nothing but time."""
    stage = plan.stage
    units, unit = units_of(stage, plan.run)
    size = scaled(units, BYTES_PER_UNIT.get(stage.kind))
    seconds = seconds_of(stage, plan.run, units)
    return PlannedStage(stage.name, plan.state, units, unit, bytes=size, seconds=seconds)


def units_of(stage: Stage, run: CubeRun) -> tuple[int | None, str]:
    """Count what a stage works on, as far as that can be known now."""
    images = images_of(stage, run)
    if stage.kind == "ingest":
        return sum(path.stat().st_size for path in stage.inputs.values()), "bytes"
    if stage.kind == "generate" and "folder" in stage.trees:
        return len(list_folder(stage.inputs["folder"]).pictures), "pictures"
    if stage.kind in {"map", "quality", "truth"} or (stage.kind == "generate" and stage.name != "references"):
        prompts = prompt_count(images.kinds, run)
        return None if prompts is None else prompts * repeats_of(stage, run) * images.slots, "images"
    references = run.recipe.references
    if stage.kind in {"generate", "index"} and references is not None:
        return reference_count(references, run), "images"
    return None, ""


def images_of(stage: Stage, run: CubeRun) -> ImagePlan:
    """Say which images a stage makes or maps: those for scores within countries are others."""
    within = within_plan(run) if stage.name.startswith("within-") else None
    return within or run.recipe.images


def reference_count(references: References, run: CubeRun) -> int | None:
    """Count the pictures of artifacts: those of a folder, or so many of each."""
    spec = parse_spec(references.backend)
    if spec.name == FOLDER and not references.counted:
        return len(list_folder(folder_of(spec)).pictures)
    if run.names_artifacts:
        table = run.reference_prompts
        return (
            pl.scan_parquet(table).select(pl.len()).collect().item() * references.per_artifact
            if table.is_file()
            else None
        )
    prompts = prompt_count(("cube",), run)
    return None if prompts is None else prompts * references.per_artifact


def repeats_of(stage: Stage, run: CubeRun) -> int:
    """Say how often a stage repeats each prompt: for floor and shuffled images, which only compare, less often."""
    repeats, diagnosis = images_of(stage, run).repeats, run.recipe.diagnosis
    if diagnosis is None or not stage.name.endswith((CULTURE_FREE, SHUFFLED)):
        return repeats
    return min(diagnosis.floor_repeats, repeats)


def prompt_count(kinds: Sequence[str], run: CubeRun) -> int | None:
    """Count the prompts of some kinds: from the table, or from the templates where they alone decide."""
    if run.prompts.is_file():
        prompts = pl.read_parquet(run.prompts, columns=["kind"])
        return prompts.filter(pl.col("kind").is_in(list(kinds))).height
    if run.recipe.prompts.file is not None:
        return count_of_kinds(Path(run.recipe.prompts.file), kinds)
    if set(kinds) != {"underspecified"} or run.recipe.cspace is not None:
        return None
    concepts = [load_concept(name).concept for name in run.recipe.concepts]
    return sum(len(templates().underspecified.get(concept, ())) for concept in concepts)


def seconds_of(stage: Stage, run: CubeRun, units: int | None) -> float | None:
    """Say how long a stage takes; of a model with weights only a pilot (`generate --pilot`) can tell.

    An encoder or a scorer with weights takes as long as they are large: nobody knows before they have run.
    """
    if stage.kind == "generate" and "weights" in stage.options:
        return scaled(units, known_pace(run.workdir / stage.name))
    looks = {"index": run.recipe.encoder, "map": run.recipe.encoder, "quality": run.recipe.quality}
    rate = SECONDS_PER_UNIT.get(stage.kind)
    if rate is None or parse_spec(looks.get(stage.kind) or "embedded").name != "embedded":
        return None
    return scaled(units, rate + (SECONDS_PER_BYTE * picture_bytes(stage, run) if stage.kind in DECODING else 0.0))


def picture_bytes(stage: Stage, run: CubeRun) -> float:
    """Say how large the picture files of a stage are on average, where they lie in a folder; else they are small."""
    model = next(
        (each for each in run.recipe.models if each.name == stage.name.removeprefix("within-").partition("-")[2]), None
    )
    references = run.recipe.references if stage.kind == "index" or stage.name == "references" else None
    spec = parse_spec(references.backend if references else model.backend if model else "simulated")
    if spec.name != FOLDER:
        return 0.0
    sizes = [file.size for file in list_folder(folder_of(spec)).pictures]
    return sum(sizes) / max(len(sizes), 1)


def scaled(units: int | None, rate: float | None) -> int | None:
    """Multiply, where both are known, and round up."""
    return None if units is None or rate is None else int(units * rate) + 1
