"""A run of the kind `inclusion` with two objects and two models: seconds long, and all of its stages."""

from pathlib import Path

from culturekit.config.load import load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.recipes.run_recipe import run_recipe

PLACES = """\
objects: [bag, dog]
regions: {Africa: [NG, ZA], Europe: [ES, IT]}
"""

RECIPE = """\
recipe: inclusion
seed: 7
places: %s
models:
  - {name: local, backend: "simulated-objects?regional=0.5&crude=0.1&exaggerates=0.2"}
  - {name: showy, backend: "simulated-objects?regional=0.3&exaggerates=0.9&shows=0.8"}
images: {slots: 16}
photographs: {backend: "simulated-objects?regional=0.6", each: 18}
extractors:
  - {name: content, encoder: "simulated-objects?blur=0.6&flaws=0.3"}
  - {name: captioner, encoder: "simulated-objects?blur=0.9"}
texts: captioner
threshold: 0.17
k: 3
people: {images: 16, per_region: 2, near: 1, far: 1, per_sheet: 60, simulated: {accuracy: 0.99, careless: 0.05}}
"""


def small_recipe(folder: Path, places: str = PLACES) -> Path:
    """Write the recipe and its list."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "places.yaml").write_text(places, encoding="utf-8")
    (folder / "small.yaml").write_text(RECIPE % (folder / "places.yaml"), encoding="utf-8")
    return folder / "small.yaml"


def small_run(folder: Path) -> Path:
    """Run it, and give the folder of the run."""
    with LocalEngine(1) as engine:
        run_recipe(load_any_recipe(small_recipe(folder / "said")), folder / "run", engine=engine)
    return folder / "run"
