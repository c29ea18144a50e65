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


def test_published_annotations_are_looked_at_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "task2.csv"
    path.write_text("img_path,object\na.jpg,bag\n", encoding="utf-8")
    assert "lacks the column region, annotator_id" in refused(f"published={path}")
    write_csv(path, [line("a.jpg", "?", 0, "Africa", "{'match': 'nm'}")])
    assert "no row can be read; found malformed: region is no name of a region" in refused(f"published={path}")
    write_csv(path, [line("a.jpg", "Africa", 0, "Africa", "{'match': 'nm'}")])
    load_any_recipe(find_recipe("inclusion"), [f"published={path}"])
