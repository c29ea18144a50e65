import json
from pathlib import Path

import pytest

from culturekit.core.errors import ConfigError
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from tests.command_line import culturekit
from tests.conftest import SMALL, stages_of
from tests.generation.folder.folder_worlds import prompts

PAID = '  - {name: gpt, backend: "openai:gpt-image-1?quality=low", buying: {budget: 5, batch: true}}\n'


def recipe_with(line: str, folder: Path) -> Path:
    text = SMALL.read_text(encoding="utf-8").replace("diagnosis:", f"{line}diagnosis:")
    path = folder / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_is_told_in_words_and_as_data(tmp_path: Path) -> None:
    command = ("generate", "--backend", "openai:gpt-image-1?quality=high", "--prompts", prompts(tmp_path))
    more = ("--slots", "2", "--plan", "--out", tmp_path / "out")
    answer = culturekit(*command, *more, ends=0)
    assert "8 images by gpt-image-1: 8 calls, 0 bought already, 8 left" in answer.stdout
    assert "nothing was sent" in answer.stdout
    data = json.loads(culturekit(*command, *more, "--json").stdout)
    assert data["usd"] == pytest.approx(8 * 0.1664, rel=0.01)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [["--plan"], ["--budget", "1"], ["--batch"], ["--concurrency", "2"]])
def test_what_costs_nothing_is_not_bought(option: list[str], tmp_path: Path) -> None:
    command = ("generate", "--backend", "simulated", "--prompts", prompts(tmp_path), "--out", tmp_path / "o")
    assert "paid services" in culturekit(*command, *option, ends=2).stderr


def test_a_recipe_plans_the_dollars_of_its_services(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_with(PAID, tmp_path))
    planned = {step.name: step for step in plan_recipe(recipe, tmp_path / "run")}
    assert planned["images-gpt"].dollars == pytest.approx(24 * 0.01088 / 2)
    assert planned["images-broad"].dollars == 0.0


def test_how_images_are_bought_is_no_part_of_what_decides_them(tmp_path: Path) -> None:
    def options(line: str) -> object:
        recipe = load_recipe(recipe_with(line, tmp_path))
        return next(stage for stage in stages_of(recipe, tmp_path) if stage.name == "images-gpt").options

    assert options(PAID) == options(PAID.replace("budget: 5, batch: true", "concurrency: 3"))
    assert options(PAID) == options(PAID.replace("quality=low", "quality=low&image_price=1&rpm=5"))
    assert options(PAID) != options(PAID.replace("quality=low", "quality=high"))


def test_a_budget_of_what_costs_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="buying is for paid services"):
        load_recipe(recipe_with("  - {name: free, backend: simulated, buying: {budget: 5}}\n", tmp_path))
