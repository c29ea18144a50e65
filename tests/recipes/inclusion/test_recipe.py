"""What a recipe of the kind `inclusion` may say."""

from pathlib import Path

import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import ConfigError
from tests.metrics.inclusion.task_worlds import line, write_csv


def refused(*settings: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_any_recipe(find_recipe("inclusion"), settings)
    return str(error.value)


def test_the_shipped_recipe_loads_and_knows_the_truth() -> None:
    recipe = load_any_recipe(find_recipe("inclusion"))
    assert recipe.prompts == 18  # type: ignore[attr-defined]
    assert recipe.truthful  # type: ignore[attr-defined]


def test_an_extractor_that_is_to_name_regions_has_to_be_one() -> None:
    assert "texts: 'nobody' is no extractor; expected one of texture, content, captioner" in refused("texts=nobody")


def test_forms_ask_about_the_regions_of_the_recipe() -> None:
    load_any_recipe(find_recipe("inclusion"), ["places=geode"])


def test_thresholds_are_of_models_or_photographs() -> None:
    assert "thresholds names 'rogh', which is no model" in refused("thresholds.rogh=0.2")
    load_any_recipe(find_recipe("inclusion"), ["thresholds.real=0.2"])


def test_a_threshold_is_a_cosine() -> None:
    assert "thresholds.local: input should be less than or equal to 1, found '21'" in refused("thresholds.local=21")


def test_published_annotations_are_looked_at_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "task2.csv"
    path.write_text("img_path,object\na.jpg,bag\n", encoding="utf-8")
    assert "lacks the column region, annotator_id" in refused(f"published={path}")
    write_csv(path, [line("a.jpg", "?", 0, "Africa", "{'match': 'nm'}")])
    assert "no row can be read; found malformed: region is no name of a region" in refused(f"published={path}")
    write_csv(path, [line("a.jpg", "Africa", 0, "Africa", "{'match': 'nm'}")])
    load_any_recipe(find_recipe("inclusion"), [f"published={path}"])


def test_simulated_people_know_only_simulated_pictures() -> None:
    assert "simulated people know only what simulated-objects drew" in refused(
        "photographs.backend=simulated-scenes?knows=1"
    )


def test_no_more_photographs_are_wanted_than_are_taken_in() -> None:
    assert "least: no more than each, the 24 photographs" in refused("photographs.least=180")
    load_any_recipe(find_recipe("inclusion"), ["photographs.least=180", "photographs.each=200"])


def test_triplets_that_need_more_images_than_are_made_are_refused_before_any_is() -> None:
    few = "triplets take at least 49 images of each prompt; images.slots is 12"
    assert few in refused("people.scaled=false")
    load_any_recipe(find_recipe("inclusion"), ["people.scaled=false", "images.slots=49"])
    assert "photographs.each is 24" in refused("people.near=20", "people.far=10", "images.slots=30")
