"""What a run would do, told without doing it: stages, bytes, requests, tokens, cost, minutes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from culturekit.config.kinds import AnyRecipe, wired
from culturekit.errors import ConfigError, MissingDependency, Problem, UsageError
from culturekit.pipeline.planning.refusals import refusals, state_of
from culturekit.pipeline.planning.slots import asks, made_by
from culturekit.pipeline.steps.generate_stage import run_pilot
from culturekit.records.work import Engine, Progress
from culturekit.stages.planned import Ahead, PlannedStage, ToPlan
from culturekit.stages.stage import Stage
from culturekit.trail.upstream import manifest_of

__all__ = ["pilot_models", "plan_lines", "plan_recipe", "total_of"]


def plan_recipe(recipe: AnyRecipe, workdir: Path) -> list[PlannedStage]:
    """Plan every stage; nothing is sent and nothing is written.

    Raises:
        ConfigError: a run would be refused, and not only for what this machine lacks, such as a key.
    """
    planned: list[PlannedStage] = []
    undone: set[Path] = set()
    made: dict[Path, Ahead] = {}
    steps = wired(recipe, workdir).steps
    lacks = lacking([step.stage for step in steps], workdir)
    for step in steps:
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
        one = (step.plan or asks())(ToPlan(stage, state, folder, settled, ahead))
        planned.append(replace(one, lacks=lacks.get(stage.name, "")))
        made[folder] = Ahead(stage, planned[-1].units)
    return planned


def lacking(stages: Sequence[Stage], workdir: Path) -> dict[str, str]:
    """Say what stages lack on this machine, by their names; whatever else a run would be refused for is raised."""
    found = refusals(stages, workdir)
    wrong = [
        Problem(str(error), ", ".join(names)) for error, names in found if not isinstance(error, MissingDependency)
    ]
    if wrong:
        raise ConfigError(wrong)
    return {name: str(error) for error, names in found for name in names}


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
    for lacks, alike in groupby(sorted((step.lacks, step.name) for step in steps if step.lacks), itemgetter(0)):
        yield f"A run would be refused: {', '.join(name for _, name in alike)}: {lacks}"
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
        if run_pilot(prompts, made_by(stage), stage, out, seed=seed, engine=engine, progress=progress) is not None:
            tried.append(stage.name)
    return tried
