"""What a run would do, told without doing it: stages, bytes, requests, tokens, cost, minutes."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from culturekit.builders.prompt_templates import templates
from culturekit.config.recipe import Recipe
from culturekit.generation.folder_listing import list_folder
from culturekit.generation.image_services import is_paid
from culturekit.generation.runner import ImagePlan, known_pace
from culturekit.index.shuffled_pictures import SHUFFLED
from culturekit.kg.concepts import load_concept
from culturekit.llm.client import FreeClient
from culturekit.llm.clients import CLIENTS
from culturekit.pipeline.cube import completion_run, cube_stages, filter_run
from culturekit.pipeline.known_inputs import known_records
from culturekit.pipeline.paid_images_plan import plan_images, price_of_each
from culturekit.pipeline.stage import Stage, input_records, key_of
from culturekit.report.run_folders import CULTURE_FREE
from culturekit.storage.manifest import read_manifest

__all__ = ["PlannedStage", "plan_lines", "plan_recipe"]

SECONDS_PER_UNIT = {"ingest": 8.0e-7, "generate": 2.5e-3, "index": 1.1e-3, "map": 1.3e-3, "quality": 8.0e-4}
"""Per byte of dump, or per image, on one core: `python benchmarks/stage_rates.py`."""

BYTES_PER_UNIT = {"ingest": 0.5, "generate": 4_900.0, "index": 1_300.0, "map": 1_400.0, "quality": 20.0}
"""Written per byte of dump, or per image: the same script."""


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage of a plan; None is what cannot be known before the stages in front have run."""

    name: str
    state: str
    units: int | None = None
    unit: str = ""
    bytes: int | None = None
    seconds: float | None = None
    requests: int | None = 0
    tokens: int | None = 0
    dollars: float | None = 0.0

    def as_data(self) -> dict[str, object]:
        """Give the stage as data."""
        return asdict(self)


def plan_recipe(recipe: Recipe, workdir: Path) -> list[PlannedStage]:
    """Plan every stage; nothing is sent and nothing is written."""
    planned: list[PlannedStage] = []
    undone: set[Path] = set()
    for stage in cube_stages(recipe, workdir):
        folder = workdir / stage.name
        state = state_of(stage, folder, undone)
        if state == "done":
            planned.append(PlannedStage(stage.name, state))
            continue
        undone.add(folder)
        if stage.kind == "filter":
            planned.append(
                planned_filter(stage, state, recipe, workdir, known=state != "to do" or not undone - {folder})
            )
            continue
        if stage.kind == "completion":
            planned.append(planned_completion(stage, state, recipe, workdir))
            continue
        units, unit = units_of(stage, recipe, workdir)
        paid = planned_images(stage, state, units, recipe, workdir)
        if paid is not None:
            planned.append(paid)
            continue
        planned.append(
            PlannedStage(
                stage.name,
                state,
                units,
                unit,
                bytes=scaled(units, BYTES_PER_UNIT.get(stage.kind)),
                seconds=seconds_of(stage, folder, units),
            )
        )
    return planned


def planned_filter(stage: Stage, state: str, recipe: Recipe, workdir: Path, *, known: bool) -> PlannedStage:
    """Plan the judge's questions, as soon as its candidates are there."""
    if not known or not stage.inputs["candidates"].is_file():
        free = isinstance(CLIENTS.make(recipe.judge), FreeClient)
        cost = (0, 0, 0.0) if free else (None, None, None)
        return PlannedStage(stage.name, state, None, "candidates", None, None, *cost)
    plan = filter_run(recipe, workdir).plan()
    tokens = plan.cost.input_tokens + plan.cost.output_tokens
    left = plan.cost.requests - plan.cost.bought
    return PlannedStage(stage.name, state, plan.candidates, "candidates", None, None, left, tokens, plan.cost.usd)


def planned_completion(stage: Stage, state: str, recipe: Recipe, workdir: Path) -> PlannedStage:
    """Plan the completion: the most that its rounds can ask, also before the names that go along are known."""
    plan = completion_run(recipe, workdir).plan()
    return PlannedStage(stage.name, state, plan.cells, "pairs", None, None, plan.requests, plan.tokens, plan.usd)


def planned_images(stage: Stage, state: str, units: int | None, recipe: Recipe, workdir: Path) -> PlannedStage | None:
    """Plan images that are bought; None for a stage that buys none."""
    model = next((each for each in recipe.models if f"images-{each.name}" == stage.name), None)
    backend = recipe.references.backend if stage.name == "references" else model.backend if model else ""
    if not backend or not is_paid(backend):
        return None
    if not stage.inputs["prompts"].is_file():
        each = price_of_each(backend, recipe.images, batch=model is not None and model.buying.batch)
        dollars = None if units is None else units * each
        return PlannedStage(stage.name, state, units, "images", None, None, None, None, dollars)
    plan = ImagePlan(slots=recipe.references.per_artifact, kinds=("cube",)) if model is None else recipe.images
    batch = model is not None and model.buying.batch
    bought = plan_images(
        stage.inputs["prompts"], plan, backend=backend, seed=recipe.seed, out=workdir / stage.name, batch=batch
    )
    left = bought.calls - bought.bought
    return PlannedStage(stage.name, state, bought.images, "images", None, None, left, bought.tokens, bought.usd)


def waits(stage: Stage, undone: set[Path]) -> bool:
    """Tell whether a stage reads what is still to be made."""
    return any(path in undone or path.parent in undone for path in stage.inputs.values())


def state_of(stage: Stage, folder: Path, undone: set[Path]) -> str:
    """Tell whether a stage is done, cut off, out of date, or not begun."""
    manifest = read_manifest(folder)
    begun = folder.with_name(f".{folder.name}.partial").joinpath("key").is_file()
    if waits(stage, undone):
        return "cut off" if begun else "to do" if manifest is None else "to check again"
    if manifest is not None and manifest.key == key_of(
        stage, input_records(stage.inputs, known=known_records(stage, folder))
    ):
        return "done"
    return "cut off" if begun else "to do" if manifest is None else "out of date"


def units_of(stage: Stage, recipe: Recipe, workdir: Path) -> tuple[int | None, str]:
    """Count what a stage works on, as far as that can be known now."""
    if stage.kind == "ingest":
        return sum(path.stat().st_size for path in stage.inputs.values()), "bytes"
    if stage.kind == "generate" and "folder" in stage.trees:
        return len(list_folder(stage.inputs["folder"]).pictures), "pictures"
    if stage.kind in {"map", "quality", "truth"} or (stage.kind == "generate" and stage.name != "references"):
        prompts = prompt_count(recipe.images.kinds, recipe, workdir)
        return None if prompts is None else prompts * repeats_of(stage, recipe) * recipe.images.slots, "images"
    if stage.kind in {"generate", "index"}:
        prompts = prompt_count(("cube",), recipe, workdir)
        return None if prompts is None else prompts * recipe.references.per_artifact, "images"
    return None, ""


def repeats_of(stage: Stage, recipe: Recipe) -> int:
    """Say how often a stage repeats each prompt: for floor and shuffled images, which only compare, less often."""
    if recipe.diagnosis is None or not stage.name.endswith((CULTURE_FREE, SHUFFLED)):
        return recipe.images.repeats
    return min(recipe.diagnosis.floor_repeats, recipe.images.repeats)


def prompt_count(kinds: Sequence[str], recipe: Recipe, workdir: Path) -> int | None:
    """Count the prompts of some kinds: from the table, or from the templates where they alone decide."""
    table = workdir / "prompts/prompts.parquet"
    if table.is_file():
        prompts = pl.read_parquet(table, columns=["kind"])
        return prompts.filter(pl.col("kind").is_in(list(kinds))).height
    if set(kinds) != {"underspecified"}:
        return None
    concepts = [load_concept(name).concept for name in recipe.concepts]
    return sum(len(templates().underspecified.get(concept, ())) for concept in concepts)


def seconds_of(stage: Stage, folder: Path, units: int | None) -> float | None:
    """Say how long a stage takes; of a model with weights only a pilot (`generate --pilot`) can tell."""
    if stage.kind == "generate" and "weights" in stage.options:
        return scaled(units, known_pace(folder))
    return scaled(units, SECONDS_PER_UNIT.get(stage.kind))


def scaled(units: int | None, rate: float | None) -> int | None:
    """Multiply, where both are known, and round up."""
    return None if units is None or rate is None else int(units * rate) + 1


def plan_lines(steps: Sequence[PlannedStage]) -> Iterator[str]:
    """Write a plan as a table."""
    yield f"{'stage':<20} {'state':<14} {'work':>18} {'MB':>8} {'minutes':>8} {'requests':>9} {'tokens':>13} {'USD':>8}"
    for step in steps:
        work = "" if step.units is None else f"{step.units:,} {step.unit}"
        size = "" if step.bytes is None else f"{step.bytes / 1e6:,.1f}"
        minutes = "" if step.seconds is None else f"{step.seconds / 60:,.2f}"
        requests = "" if step.requests is None else f"{step.requests:,}"
        tokens = "" if step.tokens is None else f"{step.tokens:,}"
        dollars = "" if step.dollars is None else f"{step.dollars:,.2f}"
        yield (
            f"{step.name:<20} {step.state:<14} {work:>18} {size:>8} {minutes:>8} "
            f"{requests:>9} {tokens:>13} {dollars:>8}"
        )
    yield "A blank is what cannot be known before the stages in front of it have run. Nothing was sent or written."
