"""A whole run: every stage in order, each reused, resumed or built."""

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path

from culturekit.config.kinds import AnyRecipe, recipe_kind, wired
from culturekit.core import roles
from culturekit.core.atomic import write_atomically
from culturekit.core.digests import canonical_json
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.run import RECIPE_RECORD, StageRun, run_stage
from culturekit.core.stage import Engine, Progress, Quiet, Stage, hold
from culturekit.core.yaml_source import as_json
from culturekit.recipes.planning import refusals
from culturekit.report.report_stage import (
    CUBE,
    SectionReport,
    folders_of,
    recorded,
    report_stage,
    sections_report_stage,
)
from culturekit.report.scores_page import plain_report

LOCK = ".lock"


def run_recipe(
    recipe: AnyRecipe,
    workdir: Path | str,
    *,
    engine: Engine,
    progress: Progress = Quiet(),  # noqa: B008 - it holds nothing
    until: str | None = None,
    fresh: Sequence[str] = (),
    wait: bool = False,
    on_start: Callable[[Stage], None] = lambda _: None,
    on_end: Callable[[StageRun], None] = lambda _: None,
) -> list[StageRun]:
    """Run the stages of a recipe in a folder; what is finished and still answers is not done again.

    What the recipe now makes from something else replaces what it made before, and that is said. Stages named by
    `fresh` are done again in any case; `images` means all images.

    Example:
        >>> recipe = ck.load_recipe("cube")
        >>> with ck.LocalEngine(2) as engine:
        ...     done = ck.run_recipe(recipe, "runs/mine", engine=engine, until="graph")
        >>> [(stage.name, stage.state) for stage in done]
        [('graph', 'built')]
    """
    if not isinstance(recipe, AnyRecipe):
        raise UsageError("no recipe", expected="what load_recipe gives", found=repr(recipe))
    workdir = Path(workdir)
    planned = [step.stage for step in wired(recipe, workdir).steps]
    stages = planned[: ends_of(planned, until)[-1] + 1] if until is not None else planned
    again = {planned[number].name for name in fresh for number in ends_of(planned, name)}
    if refused := refusals(stages, workdir):
        raise ConfigError([Problem(str(error), ", ".join(names)) for error, names in refused])
    record = {**as_json(recipe), "stages": [stage.name for stage in planned if stage.name != roles.REPORT.form]}
    workdir.mkdir(parents=True, exist_ok=True)
    runs = []
    with hold(workdir / LOCK, wait=wait):
        if (workdir / RECIPE_RECORD).is_file() and (known := recorded(workdir).recipe) != record["recipe"]:
            raise UsageError(
                "this folder has the run of another recipe", where=str(workdir), expected=f"a recipe `{known}`",
                found=f"`{record['recipe']}`", hint="Choose another --workdir.",
            )  # fmt: skip
        write_atomically(workdir / RECIPE_RECORD, canonical_json(record) + b"\n")
        for stage in stages:
            on_start(stage)
            run = run_stage(
                stage, workdir / stage.name, engine=engine, progress=progress, wait=wait, replace=True,
                fresh=stage.name in again,
            )  # fmt: skip
            on_end(run)
            runs.append(run)
    return runs


def ends_of(stages: Sequence[Stage], wanted: str) -> list[int]:
    """Find the stages of a name, or whose name begins with it: `images` means all images."""
    found = [number for number, stage in enumerate(stages) if f"{stage.name}-".startswith(f"{wanted}-")]
    if not found:
        names = [stage.name for stage in stages]
        families = [name.partition("-")[0] for name in names]
        near = difflib.get_close_matches(wanted, [*names, *families], n=1)
        raise UsageError(
            f"there is no stage {wanted!r}", expected=", ".join(names),
            hint=f"Did you mean {near[0]!r}?" if near else "",
        )  # fmt: skip
    return found


def report_of(root: Path) -> Stage:
    """Give the stage that writes the report of a finished run again."""
    run, name = folders_of(root), recorded(root).recipe
    return report_stage(run) if name == CUBE else sections_report_stage(run, page_of_kind(name))


def page_of_kind(name: str) -> SectionReport:
    """Give the page of a kind of recipe; of one that brings none, a page of what its stages declare."""
    kind = recipe_kind(name)
    return kind.page or plain_report(name, kind.sections)
