"""Shipped recipes, run small."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.run import StageRun
from culturekit.core.stage import hold
from culturekit.recipes.run_recipe import run_recipe

# Settings under which each shipped recipe but `cube` runs in seconds; in `linguistic` people err, some carelessly
SMALL = {
    "c3": (
        "captions.count=60", "captions.sample=40", "pairs.simulated.each=2", "pairs.keep=20", "people.pairs=60",
        "people.prompts=36", "people.resamples=99", "captions.beside={coco: tests/fixtures/coco.json}",
        "captions.drawn_beside=8",
    ),
    "cultivate": (
        "ground.countries=[US, IR]", "ground.per_category=1", "images.slots=2", "people.images=2",
        "people.resamples=99", "real.per_prompt=2", "scores.target=these",
    ),
    "inclusion": ("images.slots=8", "photographs.each=14", "people.near=1", "people.far=0"),
    "linguistic": (
        "prompts.nouns=2", "images.slots=2", "people.persons=60", "people.places=60", "detectors=[dall-eval]",
        "people.raters=2", "people.simulated={accuracy: 0.9, scatter: 0.4, careless: 0.2}",
    ),
}  # fmt: skip

CUBE = ("audit.images=30", "diagnosis.ceiling_repeats=4", "diagnosis.floor_repeats=2", "images.repeats=6")

Finished: TypeAlias = tuple[Path, list[StageRun]]  # The folder of a run, and what became of its stages


def run_small(recipe: str, settings: Sequence[str], folder: Path) -> Finished:
    """Run a recipe with other settings, in one process."""
    with LocalEngine(1) as engine:
        return folder, run_recipe(load_any_recipe(find_recipe(recipe), settings), folder, engine=engine)


def shared_small(recipe: str, folder: Path) -> Path:
    """Give a finished small run of a shipped recipe, made once for all processes; tests change only copies."""
    root = folder / "shipped" / recipe
    root.parent.mkdir(exist_ok=True)
    with hold(root.with_name(f".{recipe}.making.lock"), wait=True):
        if not (root / "report/manifest.json").is_file():
            settings = CUBE if recipe == "cube" else SMALL[recipe]
            assert {run.state for run in run_small(recipe, settings, root)[1]} == {"built"}
    return root
