"""What a run would do, told without doing it: stages, bytes, requests, tokens, cost, minutes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from culturekit.config.kinds import AnyRecipe, wired
from culturekit.errors import UsageError
from culturekit.generation.runner import ImagePlan
from culturekit.pipeline.known_inputs import known_records
from culturekit.pipeline.planning.slots import asks
from culturekit.pipeline.steps.generate_stage import run_pilot
from culturekit.records.work import Engine, Progress
from culturekit.stages.planned import Ahead, PlannedStage, ToPlan
from culturekit.stages.stage import Stage, input_records, key_of
from culturekit.storage.manifest import read_manifest
from culturekit.trail.upstream import manifest_of

__all__ = ["pilot_models", "plan_lines", "plan_recipe", "state_of", "total_of"]


def plan_recipe(recipe: AnyRecipe, workdir: Path) -> list[PlannedStage]:
    """Plan every stage; nothing is sent and nothing is written."""
    planned: list[PlannedStage] = []
    undone: set[Path] = set()
    made: dict[Path, Ahead] = {}
    for step in wired(recipe, workdir).steps:
        stage, folder = step.stage, workdir / step.stage.name
        state = state_of(stage, folder, undone)
        if state == "done":
            planned.append(PlannedStage(stage.name, state))
            made[folder] = Ahead(stage, manifest_of(folder).counts.get("images"))
            continue
        settled = not undone or state != "to do"
        undone.add(folder)
        ahead = {
            role: made[place] for role, path in stage.inputs.items() for place in (path, path.parent) if place in made
        }
        planned.append((step.plan or asks())(ToPlan(stage, state, folder, settled, ahead)))
        made[folder] = Ahead(stage, planned[-1].units)
    return planned


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


def plan_lines(steps: Sequence[PlannedStage]) -> Iterator[str]:
    """Write a plan as a table."""
    wide = max([20, *(len(step.name) for step in steps)])
    head = f"{'work':>18} {'MB':>8} {'minutes':>8} {'requests':>9} {'tokens':>13} {'USD':>8}"
    yield f"{'stage':<{wide}} {'state':<14} {head}"
    for step in [*steps, total_of(steps)]:
        work = "" if step.units is None else f"{step.units:,} {step.unit}"
        size = "" if step.bytes is None else f"{step.bytes / 1e6:,.1f}"
        minutes = "" if step.seconds is None else f"{step.seconds / 60:,.2f}"
        requests = "" if step.requests is None else f"{step.requests:,}"
        tokens = "" if step.tokens is None else f"{step.tokens:,}"
        dollars = "" if step.dollars is None else f"{step.dollars:,.2f}"
        yield (
            f"{step.name:<{wide}} {step.state:<14} {work:>18} {size:>8} {minutes:>8} "
            f"{requests:>9} {tokens:>13} {dollars:>8}"
        )
    yield "A blank is what cannot be known before the stages in front of it have run. Nothing was sent or written."
    unknown = [step.name for step in steps if step.dollars is None]
    if unknown:
        yield f"The total lacks the dollars of {', '.join(unknown)}: plan again when more stages have run."


def total_of(steps: Sequence[PlannedStage]) -> PlannedStage:
    """Add up what is known of all stages; the state says whether that is everything."""

    def added(name: str) -> float:
        return sum(getattr(step, name) or 0 for step in steps)

    known = all(None not in (step.requests, step.tokens, step.dollars) for step in steps)
    return PlannedStage(
        "total",
        "all" if known else "at least",
        bytes=round(added("bytes")),
        seconds=added("seconds"),
        requests=round(added("requests")),
        tokens=round(added("tokens")),
        dollars=added("dollars"),
    )


def pilot_models(
    recipe: AnyRecipe,
    workdir: Path,
    *,
    engine: Engine,
    progress: Progress,
    on_start: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Make two images of each model that has weights, where the run will find them; name the stages that had any left.

    Raises:
        UsageError: no such model is there, or its prompts are not built yet.
    """
    made = [step.stage for step in wired(recipe, workdir).steps if step.stage.kind == "generate"]
    stages = [stage for stage in made if "weights" in stage.options]
    if not stages:
        raise UsageError(
            "a pilot times models that run on this machine, and the recipe has none",
            found=", ".join(str(one.options["backend"]) for one in made if one.options["model"] in recipe.evaluated),
        )
    tried = []
    for stage in stages:
        prompts = stage.inputs["prompts"]
        if not prompts.is_file():
            raise UsageError(
                "a pilot needs the prompts, which are not built yet", where=str(prompts),
                hint="Run the recipe with --until prompts first.",
            )  # fmt: skip
        on_start(stage.name)
        out, seed = workdir / stage.name, stage.seeds["images"]
        if run_pilot(prompts, plan_of(stage), stage, out, seed=seed, engine=engine, progress=progress) is not None:
            tried.append(stage.name)
    return tried


def plan_of(stage: Stage) -> ImagePlan:
    """Read what a stage makes from its options."""
    return ImagePlan(**{field.name: stage.options[field.name] for field in fields(ImagePlan)})  # type: ignore[arg-type]
