"""The part of a recipe that asks for tags."""

import pytest

from culturekit.config.load import load_recipe
from culturekit.errors import ConfigError
from culturekit.llm.answers import LlmOptions
from tests.conftest import SMALL


def test_a_recipe_has_no_tags_unless_it_asks_for_them() -> None:
    assert load_recipe(SMALL).tags is None


def test_tags_say_who_looks_at_how_many_and_what_that_may_cost() -> None:
    recipe = load_recipe(SMALL, ["tags.judge=openai:seer-1?price=1/2", "tags.images=40", "tags.budget=5"])
    assert recipe.tags is not None
    assert (recipe.tags.images, recipe.tags.options()) == (40, LlmOptions(5.0, 16, False))
    assert load_recipe(SMALL, ["tags.judge=openai:seer-1"]).tags.images == "all"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["tags.judge=rules"], "sees no image"),
        (["tags.judge=openai:seer-1", "tags.images=4"], "less than one repeat of 8 images"),
        (["tags.judge=openai:seer-1", "tags.images=none"], "tags.images"),
        (["tags.images=40"], "tags.judge"),
        (["tags.judge=opnai:seer-1"], "openai"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(SMALL, settings)
    assert said in str(caught.value)
