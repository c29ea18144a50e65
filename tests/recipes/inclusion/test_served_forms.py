"""Forms of a run that are answered in browsers, region by region: the next run takes what was said."""

from itertools import product
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from PIL import Image

from culturekit.config.load import load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.people.answer_desk import AnswerDesk
from culturekit.recipes.cube.served_audit import form_desk
from culturekit.recipes.inclusion.world import BackendOptions, ObjectsBackend, draw_object, known_regions
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.people.projects import Answers, entry, key_of
from tests.recipes.inclusion.small_world import small_recipe

pytestmark = pytest.mark.slow

REGIONS = {"Africa": "NG", "Americas": "MX", "China": "CN", "Italy": "IT", "Turkey": "TR"}
OWN = "objects: [bag, dog]\nregions: {" + ", ".join(f"{name}: [{code}]" for name, code in REGIONS.items()) + "}\n"
ONE = "models=[{name: local, backend: 'simulated-objects?regional=0.5'}]"
NOBODY = ("people.simulated=null", "people.per_region=1", "people.images=2", "images.slots=8", "photographs.each=8")


def geode(folder: Path) -> Path:
    """Lay photographs of each region and object as GeoDE does; those of one object and region are too few."""
    camera = ObjectsBackend(BackendOptions(regional="0.6"))
    for region, name in product(REGIONS, ("bag", "dog", "hat")):
        place = folder / region / name
        place.mkdir(parents=True)
        for number in range(2 if (region, name) == ("Italy", "hat") else 8):
            scene = camera.scene(name, known_regions()[region], seed=number)
            Image.fromarray(draw_object(scene, size=128, seed=number)).save(place / f"{number}.png")
    return folder


def answer(task: str, row: dict[str, Any]) -> Answers:
    """Say that all pictures show their object, and could be from China; that the second is more like the first."""
    if row["expected"]:
        expected: Answers = orjson.loads(row["expected"])
        return expected
    if task == "task2":
        return {"obj": "ym", "object_regions": ["china"], "background_regions": ["na"]}
    return {"shown": ["1", "2", "3"], "similar": "2", "confidence": "high", "appealing": "3"}


def fill_in(desk: AnswerDesk, project: Path, task: str) -> None:
    """Let one person after the other take a sheet, until none is left."""
    key = key_of(project)
    for number in range(100):
        person = f"{number} of {next(iter(desk.sheets))}"
        sheet = desk.begin({"annotator": person})["sheet"]
        if desk.answered == desk.wanted:
            return
        for one in desk.sheets[sheet]:
            desk.take(entry(project, sheet, one, person, answer(task, key[one])))
    raise AssertionError("sheets without end")


def test_what_people_of_each_region_answer_is_taken_by_the_next_run(tmp_path: Path) -> None:
    photographs = f"photographs.backend='folder:{geode(tmp_path / 'geode')}?pattern={{group}}/{{concept}}/{{id}}'"
    stated = (*NOBODY, ONE, photographs, "photographs.least=5")
    places = OWN.replace("dog]", "dog, hat]")
    recipe, root = load_any_recipe(small_recipe(tmp_path / "said", places), stated), tmp_path / "run"
    with LocalEngine(1) as engine:
        run_recipe(recipe, root, engine=engine)
        assert not (root / "marks").exists()
        for task in ("task1", "task2"):
            project = root / f"to-rate-{task}"
            with (
                pytest.raises(UsageError, match="--region with one of Africa, Americas, China, Italy, Turkey"),
                form_desk(project),
            ):
                pass
            for region in REGIONS:
                with form_desk(project, region) as desk:
                    fill_in(desk, project, task)
        built = run_recipe(recipe, root, engine=engine)
    assert {run.state for run in built if run.name.startswith(("images-", "vectors-", "to-rate-"))} == {"reused"}
    seen = pl.read_parquet(root / "tables-task2/task2.parquet")
    assert set(seen["annotator_loc"]) == set(REGIONS)
    assert set(seen["object"]) == {"bag", "dog"}, "of hats Italy has too few photographs"
    assert seen.height == 5 * pl.read_parquet(root / "to-look-at/object_items.parquet").height
    rates = pl.read_parquet(root / "scores-task2/scores.parquet").filter(
        pl.col("concept").is_null(), pl.col("params").str.contains('"target":"object"'), metric="in_region_rate"
    )
    assert dict(rates.drop_nulls("group").group_by("group").agg(pl.col("value").mean()).iter_rows()) == {
        name: float(name == "China") for name in REGIONS
    }  # fmt: skip
    similar = pl.read_parquet(root / "tables-task1/task1.parquet")
    assert set(similar["confidence"]) == {"high"}
    assert (similar["similar_id"] != similar["appealing_id"]).all()
    assert verify_run(root).exit_code == 0
