"""What a recipe `linguistic` is refused for before anything runs, and what it wires."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.recipes.linguistic.prompts import joined_prompts_stage
from culturekit.recipes.linguistic.recipe import Linguistic
from tests.conftest import stages_of


def linguistic(*stated: str) -> Linguistic:
    recipe = load_any_recipe(find_recipe("linguistic"), stated)
    assert isinstance(recipe, Linguistic)
    return recipe


def test_each_kind_of_prompts_has_its_own_scores(tmp_path: Path) -> None:
    parts = {"dialects": {"dialects", "tones-ita", "true-tones"}, "neutral": {"neutral-open", "true-neutral-open"},
             "specific": {"questions-open", "judged-modern", "true-ratings"}}  # fmt: skip
    for kind, own in parts.items():
        names = {stage.name for stage in stages_of(linguistic(f"prompts.kinds=[{kind}]"), tmp_path)}
        assert own <= names
        assert names.isdisjoint(set().union(*parts.values()) - own)


def test_forms_wait_where_nobody_answers(tmp_path: Path) -> None:
    names = {stage.name for stage in stages_of(linguistic("people.simulated=null"), tmp_path)}
    assert {"to-rate-persons", "to-rate-places", "tones-ita"} <= names
    assert names.isdisjoint({"rated-persons", "ratings", "judged-modern"})


def test_the_grid_of_the_paper(tmp_path: Path) -> None:
    """210 neutral prompts by 9, 9 and 4 images of three models are 4,620; 42 by 4 are 168."""
    recipe = linguistic("prompts.nouns=30", "prompts.kinds=[neutral]")
    assert recipe.prompt_count() == 210
    assert [recipe.plan_of(model).slots for model in recipe.models] == [9, 9, 4]
    assert sum(210 * recipe.plan_of(model).slots for model in recipe.models) == 4620
    assert linguistic("prompts.kinds=[specific]").prompt_count() == 42
    assert 42 * recipe.plan_of(recipe.models[2]).slots == 168


def test_another_dialect_is_named_once(tmp_path: Path) -> None:
    """What the prompts are called is what the scores compare."""
    of_both = "prompts.pairs={standard: British, other: Singlish%s}"
    with pytest.raises(UsageError, match=r"no pairs of British and Singlish.*SAE and AAE or Singlish"):
        stages_of(linguistic(of_both % "", "prompts.kinds=[dialects]"), tmp_path)
    lists = tmp_path / "pairs.yaml"
    lists.write_text(shipped("recipes/linguistic/linguistic_lists.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    recipe = linguistic(of_both % f", lists: {lists}", "prompts.kinds=[dialects]")
    every = linguistic(of_both.replace("British", "SAE") % "", f"prompts.lists={lists}")
    given = {stage.name: stage.inputs for stage in stages_of(every, tmp_path)}
    assert {given[f"prompts-{kind}"]["lists"] for kind in ("dialects", "neutral", "specific")} == {lists}
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    for name in ("prompts-dialects", "dialects", "true-dialects"):
        assert (stages[name].options["standard"], stages[name].options["other"]) == ("British", "Singlish")


def test_a_kind_without_prompts_is_refused_before_images_of_the_others(work: Work, tmp_path: Path) -> None:
    empty = write_table(tmp_path, PROMPTS, pl.DataFrame(schema=PROMPTS.schema))
    with pytest.raises(UsageError, match=f"no prompts of dialects.*became of proposals stands in {tmp_path}"):
        joined_prompts_stage({"dialects": empty}).run(work)


def test_given_dialects_are_those_that_are_compared(tmp_path: Path) -> None:
    row = {"text": "A cup.", "benchmark": "b", "kind": "dialect", "language": "en", "template_id": "t"}
    path = write_table(tmp_path, PROMPTS, pl.DataFrame(
        [{"prompt_id": group, "group": group, **row} for group in ("SAE", "SgE")], schema=PROMPTS.schema
    ))  # fmt: skip
    with pytest.raises(UsageError, match="dialects: no prompt is in AAE; found SAE, SgE"):
        linguistic(f"prompts.dialects={path}")
    with pytest.raises(UsageError, match="neutral: prompts with a group are held against prompts without"):
        linguistic(f"prompts.neutral={path}")
    assert linguistic(f"prompts.dialects={path}", "prompts.pairs.other=SgE").prompts.dialects == str(path)
