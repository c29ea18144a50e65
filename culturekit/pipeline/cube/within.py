"""Diversity within countries: images of prompts that name a country, made and mapped beside the others."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from culturekit.config.recipe_parts import Model
from culturekit.families.inputs import Files
from culturekit.families.within import WithinOptions, WithinReads, within
from culturekit.generation.runner import ImagePlan
from culturekit.index.matching.mapping_options import MappingInputs
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.map_stage import map_stage
from culturekit.report.stage_names import WITHIN
from culturekit.stages.stage import Stage

__all__ = ["WITHIN_IMAGES", "within_plan", "within_stages"]

WITHIN_IMAGES, WITHIN_MATCHES = "within-images-", "within-matches-"
"""How the folders begin that hold what is made for these scores alone."""


def within_plan(run: CubeRun) -> ImagePlan | None:
    """Say which images are made for these scores alone; None where there are none."""
    wanted = run.recipe.within
    if wanted is None or set(wanted.kinds) <= set(run.recipe.images.kinds):
        return None
    return replace(run.recipe.images, kinds=wanted.kinds, repeats=wanted.repeats, slots=wanted.slots)


def within_stages(run: CubeRun) -> list[Stage]:
    """Make and map images of prompts that name a country, where there are none yet, and score them."""
    recipe = run.recipe
    if recipe.within is None and recipe.scores.within == "none":
        return []
    plan = within_plan(run)
    if plan is None:
        return [within_of(run, run.all_matches())]
    stages = [stage for model in recipe.models for stage in made_and_mapped(run, model, plan)]
    matches = {f"matches-{name}": table(run, WITHIN_MATCHES, name) for name in run.names}
    return [*stages, within_of(run, matches)]


def within_of(run: CubeRun, matches: Mapping[str, Path]) -> Stage:
    """Score what images of prompts that name a country were mapped to."""
    return within(WithinReads(Files(matches), run.prompts), WithinOptions(**asdict(run.recipe.scores)), name=WITHIN)


def made_and_mapped(run: CubeRun, model: Model, plan: ImagePlan) -> list[Stage]:
    """Make and map the images of one model; they share its budget with those it was asked for first."""
    name, images = model.name, table(run, WITHIN_IMAGES, model.name)
    return [
        generate_stage(
            run.prompts, plan, backend=model.backend, model=name, seed=run.recipe.seed, name=f"{WITHIN_IMAGES}{name}",
            cspace=run.space, llm=replace(model.buying.options(), beside=(run.workdir / f"images-{name}",)),
        ),
        map_stage(
            MappingInputs(run.index, images, run.prompts), run.recipe.mapping, name=f"{WITHIN_MATCHES}{name}"
        ),
    ]  # fmt: skip


def table(run: CubeRun, kind: str, model: str) -> Path:
    """Name the table of images or of matches of a model."""
    name = "images" if kind == WITHIN_IMAGES else "matches"
    return run.workdir / f"{kind}{model}" / f"{name}.parquet"
